//! Going to a fresh branch in the user's checkout, with the change that lands, and back.
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::error::{Cause, Error, IoContext, Result};
use crate::git::cli::{Git, nul_separated};
use crate::git::commit::{CommitMessage, commit_to_ref};
use crate::git::index::{IndexEdits, ScratchIndex};
use crate::git::landing::advance::{self, FilesAfter};
use crate::git::landing::overwrite::PartialCheckout;
use crate::git::merge::{self, Conflicts, IndexStage, MergeResult};
use crate::git::ref_locks::{ABANDONED, remove_when_old};
use crate::git::repo::Repo;
use crate::git::{diff, refs, worktree};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::path::{TreePath, quoted};
use crate::model::refname::RefName;
use crate::model::trailer::Trailer;

/// The place of a checkout's HEAD, for the way back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The branch that HEAD is on; none when detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<RefName>,
    /// The commit that HEAD is at.
    pub commit: Oid,
}

/// The current position; fatal while HEAD is unborn.
pub fn position(repo: &Repo) -> Result<Position> {
    let commit = repo.head().ok_or_else(|| {
        Error::fatal("HEAD has no commit yet")
            .hint("commit something first: `git commit --allow-empty -m start`")
    })?;
    Ok(Position { branch: repo.head_branch(), commit })
}

/// The operation that a checkout is in the middle of, and the command that stops it.
pub fn unfinished(git_dir: &Path) -> Option<(&'static str, &'static str)> {
    let unfinished = [
        ("MERGE_HEAD", "a merge", "git merge --abort"),
        ("CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --abort"),
        ("REVERT_HEAD", "a revert", "git revert --abort"),
        ("rebase-merge", "a rebase", "git rebase --abort"),
        ("rebase-apply/applying", "an application of patches", "git am --abort"),
        ("rebase-apply", "a rebase", "git rebase --abort"),
        ("BISECT_LOG", "a bisection", "git bisect reset"),
    ];
    let found = unfinished.into_iter().find(|(file, ..)| git_dir.join(file).exists())?;
    Some((found.1, found.2))
}

/// Refuses a checkout with staged or modified tracked files, or in the middle of a merge and the
/// like.
pub fn require_clean(repo: &Repo) -> Result<()> {
    let root = repo.need_work_tree()?;
    if let Some((what, abort)) = unfinished(repo.git_dir()) {
        return Err(Error::fatal(format!("{what} is in progress"))
            .hint(format!("finish it, or stop it with `{abort}`")));
    }
    let dirty = repo
        .checkout()
        .call("status")
        .args([
            "--porcelain",
            "-z",
            "--untracked-files=no",
            "--no-renames",
            "--ignore-submodules=untracked",
        ])
        .bytes()?;
    let records: Vec<(u8, &[u8])> =
        nul_separated(&dirty).filter_map(|r| Some((*r.first()?, r.get(3..)?))).collect();
    let [(_, first), rest @ ..] = records.as_slice() else { return Ok(()) };
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    // `git stash` does not put submodules aside.
    let is_moved_submodule = |(staged, path): &(u8, &[u8])| {
        *staged == b' ' && root.join(OsStr::from_bytes(path)).join(".git").exists()
    };
    let aside = if records.iter().all(is_moved_submodule) {
        "`git submodule update`"
    } else {
        "`git stash`"
    };
    Err(Error::fatal(format!("your checkout has uncommitted changes: {}{more}", quoted(first)))
        .hint(format!("commit them or put them aside with {aside}, then apply again")))
}

/// A fresh branch for the user's checkout.
#[derive(Clone, Copy)]
pub struct FreshBranch<'a> {
    /// git in the checkout, from [`writer::begin`](super::writer::begin).
    pub git: &'a Git,
    /// The place of the checkout's HEAD before the landing.
    pub from: &'a Position,
    /// The branch.
    pub branch: &'a RefName,
    /// The tree that lands on it.
    pub tree: &'a Oid,
    /// True if the tree is to be committed, not only staged.
    pub commit: bool,
    /// The ref for versions of files that a rollback must not lose, such as those that a hook
    /// wrote.
    pub keep: &'a RefName,
}

