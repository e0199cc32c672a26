//! The position of a checkout's HEAD, and the states of a checkout in which nothing may land.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::git::cli::{Git, nul_separated};
use crate::git::repo::Repo;
use crate::git::worktree;
use crate::model::oid::Oid;
use crate::model::path::quoted;
use crate::model::refname::RefName;

/// The position of a checkout's HEAD, to which a rollback returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The branch that HEAD is on; `None` when detached.
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

impl Position {
    /// True if the HEAD of this git's checkout is at this position.
    pub(super) fn is_head(&self, repo: &Repo, git: &Git) -> Result<bool> {
        let commit = match (worktree::head_branch(git.git_dir()), &self.branch) {
            (Some(now), Some(branch)) if now == *branch => repo.read_ref(branch)?,
            (None, None) => Some(git.call("rev-parse").arg("HEAD").oid()?),
            _ => None,
        };
        Ok(commit == Some(self.commit))
    }
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

/// The staged and modified tracked files of the checkout, as `git status --porcelain -z` prints them.
pub fn uncommitted(repo: &Repo) -> Result<Vec<u8>> {
    let call = repo.checkout().call("status");
    call.args([
        "--porcelain",
        "-z",
        "--untracked-files=no",
        "--no-renames",
        "--ignore-submodules=untracked",
    ])
    .bytes()
}

/// The paths of these files for a sentence; `None` if there is none.
pub fn uncommitted_in_words(repo: &Repo) -> Result<Option<String>> {
    Ok(in_words(&records(&uncommitted(repo)?)))
}

/// Each file that is staged or modified, with the letter for what is staged.
fn records(dirty: &[u8]) -> Vec<(u8, &[u8])> {
    nul_separated(dirty).filter_map(|r| Some((*r.first()?, r.get(3..)?))).collect()
}

fn in_words(records: &[(u8, &[u8])]) -> Option<String> {
    let (_, first) = records.first()?;
    let more = match records.len() {
        1 => String::new(),
        all => format!(" and {} more", all - 1),
    };
    Some(format!("{}{more}", quoted(first)))
}

/// Refuses a checkout with staged or modified tracked files, or in the middle of a merge or the like.
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

/// Refuses a checkout that is no longer at this position, or is not clean. Judging a merged tree may have
/// taken long.
pub fn require_unchanged(repo: &Repo, from: &Position) -> Result<()> {
    if position(repo)? != *from {
        return Err(Error::fatal("your checkout has changed meanwhile").hint("apply again"));
    }
    require_clean(repo)
}
