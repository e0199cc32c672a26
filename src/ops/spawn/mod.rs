//! Makes a run with all its worktrees and branches. After an error, nothing of the run is left.
pub mod add;
pub mod attempts;
pub mod command;
pub mod cost_limit;
pub mod limits;
mod one_attempt;
pub mod prepare;
pub mod put_back;
pub mod recover;
pub mod resume;
mod stopped_agents;
pub mod synthesis;
mod waiting;
mod worktree_root;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Instant;

use crate::config::keys;
use crate::error::{Error, IoContext, Result};
use crate::fs::lock::Lock;
use crate::fs::tree;
use crate::git::capture;
use crate::git::commit::neutral_commit;
use crate::git::fan_out;
use crate::git::registration::{self, NewWorktree};
use crate::git::worktree::Worktree;
use crate::integrity::trust;
use crate::model::FORMAT;
use crate::model::candidate::{Candidate, State};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::{Assignment, GivenLimits, Parent, Run};
use crate::model::trailer;
use crate::ops::guard;
use crate::ops::session::Session;
use crate::ops::spawn::command::{CandidateCommand, words};
use crate::ops::spawn::prepare::{Preparation, Prepared};
use crate::ops::spawn::worktree_root::worktree_root;
use crate::process::{self, ports};
use crate::store::candidate::CandidateRef;
use crate::store::events::Event;
use crate::store::intents::Phase;

/// The description of new candidates. Their names are valid and distinct.
pub struct NewCandidates {
    /// The candidates, in spawn order.
    pub names: Vec<Name>,
    /// The agents or commands of the candidates that have their own.
    pub agents: BTreeMap<Name, Assignment>,
    /// The command that the user typed for all candidates; empty if agents or people work in the
    /// worktrees. Unlike a command in a record, it need not be UTF-8.
    pub command: Vec<OsString>,
    /// The prompt for the commands.
    pub prompt: Option<Arc<[u8]>>,
    /// The time limits that the user gave for the commands.
    pub limits: GivenLimits,
}

impl NewCandidates {
    /// The commands of the candidates: the typed command if there is one; else each candidate's
    /// own. A candidate in whose worktree a person works has no command.
    pub fn commands(&self) -> Vec<(Name, CandidateCommand)> {
        let mut commands = Vec::new();
        for name in &self.names {
            let command = match (self.command.as_slice(), self.agents.get(name)) {
                ([], None) => continue,
                ([], Some(own)) => CandidateCommand::assigned(own, self.prompt.clone()),
                (argv, _) => CandidateCommand::typed(argv, self.prompt.clone()),
            };
            commands.push((name.clone(), command));
        }
        commands
    }
}

/// The description of a new run.
pub struct Request {
    /// The run's name; the next number if `None`.
    pub name: Option<Name>,
    /// The run's candidates.
    pub new: NewCandidates,
    /// The commit that the candidates start from.
    pub start: Start,
    /// The id of the task that the run belongs to, if the user gave one.
    pub task: Option<String>,
    /// The arguments with which the user called `git frites run`.
    pub arguments: Vec<String>,
    /// The branch that `git frites run` will merge a verified winner into.
    pub merge_into: Option<RefName>,
}

/// The commit that a run's candidates start from, and where that commit comes from.
pub struct Start {
    /// The commit.
    pub base: Oid,
    /// The candidate whose state this commit is; `None` if the commit is the user's.
    pub parent: Option<Parent>,
}

impl Start {
    /// The start at a commit that the user named. An attempt may have made this commit, or one in
    /// its history. If no branch, tag or remote-tracking branch of the user reaches the attempt's
    /// commit, the run becomes a child of that attempt, as with [`Start::from`].
    pub fn at(session: &Session, revision: &str) -> Result<Start> {
        let base = session.repo.resolve_commit(revision)?;
        let Some((run, name)) = session.store.maker_of(&base)? else {
            return Ok(Start { base, parent: None });
        };
        let candidate = session.store.candidate(&run, &name);
        let iteration = trailer::iteration(&session.repo.commit(&base)?.message);
        session.ui.note(format!(
            "'{revision}' was made by {candidate}, and no branch of yours has it: commit {} has the \
             tests that judge the new run, and the winner lands on this commit",
            run.root().short()
        ));
        Ok(Start { base, parent: Some(child_of(session, candidate, iteration)?) })
    }

