//! Whether a worktree is just as it was captured: a look at every file in it, and at nothing else.
//!
//! The answer is yes only where there can be no doubt: the private index tells exactly the tree of the last
//! capture, every file of it is there as the index has it, nothing else is, and the attempt made no new commit.
//! Anything unusual is left to a real capture.
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode, Stat};

use crate::error::{IoContext, Result};
use crate::git::cli::Call;
use crate::git::repo::from_oid;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::process;

/// Whether the files of a worktree are those of `tree`, by the index that was written when they were captured.
pub fn files(worktree: &Path, index: &gix::index::File, tree: &Oid) -> Result<bool> {
    let tells = index
        .tree()
        .is_some_and(|t| t.num_entries.is_some() && from_oid(tree).is_ok_and(|id| t.id == id));
    let odd = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE | Flags::INTENT_TO_ADD | Flags::STAGE_MASK;
    let plain =
        |entry: &gix::index::Entry| !entry.flags.intersects(odd) && entry.mode != Mode::COMMIT;
    if !tells
        || !index.entries().iter().all(plain)
        || !fs::symlink_metadata(worktree.join(".git")).is_ok_and(|m| m.is_file())
    {
        return Ok(false);
    }
    let mut directories = BTreeSet::from([TreePath::default()]);
    let mut last: &[u8] = b"";
    for entry in index.entries() {
        let path: &[u8] = entry.path(index);
        let directory = path.rfind_byte(b'/').map_or(&b""[..], |at| &path[..at]);
        if directory != last {
            last = directory;
            directories.extend(TreePath::new(path).parents());
        }
    }
    let list: Vec<&TreePath> = directories.iter().collect();
    // Once one directory is not as told, the others do not matter.
    let changed = AtomicBool::new(false);
    let counts = process::in_parallel(process::processors(), &list, |directory| {
        let count = (!changed.load(Relaxed))
            .then(|| as_told(worktree, directory, index, &directories))
            .flatten();
        changed.fetch_or(count.is_none(), Relaxed);
        Ok(count)
    })?;
    let counts: Option<Vec<usize>> = counts.into_iter().collect();
    Ok(counts.is_some_and(|counts| counts.iter().sum::<usize>() == index.entries().len()))
}

/// The entries of an index whose files git would take for unchanged although they were written since: many builds of
/// git compare whole seconds, and what writes a file may put its time back.
pub fn lookalikes(worktree: &Path, index: &gix::index::File) -> Result<Vec<gix::index::Entry>> {
    let is = |entry: &&gix::index::Entry| {
        let path = TreePath::new(entry.path(index));
        fs::symlink_metadata(path.on_disk(worktree))
            .is_ok_and(|meta| is_lookalike(&entry.stat, &meta))
    };
    let found = process::in_parallel(
        process::processors(),
        &process::shares(index.entries()),
        |entries| Ok(entries.iter().filter(is).cloned().collect::<Vec<_>>()),
    )?;
    Ok(found.concat())
}

/// The paths that git calls modified and nobody has written since they were checked out: the base has them with line
/// ends, say, which their attributes would not give them. git looks only at what is as young as the index, by chance.
/// `git` is the beginning of a call that uses the index.
pub fn untouched(
    worktree: &Path,
    git: &Call,
    index: &gix::index::File,
    modified: &BTreeSet<TreePath>,
) -> Result<Vec<TreePath>> {
    let as_told = |path: &&TreePath| {
        let told = index.entry_by_path(path.as_bstr());
        told.is_some_and(|e| is_as_told(&e.stat, &path.on_disk(worktree)))
    };
    let paths: Vec<&TreePath> = modified.iter().filter(as_told).collect();
    // By other attributes they are to be other blobs.
    if paths.is_empty() || modified.iter().any(|path| path.file_name() == b".gitattributes") {
        return Ok(Vec::new());
    }
    let directory =
        tempfile::tempdir().context(|| "could not make a temporary directory".into())?;
    let mut prefix = OsString::from("--prefix=");
    prefix.push(directory.path().join(""));
    let list = TreePath::nul_terminated(paths.iter().copied());
    // What cannot be written is not the same.
    git.clone().args(["checkout-index", "-q", "-z", "--stdin"]).arg(prefix).stdin(list).output()?;
    let read = |root: &Path, path: &TreePath| fs::read(path.on_disk(root)).ok();
    let same = |path: &&TreePath| {
        let written = read(directory.path(), path);
        written.is_some() && written == read(worktree, path)
    };
    Ok(paths.into_iter().filter(same).cloned().collect())
}

/// Whether a file has the times that an index tells, and the size unless that is withdrawn.
fn is_as_told(told: &Stat, file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok_and(|meta| {
        has_seconds(told, &meta)
            && has_nanoseconds(told, &meta)
            && (told.size == 0 || told.size == meta.size() as u32)
    })
}

fn is_lookalike(told: &Stat, meta: &fs::Metadata) -> bool {
    let kept = told.mtime.nsecs != 0 || told.ctime.nsecs != 0;
    has_seconds(told, meta)
        && told.size == meta.size() as u32
        && kept
        && !has_nanoseconds(told, meta)
}

/// Whether a file was written and changed in the seconds that an index tells, truncated as git does it.
fn has_seconds(told: &Stat, meta: &fs::Metadata) -> bool {
    (told.mtime.secs, told.ctime.secs) == (meta.mtime() as u32, meta.ctime() as u32)
}

/// The same of the nanoseconds in them.
fn has_nanoseconds(told: &Stat, meta: &fs::Metadata) -> bool {
    (told.mtime.nsecs, told.ctime.nsecs) == (meta.mtime_nsec() as u32, meta.ctime_nsec() as u32)
}

/// How many files of the index a directory holds; none if one of them, or anything else in it, is not as told.
fn as_told(
    worktree: &Path,
    directory: &TreePath,
    index: &gix::index::File,
    directories: &BTreeSet<TreePath>,
) -> Option<usize> {
    let mut count = 0;
    for entry in fs::read_dir(directory.on_disk(worktree)).ok()? {
        let entry = entry.ok()?;
        let path = directory.join(entry.file_name().as_bytes());
        if entry.file_type().ok()?.is_dir() {
            directories.contains(&path).then_some(())?;
        } else if *path != *b".git" {
            let told = index.entry_by_path(path.as_bstr())?;
            is_clean(told.mode, &told.stat, &entry.metadata().ok()?, index).then_some(())?;
            count += 1;
        }
    }
    Some(count)
}

/// Whether a file is as the index has it, beyond the doubt that it was written in the same moment as the index.
fn is_clean(mode: Mode, told: &Stat, meta: &fs::Metadata, index: &gix::index::File) -> bool {
    let kind = match mode {
        Mode::FILE => meta.is_file() && meta.mode() & 0o100 == 0,
        Mode::FILE_EXECUTABLE => meta.is_file() && meta.mode() & 0o100 != 0,
        Mode::SYMLINK => meta.is_symlink(),
        _ => false,
    };
    let written = index.timestamp();
    let before = (i64::from(told.mtime.secs), told.mtime.nsecs)
        < (written.unix_seconds(), written.nanoseconds());
    kind && before
        && has_seconds(told, meta)
        && has_nanoseconds(told, meta)
        && told.ino == meta.ino() as u32
        && told.size == meta.size() as u32
        && (told.uid, told.gid) == (meta.uid(), meta.gid())
}
