//! Makes two kinds of commits: commits in the user's name, with the user's hooks, identity and
//! signature; and commits by git-frites.
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::date::Time;

use crate::error::{Cause, Error, IoContext, Result};
use crate::git::cli::{Git, nul_separated};
use crate::git::index::write_without_files;
use crate::git::ref_locks::heal_packed_refs_lock;
use crate::git::repo::Repo;
use crate::git::worktree::Worktree;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// The hooks that a commit in the user's name runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HooksToRun {
    All,
    /// All hooks except those that `git commit --no-verify` skips.
    NoVerify,
    None,
}

/// The message of a commit in the user's name.
#[derive(Clone, Debug)]
pub struct CommitMessage {
    /// The paragraphs; each is passed to `git commit` with `-m`.
    pub paragraphs: Vec<String>,
    /// The trailers (`Key: value`) at the end of the message.
    pub trailers: Vec<String>,
    pub hooks: HooksToRun,
}

/// A commit to be made in the user's name.
#[derive(Clone, Copy, Debug)]
pub struct CommitRequest<'a> {
    /// The commit's tree.
    pub tree: &'a Oid,
    /// The commit's first parent.
    pub parent: &'a Oid,
    /// The commit's second parent, if it is a merge.
    pub merged: Option<&'a Oid>,
    pub message: &'a CommitMessage,
}

/// Commits the staged changes as the user would, with the user's identity, hooks and signature.
/// `git` is the checkout.
///
/// Returns false if git or a hook refused. The one that refused has then written the reason to
/// standard error.
pub fn commit(git: &Git, message: &CommitMessage) -> Result<bool> {
    // git must not start a garbage collection. If it were killed together with us, its lock would
    // stay.
    let quiet = ["maintenance.auto=false", "-c", "gc.auto=0", "commit", "--quiet"];
    let mut git = git.clone().for_user();
    if message.hooks == HooksToRun::None {
        git = git.hooks(OsStr::new("/dev/null"));
    }
    let mut call = git.call("-c").args(quiet);
    if message.hooks != HooksToRun::All {
        call = call.arg("--no-verify");
    }
    let paragraphs = message.paragraphs.iter().flat_map(|text| ["-m", text]);
    let trailers = message.trailers.iter().flat_map(|text| ["--trailer", text]);
    match call.args(paragraphs).args(trailers).interactive()? {
        KILLED => {
            let killed = Error::no("git did not make the commit: it was killed");
            Err(killed.because(Cause::Interrupted).hint("land it again: nothing is damaged"))
        }
        code => Ok(code == 0),
    }
}

/// The exit code of a git that SIGKILL ended. Such a git could not remove its locks.
const KILLED: i32 = 137;

/// The absolute path of the directory in which git looks for hooks in the user's checkout. Links in
/// the path are not resolved.
pub fn hooks_directory(repo: &Repo) -> Result<OsString> {
    let mut configured = None;
    if repo.gix().config_snapshot().string("core.hooksPath").is_some()
        || std::env::var_os("GIT_CONFIG_PARAMETERS").is_some()
    {
        let git = repo.checkout().for_user();
        let found = git.call("config").args(["-z", "--type=path", "--get", "core.hooksPath"]);
        let found = found.output()?;
        let path = nul_separated(&found.stdout).next();
        configured = path.map(|path| PathBuf::from(OsStr::from_bytes(path)));
    }
    let place = repo.work_tree().unwrap_or(repo.git_dir());
    let directory = match configured {
        Some(path) => place.join(path),
        None => repo.common_dir().join("hooks"),
    };
    Ok(directory.into_os_string())
}

/// The directory of the hooks that a commit would run in the user's checkout; `None` if there is no
/// such hook.
fn commit_hooks(repo: &Repo, merging: bool) -> Result<Option<OsString>> {
    let directory = hooks_directory(repo)?;
    // `reference-transaction` runs when any ref moves, and may refuse.
    let hooks =
        ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction"];
    let merge = merging.then_some("pre-merge-commit");
    let any = hooks.into_iter().chain(merge).any(|hook| Path::new(&directory).join(hook).is_file());
    Ok(any.then_some(directory))
}

