//! Moving a branch to another commit together with the files and the index of its checkout: all or
//! nothing.
//!
//! The order survives a kill: first the files, under git's own lock of the index; then the refs, in
//! one transaction; then the index, by one rename. As long as the branch has not moved, the files
//! can be put back; once it has, they are complete.
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Cause, Error, IoContext, Result};
use crate::fs::tree;
use crate::git::cli::{Git, nul_separated};
use crate::git::diff::{self, Change, ChangeStatus};
use crate::git::index::{IndexEdits, ScratchIndex};
use crate::git::landing::overwrite::PartialCheckout;
use crate::git::landing::writer;
use crate::git::mode::EntryMode;
use crate::git::refs::Move;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::refname::RefName;

/// A move of a branch with its checkout.
pub struct Advance<'a> {
    /// git in the checkout.
    pub git: &'a Git,
    /// An index of the checkout's files as they are now, with their times.
    pub index: &'a Path,
    /// The commit or tree of that index.
    pub from: &'a Oid,
    /// The commit or tree that the files are to become.
    pub to: &'a Oid,
    /// The refs that move with them.
    pub refs: &'a [Move<'a>],
    /// The reason, for reflogs.
    pub why: &'a str,
}

/// The lock of a checkout's index: git's own, so that no other git writes there meanwhile.
fn lock_file(git: &Git) -> PathBuf {
    git.git_dir().join("index.lock")
}

/// Moves files, refs and index, or leaves all as it was.
///
/// git refuses to overwrite a file that is not as the index has it; the caller checks for untracked
/// files that would be overwritten.
pub fn advance(repo: &Repo, advance: &Advance<'_>) -> Result<()> {
    let Advance { git, index, from, to, refs, why } = *advance;
    let git = &writer::begin(git)?;
    let lock = lock_file(git);
    let failed = || format!("could not write '{}'", lock.display());
    match fs::OpenOptions::new().write(true).create_new(true).open(&lock) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Error::fatal(format!(
                "another git process is at work here: '{}' exists",
                lock.display()
            ))
            .because(Cause::Locked)
            .hint("try again when it has ended; if it was killed, remove that file"));
        }
        other => drop(other.context(failed)?),
    }
    // Only a git that works for the holder of the index's lock makes this one: it was killed.
    let _ = fs::remove_file(lock_of_lock(git));
    if let Err(error) = fs::copy(index, &lock) {
        fs::remove_file(&lock).context(failed)?;
        return Err(error).context(failed);
    }
    let in_lock = git.clone().index(&lock);
    let moved = write_files(&in_lock, from, to).and_then(|()| repo.move_refs(git, refs, why));
    if let Err(error) = moved {
        let has_moved =
            |of: &Move<'_>| repo.read_ref(of.name).is_ok_and(|at| at.as_ref() == Some(of.new));
        if error.cause == Cause::Interrupted && refs.iter().any(has_moved) {
            // git was killed, and the files belong to a branch that has moved. The lock stays for the
            // next command, which finishes the landing.
            return Err(error);
        }
        let _ = fs::remove_file(lock_of_lock(git));
        let (files, error) = recover(repo, git, from, to, error)?;
        // If the files are not as they were, the lock stays for the next command, which tries
        // again to put them back.
        if files == FilesAfter::Whole {
            fs::remove_file(&lock).context(failed)?;
        }
        return Err(error);
    }
    install(git)
}

/// The lock that git makes when it writes to the lock of the index as to an index.
fn lock_of_lock(git: &Git) -> PathBuf {
    git.git_dir().join("index.lock.lock")
}

/// Writes the files that differ between two trees, and the index. git checks all of them before it
/// writes the first one; if writing fails, [`recover`] puts them back.
pub(super) fn write_files(git: &Git, from: &Oid, to: &Oid) -> Result<()> {
    let read_tree =
        || git.call("read-tree").args(["-m", "-u", from.as_str(), to.as_str()]).output();
    let first = read_tree()?;
    if first.code == 0 {
        return Ok(());
    }
    // A signal: the user wants no second try.
    if first.code > 128 {
        return Err(first.error("read-tree"));
    }
    // Files that were only touched count as changed until the index is refreshed.
    git.call("update-index").args(["-q", "--refresh"]).output()?;
    if read_tree()?.code == 0 { Ok(()) } else { Err(first.error("read-tree")) }
}

/// The state of files after [`recover`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FilesAfter {
    /// All files are as before.
    Whole,
    /// Somebody edited one of the files: none was put back.
    Edited,
    /// git could not put them back.
    Failed,
}

/// Puts the files back after `error` stopped them on their way from one tree to another. Gives
/// their state and the error to report.
pub(super) fn recover(
    repo: &Repo,
    git: &Git,
    from: &Oid,
    to: &Oid,
    error: Error,
) -> Result<(FilesAfter, Error)> {
    let PartialCheckout { edited, begun } = PartialCheckout::inspect(repo, git, from, to)?;
    let Some(path) = edited.first() else {
        let restored = if begun { restore(repo, git, from, to) } else { Ok(()) };
        return Ok(match restored {
            Ok(()) => (FilesAfter::Whole, error),
            Err(why) => (
                FilesAfter::Failed,
                error.hint(format!(
                    "the files could not be put back ({}): look at `git status`",
                    why.message
                )),
            ),
        });
    };
    let name = path.quoted();
    if begun {
        let hint = format!("'{name}' was edited meanwhile: save your edits elsewhere");
        return Ok((FilesAfter::Edited, error.hint(hint)));
    }
    // git refused before it wrote anything.
    let tag = git.call("--literal-pathspecs").args(["ls-files", "-v", "-z", "--"]);
    let tag = tag.arg(OsStr::from_bytes(path)).bytes()?.first().copied().unwrap_or_default();
    let error = Error::fatal(format!("changes to '{name}' would be overwritten"));
    let error = match tag {
        b'S' => error.hint(format!(
            "git was told to skip it; to see them: \
                 `git update-index --no-skip-worktree '{name}'`"
        )),
        _ if tag.is_ascii_lowercase() => error.hint(format!(
            "git was told to assume that it has none; to see them: \
             `git update-index --no-assume-unchanged '{name}'`"
        )),
        _ => error.hint("commit them or put them aside with `git stash`, then try again"),
    };
    Ok((FilesAfter::Whole, error))
}

