//! Removes a candidate's worktree and branch, or a whole run.
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::config::keys;
use crate::error::{Cause, Error, IoContext, Result};
use crate::fs::lock::Lock;
use crate::fs::{regular, tree};
use crate::git::capture::omitted::Omissions;
use crate::git::own_dir;
use crate::git::refs;
use crate::git::worktree::{self, Worktree};
use crate::model::candidate::{Candidate, Landing, State};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::path::quoted;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::ops::agent_state;
use crate::ops::capture::{CAPTURED_AT_ONCE, Captured};
use crate::ops::hooks;
use crate::ops::session::Session;
use crate::ops::trash;
use crate::process;
use crate::process::environment::caller;
use crate::store::candidate::CandidateRef;
use crate::store::events::Event;
use crate::ui::table;
use crate::world::user_directories::work_of;

/// Checks the capture of a worktree that is to be removed. Fails if the worktree, or a part of it,
/// could not be captured.
fn require_captured(candidate: CandidateRef<'_>, captured: Result<Captured>) -> Result<Captured> {
    let captured = captured.map_err(|e| {
        let bytes = tree::disk_usage(&candidate.worktree());
        Error::no(format!("{e}; its worktree of {} is kept", table::size(bytes)))
            .hint("fix that and try again; `git frites clean` with `--discard` removes it with all unsaved work")
    })?;
    refuse_uncapturable(candidate, &captured.omissions)?;
    Ok(captured)
}

/// A removal that has begun: the worktree is in the trash, and the branch is still there.
struct BegunRemoval<'a> {
    candidate: CandidateRef<'a>,
    branch: RefName,
    tip: Option<Oid>,
    /// The disk space of the worktree when it was last measured; `None` if there was no worktree.
    bytes: Option<u64>,
    branch_deleted: bool,
    /// The capture of all that was removed; `None` if that was discarded.
    captured: Option<Captured>,
    _locks: (Lock, Option<Lock>),
}

/// Captures a candidate, and removes its worktree, administrative entry and branch, and its own
/// HOME. The caller has captured it, too, and has printed what a capture leaves out.
pub fn remove(session: &Session, candidate: CandidateRef<'_>) -> Result<()> {
    let removal = begin_removal(session, candidate, false)?;
    delete_home(candidate);
    end_removal(session, &removal)
}

/// Captures a candidate, and removes its worktree, administrative entry and branch, because its
/// worktree is made again. Its own HOME stays.
pub fn remove_for_another(session: &Session, candidate: CandidateRef<'_>) -> Result<()> {
    let removal = begin_removal(session, candidate, false)?;
    removal.captured.iter().for_each(|captured| session.print_omissions(captured));
    // The record changes only now: if the removal was refused, a person may go on in the old
    // worktree.
    let mut record = candidate.record()?;
    record.begin_remaking();
    session.store.save_candidate(&record)?;
    end_removal(session, &removal)
}

fn end_removal(session: &Session, removal: &BegunRemoval<'_>) -> Result<()> {
    let first_time = finish_removal(session, removal, false)?;
    record_removal(session, removal, first_time)?;
    empty_trash(session, &removal.candidate.worktree_root());
    Ok(())
}

