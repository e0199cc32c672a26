//! `git frites spawn`: makes candidates, and runs a command in them.
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde_json::json;

use super::parse_name;
use crate::cli;
use crate::config::keys;
use crate::error::{Error, IoContext, Result, exit};
use crate::funnel::preparing::{self, Preparation, Prepared};
use crate::funnel::session::{Captured, Session};
use crate::funnel::{escape, removing};
use crate::git::capture::Notes;
use crate::git::worktree::{self, Head};
use crate::git::{capture, refs};
use crate::model::FORMAT;
use crate::model::candidate::{Candidate, State};
use crate::model::name::Name;
use crate::model::outcome::Outcome;
use crate::model::run::Run;
use crate::process::{self, Job, Limits};
use crate::store::heal::{self, Active, Phase};
use crate::store::lock::Lock;
use crate::ui::{json, table};

/// Runs the command.
pub fn run(session: &Session, args: &cli::Spawn) -> Result<u8> {
    let names = candidate_names(args)?;
    let wanted = args.run.as_deref().map(|text| parse_name("--run", text)).transpose()?;
    check_limits(session, &names)?;
    check_program(&args.command)?;
    escape::require_trust(session, None)?;
    let base = session.repo.resolve_commit(&args.base)?;
    refuse_blocked_refs(session)?;
    preparing::require_space(session, &base, names.len())?;
    let preparation = Preparation::new(session, &base)?;

    let run = Run {
        version: FORMAT,
        run: names[0].clone(), // replaced under the lock, where the number is known
        base,
        created: jiff::Timestamp::now(),
        candidates: names,
        command: args.command.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        worktree_root: session.config.get(keys::SPAWN_WORKTREE_ROOT),
    };
    let (run, prepared, _lock) = make(session, run, wanted, &preparation)?;
    session.store.record_event("spawned", &run.run, json!({ "base": run.base, "candidates": run.candidates }))?;

    preparation.tell(session, &run, &prepared)?;

    let (results, escaped) = if args.command.is_empty() { Default::default() } else { work(session, &run, args)? };
    answer(session, &run, args, &escaped)?;
    let open = args.command.is_empty() && prepared.iter().any(|p| p.failure.is_none());
    if open || results.iter().any(Captured::usable) {
        if !args.command.is_empty() {
            session.ui.hint(format!("compare with `git frites diff {0}`, decide with `git frites judge {0}`", run.run));
        }
        return Ok(exit::OK);
    }
    session.ui.warn("no candidate is usable");
    session.ui.hint(format!(
        "`git frites status {}` says why; the logs are in '{}'",
        run.run,
        session.store.run_dir(&run.run).display()
    ));
    Ok(exit::UNUSABLE)
}

fn candidate_names(args: &cli::Spawn) -> Result<Vec<Name>> {
    let names: Vec<Name> = if args.candidates.is_empty() {
        (1..=args.count.unwrap_or(2)).map(|n| parse_name("-n", &format!("c{n}"))).collect::<Result<_>>()?
    } else {
        args.candidates.iter().map(|text| parse_name("-c", text)).collect::<Result<_>>()?
    };
    for (at, name) in names.iter().enumerate() {
        if let Some(twin) = names[..at].iter().find(|other| other.collides(name)) {
            return Err(Error::usage(format!("-c: '{name}' and '{twin}' are the same name on some file systems"))
                .hint("give each candidate a name that differs in more than case"));
        }
    }
    Ok(names)
}

fn check_limits(session: &Session, names: &[Name]) -> Result<()> {
    let candidates = session.config.get(keys::LIMITS_CANDIDATES);
    if names.len() > candidates {
        return Err(Error::fatal(format!("{} candidates are more than limits.candidates = {candidates}", names.len()))
            .hint("ask for fewer, or raise it: `git config frites.limits.candidates N`"));
    }
    let limit = session.config.get(keys::LIMITS_WORKTREES);
    let mut present = 0;
    for run in session.store.runs(&session.repo)? {
        present += run.candidates.iter().filter(|c| session.store.worktree(&run, c).exists()).count();
    }
    if present + names.len() > limit {
        return Err(Error::fatal(format!(
            "{present} worktrees and {} new ones are more than limits.worktrees = {limit}",
            names.len()
        ))
        .hint("remove old runs with `git frites clean RUN`, or raise it: `git config frites.limits.worktrees N`"));
    }
    Ok(())
}

