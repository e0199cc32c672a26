//! Landing: the landed tree computed before anything is touched, then a fresh branch.
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cli::{Git, nul_separated};
use super::repo::Repo;
use super::{diff, refs, worktree};
use crate::error::{Error, IoContext, Result};
use crate::model::oid::Oid;

/// What a three-way merge in memory gave.
pub enum Merged {
    /// A tree.
    Clean(Oid),
    /// The paths that conflict; nothing was written but objects.
    Conflicts(Vec<Vec<u8>>),
}

/// Merges `theirs` into `ours` over `base` without touching any checkout.
pub fn merge(repo: &Repo, base: &Oid, ours: &Oid, theirs: &Oid) -> Result<Merged> {
    let output = repo
        .git()
        .call("merge-tree")
        .args(["--write-tree", "-z", "--name-only", "--no-messages"])
        .arg(format!("--merge-base={base}"))
        .args([ours.as_str(), theirs.as_str()])
        .output()?;
    let mut records = nul_separated(&output.stdout);
    let tree = records.next().and_then(|t| Oid::parse(std::str::from_utf8(t).ok()?.trim()));
    match (output.code, tree) {
        (0, Some(tree)) => Ok(Merged::Clean(tree)),
        (1, Some(_)) => {
            let paths: BTreeSet<Vec<u8>> = records.map(<[u8]>::to_vec).collect();
            Ok(Merged::Conflicts(paths.into_iter().collect()))
        }
        _ => Err(output.error("merge-tree")),
    }
}

/// Where a checkout stands: what is put back when a landing is withdrawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Position {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// The commit that HEAD is at.
    pub commit: Oid,
}

/// The current position; fatal while HEAD is unborn.
pub fn position(repo: &Repo) -> Result<Position> {
    let commit = repo.head().ok_or_else(|| {
        Error::fatal("HEAD has no commit yet").hint("commit something first: `git commit --allow-empty -m start`")
    })?;
    Ok(Position { branch: repo.head_branch(), commit })
}

/// Refuses a checkout with staged or modified tracked files, or in the middle of something.
pub fn require_clean(repo: &Repo) -> Result<()> {
    repo.need_work_tree()?;
    let unfinished = [
        ("MERGE_HEAD", "a merge", "git merge --abort"),
        ("CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --abort"),
        ("REVERT_HEAD", "a revert", "git revert --abort"),
        ("rebase-merge", "a rebase", "git rebase --abort"),
        ("rebase-apply", "a rebase", "git rebase --abort"),
    ];
    for (file, what, abort) in unfinished {
        if repo.git_dir().join(file).exists() {
            return Err(
                Error::fatal(format!("{what} is in progress")).hint(format!("finish it, or stop it with `{abort}`"))
            );
        }
    }
    let dirty = repo
        .checkout()
        .call("status")
        .args(["--porcelain", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=none"])
        .bytes()?;
    let files: Vec<String> = nul_separated(&dirty).map(|record| quoted(record.get(3..).unwrap_or_default())).collect();
    match files.as_slice() {
        [] => Ok(()),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            Err(Error::fatal(format!("your checkout has uncommitted changes: {first}{more}"))
                .hint("commit them or put them aside with `git stash`, then apply again; `--no-switch` leaves your checkout alone"))
        }
    }
}

/// The untracked or ignored files that going from one tree to another would write over.
///
/// git overwrites an ignored file such as `.env` without a word, so every path that the landing
/// creates is looked at, and every folder above it.
pub fn obstacles(repo: &Repo, from: &Oid, to: &Oid) -> Result<Vec<Vec<u8>>> {
    let root = repo.need_work_tree()?;
    let changes = diff::changes(repo, from, from, to)?;
    let leaves: BTreeSet<&[u8]> = changes.iter().filter(|c| c.status == b'D').map(|c| c.path.as_slice()).collect();
    let mut found = BTreeSet::new();
    for change in changes.iter().filter(|c| c.status == b'A') {
        let path = change.path.as_slice();
        let slashes = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &path[..at]);
        // A file or a link where a folder must go.
        for above in slashes {
            let blocked = fs::symlink_metadata(root.join(OsStr::from_bytes(above))).is_ok_and(|m| !m.is_dir());
            if blocked && !leaves.contains(above) {
                found.insert(above.to_vec());
            }
        }
        let full = root.join(OsStr::from_bytes(path));
        match fs::symlink_metadata(&full) {
            Ok(meta) if meta.is_dir() => files_below(root, &full, &leaves, &mut found),
            Ok(_) if worktree::is_real_folder(root, full.parent().unwrap_or(root)) => {
                found.insert(path.to_vec());
            }
            _ => {}
        }
    }
    Ok(found.into_iter().collect())
}

/// What lies in a folder that a file is to replace, and does not leave with the landing.
fn files_below(root: &Path, dir: &Path, leaves: &BTreeSet<&[u8]>, found: &mut BTreeSet<Vec<u8>>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            files_below(root, &path, leaves, found);
        } else if let Ok(below) = path.strip_prefix(root) {
            let bytes = worktree::path_bytes(below);
            if !leaves.contains(bytes) {
                found.insert(bytes.to_vec());
            }
        }
    }
}

