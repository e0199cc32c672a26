//! Compares files with the stat data of their entries in the private index.
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::index::entry::{Mode, Stat};
use gix::objs::Kind;
use rustix::fs::FileType;

use crate::error::Result;
use crate::fs::{disk, parallel, regular, scratch};
use crate::git::capture::source::CaptureSource;
use crate::git::cli::Call;
use crate::git::index::entry_stat;
use crate::model::path::TreePath;

/// The entries of an index whose files have other stat data than the entry. git may not notice such
/// a change: many builds of git compare only whole seconds, and a program can restore a file's
/// mtime after a write.
pub fn touched_entries(
    worktree: &Path,
    index: &gix::index::File,
) -> Result<Vec<gix::index::Entry>> {
    let is_touched = |entry: &&gix::index::Entry| {
        let file = rustix::fs::lstat(TreePath::new(entry.path(index)).on_disk(worktree));
        let now = file.map(|file| entry_stat(&file));
        entry.mode != Mode::COMMIT
            && now.is_ok_and(|now| Stat { dev: now.dev, ..entry.stat } != now)
    };
    let found = parallel::map_chunks(index.entries(), |entries| {
        Ok(entries.iter().filter(is_touched).cloned().collect::<Vec<_>>())
    })?;
    Ok(found.concat())
}

/// The positions of the entries whose files have other content than the entry, whatever the stat
/// data say.
///
/// A program can write to a file through a shared memory map. After its first write, the file's
/// times change only when the system writes the page to the disk. So the contents of all files that
/// an earlier capture found changed are compared. On a file system in memory, the times do not
/// change after the first write, so the contents of all files are compared.
pub(super) fn doubtful_entries(
    index: &gix::index::File,
    source: &CaptureSource<'_>,
    base: &gix::index::File,
) -> Result<Vec<usize>> {
    let positions: Vec<usize> = match source.ran_command && disk::is_in_memory(source.worktree) {
        true => (0..index.entries().len()).collect(),
        false => changed_entries(index, base),
    };
    let found = parallel::map_chunks(&positions, |positions| {
        let positions = positions.iter().copied();
        let differing = positions.filter(|at| !has_content_of_entry(source.worktree, index, *at));
        Ok(differing.collect::<Vec<_>>())
    })?;
    Ok(found.concat())
}

/// True if the content of a file is the blob in its index entry. Returns false for a large file, so
/// that git reads it. Returns true for links and submodules: nobody writes to them through a memory
/// map.
fn has_content_of_entry(worktree: &Path, index: &gix::index::File, position: usize) -> bool {
    const LARGEST: u64 = 16 << 20;
    let entry = &index.entries()[position];
    if !matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE) {
        return true;
    }
    let path = TreePath::new(entry.path(index)).on_disk(worktree);
    regular::read_own_at_most(&path, LARGEST).is_ok_and(|bytes| {
        let id = gix::objs::compute_hash(entry.id.kind(), Kind::Blob, &bytes);
        id.is_ok_and(|id| id == entry.id)
    })
}

/// The positions of the files in `index` that the base does not have, or has with other content.
fn changed_entries(index: &gix::index::File, base: &gix::index::File) -> Vec<usize> {
    let mut in_base = base.entries().iter().peekable();
    let mut changed = Vec::new();
    for (position, entry) in index.entries().iter().enumerate() {
        let path = entry.path(index);
        while in_base.next_if(|other| other.path(base) < path).is_some() {}
        let same = in_base.next_if(|other| other.path(base) == path && other.id == entry.id);
        if same.is_none() && entry.mode != Mode::COMMIT {
            changed.push(position);
        }
    }
    changed
}

/// The paths in `modified` whose files nobody has written since they were checked out. `modified`
/// are the paths that git reports as modified. git reports an untouched file if e.g. its blob has
/// CRLF and its attributes say `text`.
///
/// git compares contents only where an entry's times leave a doubt. So it does not report such a
/// file every time. `git` is a call that uses `index` and has no subcommand yet.
pub fn untouched(
    worktree: &Path,
    git: &Call,
    index: &gix::index::File,
    modified: &BTreeSet<TreePath>,
) -> Result<Vec<TreePath>> {
    let has_stat_of_entry = |path: &&TreePath| {
        let entry = index.entry_by_path(path.as_bstr());
        entry.is_some_and(|e| has_equal_stat(&e.stat, &path.on_disk(worktree)))
    };
    let paths: Vec<&TreePath> = modified.iter().filter(has_stat_of_entry).collect();
    // If a `.gitattributes` has changed, git can make a different blob from an untouched file. Such
    // a file must be captured.
    if paths.is_empty() || modified.iter().any(|path| path.file_name() == b".gitattributes") {
        return Ok(Vec::new());
    }
    let directory = scratch::directory()?;
    let mut prefix = OsString::from("--prefix=");
    prefix.push(directory.path().join(""));
    let list = TreePath::nul_terminated(paths.iter().copied());
    // If git cannot write a file, the file is not found below and counts as modified.
    git.clone().args(["checkout-index", "-q", "-z", "--stdin"]).arg(prefix).stdin(list).output()?;
    let is_as_checked_out = |path: &&TreePath| {
        let fresh = regular::read(&path.on_disk(directory.path())).ok();
        fresh.is_some() && fresh == regular::read(&path.on_disk(worktree)).ok()
    };
    Ok(paths.into_iter().filter(is_as_checked_out).cloned().collect())
}

/// True if a file has the times and the size of its index entry. If the entry's size is 0, only the
/// times are compared: git writes 0 if it does not trust the other stat data.
fn has_equal_stat(entry: &Stat, file: &Path) -> bool {
    rustix::fs::lstat(file).is_ok_and(|stat| {
        let now = entry_stat(&stat);
        (entry.mtime, entry.ctime) == (now.mtime, now.ctime)
            && (entry.size == 0 || entry.size == now.size)
    })
}

/// True if a file has the type, mode and stat data of its index entry, and is older than the index.
/// A file that was written in the same moment as the index may have changed without a new time.
pub(super) fn is_clean_file(
    mode: Mode,
    entry: &Stat,
    file: &rustix::fs::Stat,
    index: &gix::index::File,
) -> bool {
    let kind = FileType::from_raw_mode(file.st_mode);
    let has_kind = match mode {
        Mode::FILE => kind == FileType::RegularFile && file.st_mode & 0o100 == 0,
        Mode::FILE_EXECUTABLE => kind == FileType::RegularFile && file.st_mode & 0o100 != 0,
        Mode::SYMLINK => kind == FileType::Symlink,
        _ => false,
    };
    let index_time = index.timestamp();
    let is_older_than_index = (i64::from(entry.mtime.secs), entry.mtime.nsecs)
        < (index_time.unix_seconds(), index_time.nanoseconds());
    let now = entry_stat(file);
    has_kind && is_older_than_index && Stat { dev: now.dev, ..*entry } == now
}