/// A program that is nowhere would fail in every worktree: say so before any is made.
fn check_program(command: &[OsString]) -> Result<()> {
    match command.first() {
        Some(program) if !program.as_bytes().contains(&b'/') && !process::on_path(program) => {
            Err(Error::fatal(format!("'{}' is not on PATH", program.to_string_lossy()))
                .hint("a command after -- is a program and its arguments; for a shell line write `-- sh -c '…'`"))
        }
        _ => Ok(()),
    }
}

/// A branch called `frites` leaves no room for `frites/run/…`.
fn refuse_blocked_refs(session: &Session) -> Result<()> {
    for blocker in ["refs/heads/frites", "refs/heads/frites/run", "refs/frites"] {
        if session.repo.read_ref(blocker)?.is_some() {
            let branch = refs::short(blocker);
            return Err(Error::fatal(format!("a branch named '{branch}' is in the way of the branches '{branch}/…'"))
                .hint(format!("rename it: `git branch -m {branch} NEW-NAME`")));
        }
    }
    Ok(())
}

/// Makes the run's worktrees: all of them, or none.
fn make(
    session: &Session,
    mut run: Run,
    wanted: Option<Name>,
    preparation: &Preparation,
) -> Result<(Run, Vec<Prepared>, Lock)> {
    let Session { repo, store, .. } = session;
    let repository = store.lock_repository()?;
    let lock = match wanted {
        Some(name) => {
            store.refuse_taken(repo, &name)?;
            run.run = name;
            store.lock_run(&run.run)?
        }
        None => {
            run.run = store.next_number(repo)?;
            // A run that is being taken back may have let go of its number and not yet of its lock.
            loop {
                match store.try_lock_run(&run.run)? {
                    Some(lock) => break lock,
                    None => run.run = run.run.following(),
                }
            }
        }
    };
    let active = Active { phase: Phase::Making, entries: heal::entry_names(repo)? };
    // The intent, before the first effect: whoever finds it without a holder takes the run back.
    store.set_active(&run.run, &active)?;
    let made = store.save_intent(&run).and_then(|()| register_all(session, &run));
    drop(repository);
    let made = made.and_then(|admins| fill(session, &run, &admins, preparation));
    let prepared = match made {
        Ok(prepared) => prepared,
        Err(error) => {
            store.unmake(repo, &run, &active.entries)?;
            return Err(error.hint("nothing was made"));
        }
    };
    if run.command.is_empty() {
        store.clear_active(&run.run)?;
    } else {
        store.set_active(&run.run, &Active { phase: Phase::Running, entries: Vec::new() })?;
    }
    Ok((run, prepared, lock))
}

/// The administrative half, one after the other under the repository lock.
fn register_all(session: &Session, run: &Run) -> Result<Vec<(Name, std::path::PathBuf)>> {
    let mut admins = Vec::new();
    for name in &run.candidates {
        let path = session.store.worktree(run, name);
        if path.symlink_metadata().is_ok() {
            return Err(Error::fatal(format!("'{}' exists already", path.display())).hint("move it away"));
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).context(|| format!("could not make '{}'", folder.display()))?;
        }
        let admin = worktree::register(&session.repo, &path, Head::Branch(&refs::branch(&run.run, name)), &run.base)?;
        admins.push((name.clone(), admin));
    }
    Ok(admins)
}

