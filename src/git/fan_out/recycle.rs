//! Recycled worktrees: a new worktree takes the files of one that `clean` has parked, as far as
//! they are the files that it would be given.
//!
//! A file is taken only if nobody touched it since it was written: its entry in the parked index has
//! its times, its size and its inode, and its change time, which no program can choose, is older
//! than the end of the writing. Everything else is deleted, and written as in any new worktree.
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode as EntryMode, Stat as EntryStat};
use rustix::fs::{AtFlags, Dir, FileType, Mode, Stat};
use rustix::io::Errno;

use crate::error::{IoContext, Result};
use crate::fs::directory::DIRECTORY;
use crate::fs::parallel;
use crate::fs::regular;
use crate::fs::trash::{self, Bin};
use crate::fs::tree::delete_tree;
use crate::git::index::read_index;
use crate::git::stat::entry_stat;
use crate::git::worktree::Worktree;

/// The place in a new worktree of the parked one whose files it takes.
const STAGE: &str = ".frites-parked";

/// The stat data of the files that a new worktree has already, by their entries' positions in the
/// index.
pub type Taken = Vec<Option<EntryStat>>;

/// Gives each of these new worktrees, which have no files, those files of `index` that a worktree
/// parked in `root` has. All files of `index` are stored as they are.
pub fn take_all(
    root: &Path,
    worktrees: &[&Worktree],
    index: &gix::index::State,
) -> Result<Vec<Taken>> {
    parallel::map(worktrees, |worktree| take(root, worktree, index))
}

fn take(root: &Path, worktree: &Worktree, index: &gix::index::State) -> Result<Taken> {
    let stage = worktree.path.join(STAGE);
    let nothing = || vec![None; index.entries().len()];
    // Of several processes one gets it.
    if !trash::parked(root).into_iter().any(|parked| fs::rename(parked, &stage).is_ok()) {
        return Ok(nothing());
    }
    let failed = || format!("could not recycle a worktree in '{}'", worktree.path.display());
    match recycle(&stage, &worktree.path, index) {
        Ok(taken) => Ok(taken),
        Err(reason) => {
            tracing::debug!(%reason, "a parked worktree is not recycled");
            // What cannot be deleted must not be in the way: the next command tries again.
            if stage.exists() {
                fs::rename(&stage, Bin::new(root)?.worktree()).context(failed)?;
            }
            for entry in fs::read_dir(&worktree.path).context(failed)? {
                let entry = entry.context(failed)?;
                if entry.file_name() != ".git" {
                    delete_tree(&entry.path()).context(failed)?;
                }
            }
            Ok(nothing())
        }
    }
}

/// A parked worktree whose files are compared with those of an index.
struct Parked<'a> {
    root: PathBuf,
    old: gix::index::File,
    /// The end of the writing of its files: seconds and nanoseconds.
    filled: (i64, i64),
    /// The modes of new directories and files here.
    modes: [u32; 2],
    index: &'a gix::index::State,
}

fn recycle(stage: &Path, into: &Path, index: &gix::index::State) -> io::Result<Taken> {
    let filled = fs::symlink_metadata(stage.join(trash::FILLED))?;
    let old = stage.join(trash::INDEX);
    regular::open_own(&old)?;
    let old = read_index(&old).map_err(io::Error::other)?;
    let odd = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE | Flags::INTENT_TO_ADD | Flags::STAGE_MASK;
    if old.link().is_some() || old.entries().iter().any(|entry| entry.flags.intersects(odd)) {
        return Err(io::Error::other("its index is unusual"));
    }
    let mode = |path: &Path| fs::symlink_metadata(path).map(|meta| meta.mode() & 0o7777);
    let parked = Parked {
        root: stage.join(trash::WORKTREE),
        old,
        filled: (filled.mtime(), filled.mtime_nsec()),
        modes: [mode(into)?, mode(&into.join(".git"))?],
        index,
    };
    let mut taken = vec![None; index.entries().len()];
    let root = rustix::fs::open(&parked.root, DIRECTORY, Mode::empty())?;
    parked.sweep(root, b"", &mut taken)?;
    for entry in fs::read_dir(&parked.root)? {
        let entry = entry?;
        fs::rename(entry.path(), into.join(entry.file_name()))?;
    }
    delete_tree(stage)?;
    // A file that is renamed has another change time.
    let into = rustix::fs::open(into, DIRECTORY, Mode::empty())?;
    for (entry, stat) in index.entries().iter().zip(&mut taken) {
        let path = entry.path(index);
        if let Some(stat) = stat.as_mut().filter(|_| !path.contains(&b'/')) {
            let now = rustix::fs::statat(&into, path.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)?;
            *stat = entry_stat(&now);
        }
    }
    Ok(taken)
}