    /// The commit whose tests and commands judge the run (see [`Run::root`]).
    pub fn root(&self) -> &Oid {
        self.parent.as_ref().map_or(&self.base, |parent| &parent.root)
    }

    /// The start at a candidate's current state, which is captured first. Fails if the chain of
    /// parents would be longer than `limits.inheritance`.
    pub fn from(session: &Session, candidate: CandidateRef<'_>) -> Result<Start> {
        let parent = child_of(session, candidate, None)?;
        let captured = session.capture(candidate)?;
        session.print_omissions(&captured);
        if captured.candidate.state == State::Running {
            session.ui.warn(format!("{candidate} is still at work: this is its current state"));
        }
        let iteration = captured.capture.as_ref().map(|c| c.iteration);
        let base = captured.capture.map_or_else(|| candidate.run.base, |c| c.commit);
        Ok(Start { base, parent: Some(Parent { iteration, ..parent }) })
    }
}

/// The record of the parent for a run that starts from this candidate. Fails if the chain of
/// parents would be longer than `limits.inheritance`.
fn child_of(
    session: &Session,
    candidate: CandidateRef<'_>,
    iteration: Option<u32>,
) -> Result<Parent> {
    let run = candidate.run;
    let depth = run.depth().saturating_add(1);
    let limit = session.config.get(keys::LIMITS_INHERITANCE);
    if depth as usize > limit {
        return Err(Error::fatal(format!(
            "{candidate} has {} generations of parents: one more is beyond limits.inheritance = {limit}",
            run.depth()
        ))
        .hint(format!("land it first: `git frites apply {candidate}`"))
        .hint("or raise the limit: `git config frites.limits.inheritance N`"));
    }
    Ok(Parent {
        run: run.run.clone(),
        candidate: candidate.name.clone(),
        iteration,
        root: *run.root(),
        depth,
    })
}

/// The new candidates of a run. The run may be new, too. The caller keeps the run locked until the
/// candidates' commands have ended.
pub struct SpawnedRun {
    pub run: Run,
    /// The new candidates, in spawn order.
    pub names: Vec<Name>,
    /// The commands of the candidates that have one.
    pub commands: Vec<(Name, CandidateCommand)>,
    /// The result of preparing each candidate's worktree, in spawn order.
    pub prepared: Vec<Prepared>,
    /// The run's lock.
    pub lock: Lock,
}

/// Makes a run. After an error, nothing of the run is left.
///
/// All checks come before the first effect: the limits, the programs, the disk space, and whether
/// the name is free.
pub fn spawn(session: &Session, request: Request) -> Result<SpawnedRun> {
    let _span = tracing::info_span!("spawn").entered();
    limits::require_depth(session)?;
    limits::require_room(session, 0, request.new.names.len())?;
    let commands = request.new.commands();
    commands.iter().try_for_each(|(_, command)| command.require_program())?;
    if !commands.is_empty() {
        guard::choose(session)?;
    }
    trust::require_trust(session.integrity(), None)?;
    refuse_blocked_refs(session)?;
    let preparation = Preparation::new(session, &request.start.base, request.new.names.len())?;
    let tree = session.repo.commit(&request.start.base)?.tree;
    preparation.warn_of_missing_files(session, &tree, &commands)?;
    let repository = session.store.lock_repository()?;
    let (run, lock) = draft(session, request)?;
    let prepared = make(session, &run, &run.candidates, repository, &preparation)?;
    record_spawned(session, &run);
    preparation.report(session, &run, &run.candidates, &prepared);
    Ok(SpawnedRun { names: run.candidates.clone(), run, commands, prepared, lock })
}

/// Records in the event log that a run was made.
pub fn record_spawned(session: &Session, run: &Run) {
    let event = Event::Spawned {
        base: run.base,
        candidates: run.candidates.clone(),
        parent: run.parent.clone(),
        task: run.task.clone(),
    };
    session.record_or_warn(&run.run, &event);
}

