//! Spawning: a run's worktrees and branches, all of them or none.
pub mod attempt;
pub mod checkpoint;
pub mod prepare;
pub mod recover;
pub mod resume;
pub mod synthesis;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use crate::config::keys;
use crate::error::{Error, IoContext, Result};
use crate::fs::lock::Lock;
use crate::git::capture;
use crate::git::worktree::{Head, Worktree};
use crate::integrity::watch;
use crate::model::FORMAT;
use crate::model::candidate::{Candidate, State};
use crate::model::env;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::{Assignment, Parent, Run};
use crate::ops::session::Session;
use crate::ops::spawn::attempt::Order;
use crate::ops::spawn::prepare::{Preparation, Prepared};
use crate::process::{self, ports};
use crate::store::candidate::CandidateRef;
use crate::store::events::Event;
use crate::store::intents::{Active, Phase};

/// What a new run is to be. Its names are valid and differ from each other.
pub struct Request {
    /// Its name; the next number if none.
    pub name: Option<Name>,
    /// Its candidates, in spawn order.
    pub candidates: Vec<Name>,
    /// Where they start.
    pub start: Start,
    /// The user's name for what it is for.
    pub task: Option<String>,
    /// What commands are asked to do.
    pub prompt: Option<Arc<[u8]>>,
    /// The command of every candidate; empty if agents or people work there.
    pub command: Vec<OsString>,
    /// The candidates' agents, if any.
    pub agents: BTreeMap<Name, Assignment>,
    /// What `git frites run` was typed with.
    pub arguments: Vec<String>,
}

impl Request {
    /// What runs for each candidate; nothing where people work.
    pub fn orders(&self) -> Vec<(Name, Order)> {
        let order = |name: &Name| match self.agents.get(name) {
            Some(agent) => Some(Order::assigned(agent, self.prompt.clone())),
            None => (!self.command.is_empty())
                .then(|| Order::command(&self.command, self.prompt.clone())),
        };
        self.candidates.iter().filter_map(|name| Some((name.clone(), order(name)?))).collect()
    }
}

/// Where a run's candidates start.
pub struct Start {
    /// The commit.
    pub base: Oid,
    /// Whose state that is, if a candidate's.
    pub parent: Option<Parent>,
}

impl Start {
    /// A commit, as the user names it.
    pub fn at(session: &Session, revision: &str) -> Result<Start> {
        Ok(Start { base: session.repo.resolve_commit(revision)?, parent: None })
    }

    /// A candidate's state as it is now: captured first, so that a child starts from its very files.
    /// Refuses a line of parents that is longer than `limits.inheritance`.
    pub fn from(session: &Session, candidate: CandidateRef<'_>) -> Result<Start> {
        let run = candidate.run;
        let (depth, limit) =
            (run.depth().saturating_add(1), session.config.get(keys::LIMITS_INHERITANCE));
        if depth as usize > limit {
            return Err(Error::fatal(format!(
                "{candidate} has {} generations of parents: one more is beyond limits.inheritance = {limit}",
                run.depth()
            ))
            .hint(format!("land it first: `git frites apply {candidate}`"))
            .hint("or raise the limit: `git config frites.limits.inheritance N`"));
        }
        let captured = session.capture(candidate)?;
        session.tell_notes(&captured);
        if captured.candidate.state == State::Running {
            session.ui.warn(format!("{candidate} is still at work: this is its state of now"));
        }
        let iteration = captured.capture.as_ref().map(|c| c.iteration);
        let base = captured.capture.map_or_else(|| run.base, |c| c.commit);
        Ok(Start {
            base,
            parent: Some(Parent {
                run: run.run.clone(),
                candidate: candidate.name.clone(),
                iteration,
                root: *run.root(),
                depth,
            }),
        })
    }
}

/// A run as it was made, held until its commands have ended.
pub struct Made {
    /// The run.
    pub run: Run,
    /// How each candidate's worktree was prepared, in spawn order.
    pub prepared: Vec<Prepared>,
    /// The run's lock.
    pub lock: Lock,
}

