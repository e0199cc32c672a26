//! Moves the files and the index of a checkout together with its branch, or to a fresh branch.
//! Either everything moves or nothing.
//!
//! git-frites can be killed at any moment, so the order matters:
//!
//! - First the files are written, under git's own lock of the index.
//! - Then the refs move in one transaction, or the fresh branch is made and HEAD moves to it.
//! - Last, the locked index is renamed to `index`.
//!
//! Until the branch or HEAD has moved, the files can be put back. Once it has moved, all files have
//! been written already.
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Cause, Error, IoContext, Result};
use crate::fs::tree;
use crate::git::cli::{Git, nul_separated};
use crate::git::commit::commit_to_ref;
use crate::git::diff::{self, Change, ChangeStatus};
use crate::git::index::{IndexEdits, ScratchIndex};
use crate::git::landing::intent::Intent;
use crate::git::landing::overwrite::{PartialCheckout, held_at, root_of};
use crate::git::landing::position::Position;
use crate::git::merge::{Conflicts, IndexStage};
use crate::git::mode::EntryMode;
use crate::git::ref_list::head_branch;
use crate::git::refs::{self, Move};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::refname::RefName;

/// True if the checkout's HEAD is on this branch.
pub(super) fn is_on(git: &Git, branch: &RefName) -> bool {
    head_branch(git.git_dir()).as_ref() == Some(branch)
}

/// Makes a [`Git`] for a landing in a checkout. Each git process that the [`Git`] starts holds a
/// lock on the git directory.
///
/// If git-frites is killed, a git process that writes the checkout goes on. A recovery at the same
/// time would damage the index (GIT-FACTS.md, "Landing"). So each git process inherits the locked
/// directory as its standard input. The lock is free once the last git process has ended.
///
/// Fails with [`Cause::Locked`] while a process of a killed landing still writes the checkout.
pub fn begin(git: &Git) -> Result<Git> {
    let mark = File::open(git.git_dir()).could_not("open", git.git_dir())?;
    match mark.try_lock() {
        Ok(()) => Ok(git.clone().holding(Arc::new(mark))),
        Err(TryLockError::WouldBlock) => {
            let root = git.root().unwrap_or(git.git_dir()).display();
            let what = format!("a git process of an interrupted landing still writes to '{root}'");
            Err(Error::fatal(what).because(Cause::Locked).hint("try again when it has ended"))
        }
        // Some network file systems do not support such locks.
        Err(TryLockError::Error(_)) => Ok(git.clone()),
    }
}

/// The inputs of [`advance`] that are not part of the [`Intent`]. Neither a recovery nor a rollback
/// needs them.
pub struct AdvanceInput<'a> {
    /// A file with an index of the checkout's files as they are now, with their times.
    pub index: &'a Path,
    /// The refs that move with the files; empty if the branch is fresh.
    pub refs: &'a [Move<'a>],
    /// The reason for the reflogs.
    pub why: &'a str,
    /// Conflicts to put into the index for a person to resolve.
    pub conflicts: Option<&'a Conflicts>,
}

/// An [`advance`] that failed.
pub struct Stopped {
    pub error: Error,
    /// True if files, refs and index are as before the call. If false, the index stays locked. The
    /// next command then finishes the landing or takes it back.
    pub is_whole: bool,
}

impl Stopped {
    fn whole(error: Error) -> Stopped {
        Stopped { error, is_whole: true }
    }

    fn halfway(error: Error) -> Stopped {
        Stopped { error, is_whole: false }
    }
}

/// The lock of a checkout's index. It is git's own lock, so no other git writes the index during a
/// landing.
pub(super) fn lock_file(git: &Git) -> PathBuf {
    git.git_dir().join("index.lock")
}

/// The error for a lock of the index that another process holds.
pub(super) fn locked_by_others(lock: &Path) -> Error {
    Error::fatal(format!("another git process is at work here: '{}' exists", lock.display()))
        .because(Cause::Locked)
        .hint("try again when it has ended; if it was killed, remove that file")
}

/// Locks the index of a checkout; the lock holds a copy of `index`.
fn lock_index(git: &Git, index: &Path) -> Result<()> {
    let lock = lock_file(git);
    match fs::OpenOptions::new().write(true).create_new(true).open(&lock) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            return Err(locked_by_others(&lock));
        }
        other => drop(other.could_not("write", &lock)?),
    }
    // A git makes `index.lock.lock` only if it writes `index.lock` as its index. This process holds
    // `index.lock` now, so a file `index.lock.lock` is from a killed git.
    let _ = fs::remove_file(lock_of_lock(git));
    if let Err(error) = fs::copy(index, &lock) {
        fs::remove_file(&lock).could_not("write", &lock)?;
        return Err(error).could_not("write", &lock);
    }
    Ok(())
}

