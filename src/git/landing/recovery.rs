//! Recovers a landing whose process was killed. If the branch of the landing has moved, the landing
//! is finished; otherwise the landing is taken back.
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Cause, Error, Result};
use crate::git::cli::Git;
use crate::git::landing::advance::{
    install, is_on, lock_file, locked_by_others, restore, roll_back,
};
use crate::git::landing::intent::Intent;
use crate::git::landing::overwrite::PartialCheckout;
use crate::git::ref_locks::{ABANDONED, is_held, remove_when_old};
use crate::git::repo::Repo;
use crate::git::worktree;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::refname::RefName;
use crate::model::trailer::Trailer;

/// The state of a landing whose process was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// The landing had not changed anything yet, or everything was taken back already.
    NotBegun,
    /// The landing is complete: it is in this commit, or only staged in the checkout (`None`).
    Complete(Option<Oid>),
    /// The checkout is on the branch, and has conflicts for a person to resolve.
    Unmerged,
    /// The landing was half done, and has been taken back.
    TakenBack,
    /// The landing was half done, but a person has worked on its branch since. So everything stays
    /// as it is. The value is the branch's commit.
    InUse(Oid),
    /// The landing is half done, and this file was edited since. If the landing were taken back,
    /// the edits would be lost.
    Edited(TreePath),
}

/// Fails if a process that does not belong to the landing holds the lock of the index. For example,
/// a `git commit -a` holds it while its editor is open. The landing was killed after `since`, so an
/// older lock does not matter.
pub fn refuse_other_lock(git: &Git, intent: &Intent, since: SystemTime) -> Result<()> {
    let lock = lock_file(git);
    if !written_since(&lock, since) {
        return Ok(());
    }
    // The lock of this landing has one of these two trees. If git can make no tree from the lock,
    // the lock has conflicts or is incomplete. An incomplete lock of another git is still open in
    // that git.
    let is_ours = match git.clone().index(&lock).call("write-tree").oid() {
        Ok(tree) => tree == tree_of(git, &intent.to)? || tree == tree_of(git, intent.files())?,
        Err(_) => !is_held(&lock),
    };
    if is_ours { Ok(()) } else { Err(locked_by_others(&lock)) }
}

/// Finishes a landing whose process was killed after `since`, or takes it back. Changes nothing
/// that a person has edited or committed since.
///
/// The process may have been killed in [`roll_back`], while it undid a landing on a fresh branch.
/// Then this finishes the undo.
pub fn finish_or_take_back(
    repo: &Repo,
    git: &Git,
    intent: &Intent,
    since: SystemTime,
) -> Result<Interrupted> {
    let Intent { from, branch, to, .. } = intent;
    let is_here = is_on(git, branch);
    if intent.is_fresh() && is_here {
        return finish_or_take_back_on_fresh_branch(repo, git, intent, since);
    }
    let tip = repo.read_ref(branch)?;
    match tip {
        Some(_) if intent.is_fresh() => {}
        Some(tip) if repo.is_ancestor(to, &tip)? => {
            if tip == *to && is_here {
                finish(git, to, since)?;
            }
            return Ok(Interrupted::Complete(Some(*to)));
        }
        Some(tip) if tip != from.commit && is_here => {
            release(git, since);
            return Ok(Interrupted::InUse(tip));
        }
        _ => {}
    }
    // [`roll_back`] moves HEAD only after it has put the files back. So if this was an undo, and
    // HEAD is no longer on the branch, the files are back already.
    let undoing = intent.is_deletion();
    let found = if undoing { Interrupted::NotBegun } else { take_back(repo, git, intent, since)? };
    let Some(tip) = tip else { return Ok(found) };
    if !intent.is_fresh() || matches!(found, Interrupted::Edited(_)) {
        return Ok(found);
    }
    // HEAD never moved to the fresh branch, or has moved back. The branch is deleted, unless a
    // person uses it.
    let is_unused = tip == from.commit || {
        let commit = repo.commit(&tip)?;
        undoing && commit.tree == *to && commit.parents == [from.commit]
    };
    if is_unused && worktree::holder_of(repo, branch, None)?.is_none() {
        repo.update_ref(branch, None, Some(&tip), "apply withdrawn")?;
    } else if undoing {
        return Ok(Interrupted::InUse(tip));
    }
    Ok(found)
}

/// Puts the files back if HEAD is where it was before the landing and the landing has written a
/// file.
fn take_back(repo: &Repo, git: &Git, intent: &Intent, since: SystemTime) -> Result<Interrupted> {
    let Intent { from, to, .. } = intent;
    let files = intent.files();
    let mut found = Interrupted::NotBegun;
    // If HEAD is elsewhere, a person has moved it, and the files belong to that person.
    if from.is_head(repo, git)? {
        let PartialCheckout { edited, begun } = PartialCheckout::inspect(repo, git, files, to)?;
        if begun || written_since(&lock_file(git), since) {
            if let Some(path) = edited.into_iter().next() {
                return Ok(Interrupted::Edited(path));
            }
            restore(repo, git, files, to)?;
            found = Interrupted::TakenBack;
        }
    }
    release(git, since);
    Ok(found)
}

/// Completes a landing whose branch has moved already.
fn finish(git: &Git, to: &Oid, since: SystemTime) -> Result<()> {
    settle_index(git, to, since)?;
    // If the lock file was lost, the index is still the one from before the landing.
    if git.call("write-tree").oid().ok() != tree_of(git, to).ok() {
        git.call("read-tree").arg(to.as_str()).run()?;
    }
    git.refresh()
}