/// Makes the commit with `git commit` in `worktree`, whose HEAD is detached at the first parent.
/// Does not touch the user's checkout. Writes the files into the worktree only if there is a hook
/// that could read them.
///
/// Returns `None` if git or a hook refused. A hook can change the commit's tree, so it may differ
/// from the requested tree.
pub fn commit_in(
    repo: &Repo,
    worktree: &Worktree,
    request: &CommitRequest<'_>,
) -> Result<Option<Oid>> {
    let mut git = worktree.git();
    let hooks = commit_hooks(repo, request.merged.is_some())?;
    match &hooks {
        Some(directory) => {
            git.call("read-tree").args(["--reset", "-u", request.tree.as_str()]).run()?;
            // git would look for a relative `core.hooksPath` in `worktree`, and not in the user's
            // checkout.
            git = git.hooks(directory);
        }
        None if write_without_files(repo, request.tree, &worktree.index()).is_ok() => {}
        None => git.call("read-tree").arg(request.tree.as_str()).run()?,
    }
    if let Some(merged) = request.merged {
        // `git merge --no-ff --no-commit` leaves these files, and `git commit` reads them to
        // complete the merge.
        for (file, text) in
            [("MERGE_HEAD", format!("{merged}\n")), ("MERGE_MODE", "no-ff".to_owned())]
        {
            let path = worktree.admin.join(file);
            fs::write(&path, text).could_not("write", &path)?;
        }
        if hooks.is_some()
            && request.message.hooks == HooksToRun::All
            && run_hook(&git, "pre-merge-commit", &[])? != 0
        {
            return Ok(None);
        }
    }
    let made = commit(&git, request.message);
    if made.as_ref().is_err_and(|error| error.cause == Cause::Interrupted) {
        // git releases the lock of `packed-refs` last, after it has moved HEAD. So the killed git
        // may have left that lock.
        heal_packed_refs_lock(&worktree.admin, "HEAD");
    }
    if !made? {
        return Ok(None);
    }
    git.call("rev-parse").args(["--verify", "HEAD^{commit}"]).oid().map(Some)
}

/// Runs one of the user's hooks, and returns its exit code; 0 if the hook does not exist.
pub fn run_hook(git: &Git, hook: &str, args: &[&str]) -> Result<i32> {
    let call = git.clone().for_user().call("hook").args(["run", "--ignore-missing", hook, "--"]);
    call.args(args).interactive()
}

/// Stores a commit by git-frites. No ref is set to it.
pub fn commit_tree<'a>(
    repo: &Repo,
    tree: &Oid,
    parents: impl IntoIterator<Item = &'a Oid>,
    message: &str,
) -> Result<Oid> {
    let parents: Vec<&Oid> = parents.into_iter().collect();
    repo.store(|objects| objects.add_commit(tree, parents.iter().copied(), message))
}

/// Points a ref to a new commit of `tree` by git-frites. Other refs must reach the tree and the
/// parents. If a garbage collection runs, the ref is set only if all objects are still there.
///
/// The ref's old commit becomes a parent, too. If that commit is missing, the ref is deleted and
/// made anew.
pub fn commit_to_ref(
    repo: &Repo,
    name: &RefName,
    tree: &Oid,
    parents: &[&Oid],
    message: &str,
    why: &str,
) -> Result<()> {
    repo.retry_during_gc(|| {
        let mut old = repo.read_ref(name)?;
        if let Some(gone) = old.filter(|old| !repo.is_commit(old)) {
            // Deleting the ref also deletes its reflog. In the reflog, git would report the missing
            // commit as damage.
            repo.update_ref(name, None, Some(&gone), "its commit is gone")?;
            old = None;
        }
        let parents: Vec<&Oid> = parents.iter().copied().chain(&old).collect();
        let commit = commit_tree(repo, tree, parents.iter().copied(), message)?;
        repo.set_ref_whole(name, &commit, old.as_ref(), &parents, why)
    })
}

/// A commit of `tree` on `parent` by git-frites. It depends only on `tree` and `parent`: equal
/// trees on equal bases give the same commit. So the outcome of an oracle command cannot depend on
/// the candidate that made the tree.
pub fn neutral_commit(repo: &Repo, tree: &Oid, parent: &Oid) -> Result<Oid> {
    neutral(repo, tree, parent, "frites: judged tree")
}

/// The message of a commit with content that is neither in the worktree nor in another commit. Only
/// the attempt's index or administrative entry names such content.
pub const STAGED: &str = "frites: staged";

/// A commit of `tree` on `parent` by git-frites, with the date of the parent.
pub fn neutral(repo: &Repo, tree: &Oid, parent: &Oid, message: &str) -> Result<Oid> {
    let date = Time { seconds: repo.commit(parent)?.time, offset: 0 };
    repo.store(|objects| objects.add_commit_of(date, tree, [parent], message))
}
