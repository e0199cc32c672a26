//! Landing: the landed tree computed before anything is touched, then a fresh branch.
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        .args(["--porcelain", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=untracked"])
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

/// A landing in the user's checkout.
#[derive(Clone, Copy)]
pub struct Landing<'a> {
    /// Where the checkout was before.
    pub from: &'a Position,
    /// The fresh branch, by its full name.
    pub branch: &'a str,
    /// What it is to hold.
    pub tree: &'a Oid,
    /// Whether it is to be committed.
    pub commit: bool,
    /// The ref that keeps what a hook made of it, should it be withdrawn.
    pub keep: &'a str,
}

/// Goes to a fresh branch at HEAD with `tree` staged and checked out, or leaves all as it was.
///
/// The branch is made first: of several landings of one run exactly one gets it. HEAD moves before
/// the files do, so that a landing killed halfway is seen on the fresh branch, not on the user's.
/// Looks once more at where the checkout stands: judging a merged tree may have taken long.
pub fn switch_to(repo: &Repo, landing: &Landing<'_>) -> Result<()> {
    let Landing { from, branch, tree, .. } = *landing;
    let git = repo.checkout();
    let as_it_was = |error: Error| error.context("your checkout is as it was");
    if position(repo)? != *from || git.call("write-tree").oid()? != repo.commit(&from.commit)?.tree {
        return Err(as_it_was(Error::fatal("your checkout has changed meanwhile")).hint("apply again"));
    }
    require_clean(repo)?;
    repo.update_ref(branch, Some(&from.commit), None, "apply")?;
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
        return Err(as_it_was(error));
    }
    if git.call("write-tree").oid()? != *tree {
        withdraw(repo, landing)?;
        return Err(as_it_was(Error::fatal("your checkout has changed meanwhile")).hint("apply again"));
    }
    Ok(())
}

/// What a withdrawal found besides what was landed.
#[derive(Debug, Default)]
pub struct Withdrawal {
    /// Where the versions are kept that were neither the user's nor landed (a hook rewrote them).
    pub kept: Option<Oid>,
    /// Tracked files that are modified and were no part of the landing: left as they are.
    pub modified: Vec<Vec<u8>>,
}

/// Goes back to where the checkout was before [`switch_to`] and deletes the branch, whatever it
/// points to by now. Everything that was landed is still in its capture.
///
/// Only paths that the landing, or a hook by staging them, has changed are put back: anything else in
/// the checkout is the user's. A version of such a path that is neither the old nor the landed one is
/// kept under the ref `keep` first. HEAD moves after the files, so that a withdrawal killed halfway is seen on
/// the fresh branch.
pub fn withdraw(repo: &Repo, landing: &Landing<'_>) -> Result<Withdrawal> {
    let Landing { from: to, branch, tree: landed, keep, .. } = *landing;
    let git = repo.checkout();
    let mut found = Withdrawal::default();
    let changes = diff::changes(repo, &to.commit, &to.commit, landed)?;
    let staged = diff::changes(repo, &to.commit, &to.commit, &git.call("write-tree").oid()?)?;
    let paths: BTreeSet<&[u8]> = changes.iter().chain(&staged).map(|c| c.path.as_slice()).collect();
    if !paths.is_empty() {
        let list: Vec<u8> = paths.iter().flat_map(|p| [p, &b"\0"[..]].concat()).collect();
        // Files that were created already go only if the index knows them.
        let created = changes.iter().filter(|c| c.status == b'A');
        let lines: Vec<u8> =
            created.flat_map(|c| [format!("{} {}\t", c.mode, c.new).as_bytes(), &c.path, b"\0"].concat()).collect();
        git.call("update-index").args(["-z", "--index-info"]).stdin(lines).run()?;
        if !edited_paths(repo, to, landed)?.is_empty() {
            found.kept = Some(keep_versions(repo, to, &list, keep)?);
        }
        let restore = git.call("--literal-pathspecs").args(["restore", "--staged", "--worktree"]);
        let restore = restore.arg(format!("--source={}", to.commit));
        restore.args(["--pathspec-from-file=-", "--pathspec-file-nul"]).stdin(list).run()?;
    }
    restore_head(repo, to)?;
    if let Some(tip) = repo.read_ref(branch)? {
        repo.update_ref(branch, None, Some(&tip), "apply withdrawn")?;
    }
    git.call("update-index").args(["-q", "--refresh"]).output()?;
    let modified = git.call("diff-files").args(["-z", "--name-only", "--ignore-submodules=untracked"]).bytes()?;
    found.modified = nul_separated(&modified).map(<[u8]>::to_vec).collect();
    Ok(found)
}

