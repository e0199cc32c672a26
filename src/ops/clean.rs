//! Removing: a candidate's worktree and branch, and a whole run.
use std::path::Path;
use std::time::Duration;

use crate::config::keys;
use crate::error::{Error, IoContext, Result};
use crate::fs::tree;
use crate::git::capture::omitted::Omissions;
use crate::git::refs;
use crate::git::worktree::{self, Worktree};
use crate::model::candidate::{Candidate, Landing, State};
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::process::environment::caller;
use crate::store::candidate::CandidateRef;
use crate::store::events::Event;
use crate::ui::table;

/// Captures what is not saved yet; refuses when something cannot be.
pub fn save(session: &Session, candidate: CandidateRef<'_>) -> Result<()> {
    let captured = session.capture(candidate).map_err(|e| {
        let bytes = tree::disk_usage(&candidate.worktree());
        Error::no(format!("{}; its worktree of {} is kept", e.message, table::size(bytes)))
            .hint("mend that and try again; `git frites clean` with `--discard` removes it with what is not saved")
    })?;
    refuse_losses(candidate, &captured.omissions)?;
    session.tell_notes(&captured);
    Ok(())
}

/// Removes a candidate's worktree, entry and branch; gives the bytes freed, or none if nothing was left of it.
///
/// The worktree is renamed away first, so that a kill in the middle leaves nothing half there. Unless
/// `discard`, the branch must hold nothing that the capture does not reach.
pub fn remove(
    session: &Session,
    candidate: CandidateRef<'_>,
    discard: bool,
) -> Result<Option<u64>> {
    let Session { repo, store, .. } = session;
    let _candidate = candidate.lock()?;
    let root = candidate.worktree_root();
    let path = candidate.worktree();
    let branch = candidate.branch();
    refuse_current_directory(candidate, &path)?;
    let (there, freed);
    {
        let _repository = store.lock_repository()?;
        let worktree = Worktree::find(repo, &path)?;
        refuse_held(session, &branch, worktree.as_ref().map(|w| w.admin.as_path()))?;
        let tip = repo.read_ref(&branch)?;
        if let Some(tip) = tip.as_ref().filter(|_| !discard) {
            let saved = candidate.latest()?.map_or_else(|| candidate.run.base, |c| c.commit);
            if !repo.is_ancestor(tip, &saved)? {
                return Err(Error::no(format!(
                    "the branch '{}' has moved while it was cleaned",
                    branch.short()
                ))
                .hint("clean again"));
            }
        }
        there = worktree.is_some() || tip.is_some();
        freed = match &worktree {
            Some(worktree) => worktree.discard(&root)?,
            None => {
                worktree::require_ours(&root, &path, false)?;
                0
            }
        };
        if let Some(tip) = tip {
            repo.update_ref(&branch, None, Some(&tip), "clean")?;
        }
    }
    let _ = std::fs::remove_dir(root.join(candidate.run.run.as_str()));
    let _ = std::fs::remove_file(candidate.index());
    let mut record = candidate.record()?;
    let first_time = !record.cleaned || freed > 0;
    record.cleaned = true;
    if record.landing == Landing::Pending {
        record.landing = Landing::Discarded;
    }
    store.save_candidate(&record)?;
    if first_time {
        let event = Event::Cleaned { candidate: candidate.name.clone(), bytes: freed };
        store.record_event(&candidate.run.run, &event)?;
    }
    Ok(there.then_some(freed))
}

/// What a removal would give; fails as it would. Nothing is written.
pub fn rehearse(
    session: &Session,
    candidate: CandidateRef<'_>,
    discard: bool,
) -> Result<Option<u64>> {
    let repo = &session.repo;
    let root = candidate.worktree_root();
    let path = candidate.worktree();
    let admin = worktree::admin_of(repo, &path)?;
    refuse_current_directory(candidate, &path)?;
    let branch = candidate.branch();
    refuse_held(session, &branch, admin.as_deref())?;
    worktree::require_ours(&root, &path, admin.is_some())?;
    if !discard {
        refuse_losses(candidate, &session.uncapturable(candidate)?)?;
    }
    let there = admin.is_some() || repo.read_ref(&branch)?.is_some();
    Ok(there.then(|| tree::disk_usage(&path)))
}

