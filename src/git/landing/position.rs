//! The position of a checkout's HEAD, and the checks that refuse a checkout in which nothing may
//! land.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::git::cli::{Git, nul_separated};
use crate::git::ref_list::head_branch;
use crate::git::repo::Repo;
use crate::model::count::and_more;
use crate::model::oid::Oid;
use crate::model::path::quoted;
use crate::model::refname::RefName;

/// The position of a checkout's HEAD, to which a rollback returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The branch that HEAD is on; `None` if HEAD is detached.
    pub branch: Option<RefName>,
    /// The commit that HEAD is at.
    pub commit: Oid,
}

/// The current position. Fails if HEAD has no commit yet, or is on a branch whose name is not
/// UTF-8.
pub fn position(repo: &Repo) -> Result<Position> {
    let commit = repo.head().ok_or_else(|| repo.no_commit_at_head())?;
    let branch = repo.head_branch();
    if branch.is_none() && !repo.is_detached() {
        return Err(Error::fatal("the name of the current branch is not UTF-8")
            .hint("rename it with `git branch -m NAME`, or switch to another branch"));
    }
    Ok(Position { branch, commit })
}

impl Position {
    /// True if HEAD of the checkout of `git` is at this position.
    pub(super) fn is_head(&self, repo: &Repo, git: &Git) -> Result<bool> {
        let commit = match (head_branch(git.git_dir()), &self.branch) {
            (Some(now), Some(branch)) if now == *branch => repo.read_ref(branch)?,
            (None, None) => Some(git.call("rev-parse").arg("HEAD").oid()?),
            _ => None,
        };
        Ok(commit == Some(self.commit))
    }
}

/// The operation that is in progress in a checkout, e.g. "a merge". Also the command that stops it.
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

/// The staged and modified tracked files of the checkout, as `git status --porcelain -z` prints
/// them.
pub fn uncommitted(repo: &Repo) -> Result<Vec<u8>> {
    let call = repo.checkout().call("status").words("--porcelain -z --untracked-files=no");
    call.words("--no-renames --ignore-submodules=untracked").bytes()
}

/// The first path of [`uncommitted`] and the number of other paths, for a message. `None` if there
/// are no paths.
pub fn uncommitted_in_words(repo: &Repo) -> Result<Option<String>> {
    Ok(in_words(&records(&uncommitted(repo)?)))
}

/// The paths in the output of [`uncommitted`], each with git's letter for its staged change.
fn records(dirty: &[u8]) -> Vec<(u8, &[u8])> {
    nul_separated(dirty).filter_map(|r| Some((*r.first()?, r.get(3..)?))).collect()
}

fn in_words(records: &[(u8, &[u8])]) -> Option<String> {
    let ((_, first), others) = records.split_first()?;
    Some(format!("{}{}", quoted(first), and_more(others.len())))
}

/// Fails if tracked files of the checkout are staged or modified, or if e.g. a merge is in
/// progress.
pub fn require_clean(repo: &Repo) -> Result<()> {
    let root = repo.need_work_tree()?;
    if let Some((what, abort)) = unfinished(repo.git_dir()) {
        return Err(Error::fatal(format!("{what} is in progress"))
            .hint(format!("finish it, or stop it with `{abort}`")));
    }
    let dirty = uncommitted(repo)?;
    let records = records(&dirty);
    let Some(words) = in_words(&records) else { return Ok(()) };
    // `git stash` does not stash changes of submodules.
    let are_submodules = records.iter().all(|(staged, path)| {
        *staged == b' ' && root.join(OsStr::from_bytes(path)).join(".git").exists()
    });
    let aside = if are_submodules { "`git submodule update`" } else { "`git stash`" };
    Err(Error::fatal(format!("your checkout has uncommitted changes: {words}"))
        .hint(format!("commit them or put them aside with {aside}, then apply again")))
}

/// Fails if the checkout has left this position, or is not clean. The user may have changed it
/// while a merged tree was judged.
pub fn require_unchanged(repo: &Repo, from: &Position) -> Result<()> {
    if position(repo)? != *from {
        return Err(Error::fatal("your checkout has changed meanwhile").hint("apply again"));
    }
    require_clean(repo)
}
