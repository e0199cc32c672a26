//! Removing: a candidate's worktree and branch, and a whole run.
use serde_json::json;

use super::session::Session;
use crate::error::{Error, IoContext, Result};
use crate::git::{refs, worktree};
use crate::model::candidate::Landing;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ui::table;

/// Captures what is not saved yet; refuses when something cannot be.
pub fn save(session: &Session, run: &Run, name: &Name) -> Result<()> {
    let captured = session.capture(run, name).map_err(|e| {
        let bytes = worktree::disk_usage(&session.store.worktree(run, name));
        Error::no(format!("{}; its worktree of {} is kept", e.message, table::size(bytes)))
            .hint("mend that and try again; `git frites clean` with `--discard` removes it with what is not saved")
    })?;
    if !captured.notes.loses_work() {
        session.tell_notes(&captured);
        return Ok(());
    }
    let lines = captured.notes.lines().join("; ");
    Err(Error::no(format!("{}/{name} holds what cannot be captured: {lines}", run.run))
        .hint("move it away; `git frites clean` with `--discard` removes it for good"))
}

/// Removes a candidate's worktree, entry and branch; gives the bytes freed. Doing it twice is fine.
///
/// The worktree is renamed away first, so that a kill in the middle leaves nothing half there. Unless
/// `discard`, the branch must hold nothing that the capture does not reach.
pub fn remove(session: &Session, run: &Run, name: &Name, discard: bool) -> Result<u64> {
    let Session { repo, store, .. } = session;
    let _candidate = store.lock_candidate(&run.run, name)?;
    let root = store.worktrees(run.worktree_root.as_deref());
    let path = store.worktree(run, name);
    let branch = refs::branch(&run.run, name);
    let mut freed = 0;
    {
        let _repository = store.lock_repository()?;
        let admin = worktree::admin_of(repo, &path)?;
        if let Some(holder) = worktree::holder_of(repo, &branch, admin.as_deref())? {
            return Err(Error::no(format!(
                "the branch '{}' is checked out in '{}'",
                refs::short(&branch),
                holder.display()
            ))
            .hint("switch to another branch there"));
        }
        let tip = repo.read_ref(&branch)?;
        if let Some(tip) = tip.as_ref().filter(|_| !discard) {
            let saved = store.latest(repo, &run.run, name)?.map_or_else(|| run.base.clone(), |c| c.commit);
            if !repo.is_ancestor(tip, &saved)? {
                return Err(Error::no(format!("the branch '{}' has moved while it was cleaned", refs::short(&branch)))
                    .hint("clean again"));
            }
        }
        freed += worktree::discard(&root, &path, admin.as_deref())?;
        if let Some(tip) = tip {
            repo.update_ref(&branch, None, Some(&tip), "clean")?;
        }
    }
    let _ = std::fs::remove_dir(root.join(run.run.as_str()));
    let _ = std::fs::remove_file(store.index(&run.run, name));
    let mut candidate = store.candidate(repo, run, name)?;
    let first_time = !candidate.cleaned || freed > 0;
    candidate.cleaned = true;
    if candidate.landing == Landing::Pending {
        candidate.landing = Landing::Discarded;
    }
    store.save_candidate(&candidate)?;
    if first_time {
        store.record_event("cleaned", &run.run, json!({ "candidate": name, "bytes": freed }))?;
    }
    Ok(freed)
}

/// Removes a run's captures and records: after this it is gone.
pub fn forget(session: &Session, run: &Run) -> Result<()> {
    let Session { repo, store, .. } = session;
    let folder = store.run_dir(&run.run);
    worktree::delete_tree(&folder).context(|| format!("could not delete '{}'", folder.display()))?;
    // The record last: while it is there, the run can be forgotten again. `@` sorts before letters.
    for (name, tip) in repo.refs_under(&format!("refs/frites/{}/", run.run))?.into_iter().rev() {
        repo.update_ref(&name, None, Some(&tip), "forget")?;
    }
    store.record_event("forgotten", &run.run, json!({}))
}