/// Removes some of a run's candidates as [`remove`] does, several at the same time. One transaction
/// deletes all branches. The worktrees are left in the trash. If `discard` is true, nothing is
/// captured. If one removal fails, the others go on. The result has the bytes freed for each
/// candidate; `None` for a candidate that had neither worktree nor branch.
///
/// With `forget`, `names` are all candidates of the run. If no removal fails, the caller then calls
/// [`forget`], so no record is updated here.
pub fn remove_all(
    session: &Session,
    run: &Run,
    names: &[Name],
    discard: bool,
    forget: bool,
) -> Vec<Result<Option<u64>>> {
    let candidates: Vec<CandidateRef<'_>> =
        names.iter().map(|name| session.store.candidate(run, name)).collect();
    // If nothing is captured and no hook runs, removals in parallel save no time: each would only
    // wait for the repository's lock.
    let is_short = discard && !hooks::is_asked_to_remove(session);
    let at_once = if is_short { 1 } else { CAPTURED_AT_ONCE };
    let mut begun = process::each_in_parallel(at_once, &candidates, |candidate| {
        begin_removal(session, *candidate, discard)
    });
    let mut removals: Vec<&mut BegunRemoval<'_>> = begun.iter_mut().flatten().collect();
    let captured = removals.iter().filter_map(|removal| removal.captured.as_ref());
    captured.for_each(|captured| session.print_omissions(captured));
    delete_branches(session, &mut removals);
    let forget = forget
        && removals.len() == names.len()
        && removals.iter().all(|r| r.branch_deleted || r.tip.is_none());
    let at_once = if forget { 1 } else { CAPTURED_AT_ONCE };
    let finished = process::each_in_parallel(at_once, &removals, |removal| {
        delete_home(removal.candidate);
        finish_removal(session, removal, forget)
    });
    let mut finished = finished.into_iter();
    let finish = |removal: Result<BegunRemoval<'_>>| {
        let removal = removal?;
        let first_time = finished.next().expect("one for each that has begun")?;
        record_removal(session, &removal, first_time)
    };
    begun.into_iter().map(finish).collect()
}

/// Begins a removal for [`remove`]. Captures the worktree unless `discard` is true. Asks the hook
/// `before-clean`, but not if the capture fails. Then moves the worktree and its administrative
/// entry into the trash, so that a kill cannot leave a half-deleted worktree behind.
fn begin_removal<'a>(
    session: &Session,
    candidate: CandidateRef<'a>,
    discard: bool,
) -> Result<BegunRemoval<'a>> {
    let Session { repo, store, .. } = session;
    if !discard && hooks::is_asked_to_remove(session) {
        require_captured(candidate, session.capture(candidate))?;
    }
    hooks::allow_removal(session, candidate)?;
    let lock = candidate.lock()?;
    let root = candidate.worktree_root();
    let path = candidate.worktree();
    let branch = candidate.branch();
    refuse_current_directory(candidate, &path)?;
    let use_lock = if discard { None } else { candidate.lock_against_use()? };
    let _repository = store.lock_repository()?;
    let worktree = Worktree::find(repo, &path)?;
    refuse_locked(candidate, worktree.as_ref().map(|w| w.admin.as_path()))?;
    refuse_held(session, &branch, worktree.as_ref().map(|w| w.admin.as_path()))?;
    // The hook and other processes may have written files while this waited. Nothing is done
    // between this capture and the move, so that the capture is the last look at the worktree.
    let capture = || require_captured(candidate, session.capture_locked(candidate, None, &lock));
    let mut tip = repo.read_ref(&branch)?;
    let mut captured = if discard { None } else { Some(capture()?) };
    // If git-frites was killed, this capture is the first one to bring back the commits of a
    // guarded attempt, and so it moves the branch. Then one more capture is made after the new tip
    // is read, so that the tip never has a commit that no capture has seen.
    let now = repo.read_ref(&branch)?;
    if captured.is_some() && now != tip {
        tip = now;
        captured = Some(capture()?);
    }
    let mut bytes = None;
    match &worktree {
        Some(worktree) => {
            let bin = worktree.set_aside(&root)?;
            let measured = candidate.record()?.bytes_now();
            bytes = Some(if measured > 0 { measured } else { tree::disk_usage(&bin.worktree()) });
        }
        None => {
            worktree::require_ours(&root, &path, false)?;
        }
    }
    Ok(BegunRemoval {
        candidate,
        branch,
        tip,
        bytes,
        branch_deleted: false,
        captured,
        _locks: (lock, use_lock),
    })
}