/// Goes to a fresh branch at HEAD with `tree` staged and checked out, or leaves all as it was.
///
/// The branch is made first: of several landings of one run exactly one gets it. HEAD moves before
/// the files do, so that a landing killed halfway is seen on the fresh branch, not on the user's.
/// Verifies the checkout's state once more: judging a merged tree may have taken long.
pub fn switch_to(repo: &Repo, fresh: &FreshBranch<'_>) -> Result<()> {
    let FreshBranch { git, from, branch, tree, .. } = *fresh;
    let as_it_was = |error: Error| error.context("your checkout is as it was");
    if position(repo)? != *from || git.call("write-tree").oid()? != repo.commit(&from.commit)?.tree
    {
        return Err(
            as_it_was(Error::fatal("your checkout has changed meanwhile")).hint("apply again")
        );
    }
    require_clean(repo)?;
    repo.sync_young_objects()?;
    repo.update_ref(branch, Some(&from.commit), None, "apply")?;
    let left = from.branch.as_ref().map_or(from.commit.as_str(), RefName::short);
    // In git's own words, which `git switch -` reads to find the way back.
    let moving = format!("checkout: moving from {left} to {}", branch.short());
    let call = git.call("symbolic-ref").args(["-m", &moving, "HEAD", branch]);
    let moved = repo.record_change_in(git, []).and_then(|mut change| change.run(call));
    if let Err(error) = moved.and_then(|()| advance::write_files(git, &from.commit, tree)) {
        remove_locks_of_killed(repo, branch, &repo.common_dir().join(branch.as_str()), &error);
        let (files, error) = advance::recover(repo, git, &from.commit, tree, error)?;
        restore_head(repo, git, from)?;
        repo.update_ref(branch, None, Some(&from.commit), "apply withdrawn")?;
        return Err(if files == FilesAfter::Whole { as_it_was(error) } else { error });
    }
    if git.call("write-tree").oid()? != *tree {
        roll_back(repo, fresh)?;
        return Err(
            as_it_was(Error::fatal("your checkout has changed meanwhile")).hint("apply again")
        );
    }
    Ok(())
}

/// The conflicts of merging a capture with HEAD, with markers that name both sides. The newest
/// capture is named by its ref.
pub fn conflicts_with_names(
    repo: &Repo,
    base: &Oid,
    capture: &Oid,
    run: &Name,
    candidate: &Name,
) -> Result<Conflicts> {
    let full = refs::capture(run, candidate);
    let named = repo.read_ref(&full)?.is_some_and(|tip| tip == *capture);
    let theirs = if named { full.trim_start_matches("refs/") } else { capture.as_str() };
    match merge::merge(&repo.checkout(), base, "HEAD", theirs)? {
        MergeResult::Conflicts(conflicts) => Ok(conflicts),
        MergeResult::Clean(_) => {
            Err(Error::fatal("your checkout has changed meanwhile").hint("apply again"))
        }
    }
}

/// Puts the index stages of all sides into the index for a person to resolve, and the message where
/// `git commit` finds it. There is no MERGE_HEAD: the commit is to have one parent.
pub fn leave_conflicts(repo: &Repo, conflicts: &Conflicts, message: &CommitMessage) -> Result<()> {
    let mut edits = IndexEdits::default();
    for (path, stages) in &conflicts.stages {
        edits.remove(path, &conflicts.tree);
        for IndexStage { mode, blob, number } in stages {
            edits.set_stage(mode, blob, *number, path);
        }
    }
    edits.apply(repo.checkout().call("update-index"))?;
    let text = [message.paragraphs.join("\n\n"), message.trailers.join("\n")].join("\n\n") + "\n";
    let file = repo.git_dir().join("MERGE_MSG");
    fs::write(&file, text).context(|| format!("could not write '{}'", file.display()))
}

/// Files that a rollback found and the landing did not write.
#[derive(Debug, Default)]
pub struct Rollback {
    /// The commit with versions that were neither the user's nor landed (a hook wrote them).
    pub kept: Option<Oid>,
    /// Tracked files that are modified and not part of the landing: left as they are.
    pub modified: Vec<TreePath>,
}