/// Makes a run, or nothing.
///
/// Everything that can be refused is refused before the first effect: limits, a program that is nowhere, a disk
/// that is too full, a name that is taken.
pub fn spawn(session: &Session, request: Request) -> Result<Made> {
    let _span = tracing::info_span!("spawn").entered();
    require_depth(session)?;
    require_limits(session, request.candidates.len())?;
    request.orders().iter().try_for_each(|(_, order)| require_program(order))?;
    watch::require_trust(session, None)?;
    refuse_blocked_refs(session)?;
    prepare::require_space(session, &request.start.base, request.candidates.len())?;
    let preparation = Preparation::new(session, &request.start.base)?;
    let made = make(session, request, &preparation)?;
    let run = &made.run;
    let event = Event::Spawned {
        base: run.base,
        candidates: run.candidates.clone(),
        parent: run.parent.clone(),
        task: run.task.clone(),
    };
    session.store.record_event(&run.run, &event)?;
    preparation.tell(session, run, &run.candidates, &made.prepared)?;
    Ok(made)
}

/// Refuses to start candidates' commands in a candidate's command, deeper than `limits.nesting`.
pub fn require_depth(session: &Session) -> Result<()> {
    let (depth, nesting) = (depth()?, session.config.get(keys::LIMITS_NESTING));
    if depth as usize >= nesting {
        return Err(Error::fatal(format!(
            "this is a candidate's command already, {depth} deep, and limits.nesting = {nesting}"
        ))
        .hint("an attempt that spawns attempts seldom ends; if it is meant to: `git config frites.limits.nesting N`"));
    }
    Ok(())
}

/// Refuses what would be more than `[limits]` allows: candidates of a run, and worktrees of all runs.
pub fn require_limits(session: &Session, wanted: usize) -> Result<()> {
    let candidates = session.config.get(keys::LIMITS_CANDIDATES);
    if wanted > candidates {
        return Err(Error::fatal(format!(
            "{wanted} candidates are more than limits.candidates = {candidates}"
        ))
        .hint("ask for fewer, or raise it: `git config frites.limits.candidates N`"));
    }
    let limit = session.config.get(keys::LIMITS_WORKTREES);
    let mut present = 0;
    for run in session.store.runs()? {
        present += session.store.candidates(&run).filter(|c| c.worktree().exists()).count();
    }
    if present + wanted > limit {
        return Err(Error::fatal(format!(
            "{present} worktrees and {wanted} new ones are more than limits.worktrees = {limit}"
        ))
        .hint("remove old runs with `git frites clean RUN`, or raise it: `git config frites.limits.worktrees N`"));
    }
    Ok(())
}

/// How many candidates' commands we are inside of.
pub fn depth() -> Result<u32> {
    let Some(text) = std::env::var_os(env::DEPTH) else { return Ok(0) };
    text.to_str().and_then(|t| t.parse().ok()).ok_or_else(|| {
        Error::fatal(format!("{} is no number: '{}'", env::DEPTH, text.to_string_lossy()))
            .hint(format!("`unset {}`", env::DEPTH))
    })
}

/// A program that is nowhere would fail in every worktree: say so before any is made.
pub fn require_program(order: &Order) -> Result<()> {
    let Some(program) =
        order.argv.first().filter(|p| !p.as_bytes().contains(&b'/') && !process::on_path(p))
    else {
        return Ok(());
    };
    let program = program.to_string_lossy();
    Err(match &order.agent {
        None => Error::fatal(format!("'{program}' is not on PATH"))
            .hint("a command after -- is a program and its arguments; for a shell line write `-- sh -c '…'`"),
        Some(agent) => {
            Error::fatal(format!("the agent '{agent}' is not here: '{program}' is not on PATH")).hint(format!(
                "install it, or say how it is called: `git config frites.agent.{agent}.command 'PROGRAM ARGUMENTS'`"
            ))
        }
    })
}

/// A branch called `frites` leaves no room for `frites/run/…`.
fn refuse_blocked_refs(session: &Session) -> Result<()> {
    for blocker in ["refs/heads/frites", "refs/heads/frites/run", "refs/frites"].map(RefName::new) {
        if session.repo.read_ref(&blocker)?.is_some() {
            let branch = blocker.short();
            return Err(Error::fatal(format!(
                "a branch named '{branch}' is in the way of the branches '{branch}/…'"
            ))
            .hint(format!("rename it: `git branch -m {branch} NEW-NAME`")));
        }
    }
    Ok(())
}