/// Deletes the branches of removals in one transaction. If another process has moved one of the
/// branches meanwhile, deletes none.
fn delete_branches(session: &Session, removals: &mut [&mut BegunRemoval<'_>]) {
    let tips: Vec<(RefName, Oid)> =
        removals.iter().filter_map(|r| Some((r.branch.clone(), r.tip?))).collect();
    // After a failure, `finish_removal` deletes each branch in a transaction of its own, so that
    // each error belongs to one candidate.
    if session.repo.delete_refs(&tips, "clean").is_ok() {
        removals.iter_mut().for_each(|removal| removal.branch_deleted = removal.tip.is_some());
    }
}

/// Deletes the layers of a candidate's own HOME.
fn delete_home(candidate: CandidateRef<'_>) {
    let home = candidate.directory().own_home();
    for own in [work_of(&home), home] {
        let _ = tree::delete_tree(&own);
    }
}

/// Deletes the branch of a removal unless it is already deleted, and updates the candidate's
/// record. Returns true if the removal belongs in the event log: if it is the candidate's first
/// removal, or if the worktree existed again. With `forget`, does not update the record, which the
/// caller deletes together with the run. If the caller is interrupted before that, the removal is
/// repeated.
fn finish_removal(session: &Session, removal: &BegunRemoval<'_>, forget: bool) -> Result<bool> {
    let BegunRemoval { candidate, branch, tip, bytes, branch_deleted, .. } = removal;
    if let Some(tip) = tip
        && !branch_deleted
    {
        session.repo.update_ref(branch, None, Some(tip), "clean")?;
    }
    let _ = fs::remove_dir(candidate.worktree_root().join(candidate.run.run.as_str()));
    let _ = fs::remove_file(candidate.directory().index());
    let _ = own_dir::delete(&candidate.directory().own_git());
    agent_state::settle_for_removal(session, *candidate);
    let mut record = candidate.record()?;
    let first_time = !record.cleaned || bytes.is_some_and(|bytes| bytes > 0);
    if forget {
        return Ok(first_time);
    }
    record.cleaned = true;
    if record.landing == Landing::Pending {
        record.landing = Landing::Discarded;
        session.store.note_state(candidate.run, candidate.name, Landing::Discarded, None)?;
    }
    session.store.save_candidate(&record)?;
    Ok(first_time)
}

/// Records a removal in the event log if `first_time` is true. Returns the bytes freed; `None` if
/// there was neither worktree nor branch.
fn record_removal(
    session: &Session,
    removal: &BegunRemoval<'_>,
    first_time: bool,
) -> Result<Option<u64>> {
    let BegunRemoval { candidate, tip, bytes, .. } = removal;
    let freed = bytes.unwrap_or_default();
    if first_time {
        let event = Event::Cleaned { candidate: candidate.name.clone(), bytes: freed };
        session.store.record_event(&candidate.run.run, &event)?;
    }
    Ok((bytes.is_some() || tip.is_some()).then_some(freed))
}

/// Deletes the files in the trash of `root`. Warns of files that cannot be deleted; later commands
/// try to delete them again.
pub fn empty_trash(session: &Session, root: &Path) {
    if let Err(error) = trash::empty(&session.store, root) {
        session.ui.warn(error.message);
    }
}

/// Takes the run's lock, which cleaning needs, and reads the run again. Removes ref locks that a
/// killed git left on the run's branches. Fails if the run is still at work.
pub fn lock(session: &Session, run: &Run) -> Result<(Lock, Run)> {
    let locked = session.store.lock_and_read(&run.run)?;
    let branches = format!("{}{run}", refs::ATTEMPT_BRANCHES);
    session.repo.heal_ref_locks(&branches, Duration::from_secs(1));
    Ok(locked)
}

/// Removes a run's worktrees and branches after the run's end, except those of candidates that are
/// marked as kept. Returns the addresses of the removed candidates. If a worktree cannot be
/// removed, only warns, because the run's result is valid all the same.
pub fn after_end(session: &Session, run: &Run) -> Vec<String> {
    let mut removed = Vec::new();
    let _lock = match lock(session, run) {
        Ok((lock, _)) => lock,
        Err(error) => {
            session.ui.warn(format!("run {run} was not cleaned: {error}"));
            return removed;
        }
    };
    let is_kept = |candidate: &CandidateRef<'_>| candidate.record().is_ok_and(|it| it.kept);
    let mut candidates: Vec<CandidateRef<'_>> = session.store.candidates(run).collect();
    candidates.retain(|candidate| !is_kept(candidate));
    let names: Vec<Name> = candidates.iter().map(|candidate| candidate.name.clone()).collect();
    let results = remove_all(session, run, &names, false, false);
    for (candidate, result) in candidates.iter().zip(results) {
        match result {
            Ok(Some(_)) => removed.push(candidate.address()),
            Ok(None) => {}
            Err(error) => session.ui.warn(format!("{candidate} stays: {error}")),
        }
    }
    empty_trash(session, &session.store.worktrees(run.worktree_root.as_deref()));
    removed
}

/// A dry run of [`remove_all`] for one candidate: returns the same as a real run, and writes
/// nothing.
pub fn dry_run(
    session: &Session,
    candidate: CandidateRef<'_>,
    discard: bool,
) -> Result<Option<u64>> {
    let repo = &session.repo;
    let root = candidate.worktree_root();
    let path = candidate.worktree();
    let admin = worktree::admin_of(repo, &path)?;
    refuse_current_directory(candidate, &path)?;
    if !discard {
        candidate.lock_against_use()?;
    }
    let branch = candidate.branch();
    refuse_locked(candidate, admin.as_deref())?;
    refuse_held(session, &branch, admin.as_deref())?;
    worktree::require_ours(&root, &path, admin.is_some())?;
    if !discard {
        refuse_uncapturable(candidate, &session.uncapturable(candidate)?)?;
    }
    let there = admin.is_some() || repo.read_ref(&branch)?.is_some();
    Ok(there.then(|| tree::disk_usage(&path)))
}

/// Fails if the worktree has work that cannot be captured, because its removal would lose that
/// work.
pub fn refuse_uncapturable(candidate: CandidateRef<'_>, notes: &Omissions) -> Result<()> {
    if !notes.loses_work() {
        return Ok(());
    }
    let lines = notes.lines().join("; ");
    Err(Error::no(format!("{candidate} has files that cannot be captured: {lines}"))
        .because(Cause::Uncapturable)
        .hint("move them away; `git frites clean` with `--discard` removes them for good"))
}

/// Fails if the current directory is inside the worktree, because neither git nor a shell works in
/// a deleted directory.
fn refuse_current_directory(candidate: CandidateRef<'_>, worktree: &Path) -> Result<()> {
    let here = std::env::current_dir().and_then(|dir| dir.canonicalize());
    if here.is_ok_and(|dir| dir.starts_with(worktree)) {
        return Err(Error::no(format!("you are in the worktree of {candidate}"))
            .hint("go to your own checkout and clean there"));
    }
    Ok(())
}

/// Fails if a person has locked the worktree with `git worktree lock`.
fn refuse_locked(candidate: CandidateRef<'_>, admin: Option<&Path>) -> Result<()> {
    let Some(reason) = admin.and_then(worktree::lock_of_user) else { return Ok(()) };
    let reason =
        if reason.is_empty() { reason } else { format!(": {}", quoted(reason.as_bytes())) };
    Err(Error::no(format!("the worktree of {candidate} is locked{reason}"))
        .hint(format!("`git worktree unlock {}` allows it", candidate.worktree().display())))
}

/// Fails if the branch is checked out in another worktree.
fn refuse_held(session: &Session, branch: &RefName, admin: Option<&Path>) -> Result<()> {
    let Some(holder) = worktree::holder_of(&session.repo, branch, admin)? else { return Ok(()) };
    let what = format!("the branch '{}' is checked out in '{}'", branch.short(), holder.display());
    Err(Error::no(what).hint("switch to another branch there"))
}

/// True if a candidate's worktree has expired:
/// * it exists;
/// * it is neither marked as kept nor locked by a person;
/// * no command runs in it, neither the attempt's nor one of `git frites exec`;
/// * its last activity is older than `[retention]` allows.
pub fn expired(session: &Session, candidate: CandidateRef<'_>) -> Result<bool> {
    let config = &session.config;
    let record = candidate.record()?;
    let branch = session.repo.read_ref(&candidate.branch())?;
    let admin = worktree::admin_of(&session.repo, &candidate.worktree())?;
    let is_locked = admin.is_some_and(|admin| worktree::lock_of_user(&admin).is_some());
    if record.kept || is_locked || (record.cleaned && branch.is_none()) {
        return Ok(false);
    }
    let landed = matches!(record.landing, Landing::Landed | Landing::Merged);
    let (span, since) = match record.state {
        State::Running => return Ok(false),
        _ if landed => (config.get(keys::RETENTION_LANDED), record.landing_time),
        State::Failed | State::TimedOut | State::Cancelled | State::Limited | State::Empty => {
            (config.get(keys::RETENTION_FAILED), record.ended)
        }
        State::Open | State::Succeeded => (config.get(keys::RETENTION_ABANDONED), record.ended),
    };
    let created = candidate.run.created;
    let mut last = since.map_or(created, |since| since.max(created));
    // A person may have worked in the worktree since, whatever the candidate's state is.
    if let Some(written) = tree::last_written(&candidate.worktree()) {
        last = last.max(written.try_into().unwrap_or(last));
    }
    let age = Duration::try_from(jiff::Timestamp::now().duration_since(last)).unwrap_or_default();
    Ok(age > span && candidate.lock_against_use().is_ok())
}

/// Sets or clears the mark that keeps a candidate for review: automatic cleaning leaves a marked
/// candidate in place.
pub fn mark_kept(session: &Session, candidate: CandidateRef<'_>, kept: bool) -> Result<()> {
    let store = &session.store;
    let _lock = candidate.lock()?;
    let record = candidate.record()?;
    if record.kept == kept {
        return Ok(());
    }
    store.save_candidate(&Candidate { kept, ..record })?;
    let name = candidate.name.clone();
    let event =
        if kept { Event::Kept { candidate: name } } else { Event::Released { candidate: name } };
    store.record_event(&candidate.run.run, &event)
}

/// Removes a run's captures and records.
pub fn forget(session: &Session, run: &Run) -> Result<()> {
    let Session { repo, store, .. } = session;
    let directory = store.run_dir(&run.run).path().to_owned();
    tree::delete_tree(&directory)
        .context(|| format!("could not delete '{}'", directory.display()))?;
    // The record is deleted last: while it exists, an interrupted removal can be repeated.
    let record = refs::record(&run.run);
    let mut found = repo.refs_under(&format!("refs/frites/{run}/"))?;
    let last: Vec<_> = found.extract_if(.., |(name, _)| *name == record).collect();
    repo.delete_refs(&found, "forget")?;
    repo.delete_refs(&last, "forget")?;
    store.record_last_event(run, &Event::Forgotten { by: caller(&store.dir().runs()) })
}

/// Starts `clean --expired` in the background, unless it was last started less than `clean.auto`
/// ago. Does nothing if a command of an attempt called git-frites: when that command ends,
/// git-frites would end the background process, too.
pub fn start_if_due(session: &Session) {
    if let Err(error) = try_start(session) {
        session.ui.warn(format!("clean.auto: {error}"));
    }
}

fn try_start(session: &Session) -> Result<()> {
    let Some(interval) = session.config.get(keys::CLEAN_AUTO).0 else { return Ok(()) };
    let store = &session.store;
    let log = store.dir().auto_clean_log();
    if !is_due(&log, interval) || caller(&store.dir().runs()).is_some() {
        return Ok(());
    }
    let Some(_lock) = store.try_lock_auto_clean()? else { return Ok(()) };
    if !is_due(&log, interval) {
        return Ok(());
    }
    let failed = || format!("could not write '{}'", log.display());
    let mut file = regular::create_own(&log).context(failed)?;
    writeln!(file, "{}: git frites clean --expired", jiff::Timestamp::now()).context(failed)?;
    process::start_in_background(&["clean", "--expired"], file)
}

/// True if the last `clean --expired` started at least `interval` ago, according to the
/// modification time of its log. Also true if the log does not exist, or if its time is in the
/// future.
fn is_due(log: &Path, interval: Duration) -> bool {
    let written = fs::symlink_metadata(log).and_then(|meta| meta.modified()).ok();
    written.and_then(|time| time.elapsed().ok()).is_none_or(|age| age >= interval)
}