/// Moves files, refs and index as `intent` says. If this fails, puts them back if possible (see
/// [`Stopped`]). `git` is the result of [`begin`].
///
/// git refuses to overwrite a tracked file that differs from the index. The caller must check
/// whether untracked files would be overwritten.
pub fn advance(
    repo: &Repo,
    git: &Git,
    intent: &Intent,
    input: &AdvanceInput<'_>,
) -> std::result::Result<(), Stopped> {
    lock_index(git, input.index).map_err(Stopped::whole)?;
    let in_lock = git.clone().index(&lock_file(git));
    let moved = write(&in_lock, intent, input).and_then(|()| move_refs(repo, git, intent, input));
    let Err(error) = moved else { return install(git).map_err(Stopped::halfway) };
    let has_moved =
        |of: &Move<'_>| repo.read_ref(of.name).is_ok_and(|at| at.as_ref() == Some(of.new));
    let is_killed = error.cause == Cause::Interrupted && input.refs.iter().any(has_moved);
    if is_killed || (intent.is_fresh() && is_on(git, &intent.branch)) {
        // The branch or HEAD has moved, and the files are already those of the landing. The lock
        // stays, so that the next command finishes the landing.
        return Err(Stopped::halfway(error));
    }
    let _ = fs::remove_file(lock_of_lock(git));
    let mut stopped = put_back(repo, git, intent, error).unwrap_or_else(Stopped::halfway);
    // If some files could not be put back, the lock stays. The next command tries again.
    stopped.is_whole = stopped.is_whole && fs::remove_file(lock_file(git)).is_ok();
    Err(stopped)
}

/// Writes the files and the locked index.
fn write(in_lock: &Git, intent: &Intent, input: &AdvanceInput<'_>) -> Result<()> {
    write_files(in_lock, intent.files(), &intent.to)?;
    // The user may have staged something since the caller made the index.
    if intent.is_fresh() && in_lock.call("write-tree").oid()? != intent.to {
        return Err(Error::fatal("your checkout has changed meanwhile").hint("apply again"));
    }
    let Some(conflicts) = input.conflicts else { return Ok(()) };
    let mut edits = IndexEdits::default();
    for (path, stages) in &conflicts.stages {
        edits.remove(path, &conflicts.tree);
        for IndexStage { mode, blob, number } in stages {
            edits.set_stage(mode, blob, *number, path);
        }
    }
    edits.apply(in_lock.call("update-index"))
}

/// Moves the branch. For a landing on a fresh branch, makes that branch, and moves HEAD to it. If
/// several landings of one run try to make the branch, exactly one succeeds. If HEAD cannot move to
/// the fresh branch, the branch is deleted again.
fn move_refs(repo: &Repo, git: &Git, intent: &Intent, input: &AdvanceInput<'_>) -> Result<()> {
    let Intent { from, branch, .. } = intent;
    if !intent.is_fresh() {
        return repo.move_refs(git, input.refs, input.why);
    }
    repo.sync_young_objects()?;
    repo.update_ref(branch, Some(&from.commit), None, input.why)?;
    let left = from.branch.as_ref().map_or(from.commit.as_str(), RefName::short);
    // git writes the same message to HEAD's reflog. `git switch -` finds there the branch to go
    // back to.
    let moving = format!("checkout: moving from {left} to {}", branch.short());
    let Err(error) = switch_head(repo, git, branch, &moving) else { return Ok(()) };
    if is_on(git, branch) {
        restore_head(repo, git, from)?;
    }
    repo.update_ref(branch, None, Some(&from.commit), "apply withdrawn")?;
    Err(error)
}

/// The lock that git makes when `GIT_INDEX_FILE` is `index.lock`.
fn lock_of_lock(git: &Git) -> PathBuf {
    git.git_dir().join("index.lock.lock")
}

/// Writes the files that differ between two trees, and the index. git checks all files before it
/// writes the first one. If a write fails, [`put_back`] restores the files.
fn write_files(git: &Git, from: &Oid, to: &Oid) -> Result<()> {
    let read_tree = || {
        let call = git.call("read-tree").args(["-m", "-u", from.as_str(), to.as_str()]);
        call.keeping_current_directory().confined()?.output()
    };
    let first = read_tree()?;
    if first.code == 0 {
        return Ok(());
    }
    // A signal ended git, so the user wants no second try.
    if first.code > 128 {
        return Err(first.error("read-tree"));
    }
    // Until the index is refreshed, git counts a file with new times as changed.
    git.refresh()?;
    if read_tree()?.code == 0 { Ok(()) } else { Err(first.error("read-tree")) }
}