/// The checkout half, in parallel, then the records.
fn fill(
    session: &Session,
    run: &Run,
    admins: &[(Name, std::path::PathBuf)],
    preparation: &Preparation,
) -> Result<Vec<Prepared>> {
    let state = if run.command.is_empty() { State::Open } else { State::Running };
    let prepared = process::in_parallel(process::processors(), admins, |(name, admin)| {
        worktree::populate(admin, &session.store.worktree(run, name))?;
        let folder = session.store.candidate_dir(&run.run, name);
        std::fs::create_dir_all(&folder).context(|| format!("could not make '{}'", folder.display()))?;
        capture::keep_index(admin, &session.store.index(&run.run, name))?;
        let prepared = preparation.worktree(session, run, name)?;
        let index = run.index_of(name).unwrap_or_default();
        let mut candidate = Candidate::new(&run.run, name, index, state);
        if let Some(failure) = &prepared.failure {
            candidate.state = State::Failed;
            candidate.reason = Some(failure.clone());
        }
        session.store.save_candidate(&candidate)?;
        Ok(prepared)
    })?;
    session.store.save_record(&session.repo, run, None, &[])?;
    Ok(prepared)
}

/// Runs the command in every worktree, and captures each as its command ends.
/// Gives them, and what changed outside of them meanwhile.
fn work(session: &Session, run: &Run, args: &cli::Spawn) -> Result<(Vec<Captured>, Vec<String>)> {
    let jobs = args.jobs.map(|n| n as usize).or(session.config.get(keys::SPAWN_JOBS));
    let jobs = jobs.unwrap_or_else(process::processors);
    let watch = escape::begin(session, run)?;
    let results = process::in_parallel(jobs, &run.candidates, |name| attempt(session, run, name, args));
    // Told also when a capture failed: a broken configuration may be why.
    let escaped = escape::end(session, run, watch)?;
    session.store.clear_active(&run.run)?;
    Ok((results?, escaped))
}

fn attempt(session: &Session, run: &Run, name: &Name, args: &cli::Spawn) -> Result<Captured> {
    let Session { store, .. } = session;
    if store.candidate(&session.repo, run, name)?.state == State::Failed {
        return session.stored(run, name); // its setup failed
    }
    let dir = store.worktree(run, name);
    let index = run.index_of(name).unwrap_or_default();
    let mut argv: Vec<OsString> =
        args.command.iter().map(|arg| fill_in(arg, run, name, index, dir.as_os_str())).collect();
    // `./codemod` is what the user sees under that name; if there is none, it is the worktree's.
    if let Some(program) = argv.first_mut().filter(|p| p.as_bytes().contains(&b'/'))
        && let Ok(real) = std::path::absolute(&*program)
        && real.is_file()
    {
        *program = real.into();
    }
    let log = store.log(&run.run, name, "agent");
    let depth: u32 = std::env::var("FRITES_DEPTH").ok().and_then(|d| d.parse().ok()).unwrap_or(0);
    let env: Vec<(String, OsString)> = vec![
        ("FRITES_RUN".into(), run.run.as_str().into()),
        ("FRITES_CANDIDATE".into(), name.as_str().into()),
        ("FRITES_INDEX".into(), index.to_string().into()),
        ("FRITES_COUNT".into(), run.candidates.len().to_string().into()),
        ("FRITES_BASE".into(), run.base.as_str().into()),
        ("FRITES_WORKTREE".into(), dir.clone().into()),
        ("FRITES_DEPTH".into(), (depth + 1).to_string().into()),
    ];
    let started = jiff::Timestamp::now();
    update(session, run, name, |c| c.started = Some(started))?;
    let limits = Limits {
        hard: Some(args.timeout.unwrap_or_else(|| session.config.get(keys::SPAWN_TIMEOUT))),
        // None of itself: many agents think for long before they print a word.
        idle: args.idle_timeout.or(session.config.get(keys::SPAWN_IDLE_TIMEOUT)),
    };
    let policy = &session.policy;
    let job = Job { argv: &argv, dir: &dir, policy, env, hide: &[], stdin: None, log: &log, limits };
    let end = process::run(&job).context(|| "could not run the command".into())?;
    update(session, run, name, |c| {
        c.ended = Some(jiff::Timestamp::now());
        c.leaky = end.leaky;
        (c.state, c.exit_code, c.signal, c.reason) = match &end.outcome {
            _ if end.cancelled => (State::Cancelled, None, None, Some("interrupted".into())),
            Outcome::TimedOut => (State::TimedOut, None, None, None),
            Outcome::Passed => (State::Succeeded, Some(0), None, None),
            Outcome::Failed { code } => (State::Failed, Some(*code), None, None),
            Outcome::Signalled { signal } => (State::Failed, None, Some(*signal), None),
            other => (State::Failed, None, None, Some(other.to_string())),
        };
    })?;
    let captured = session.capture_or_tell(run, name)?;
    let words = captured.candidate.state_in_words();
    let seconds = end.elapsed.as_secs_f64();
    let details = json!({ "candidate": name, "state": captured.candidate.state, "exit_code": captured.candidate.exit_code, "signal": captured.candidate.signal, "leaky": end.leaky, "seconds": seconds });
    store.record_event("ended", &run.run, details)?;
    session.ui.note(format!(
        "{}: {words} in {}, {}",
        captured.candidate.address(),
        table::duration(seconds),
        captured.blast
    ));
    if end.leaky {
        session.ui.warn(format!("{}: it left processes behind, which were ended", captured.candidate.address()));
    }
    session.tell_notes(&captured);
    if captured.candidate.state == State::Empty
        && captured.capture.is_none()
        && captured.problem.is_none()
        // What a note tells of lies in the worktree and nowhere else.
        && captured.notes == Notes::default()
        && !args.keep
    {
        removing::remove(session, run, name, false)?;
    }
    Ok(captured)
}