/// Refuses to remove what holds work that no capture can hold.
pub fn refuse_losses(candidate: CandidateRef<'_>, notes: &Omissions) -> Result<()> {
    if !notes.loses_work() {
        return Ok(());
    }
    let lines = notes.lines().join("; ");
    Err(Error::no(format!("{candidate} holds what cannot be captured: {lines}"))
        .hint("move it away; `git frites clean` with `--discard` removes it for good"))
}

/// Neither git nor a shell goes on in a directory that is gone: it is not removed from within.
fn refuse_current_directory(candidate: CandidateRef<'_>, worktree: &Path) -> Result<()> {
    let here = std::env::current_dir().and_then(|dir| dir.canonicalize());
    if here.is_ok_and(|dir| dir.starts_with(worktree)) {
        return Err(Error::no(format!("you are in the worktree of {candidate}"))
            .hint("go to your own checkout and clean there"));
    }
    Ok(())
}

/// A branch that is checked out elsewhere, by the user, is not removed.
fn refuse_held(session: &Session, branch: &RefName, admin: Option<&Path>) -> Result<()> {
    let Some(holder) = worktree::holder_of(&session.repo, branch, admin)? else { return Ok(()) };
    let what = format!("the branch '{}' is checked out in '{}'", branch.short(), holder.display());
    Err(Error::no(what).hint("switch to another branch there"))
}

/// Whether a candidate's worktree may go by `[retention]`: it has one, nobody keeps it, nothing runs in it, and
/// what happened last to it is long enough ago.
pub fn expired(session: &Session, candidate: CandidateRef<'_>) -> Result<bool> {
    let config = &session.config;
    let record = candidate.record()?;
    let branch = session.repo.read_ref(&candidate.branch())?;
    if record.kept || (record.cleaned && branch.is_none()) {
        return Ok(false);
    }
    let landed = matches!(record.landing, Landing::Landed | Landing::Merged);
    let (span, since) = match record.state {
        State::Running => return Ok(false),
        _ if landed => (config.get(keys::RETENTION_LANDED), record.landing_time),
        State::Failed | State::TimedOut | State::Cancelled | State::Empty => {
            (config.get(keys::RETENTION_FAILED), record.ended)
        }
        State::Open | State::Succeeded => (config.get(keys::RETENTION_ABANDONED), record.ended),
    };
    let created = candidate.run.created;
    let mut last = since.map_or(created, |since| since.max(created));
    // Somebody may work on in it, whatever its state says.
    if let Some(written) = tree::last_written(&candidate.worktree()) {
        last = last.max(written.try_into().unwrap_or(last));
    }
    let age = Duration::try_from(jiff::Timestamp::now().duration_since(last)).unwrap_or_default();
    Ok(age > span)
}

/// Marks a candidate as kept for review, or takes that mark away.
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

/// Removes a run's captures and records: after this it is gone.
pub fn forget(session: &Session, run: &Run) -> Result<()> {
    let Session { repo, store, .. } = session;
    let directory = store.run_dir(&run.run);
    tree::delete_tree(&directory)
        .context(|| format!("could not delete '{}'", directory.display()))?;
    // The record last: while it is there, the run can be forgotten again.
    let record = refs::record(&run.run);
    let mut found = repo.refs_under(&format!("refs/frites/{}/", run.run))?;
    found.sort_by_key(|(name, _)| *name == record);
    for (name, tip) in found {
        repo.update_ref(&name, None, Some(&tip), "forget")?;
    }
    store.record_event(&run.run, &Event::Forgotten { by: caller() })
}