fn tree_of(git: &Git, to: &Oid) -> Result<Oid> {
    git.call("rev-parse").arg(format!("{to}^{{tree}}")).oid()
}

fn is_unmerged(git: &Git) -> Result<bool> {
    Ok(!git.call("ls-files").args(["-z", "--unmerged"]).bytes()?.is_empty())
}

/// Installs the locked index if the landing has written it. Otherwise the lock is from a
/// `git commit` that ran after the landing and was killed, and the lock is removed.
fn settle_index(git: &Git, to: &Oid, since: SystemTime) -> Result<()> {
    let lock = lock_file(git);
    if !written_since(&lock, since) {
        return Ok(());
    }
    let in_lock = git.clone().index(&lock);
    let is_whole = in_lock.call("write-tree").oid().ok() == Some(tree_of(git, to)?);
    if is_whole || is_unmerged(&in_lock).unwrap_or(false) {
        return install(git);
    }
    release(git, since);
    Ok(())
}

/// Unlocks the index, if it was locked after `since`.
fn release(git: &Git, since: SystemTime) {
    if written_since(&lock_file(git), since) {
        let _ = fs::remove_file(lock_file(git));
    }
}

/// Recovers while HEAD is on the fresh branch. There are three results:
///
/// - The landing is complete, with its commit if `intent` wants one.
/// - The branch is in use.
/// - The landing is rolled back.
fn finish_or_take_back_on_fresh_branch(
    repo: &Repo,
    git: &Git,
    intent: &Intent,
    since: SystemTime,
) -> Result<Interrupted> {
    let Intent { from, branch, to, commit, .. } = intent;
    let undoing = intent.is_deletion();
    settle_index(git, to, since)?;
    // A landing puts conflicts into the index in its last step. So a landing that left conflicts
    // was complete.
    if is_unmerged(git)? {
        return Ok(Interrupted::Unmerged);
    }
    let range = format!("{}..{branch}", from.commit);
    let list = git.call("rev-list").args(["--first-parent", "--reverse", &range, "--"]).output()?;
    let list = String::from_utf8_lossy(&list.stdout);
    let commits: Vec<Oid> = list.lines().filter_map(Oid::parse).collect();
    if let [first, ..] = commits.as_slice() {
        let made = repo.commit(first)?;
        let holds_tree = made.tree == *to;
        let is_ours =
            *commit && (Trailer::Run.find(&made.message).is_some() || (undoing && holds_tree));
        if is_ours && holds_tree && !undoing {
            return Ok(Interrupted::Complete(Some(*first)));
        }
        if let (false, Some(tip)) = (is_ours && commits.len() == 1, commits.last()) {
            return Ok(Interrupted::InUse(*tip));
        }
    } else if !commit && !undoing && git.call("write-tree").oid().ok() == Some(*to) {
        // The index is installed last. So all files were written, even if a person has changed them
        // since.
        return Ok(Interrupted::Complete(None));
    }
    let partial = PartialCheckout::inspect(repo, git, intent.files(), to)?;
    if let Some(path) = partial.edited.into_iter().next() {
        return Ok(Interrupted::Edited(path));
    }
    roll_back(repo, git, intent)?;
    Ok(Interrupted::TakenBack)
}

/// Removes the locks that a `git commit` left when it was killed on the fresh branch. `error` is
/// the error of that commit.
pub fn remove_locks_of_commit(repo: &Repo, git: &Git, branch: &RefName, error: &Error) {
    // HEAD moved to the branch just before the commit. So the locks of the commit are younger than
    // the file HEAD.
    let since = fs::symlink_metadata(git.git_dir().join("HEAD")).and_then(|meta| meta.modified());
    if let (Cause::Interrupted, Ok(since)) = (&error.cause, since) {
        for lock in locks_since(repo, git, branch, since) {
            // Only an old lock is removed. Another git that runs now holds its lock for
            // milliseconds.
            remove_when_old(&lock, ABANDONED);
        }
    }
}

/// Removes the locks that a landing left when it was killed after `since`. Keeps the lock of the
/// index, which [`finish_or_take_back`] needs. Must be called only once for each killed process,
/// because later locks belong to another process.
pub fn remove_locks(repo: &Repo, git: &Git, branch: &RefName, since: SystemTime) {
    for lock in locks_since(repo, git, branch, since) {
        if lock != lock_file(git) {
            let _ = fs::remove_file(lock);
        }
    }
}

/// The lock files of a branch, of a checkout and of `packed-refs` that were made after `since`.
fn locks_since(repo: &Repo, git: &Git, branch: &RefName, since: SystemTime) -> Vec<PathBuf> {
    let refs = [&format!("{branch}.lock"), "packed-refs.lock"];
    let mut locks = refs.map(|file| repo.common_dir().join(file)).to_vec();
    // In a checkout's git directory, git locks `index`, `index.lock`, `HEAD`, and the files that
    // `git commit` removes, such as `AUTO_MERGE`.
    let listing = fs::read_dir(git.git_dir()).into_iter().flatten().flatten().map(|e| e.path());
    locks.extend(listing.filter(|path| path.extension().is_some_and(|e| e == "lock")));
    locks.retain(|lock| written_since(lock, since));
    locks
}

fn written_since(file: &Path, since: SystemTime) -> bool {
    fs::metadata(file).and_then(|meta| meta.modified()).is_ok_and(|modified| modified >= since)
}