fn update(session: &Session, run: &Run, name: &Name, change: impl FnOnce(&mut Candidate)) -> Result<()> {
    let _lock = session.store.lock_candidate(&run.run, name)?;
    let mut candidate = session.store.candidate(&session.repo, run, name)?;
    change(&mut candidate);
    session.store.save_candidate(&candidate)
}

/// Replaces the placeholders of DESIGN.md §2 in an argument.
fn fill_in(arg: &OsStr, run: &Run, name: &Name, index: u32, worktree: &OsStr) -> OsString {
    let index = index.to_string();
    let values: [(&[u8], &[u8]); 4] = [
        (b"{run}", run.run.as_str().as_bytes()),
        (b"{candidate}", name.as_str().as_bytes()),
        (b"{index}", index.as_bytes()),
        (b"{worktree}", worktree.as_bytes()),
    ];
    let mut rest = arg.as_bytes();
    let mut filled = Vec::new();
    // One pass, so that a value that looks like a placeholder stays as it is.
    while let Some((&first, tail)) = rest.split_first() {
        match values.iter().find(|(key, _)| rest.starts_with(key)) {
            Some((key, value)) => {
                filled.extend_from_slice(value);
                rest = &rest[key.len()..];
            }
            None => {
                filled.push(first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(filled)
}

fn answer(session: &Session, run: &Run, args: &cli::Spawn, escaped: &[String]) -> Result<()> {
    if args.json {
        let mut candidates = Vec::new();
        for name in &run.candidates {
            let candidate = session.store.candidate(&session.repo, run, name)?;
            let mut object = json!({
                "candidate": name, "index": candidate.index, "state": candidate.state,
                "branch": refs::short(&refs::branch(&run.run, name)),
                "exit_code": candidate.exit_code, "signal": candidate.signal, "cleaned": candidate.cleaned,
            });
            json::put_file(&mut object, "worktree", &session.store.worktree(run, name));
            candidates.push(object);
        }
        let document = json!({ "run": run.run, "base": run.base, "candidates": candidates, "escaped": escaped });
        return session.ui.answer(json::document(document));
    }
    if args.quiet {
        return session.ui.answer(format!("{}\n", run.run));
    }
    for name in &run.candidates {
        let path = session.store.worktree(run, name);
        session.ui.answer([format!("{}/{name}\t", run.run).as_bytes(), path.as_os_str().as_bytes(), b"\n"].concat())?;
    }
    Ok(())
}