/// Puts the files back after `error` stopped the landing.
fn put_back(repo: &Repo, git: &Git, intent: &Intent, error: Error) -> Result<Stopped> {
    let files = intent.files();
    let PartialCheckout { edited, begun } = PartialCheckout::inspect(repo, git, files, &intent.to)?;
    let Some(path) = edited.first() else {
        let restored = if begun { restore(repo, git, files, &intent.to) } else { Ok(()) };
        let Err(Error { message, .. }) = restored else { return Ok(Stopped::whole(error)) };
        let hint = format!("the files could not be put back ({message}): look at `git status`");
        return Ok(Stopped::halfway(error.hint(hint)));
    };
    let name = path.quoted();
    if begun {
        let hint = format!("'{name}' was edited meanwhile: save your edits elsewhere");
        return Ok(Stopped::halfway(error.hint(hint)));
    }
    // git has refused before it wrote a file.
    let tag = git.call("--literal-pathspecs").args(["ls-files", "-v", "-z", "--"]);
    let tag = tag.arg(OsStr::from_bytes(path)).bytes()?.first().copied().unwrap_or_default();
    let error = Error::fatal(format!("changes to '{name}' would be overwritten"));
    let hint = match tag {
        b'S' => format!(
            "git was told to skip it; to see them: \
             `git update-index --no-skip-worktree '{name}'`"
        ),
        _ if tag.is_ascii_lowercase() => format!(
            "git was told to assume it unchanged; to see changes: \
             `git update-index --no-assume-unchanged '{name}'`"
        ),
        _ => "commit them or put them aside with `git stash`, then try again".to_owned(),
    };
    Ok(Stopped::whole(error.hint(hint)))
}

/// Replaces the index with the locked one.
pub(super) fn install(git: &Git) -> Result<()> {
    let lock = lock_file(git);
    fs::rename(&lock, git.git_dir().join("index")).could_not("rename", &lock)
}

/// The files that a rollback found in the checkout and that the landing did not write.
#[derive(Debug, Default)]
pub struct Rollback {
    /// The commit with versions of files that are neither the old nor the landed ones, e.g. because
    /// a hook wrote them.
    pub kept: Option<Oid>,
    /// The tracked files that are modified and not part of the landing. The rollback leaves these
    /// files as they are.
    pub modified: Vec<TreePath>,
}

/// Moves the checkout back from a fresh branch to its position before [`advance`]. Deletes the
/// branch even if it has moved since. The landed change is still in its capture.
///
/// Puts back only paths that the landing has changed, and tracked paths that a hook has staged.
/// Every other change in the checkout is the user's. If a file to put back has neither its old nor
/// its landed content, its present content is stored in a commit first.
///
/// HEAD moves after the files. If git-frites is killed before, HEAD is still on the fresh branch.
pub fn roll_back(repo: &Repo, git: &Git, intent: &Intent) -> Result<Rollback> {
    let Intent { run, from, branch, to, .. } = intent;
    let files = intent.files();
    let mut found = Rollback::default();
    let mut changes = diff::between(repo, files, to, files).changes()?;
    // git makes no tree from an index with conflicts.
    let staged = git.call("write-tree").oid().unwrap_or(*to);
    let mut by_hook = diff::between(repo, files, &staged, files).changes()?;
    let landed: BTreeSet<&TreePath> = changes.iter().map(|change| &change.path).collect();
    // Files that only a hook has staged (`git add -A`) stay, untracked, because the user may have
    // made them.
    by_hook.retain(|c| c.status != ChangeStatus::Deleted && !landed.contains(&c.path));
    let is_edited = !PartialCheckout::inspect(repo, git, files, to)?.edited.is_empty();
    let has_other_versions = is_edited || !by_hook.is_empty();
    changes.extend(by_hook);
    if has_other_versions {
        let root = root_of(git)?;
        let paths = changes.iter().map(|change| held_at(root, &change.path));
        let list = TreePath::nul_terminated(&paths.collect::<BTreeSet<_>>());
        found.kept = Some(keep_versions(repo, from, &list, &refs::withdrawn(run))?);
    }
    put_in_place(git, changes)?;
    git.call("read-tree").args(["--reset", from.commit.as_str()]).run()?;
    restore_head(repo, git, from)?;
    if let Some(tip) = repo.read_ref(branch)? {
        repo.update_ref(branch, None, Some(&tip), "apply withdrawn")?;
    }
    git.refresh()?;
    // In a sparse checkout, this removes the restored files that the checkout leaves out.
    git.call("read-tree").args(["-m", "-u", from.commit.as_str()]).run()?;
    found.modified = git.modified("untracked")?;
    Ok(found)
}