/// True if somebody holds the lock of a checkout's index.
pub fn is_locked(git: &Git) -> bool {
    lock_file(git).exists()
}

/// Replaces the index with the locked one.
fn install(git: &Git) -> Result<()> {
    let lock = lock_file(git);
    fs::rename(&lock, git.git_dir().join("index"))
        .context(|| format!("could not rename '{}'", lock.display()))
}

/// Completes an interrupted [`advance`] whose refs have moved already. `git` is that of
/// [`writer::begin`].
pub fn finish(git: &Git, to: &Oid, since: SystemTime) -> Result<()> {
    if written_since(&lock_file(git), since) {
        install(git)?;
    }
    // If the lock file is lost, the index is still the old one.
    if git.call("write-tree").oid().ok()
        != git.call("rev-parse").arg(format!("{to}^{{tree}}")).oid().ok()
    {
        git.call("read-tree").arg(to.as_str()).run()?;
    }
    git.call("update-index").args(["-q", "--refresh"]).output().map(drop)
}

/// Takes back an interrupted [`advance`] whose refs have not moved. If a file was edited since,
/// gives that file and changes nothing. `git` is that of [`writer::begin`].
pub fn take_back(
    repo: &Repo,
    git: &Git,
    from: &Oid,
    to: &Oid,
    since: SystemTime,
) -> Result<Option<TreePath>> {
    let partial = PartialCheckout::inspect(repo, git, from, to)?;
    if let Some(path) = partial.edited.into_iter().next() {
        return Ok(Some(path));
    }
    restore(repo, git, from, to)?;
    if written_since(&lock_file(git), since) {
        let _ = fs::remove_file(lock_file(git));
    }
    Ok(None)
}

/// Writes the files that differ between two trees as `from` has them, however much of `to` is there
/// already. Touches neither the index nor any other file, and stores no object: the disk may be
/// full. What only `to` has goes first, which makes room.
///
/// `git restore` cannot do this: it does not find `a/b` where `a` is to become a file again.
pub(super) fn restore(repo: &Repo, git: &Git, from: &Oid, to: &Oid) -> Result<()> {
    let root = git
        .root()
        .ok_or_else(|| Error::internal("this repository has no checkout here: it is bare"))?;
    let skipped = skipped_paths(git)?;
    let mut changes = diff::changes(repo, to, to, from)?;
    // In a sparse checkout, some files were never there.
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
    // An index of these paths alone: git looks at nothing else then.
    let old = ScratchIndex::empty(git)?;
    old.edit(entries)?;
    old.git().call("checkout-index").args(["--all", "--force", "--quiet"]).run()
}

/// The paths that a sparse checkout leaves out.
fn skipped_paths(git: &Git) -> Result<BTreeSet<TreePath>> {
    let list = git.call("ls-files").args(["-t", "-z"]).bytes()?;
    Ok(nul_separated(&list)
        .filter_map(|line| line.strip_prefix(b"S "))
        .map(TreePath::new)
        .collect())
}

/// Removes a file that landed, and the directories above it that are empty then.
fn remove_landed(root: &Path, path: &TreePath) -> Result<()> {
    let file = path.on_disk(root);
    if !file.parent().is_some_and(|directory| tree::is_real_directory(root, directory)) {
        return Ok(());
    }
    match fs::symlink_metadata(&file) {
        // Of a submodule: the files in it are its own.
        Ok(meta) if meta.is_dir() => drop(fs::remove_dir(&file)),
        Ok(_) => {
            fs::remove_file(&file).context(|| format!("could not remove '{}'", path.quoted()))?;
        }
        Err(_) => {}
    }
    for directory in file.ancestors().skip(1).take_while(|directory| *directory != root) {
        if fs::remove_dir(directory).is_err() {
            break;
        }
    }
    Ok(())
}

/// Refuses to put a file back in place of a directory that holds files of somebody else.
fn refuse_directory(root: &Path, change: &Change) -> Result<()> {
    let full = change.path.on_disk(root);
    let is_directory = fs::symlink_metadata(&full).is_ok_and(|meta| meta.is_dir());
    if is_directory && change.mode != EntryMode::Submodule && fs::remove_dir(&full).is_err() {
        let name = change.path.quoted();
        return Err(Error::fatal(format!("'{name}' is a directory with files in it"))
            .hint("move it away: a file that the landing replaced comes back there"));
    }
    Ok(())
}

/// Removes the locks that an [`advance`] of `branch` left when it was killed after `since`, except
/// that of the index. To be called once for each killed process: later locks are another process's.
pub fn remove_locks(repo: &Repo, git: &Git, branch: &RefName, since: SystemTime) {
    let common = repo.common_dir();
    let locks = [
        common.join(format!("{branch}.lock")),
        common.join("packed-refs.lock"),
        git.git_dir().join("HEAD.lock"),
    ];
    for lock in locks.into_iter().chain([lock_of_lock(git)]) {
        if written_since(&lock, since) {
            let _ = fs::remove_file(lock);
        }
    }
}

fn written_since(file: &Path, since: SystemTime) -> bool {
    fs::metadata(file).and_then(|m| m.modified()).is_ok_and(|modified| modified >= since)
}