fn make(session: &Session, request: Request, preparation: &Preparation) -> Result<Made> {
    let Session { repo, store, .. } = session;
    let prompt = request.prompt.map(|text| repo.store_blob(text.as_ref())).transpose()?;
    let repository = store.lock_repository()?;
    let (name, lock) = match request.name {
        Some(name) => {
            store.refuse_taken(&name)?;
            let lock = store.lock_run(&name)?;
            (name, lock)
        }
        None => numbered(session)?,
    };
    let run = Run {
        version: FORMAT,
        run: name,
        base: request.start.base,
        created: jiff::Timestamp::now(),
        candidates: request.candidates,
        command: request.command.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        prompt,
        task: request.task,
        worktree_root: session.config.get(keys::SPAWN_WORKTREE_ROOT),
        parent: request.start.parent,
        agents: request.agents,
        synthesis: BTreeMap::new(),
        arguments: request.arguments,
    };
    let active = Active { phase: Phase::Making, entries: recover::entry_names(repo)? };
    let ports = free_ports(session, run.candidates.len())?;
    // The intent, before the first effect: whoever finds it without a holder takes the run back.
    store.set_active(&run.run, &active)?;
    let made = store.save_intent(&run).and_then(|()| {
        run.candidates
            .iter()
            .map(|name| register(session, store.candidate(&run, name)))
            .collect::<Result<Vec<Worktree>>>()
    });
    drop(repository);
    let filled = made.and_then(|worktrees| {
        let places: Vec<(&Name, &Worktree)> = run.candidates.iter().zip(&worktrees).collect();
        let prepared = process::in_parallel(process::processors(), &places, |(name, worktree)| {
            let port = run.index_of(name).and_then(|index| ports.get(index as usize - 1)).copied();
            fill(session, store.candidate(&run, name), worktree, preparation, port)
        })?;
        store.save_record(&run, None, &[])?;
        Ok(prepared)
    });
    let prepared = match filled {
        Ok(prepared) => prepared,
        Err(error) => {
            recover::roll_back(store, &run, &active.entries)?;
            return Err(error.hint("nothing was made"));
        }
    };
    if run.has_commands() {
        store.set_active(&run.run, &Active { phase: Phase::Running, entries: Vec::new() })?;
    } else {
        store.clear_active(&run.run)?;
    }
    Ok(Made { run, prepared, lock })
}

/// The next number, and the lock of that run. The caller holds the repository lock.
fn numbered(session: &Session) -> Result<(Name, Lock)> {
    let mut name = session.store.next_number()?;
    // A run that is being taken back may have let go of its number and not yet of its lock.
    loop {
        match session.store.try_lock_run(&name)? {
            Some(lock) => return Ok((name, lock)),
            None => name = name.following(),
        }
    }
}

/// Ports for that many candidates that no other candidate with a worktree has. The caller holds the repository
/// lock.
pub fn free_ports(session: &Session, count: usize) -> Result<Vec<u16>> {
    let Session { repo, store, .. } = session;
    let mut taken = BTreeSet::new();
    for run in store.runs()? {
        for candidate in store.candidates(&run).filter(|c| c.worktree().exists()) {
            taken.extend(candidate.record()?.port);
        }
    }
    let key = u64::from_str_radix(&repo.key(), 16).unwrap_or_default();
    Ok(ports::free_blocks(count, &taken, key))
}

/// The administrative half of a worktree. The caller holds the repository lock.
pub fn register(session: &Session, candidate: CandidateRef<'_>) -> Result<Worktree> {
    let path = candidate.worktree();
    if path.symlink_metadata().is_ok() {
        return Err(
            Error::fatal(format!("'{}' exists already", path.display())).hint("move it away")
        );
    }
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .context(|| format!("could not make '{}'", directory.display()))?;
    }
    Worktree::register(&session.repo, &path, Head::Branch(&candidate.branch()), &candidate.run.base)
}

/// The checkout half: files, seeds, setup, the private index, the record.
pub fn fill(
    session: &Session,
    candidate: CandidateRef<'_>,
    worktree: &Worktree,
    preparation: &Preparation,
    port: Option<u16>,
) -> Result<Prepared> {
    match candidate.run.synthesis.get(candidate.name) {
        None => worktree.populate()?,
        Some(synthesis) => worktree.populate_with(synthesis.seed.as_str())?,
    }
    let directory = candidate.directory();
    std::fs::create_dir_all(&directory)
        .context(|| format!("could not make '{}'", directory.display()))?;
    capture::copy_index(&worktree.index(), &candidate.index())?;
    let prepared = preparation.worktree(session, candidate)?;
    let state = if candidate.run.has_commands() { State::Running } else { State::Open };
    let mut record = Candidate::new(
        &candidate.run.run,
        candidate.name,
        candidate.run.index_of(candidate.name).unwrap_or_default(),
        state,
    );
    record.port = port;
    // What is made again stays marked for review.
    record.kept = candidate.record()?.kept;
    if let Some(failure) = &prepared.failure {
        record.state = State::Failed;
        record.reason = Some(failure.clone());
    }
    session.store.save_candidate(&record)?;
    Ok(prepared)
}