/// Goes to a fresh branch at HEAD with `tree` staged and checked out, or leaves all as it was.
///
/// The branch is made first: of several landings of one run exactly one gets it. HEAD moves before
/// the files do, so that a landing killed halfway is seen on the fresh branch, not on the user's.
pub fn switch_to(repo: &Repo, from: &Position, branch: &str, tree: &Oid) -> Result<()> {
    repo.update_ref(branch, Some(&from.commit), None, "apply")?;
    let git = repo.checkout();
    let left = from.branch.as_deref().map_or(from.commit.as_str(), refs::short);
    // In git's own words, which `git switch -` reads to find the way back.
    let moving = format!("checkout: moving from {left} to {}", refs::short(branch));
    let moved = git
        .call("symbolic-ref")
        .args(["-m", &moving, "HEAD", branch])
        .run()
        .and_then(|()| git.call("read-tree").args(["-m", "-u", from.commit.as_str(), tree.as_str()]).run());
    if let Err(error) = moved {
        restore_head(repo, from)?;
        repo.update_ref(branch, None, Some(&from.commit), "apply withdrawn")?;
        return Err(error.context("your checkout is as it was"));
    }
    Ok(())
}

/// Goes back to where the checkout was before [`switch_to`] and deletes the branch, whatever it
/// points to by now. Everything that was landed is still in its capture.
///
/// By way of the landed tree: the index may know more (a hook added a file) or less of it (a hook
/// unstaged one, a kill came before it was written), and what it does not know would stay behind.
/// HEAD moves after the files, so that a withdrawal killed halfway is seen on the fresh branch.
pub fn withdraw(repo: &Repo, to: &Position, branch: &str, landed: &Oid) -> Result<()> {
    for tree in [landed, &to.commit] {
        repo.checkout().call("read-tree").args(["--reset", "-u", tree.as_str()]).run()?;
    }
    restore_head(repo, to)?;
    if let Some(tip) = repo.read_ref(branch)? {
        repo.update_ref(branch, None, Some(&tip), "apply withdrawn")?;
    }
    Ok(())
}

/// What became of a landing whose process was killed.
pub enum Interrupted {
    /// Nothing had happened yet, or all had been taken back.
    NotBegun,
    /// The branch holds the tree, and the checkout is on it.
    Done,
    /// It was half done, and is taken back.
    Withdrawn,
    /// It is half done, and this file was edited since: taking it back would lose that.
    Edited(Vec<u8>),
}

/// Looks at an interrupted [`switch_to`] (with or without a commit after it) and takes it back unless
/// it was complete or a person has worked in the checkout since.
pub fn interrupted(repo: &Repo, from: &Position, branch: &str, tree: &Oid) -> Result<Interrupted> {
    // The locks of a killed git: whoever held them was killed with the landing.
    for lock in [repo.common_dir().join(branch), repo.git_dir().join("index"), repo.git_dir().join("HEAD")] {
        let mut name = lock.into_os_string();
        name.push(".lock");
        let _ = fs::remove_file(name);
    }
    let tip = repo.read_ref(branch)?;
    if repo.head_branch().as_deref() != Some(branch) {
        // HEAD never moved, or is back: only the fresh branch may be left.
        if tip.as_ref() == Some(&from.commit) {
            repo.update_ref(branch, None, tip.as_ref(), "apply withdrawn")?;
        }
        return Ok(Interrupted::NotBegun);
    }
    let git = repo.checkout();
    let moved = tip.is_some_and(|tip| tip != from.commit);
    let holds = |commit: &Oid| repo.commit(commit).is_ok_and(|c| c.tree == *tree);
    let staged = git.call("write-tree").oid().is_ok_and(|t| t == *tree);
    let unmodified = git.call("diff-files").arg("--quiet").output()?.code == 0;
    if staged && unmodified && (!moved || repo.head().is_some_and(|head| holds(&head))) {
        return Ok(Interrupted::Done);
    }
    let touched = |source: &Oid| -> Result<BTreeSet<Vec<u8>>> {
        let index = tempfile::tempdir().context(|| "could not make a temporary folder".into())?;
        let git = repo.checkout().index(&index.path().join("index"));
        git.call("read-tree").arg(source.as_str()).run()?;
        git.call("update-index").args(["-q", "--refresh"]).output()?;
        Ok(nul_separated(&git.call("diff-files").args(["-z", "--name-only"]).bytes()?).map(<[u8]>::to_vec).collect())
    };
    // A file that is neither as before nor as landed was edited, unless git was killed writing it: then
    // it is missing, or a beginning of what was to land.
    let mut before = touched(&from.commit)?;
    let changes = diff::changes(repo, &from.commit, &from.commit, tree)?;
    before.extend(changes.into_iter().filter(|c| c.status == b'A').map(|c| c.path));
    let after = touched(tree)?;
    for path in before.intersection(&after) {
        let Ok(found) = fs::read(repo.need_work_tree()?.join(OsStr::from_bytes(path))) else { continue };
        let name = [tree.as_str().as_bytes(), b":", path].concat();
        let landed = git.call("cat-file").arg("--filters").arg(OsStr::from_bytes(&name)).output()?.stdout;
        if !landed.starts_with(&found) {
            return Ok(Interrupted::Edited(path.clone()));
        }
    }
    withdraw(repo, from, branch, tree)?;
    Ok(Interrupted::Withdrawn)
}