/// Fails if a branch has a name such as `frites`, because git then cannot make the branches below
/// it, e.g. `frites/run/…`.
pub fn refuse_blocked_refs(session: &Session) -> Result<()> {
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

/// The record of a new run, which is not stored yet, and the run's lock. The caller holds the
/// repository lock.
pub fn draft(session: &Session, request: Request) -> Result<(Run, Lock)> {
    let Session { repo, store, .. } = session;
    let NewCandidates { names, agents, command, prompt, limits } = request.new;
    let prompt = prompt.map(|text| repo.store_blob(text.as_ref())).transpose()?;
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
        candidates: names,
        command: words(&command),
        prompt,
        task: request.task,
        worktree_root: worktree_root(session)?,
        parent: request.start.parent,
        agents,
        synthesis: BTreeMap::new(),
        added: BTreeMap::new(),
        tasks: BTreeMap::new(),
        limits,
        arguments: request.arguments,
        merge_into: request.merge_into,
    };
    Ok((run, lock))
}

/// Makes the worktrees of new candidates, and then the record that lists them. After an error, none
/// of these candidates is left; if the run has no others, nothing of the run is left. The caller
/// holds the run's lock and the repository lock.
fn make(
    session: &Session,
    run: &Run,
    names: &[Name],
    repository: Lock,
    preparation: &Preparation,
) -> Result<Vec<Prepared>> {
    let store = &session.store;
    let is_new = names == run.candidates;
    // The intent is written before the first effect. If this process dies, the next command reads
    // the intent, and removes the candidates.
    let begun = match is_new {
        true => store.save_intent(run),
        false => store.set_active(&run.run, Phase::Adding(names.to_vec())),
    };
    let registered = begun.and_then(|()| register_all(session, run, names));
    drop(repository);
    let filled = registered.and_then(|registered| {
        let populate = || populate(session, run, names, &registered, preparation);
        // If a worktree begins with a change from elsewhere, it needs no uncommitted changes of the
        // user's checkout. So the user is not told that it lacks them.
        let prepared = match names.iter().any(|name| run.seed(name).is_some()) {
            false => Preparation::beside_look_at_checkout(session, &run.base, populate)?,
            true => populate()?,
        };
        // Once the run's record lists the candidates, recovery expects all of them to be complete.
        let mut kept = store.judged(&run.run)?;
        let seeds: BTreeSet<&Oid> = names.iter().filter_map(|name| run.seed(name)).collect();
        for tree in seeds {
            kept.push(neutral_commit(&session.repo, tree, &run.base)?);
        }
        store.save_record(run, store.verdict(&run.run)?.as_ref(), &kept)?;
        Ok(prepared)
    });
    let error = match filled {
        Ok(prepared) if names.iter().any(|name| run.has_command(name)) => {
            return store.set_active(&run.run, Phase::Running).map(|()| prepared);
        }
        Ok(prepared) => return store.clear_active(&run.run).map(|()| prepared),
        Err(error) => error,
    };
    let undone = match is_new {
        true => recover::roll_back(store, run),
        false => recover::take_back(store, run, names).and_then(|()| store.clear_active(&run.run)),
    };
    let Err(second) = undone else { return Err(error.hint("nothing was made")) };
    session.ui.warn(format!("the unfinished parts of run {run} could not be removed: {second}"));
    Err(error.hint("the next git-frites command tries to remove the unfinished parts again"))
}

/// The next free number for a run, and the lock of the run with this number. The caller holds the
/// repository lock.
fn numbered(session: &Session) -> Result<(Name, Lock)> {
    let mut name = session.store.next_number()?;
    // The lock of a free number may still be held by a process that is removing the run of this
    // number.
    loop {
        match session.store.try_lock_run(&name)? {
            Some(lock) => return Ok((name, lock)),
            None => name = name.next_number(),
        }
    }
}