/// Goes back to where the checkout was before [`switch_to`] and deletes the branch, at whatever
/// commit it is by now. The change itself is still in its capture.
///
/// Only paths that the landing has changed, or that a hook has staged, are put back: every other
/// change in the checkout is the user's. A version of such a path that is neither the old nor the
/// landed one is kept under the ref `keep` first. HEAD moves after the files, so that a rollback
/// killed halfway is seen on the fresh branch.
pub fn roll_back(repo: &Repo, fresh: &FreshBranch<'_>) -> Result<Rollback> {
    let FreshBranch { git, from: to, branch, tree: landed, keep, .. } = *fresh;
    let mut found = Rollback::default();
    let changes = diff::changes(repo, &to.commit, &to.commit, landed)?;
    let staged = git.call("write-tree").oid()?;
    let staged_changes = diff::changes(repo, &to.commit, &to.commit, &staged)?;
    let paths: BTreeSet<&TreePath> =
        changes.iter().chain(&staged_changes).map(|change| &change.path).collect();
    if !paths.is_empty() {
        let list = TreePath::nul_terminated(paths);
        if !PartialCheckout::inspect(repo, git, &to.commit, landed)?.edited.is_empty() {
            found.kept = Some(keep_versions(repo, to, &list, keep)?);
        }
        advance::restore(repo, git, &to.commit, &staged)?;
        advance::restore(repo, git, &to.commit, landed)?;
        git.call("read-tree").args(["--reset", to.commit.as_str()]).run()?;
    }
    restore_head(repo, git, to)?;
    if let Some(tip) = repo.read_ref(branch)? {
        repo.update_ref(branch, None, Some(&tip), "apply withdrawn")?;
    }
    git.call("update-index").args(["-q", "--refresh"]).output()?;
    // In a sparse checkout, takes away again what does not belong there.
    git.call("read-tree").args(["-m", "-u", to.commit.as_str()]).run()?;
    let modified = git
        .call("diff-files")
        .args(["-z", "--name-only", "--ignore-submodules=untracked"])
        .bytes()?;
    found.modified = nul_separated(&modified).map(TreePath::new).collect();
    Ok(found)
}

/// Stores the versions at these paths as a commit on top of `at`. Versions that were kept before
/// stay reachable.
fn keep_versions(repo: &Repo, at: &Position, list: &[u8], keep: &RefName) -> Result<Oid> {
    let scratch = ScratchIndex::from_tree(&repo.checkout(), &at.commit)?;
    let add = scratch.git().call("update-index");
    add.args(["-z", "--add", "--remove", "--replace", "--stdin"]).stdin(list).run()?;
    let tree = scratch.write_tree()?;
    let parents = [&at.commit];
    commit_to_ref(repo, keep, &tree, &parents, "frites: withdrawn", "apply withdrawn")?;
    let lost = || Error::damaged(format!("'{keep}' was removed meanwhile"));
    repo.read_ref(keep)?.ok_or_else(lost)
}

/// The state of a landing whose process was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// Nothing had happened yet, or everything had been taken back.
    NotBegun,
    /// The branch holds the tree as it was asked for, and the checkout is on it.
    Done,
    /// The checkout is on the branch, with the conflicts that a person is to resolve.
    Unmerged,
    /// The landing was half done, and has been rolled back.
    RolledBack,
    /// The landing is being undone, and somebody has worked on its branch since: it stays.
    BranchStays,
    /// The landing was half done, and a person has committed on its branch since: all stays as it
    /// is. This is the branch's commit.
    InUse(Oid),
    /// The landing is half done, and this file was edited since: a rollback would lose the
    /// edits.
    Edited(TreePath),
}

/// Finds out how far a killed [`switch_to`] came and takes it back, unless it was complete (with a
/// commit after it, if one was asked for) or a person has edited its files since. `undoing` is true
/// if it was killed while it was undone.
pub fn recover(repo: &Repo, fresh: &FreshBranch<'_>, undoing: bool) -> Result<Interrupted> {
    let FreshBranch { git, from, branch, tree, commit, .. } = *fresh;
    let tip = repo.read_ref(branch)?;
    if repo.head_branch().as_ref() != Some(branch) {
        return recover_elsewhere(repo, fresh, undoing);
    }
    // Leaving conflicts for a person was the last step.
    if !git.call("ls-files").args(["-z", "--unmerged"]).bytes()?.is_empty() {
        return Ok(Interrupted::Unmerged);
    }
    let first = first_commit(repo, fresh)?;
    if let (Some(first), Some(tip)) = (&first, tip)
        && (first.oid != tip || !first.is_ours)
    {
        let is_whole = commit && first.is_ours && first.holds_tree;
        return Ok(if is_whole { Interrupted::Done } else { Interrupted::InUse(tip) });
    }
    let moved = first.is_some();
    let holds = |commit: &Oid| repo.commit(commit).is_ok_and(|c| c.tree == *tree);
    let staged = git.call("write-tree").oid().is_ok_and(|t| t == *tree);
    git.call("update-index").args(["-q", "--refresh"]).output()?;
    let unmodified = git.call("diff-files").arg("--quiet").output()?.code == 0;
    if staged
        && unmodified
        && moved == commit
        && (!moved || repo.head().is_some_and(|head| holds(&head)))
    {
        return Ok(Interrupted::Done);
    }
    let partial = PartialCheckout::inspect(repo, git, &from.commit, tree)?;
    if let Some(path) = partial.edited.into_iter().next() {
        return Ok(Interrupted::Edited(path));
    }
    roll_back(repo, fresh)?;
    Ok(Interrupted::RolledBack)
}