fn restore_head(repo: &Repo, to: &Position) -> Result<()> {
    let git = repo.checkout();
    match &to.branch {
        Some(name) => git.call("symbolic-ref").args(["-m", "git-frites: back", "HEAD", name]).run(),
        None => git.call("update-ref").args(["--no-deref", "HEAD", to.commit.as_str()]).run(),
    }
}

/// What to say in a commit, and how.
pub struct Message<'a> {
    /// Each becomes a paragraph, as with `git commit -m`.
    pub paragraphs: &'a [String],
    /// Lines added at the end, `Key: value`.
    pub trailers: &'a [String],
    /// Whether `pre-commit` and `commit-msg` run.
    pub verify: bool,
}

/// Commits what is staged as the user would: identity, hooks, signing. `git` is where.
///
/// Gives false when git or a hook refused; they have said why on standard error.
pub fn commit(git: &Git, message: &Message<'_>) -> Result<bool> {
    let mut call = git.clone().for_user().call("commit").arg("--quiet");
    if !message.verify {
        call = call.arg("--no-verify");
    }
    for paragraph in message.paragraphs {
        call = call.arg("-m").arg(paragraph);
    }
    for trailer in message.trailers {
        call = call.arg("--trailer").arg(trailer);
    }
    Ok(call.interactive()? == 0)
}

/// The folder of the hooks that `git commit` would run in the user's checkout, if there is any such hook.
fn commit_hooks(repo: &Repo) -> Result<Option<OsString>> {
    let git = repo.checkout().for_user();
    let folder = git.call("rev-parse").args(["--path-format=absolute", "--git-path", "hooks"]).line()?;
    let hooks = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];
    let any = hooks.iter().any(|hook| Path::new(&folder).join(hook).is_file());
    Ok(any.then_some(folder))
}

/// Makes the commit in a worktree of its own and puts `branch` on it: the user's checkout is not
/// touched. The files are written only if a hook is there to look at them.
///
/// Gives the commit, or none when git or a hook refused.
pub fn commit_aside(repo: &Repo, aside: &Aside<'_>, tree: &Oid, message: &Message<'_>) -> Result<Option<Oid>> {
    let mut git = worktree::git(aside.admin, aside.path);
    match commit_hooks(repo)? {
        Some(folder) => {
            git.call("read-tree").args(["--reset", "-u", tree.as_str()]).run()?;
            // A relative `core.hooksPath` would be looked for in the worktree aside.
            git = git.hooks(&folder);
        }
        None => git.call("read-tree").arg(tree.as_str()).run()?,
    }
    if !commit(&git, message)? {
        return Ok(None);
    }
    git.call("rev-parse").args(["--verify", "HEAD^{commit}"]).oid().map(Some)
}

/// A detached worktree for [`commit_aside`].
pub struct Aside<'a> {
    /// Its administrative entry.
    pub admin: &'a Path,
    /// Its folder.
    pub path: &'a Path,
}

/// A commit of `tree` on `parent` by git-frites that depends on nothing else: equal trees on equal
/// bases give the same commit, so an outcome cannot depend on which candidate made the tree.
pub fn neutral_commit(repo: &Repo, tree: &Oid, parent: &Oid) -> Result<Oid> {
    let date = format!("@{} +0000", repo.commit(parent)?.time);
    repo.git()
        .call("commit-tree")
        .args([tree.as_str(), "-p", parent.as_str(), "-m", "frites: judged tree"])
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_DATE", &date)
        .oid()
}

/// Reads a submodule's files at `commit` into a folder, from the git directory that the user's
/// checkout has for it. Fails when that commit is not there.
pub fn export(git_dir: &Path, commit: &Oid, into: &Path) -> Result<()> {
    let index = tempfile::NamedTempFile::new().context(|| "could not make a temporary file".into())?;
    let path = index.into_temp_path();
    fs::remove_file(&path).context(|| "could not use a temporary file".into())?;
    fs::create_dir_all(into).context(|| format!("could not make '{}'", into.display()))?;
    Git::at(git_dir).work_tree(into).index(&path).call("read-tree").args(["--reset", "-u", commit.as_str()]).run()
}

/// A path for a message: as it is, or quoted when it holds anything unusual.
pub fn quoted(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    if text.chars().any(|c| c.is_control() || c == '"' || c == '\\' || c == '\u{fffd}') {
        format!("\"{}\"", path.escape_ascii())
    } else {
        text.into_owned()
    }
}