/// Stores the files of the checkout at the paths of `list` as a commit on top of `at`. Points the
/// ref `keep` to the commit. Versions that were stored earlier stay reachable from the ref.
fn keep_versions(repo: &Repo, at: &Position, list: &[u8], keep: &RefName) -> Result<Oid> {
    let scratch = ScratchIndex::from_tree(&repo.checkout(), &at.commit)?;
    let add = scratch.git().call("update-index");
    add.args(["-z", "--add", "--remove", "--replace", "--stdin"]).stdin(list).run()?;
    let tree = scratch.write_tree()?;
    let parents = [&at.commit];
    commit_to_ref(repo, keep, &tree, &parents, "frites: withdrawn", "apply withdrawn")?;
    repo.read_ref(keep)?.ok_or_else(|| Error::damaged(format!("'{keep}' was removed meanwhile")))
}

fn restore_head(repo: &Repo, git: &Git, to: &Position) -> Result<()> {
    let Some(branch) = &to.branch else {
        let call = git.call("update-ref").args(["--no-deref", "HEAD", to.commit.as_str()]);
        return repo.record_change_in(git, [])?.run(call);
    };
    switch_head(repo, git, branch, "git-frites: back")
}

/// Points HEAD of a checkout to a branch. `why` is the message for HEAD's reflog.
fn switch_head(repo: &Repo, git: &Git, branch: &RefName, why: &str) -> Result<()> {
    let call = git.call("symbolic-ref").args(["-m", why, "HEAD", branch]);
    repo.record_change_in(git, [])?.run(call)?;
    if is_on(git, branch) {
        return Ok(());
    }
    let head = git.git_dir().join("HEAD");
    Err(Error::fatal(format!("'{}' does not name the branch '{}'", head.display(), branch.short()))
        .hint(format!("switch with `git switch {}`, and try again", branch.short())))
}

/// Restores the files that differ between `from` and `to` to their content in `from`. Some files
/// may have that content already. Touches neither the index nor any other file. Stores no object,
/// because the disk may be full. Files that only `to` has are removed first, to free disk space.
///
/// `git restore` cannot do this. If the file `a` was replaced by a directory with `a/b`, it fails
/// to restore `a`, because it does not find `a/b`.
pub(super) fn restore(repo: &Repo, git: &Git, from: &Oid, to: &Oid) -> Result<()> {
    put_in_place(git, diff::since(repo, to, from).changes()?)
}

/// Gives the files at the paths of `changes` their new content.
fn put_in_place(git: &Git, mut changes: Vec<Change>) -> Result<()> {
    let root = root_of(git)?;
    let skipped = skipped_paths(git)?;
    // Files that a sparse checkout leaves out are not written.
    changes.retain(|change| !skipped.contains(&change.path));
    let (landed, before): (Vec<Change>, Vec<Change>) =
        changes.into_iter().partition(|change| change.status == ChangeStatus::Deleted);
    for change in &landed {
        remove_landed(root, &change.path)?;
    }
    let mut entries = IndexEdits::default();
    for change in &before {
        refuse_directory(root, change)?;
        entries.set(change.mode, change.new, &change.path);
    }
    if before.is_empty() {
        return Ok(());
    }
    // This index has only the paths to restore, so git looks at no other file.
    let old = ScratchIndex::empty(git)?;
    old.edit(entries)?;
    old.git().call("checkout-index").args(["--all", "--force", "--quiet"]).confined()?.run()
}

/// The paths that a sparse checkout leaves out.
fn skipped_paths(git: &Git) -> Result<BTreeSet<TreePath>> {
    let list = git.call("ls-files").args(["-t", "-z"]).bytes()?;
    let skipped = nul_separated(&list).filter_map(|line| line.strip_prefix(b"S "));
    Ok(skipped.map(TreePath::new).collect())
}

/// Removes a file that the landing has made, and the directories above it that become empty.
fn remove_landed(root: &Path, path: &TreePath) -> Result<()> {
    let file = path.on_disk(root);
    if !file.parent().is_some_and(|directory| tree::is_real_directory(root, directory)) {
        return Ok(());
    }
    match fs::symlink_metadata(&file) {
        // The path is the directory of a submodule. The files in it belong to the submodule, so
        // only an empty directory is removed.
        Ok(meta) if meta.is_dir() => drop(fs::remove_dir(&file)),
        Ok(_) => {
            fs::remove_file(&file).context(|| format!("could not remove '{}'", path.quoted()))?;
        }
        Err(_) => {}
    }
    tree::remove_empty_above(&file, root);
    Ok(())
}

/// Removes a directory at the path of an old file that must be restored. Fails if there are files
/// in the directory.
fn refuse_directory(root: &Path, change: &Change) -> Result<()> {
    let full = change.path.on_disk(root);
    let is_directory = fs::symlink_metadata(&full).is_ok_and(|meta| meta.is_dir());
    if is_directory && change.mode != EntryMode::Submodule && fs::remove_dir(&full).is_err() {
        let name = change.path.quoted();
        return Err(Error::fatal(format!("'{name}' is a directory with files in it"))
            .hint("move it away: the file that the landing replaced must be restored there"));
    }
    Ok(())
}