/// The first commit on a fresh branch.
pub struct FirstCommit {
    /// The commit.
    pub oid: Oid,
    /// True if its message is that of a landing.
    is_ours: bool,
    /// True if it holds the tree that was to land.
    holds_tree: bool,
}

/// The first commit that a fresh branch has beyond its start; none if there is no such commit.
pub fn first_commit(repo: &Repo, fresh: &FreshBranch<'_>) -> Result<Option<FirstCommit>> {
    let FreshBranch { git, from, branch, tree, .. } = *fresh;
    let range = format!("{}..{branch}", from.commit);
    let list = git.call("rev-list").args(["--first-parent", "--reverse", &range, "--"]).output()?;
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    let Some(oid) = text.lines().next().and_then(Oid::parse) else { return Ok(None) };
    let found = repo.commit(&oid)?;
    let is_ours = Trailer::Run.find(&found.message).is_some();
    Ok(Some(FirstCommit { oid, is_ours, holds_tree: found.tree == *tree }))
}

/// Recovers while HEAD is not on the fresh branch: HEAD never moved, or is back, and only the branch
/// may be left.
fn recover_elsewhere(repo: &Repo, fresh: &FreshBranch<'_>, undoing: bool) -> Result<Interrupted> {
    let FreshBranch { from, branch, tree, .. } = *fresh;
    let Some(tip) = repo.read_ref(branch)? else { return Ok(Interrupted::NotBegun) };
    let is_unused = tip == from.commit || {
        let commit = repo.commit(&tip)?;
        undoing && commit.tree == *tree && commit.parents == [from.commit]
    };
    if is_unused && worktree::holder_of(repo, branch, None)?.is_none() {
        repo.update_ref(branch, None, Some(&tip), "apply withdrawn")?;
    } else if undoing {
        return Ok(Interrupted::BranchStays);
    }
    Ok(Interrupted::NotBegun)
}

/// Removes the locks that a `git commit` left if it was killed on the fresh branch: `error` is its.
pub fn remove_locks_of_commit(repo: &Repo, branch: &RefName, error: &Error) {
    // HEAD moved to the branch just before.
    remove_locks_of_killed(repo, branch, &repo.git_dir().join("HEAD"), error);
}

/// Removes the locks that a git of ours left, if `error` says that it was killed. It began when this
/// file of a ref was written.
fn remove_locks_of_killed(repo: &Repo, branch: &RefName, written: &Path, error: &Error) {
    let since = fs::symlink_metadata(written).and_then(|meta| meta.modified());
    if let (Cause::Interrupted, Ok(since)) = (&error.cause, since) {
        for lock in locks_since(repo, branch, since) {
            // A git of somebody else holds one for milliseconds.
            remove_when_old(&lock, ABANDONED);
        }
    }
}

/// Removes the locks that a landing killed after `since` left: those of its branch, its checkout
/// and `packed-refs`. To be called once for each landing: later locks are another process's.
pub fn remove_locks(repo: &Repo, branch: &RefName, since: SystemTime) {
    for lock in locks_since(repo, branch, since) {
        let _ = fs::remove_file(lock);
    }
}

/// The locks of a landing's branch, its checkout and `packed-refs` that were made after `since`.
fn locks_since(repo: &Repo, branch: &RefName, since: SystemTime) -> Vec<PathBuf> {
    let mut locks = vec![
        repo.common_dir().join(format!("{branch}.lock")),
        repo.common_dir().join("packed-refs.lock"),
    ];
    // `index`, `HEAD`, and what `git commit` tidies up: `AUTO_MERGE` and the like.
    let listing = fs::read_dir(repo.git_dir()).into_iter().flatten().flatten().map(|e| e.path());
    locks.extend(listing.filter(|path| path.extension().is_some_and(|e| e == "lock")));
    locks.retain(|lock| {
        fs::metadata(lock).and_then(|m| m.modified()).is_ok_and(|modified| modified >= since)
    });
    locks
}

fn restore_head(repo: &Repo, git: &Git, to: &Position) -> Result<()> {
    let call = match &to.branch {
        Some(name) => git.call("symbolic-ref").args(["-m", "git-frites: back", "HEAD", name]),
        None => git.call("update-ref").args(["--no-deref", "HEAD", to.commit.as_str()]),
    };
    repo.record_change_in(git, [])?.run(call)
}
