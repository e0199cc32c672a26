//! Recovers runs whose git-frites process was killed while it made the run or ran the run's
//! commands.
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{IoContext, Result};
use crate::fs::lock::Lock;
use crate::fs::tree;
use crate::git::refs;
use crate::git::repo::Repo;
use crate::git::worktree::{self, Worktree};
use crate::model::candidate::State;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::store::Store;
use crate::store::intents::Phase;
use crate::ui::Ui;

/// If the run was not complete yet, takes it back. Otherwise marks as cancelled the candidates
/// whose commands ran. Returns a message if either was necessary.
pub fn recover_run(store: &Store, run: &Name) -> Result<Option<String>> {
    if !store.is_active(run) {
        remove_stub(store, run)?;
        return Ok(None);
    }
    let Some(_lock) = store.try_lock_run(run)? else { return Ok(None) };
    recover_held(store, run)
}

/// Takes a run's lock, and recovers the run if necessary. The recovery at the start of this command
/// has skipped the run if a process of the killed command still held the lock.
pub fn lock_recovered(store: &Store, ui: &Ui, run: &Name) -> Result<Lock> {
    let lock = store.lock_run(run)?;
    if store.is_active(run)
        && let Some(message) = recover_held(store, run)?
    {
        ui.warn(message);
    }
    Ok(lock)
}

/// Recovers a run. The caller holds the run's lock.
fn recover_held(store: &Store, run: &Name) -> Result<Option<String>> {
    // This is read under the lock, because the lock's last holder may have finished its work in
    // between.
    let Some(active) = store.active(run) else {
        if store.is_active(run) && store.run(run)?.is_some() {
            store.clear_active(run)?;
        }
        return Ok(None);
    };
    if active == Phase::Making {
        let Some(record) = store.run_intent(run) else {
            // The intent was not written completely, and nothing else of a run is made before the
            // intent.
            tree::delete_tree(store.run_dir(run).path())
                .context(|| format!("could not remove run {run}"))?;
            return Ok(None);
        };
        roll_back(store, &record)?;
        return Ok(Some(format!("run {run} was interrupted while it was made, and is taken back")));
    }
    let Some(mut record) = store.run(run)? else {
        store.clear_active(run)?;
        return Ok(None);
    };
    let message = match active {
        Phase::Adding(names) if !names.iter().all(|name| record.candidates.contains(name)) => {
            record.candidates.extend(names.iter().cloned());
            take_back(store, &record, &names)?;
            format!(
                "run {run} was interrupted while candidates were added, and they are taken back"
            )
        }
        _ => {
            cancel_running(store, &record)?;
            interrupted(&record)
        }
    };
    store.clear_active(run)?;
    Ok(Some(message))
}

/// The message about a run whose commands were killed.
fn interrupted(run: &Run) -> String {
    let mut message =
        format!("run {run} was interrupted while its commands ran; their work is kept");
    if run.has_commands() {
        message.push_str(&format!("; continue it with `git frites run --resume {run}`"));
    }
    message
}

/// Removes the directory of a run that has no record. Its process was killed before it wrote the
/// first record, or after it deleted the last one.
fn remove_stub(store: &Store, run: &Name) -> Result<()> {
    let intent = store.run_dir(run).record();
    if intent.exists() {
        return Ok(());
    }
    let Some(_lock) = store.try_lock_run(run)? else { return Ok(()) };
    // Check again under the lock: another process may have begun to make this run.
    if intent.exists()
        || store.is_active(run)
        || store.repo().read_ref(&refs::record(run))?.is_some()
    {
        return Ok(());
    }
    tree::delete_tree(store.run_dir(run).path())
        .context(|| format!("could not remove what is left of run {run}"))
}

fn cancel_running(store: &Store, run: &Run) -> Result<()> {
    for name in &run.candidates {
        let _lock = store.lock_candidate(&run.run, name)?;
        let mut candidate = store.candidate(run, name).record()?;
        let admin = worktree::admin_of(store.repo(), &store.candidate(run, name).worktree())?;
        if let Some(admin) = &admin {
            // The caller holds the run's lock, so no other process is still making this worktree.
            worktree::unlock_half_made(admin);
        }
        if candidate.state == State::Running {
            // By now, the supervisors have ended all processes of the command in the worktree.
            if let Some(admin) = &admin {
                worktree::heal_locks(admin);
                worktree::unlock_ours(admin);
            }
            candidate.state = State::Cancelled;
            candidate.reason = Some("git-frites was interrupted".into());
            store.save_candidate(&candidate)?;
        }
    }
    Ok(())
}

/// Removes an incomplete run: its candidates, its record and its directory. The caller holds the
/// run's lock.
pub fn roll_back(store: &Store, run: &Run) -> Result<()> {
    take_back(store, run, &run.candidates)?;
    if let Some(record) = store.repo().read_ref(&refs::record(&run.run))? {
        store.repo().update_ref(
            &refs::record(&run.run),
            None,
            Some(&record),
            "spawn taken back",
        )?;
    }
    // Remove the run's directory of worktrees only if it is empty, because any files in it are not
    // ours.
    let root = store.worktrees(run.worktree_root.as_deref());
    let _ = fs::remove_dir(root.join(run.run.as_str()));
    tree::delete_tree(store.run_dir(&run.run).path())
        .context(|| format!("could not remove run {run}"))
}

/// Removes incomplete candidates: their worktrees, administrative entries, branches and
/// directories. The caller holds the run's lock.
///
/// A branch that has moved away from the run's base is not deleted.
pub fn take_back(store: &Store, run: &Run, names: &[Name]) -> Result<()> {
    let _lock = store.lock_repository()?;
    // Until the run is complete, no other process writes these refs, so their locks can be removed
    // at once.
    let prefix = format!("{}{run}", refs::ATTEMPT_BRANCHES);
    store.repo().heal_ref_locks(&prefix, Duration::ZERO);
    let root = store.worktrees(run.worktree_root.as_deref());
    for name in names {
        let path = store.candidate(run, name).worktree();
        let admin = worktree::admin_of(store.repo(), &path)?;
        match admin.map_or_else(|| half_made_entry(store.repo(), name), |admin| Ok(Some(admin)))? {
            Some(admin) => {
                Worktree::at(store.repo(), &path, admin).set_aside(&root)?.delete()?;
            }
            // A directory without an administrative entry is not ours, unless it is an empty one
            // that a killed git left. `remove_dir` removes only an empty one.
            None => {
                let _ = fs::remove_dir(&path);
            }
        }
        let branch = refs::branch(&run.run, name);
        if store.repo().read_ref(&branch)?.is_some_and(|tip| tip == run.base) {
            store.repo().update_ref(&branch, None, Some(&run.base), "spawn taken back")?;
        }
        tree::delete_tree(store.candidate_dir(&run.run, name).path())
            .context(|| format!("could not remove {run}/{name}"))?;
    }
    Ok(())
}

/// The administrative entry of an incomplete worktree of `name`, which a killed git left. The entry
/// does not name the worktree yet.
fn half_made_entry(repo: &Repo, name: &Name) -> Result<Option<PathBuf>> {
    Ok(worktree::entries(repo)?.into_iter().find(|admin| {
        let file = admin.file_name().and_then(|file| file.to_str());
        file.and_then(|file| file.strip_prefix(name.as_str()))
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
            && worktree::points_to(admin).is_none()
            && worktree::is_half_made(admin)
    }))
}