/// The first ports of the blocks for `count` new candidates. No block belongs to another candidate
/// that has a worktree. The caller holds the repository lock.
fn free_ports(session: &Session, count: usize) -> Result<Vec<u16>> {
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

/// A new worktree that has no files yet, and the port for its candidate; `None` if no port was
/// free.
struct Registered {
    worktree: Worktree,
    port: Option<u16>,
}

/// Makes the administrative entries and branches of new worktrees. The caller holds the repository
/// lock.
fn register_all(session: &Session, run: &Run, names: &[Name]) -> Result<Vec<Registered>> {
    let mut ports = free_ports(session, names.len())?.into_iter();
    let mut all = Vec::new();
    for candidate in names.iter().map(|name| session.store.candidate(run, name)) {
        let path = candidate.worktree();
        if path.symlink_metadata().is_ok() {
            let what = format!("'{}' exists already", path.display());
            return Err(Error::fatal(what).hint("move it away"));
        }
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)
                .context(|| format!("could not make '{}'", directory.display()))?;
        }
        all.push(NewWorktree { path, branch: candidate.branch() });
    }
    let worktrees = registration::register_all(&session.repo, &all, &run.base)?;
    Ok(worktrees.into_iter().map(|worktree| Registered { worktree, port: ports.next() }).collect())
}

/// Fills registered worktrees: checks out files, places seeds, and runs `spawn.setup`. Also writes
/// the worktrees' indexes and the candidates' records.
fn populate(
    session: &Session,
    run: &Run,
    names: &[Name],
    registered: &[Registered],
    preparation: &Preparation,
) -> Result<Vec<Prepared>> {
    let places: Vec<(&Name, &Registered)> = names.iter().zip(registered).collect();
    let plain = places.iter().filter(|(name, _)| run.seed(name).is_none());
    let plain: Vec<&Worktree> = plain.map(|(_, place)| &place.worktree).collect();
    fan_out::populate(&session.repo, &plain, &run.base, preparation.file_times())?;
    let made = preparation.show(session, run, names, |board| {
        process::in_parallel(process::processors(), &places, |(name, place)| {
            board.began(name);
            if let Some(tree) = run.seed(name) {
                place.worktree.populate(tree.as_str())?;
            }
            let candidate = session.store.candidate(run, name);
            let clock = Instant::now();
            let made = prepare_candidate(session, candidate, place, preparation)?;
            board.ended(name, made.0.ending());
            preparation.tell_end(session, candidate, &made.0, clock.elapsed().as_secs_f64());
            Ok(made)
        })
    })?;
    let (prepared, records): (Vec<Prepared>, Vec<Candidate>) = made.into_iter().unzip();
    process::in_parallel(RECORDS_AT_ONCE, &records, |record| session.store.save_candidate(record))?;
    Ok(prepared)
}

/// The number of records that are written at the same time. Storing a record waits until the disk
/// has all new files, so it is faster to store all records at the same time.
const RECORDS_AT_ONCE: usize = 16;

/// Prepares one worktree whose files are checked out. Returns the candidate's record, which is not
/// stored yet.
fn prepare_candidate(
    session: &Session,
    candidate: CandidateRef<'_>,
    place: &Registered,
    preparation: &Preparation,
) -> Result<(Prepared, Candidate)> {
    let directory = candidate.directory();
    std::fs::create_dir_all(directory.path())
        .context(|| format!("could not make '{}'", directory.path().display()))?;
    capture::copy_index(&place.worktree.index(), &directory.index())?;
    candidate.logs().begin_round(true)?;
    let prepared = preparation.worktree(session, candidate)?;
    let has_command = candidate.run.has_command(candidate.name);
    let state = if has_command { State::Running } else { State::Open };
    let mut record = Candidate::new(
        &candidate.run.run,
        candidate.name,
        candidate.run.index_of(candidate.name).unwrap_or_default(),
        state,
    );
    record.port = place.port;
    let path = candidate.worktree();
    record.bytes = match prepared.has_more {
        true => tree::disk_usage(&path),
        false => capture::size_of_new_worktree(&candidate.directory().index()),
    };
    // If the worktree is made again, the new record takes three things from the old one:
    // * whether a person wants to review the worktree;
    // * the agents' usage so far;
    // * the access that earlier commands had outside of the worktree.
    let before = candidate.record()?;
    (record.kept, record.usage, record.access) = (before.kept, before.usage, before.access);
    if let Some(failure) = &prepared.failure {
        record.state = State::Failed;
        record.reason = Some(failure.clone());
    }
    Ok((prepared, record))
}