/// Stores the versions that lie at these paths as a commit on the position's; earlier ones stay reachable.
fn keep_versions(repo: &Repo, at: &Position, list: &[u8], keep: &str) -> Result<Oid> {
    let index = tempfile::tempdir().context(|| "could not make a temporary folder".into())?;
    let git = repo.checkout().index(&index.path().join("index"));
    git.call("read-tree").arg(at.commit.as_str()).run()?;
    let add = git.call("update-index").args(["-z", "--add", "--remove", "--replace", "--stdin"]);
    add.stdin(list).run()?;
    let tree = git.call("write-tree").oid()?;
    let earlier = repo.read_ref(keep)?;
    let mut call = repo.git().call("commit-tree").args([tree.as_str(), "-p", at.commit.as_str()]);
    if let Some(earlier) = &earlier {
        call = call.args(["-p", earlier.as_str()]);
    }
    let commit = call.args(["-m", "frites: withdrawn"]).oid()?;
    repo.update_ref(keep, Some(&commit), earlier.as_ref(), "apply withdrawn")?;
    Ok(commit)
}

/// The paths of a landing that are in the worktree neither as before nor as landed, nor a beginning of
/// what was to land (git was killed writing it), nor missing.
fn edited_paths(repo: &Repo, from: &Position, tree: &Oid) -> Result<Vec<Vec<u8>>> {
    let git = repo.checkout();
    let landing = diff::changes(repo, &from.commit, &from.commit, tree)?;
    let differing = |source: &Oid| -> Result<BTreeSet<Vec<u8>>> {
        let index = tempfile::tempdir().context(|| "could not make a temporary folder".into())?;
        let git = repo.checkout().index(&index.path().join("index"));
        git.call("read-tree").arg(source.as_str()).run()?;
        git.call("update-index").args(["-q", "--refresh"]).output()?;
        Ok(nul_separated(&git.call("diff-files").args(["-z", "--name-only"]).bytes()?).map(<[u8]>::to_vec).collect())
    };
    let (before, after) = (differing(&from.commit)?, differing(tree)?);
    let mut edited = Vec::new();
    for change in &landing {
        let as_before = change.status != b'A' && !before.contains(&change.path);
        let as_landed = change.status != b'D' && !after.contains(&change.path);
        let Ok(found) = fs::read(repo.need_work_tree()?.join(OsStr::from_bytes(&change.path))) else { continue };
        if as_before || as_landed {
            continue;
        }
        let name = [tree.as_str().as_bytes(), b":", &change.path].concat();
        let whole = git.call("cat-file").arg("--filters").arg(OsStr::from_bytes(&name)).output()?;
        if whole.code != 0 || !whole.stdout.starts_with(&found) {
            edited.push(change.path.clone());
        }
    }
    Ok(edited)
}

/// What became of a landing whose process was killed.
pub enum Interrupted {
    /// Nothing had happened yet, or all had been taken back.
    NotBegun,
    /// The branch holds the tree as it was asked for, and the checkout is on it.
    Done,
    /// It was half done, and is taken back.
    Withdrawn,
    /// It is half done, and this file was edited since: taking it back would lose that.
    Edited(Vec<u8>),
}

/// Looks at an interrupted [`switch_to`] and takes it back unless it was complete (with a commit after
/// it, if one was asked for) or a person has worked on its files since.
pub fn interrupted(repo: &Repo, landing: &Landing<'_>) -> Result<Interrupted> {
    let Landing { from, branch, tree, commit, .. } = *landing;
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
    git.call("update-index").args(["-q", "--refresh"]).output()?;
    let unmodified = git.call("diff-files").arg("--quiet").output()?.code == 0;
    if staged && unmodified && moved == commit && (!moved || repo.head().is_some_and(|head| holds(&head))) {
        return Ok(Interrupted::Done);
    }
    if let Some(path) = edited_paths(repo, from, tree)?.into_iter().next() {
        return Ok(Interrupted::Edited(path));
    }
    withdraw(repo, landing)?;
    Ok(Interrupted::Withdrawn)
}

/// Removes the locks that a landing killed after `since` left: those of its branch, its checkout and
/// `packed-refs`. To be called once for each landing: later ones are somebody else's.
pub fn remove_locks(repo: &Repo, branch: &str, since: SystemTime) {
    let mut locks = vec![repo.common_dir().join(format!("{branch}.lock")), repo.common_dir().join("packed-refs.lock")];
    // `index`, `HEAD`, and what `git commit` tidies up: `AUTO_MERGE` and the like.
    let listing = fs::read_dir(repo.git_dir()).into_iter().flatten().flatten().map(|e| e.path());
    locks.extend(listing.filter(|path| path.extension().is_some_and(|e| e == "lock")));
    for lock in locks {
        if fs::metadata(&lock).and_then(|m| m.modified()).is_ok_and(|modified| modified >= since) {
            let _ = fs::remove_file(lock);
        }
    }
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
    // Housekeeping can wait: killed with us, it would leave its lock behind.
    let quiet = ["maintenance.auto=false", "-c", "gc.auto=0", "commit", "--quiet"];
    let mut call = git.clone().for_user().call("-c").args(quiet);
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