impl Parked<'_> {
    /// Deletes everything in a directory that is not to be taken. `prefix` is the directory's path,
    /// empty or with a slash at its end.
    fn sweep(&self, directory: OwnedFd, prefix: &[u8], taken: &mut Taken) -> io::Result<()> {
        let mut listing = Dir::new(directory)?;
        let mut names = Vec::new();
        while let Some(entry) = listing.read() {
            let entry = entry?;
            let name = entry.file_name();
            if ![&b"."[..], b".."].contains(&name.to_bytes()) {
                names.push(name.to_owned());
            }
        }
        let directory = listing.fd()?;
        for name in names {
            let stat = rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            let path = [prefix, name.to_bytes()].concat();
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                match self.untouched(&path, &stat) {
                    Some(at) => taken[at] = Some(entry_stat(&stat)),
                    None => rustix::fs::unlinkat(directory, &name, AtFlags::empty())?,
                }
                continue;
            }
            let below = [&path[..], b"/"].concat();
            if !self.has_directory(&below) {
                delete_tree(&self.root.join(OsStr::from_bytes(&path)))?;
                continue;
            }
            let child = rustix::fs::openat(directory, &name, DIRECTORY, Mode::empty())?;
            if stat.st_mode & 0o7777 != self.modes[0] || has_attributes(&child)? {
                return Err(io::Error::other("a directory has another mode or attributes"));
            }
            self.sweep(child, &below, taken)?;
        }
        Ok(())
    }

    /// The position in the new index of a file that nobody has touched, if it is the same there.
    fn untouched(&self, path: &[u8], stat: &Stat) -> Option<usize> {
        let at = self.index.entry_index_by_path(path.as_bstr()).ok()?;
        let new = &self.index.entries()[at];
        // Mostly the old index has the same paths.
        let beside = self.old.entries().get(at).filter(|old| old.path(&self.old) == path);
        let old = beside.or_else(|| self.old.entry_by_path(path.as_bstr()))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let file = |mode: u32| kind == FileType::RegularFile && stat.st_mode & 0o7777 == mode;
        let [directory, plain] = self.modes;
        let has_mode = match new.mode {
            EntryMode::FILE => file(plain),
            EntryMode::FILE_EXECUTABLE => file(directory),
            EntryMode::SYMLINK => kind == FileType::Symlink,
            _ => false,
        };
        let is_old = (stat.st_ctime, stat.st_ctime_nsec as i64) <= self.filled;
        let is_same = old.id == new.id && old.mode == new.mode && old.stat == entry_stat(stat);
        (has_mode && is_old && is_same && stat.st_nlink == 1).then_some(at)
    }

    /// True if the new index has files below this directory, which ends in a slash.
    fn has_directory(&self, below: &[u8]) -> bool {
        let entries = self.index.entries();
        let at = entries.partition_point(|entry| entry.path(self.index) < below.as_bstr());
        entries.get(at).is_some_and(|entry| entry.path(self.index).starts_with(below))
    }
}

/// True if a directory has extended attributes that a new one would not have, such as a default
/// access control list.
fn has_attributes(directory: impl AsFd) -> io::Result<bool> {
    let mut names = [0; 4096];
    match rustix::fs::flistxattr(directory, &mut names) {
        Ok(length) => {
            let mut each = names[..length].split(|b| *b == 0).filter(|name| !name.is_empty());
            Ok(each.any(|name| !name.starts_with(b"security.")))
        }
        Err(Errno::NOTSUP) => Ok(false),
        Err(e) => Err(e.into()),
    }
}
