//! Recycled worktrees: a new worktree takes the files of one that `clean` has parked, as far as
//! they are the files that it would be given.
//!
//! A file is taken only if nobody touched it since it was written: its entry in the parked index has
//! its times, its size and its inode, and its change time, which no program can choose, is older
//! than the end of the writing. Everything else is deleted, and written as in any new worktree.
use std::ffi::{CStr, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice;
use gix::index::State;
use gix::index::entry::{Flags, Mode as EntryMode};
use rustix::fs::{AtFlags, Dir, FileType, Mode, Stat};
use rustix::io::Errno;

use crate::error::{IoContext, Result};
use crate::fs::directory::DIRECTORY;
use crate::fs::parallel;
use crate::fs::regular;
use crate::fs::trash::{self, Bin};
use crate::fs::tree::delete_tree;
use crate::git::directories::{Directory, directories};
use crate::git::fan_out::place::{Place, Taken};
use crate::git::index::{entry_at, read_index};
use crate::git::stat::entry_stat;

/// The place in a new worktree of the parked one whose files it takes.
const STAGE: &str = ".frites-parked";

/// Gives each of these new worktrees, which have no files, those files of `index` that a worktree
/// parked in `root` has. All files of `index` are stored as they are.
pub fn take_all(root: &Path, places: &[Place<'_>], index: &State) -> Result<Vec<Taken>> {
    let Some(directories) = directories(index) else { return Ok(Vec::new()) };
    parallel::map(places, |place| take(root, place.path, index, &directories))
}

fn take(
    root: &Path,
    worktree: &Path,
    index: &State,
    directories: &[Directory<'_>],
) -> Result<Taken> {
    let stage = worktree.join(STAGE);
    let nothing = || vec![None; index.entries().len()];
    // Of several processes one gets it.
    if !trash::parked(root).into_iter().any(|parked| fs::rename(parked, &stage).is_ok()) {
        return Ok(nothing());
    }
    let failed = || format!("could not recycle a worktree in '{}'", worktree.display());
    match recycle(&stage, worktree, index, directories) {
        Ok(taken) => Ok(taken),
        Err(reason) => {
            tracing::debug!(%reason, "a parked worktree is not recycled");
            // What cannot be deleted must not be in the way: the next command tries again.
            if stage.exists() {
                fs::rename(&stage, Bin::new(root)?.worktree()).context(failed)?;
            }
            for entry in fs::read_dir(worktree).context(failed)? {
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
    index: &'a State,
    /// The directories of `index`.
    directories: &'a [Directory<'a>],
}

fn recycle(
    stage: &Path,
    into: &Path,
    index: &State,
    directories: &[Directory<'_>],
) -> io::Result<Taken> {
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
        directories,
    };
    let mut taken = vec![None; index.entries().len()];
    let root = rustix::fs::open(&parked.root, DIRECTORY, Mode::empty())?;
    parked.sweep(root, &directories[0], &mut taken)?;
    for entry in fs::read_dir(&parked.root)? {
        let entry = entry?;
        fs::rename(entry.path(), into.join(entry.file_name()))?;
    }
    delete_tree(stage)?;
    // A file that is renamed has another change time.
    let into = rustix::fs::open(into, DIRECTORY, Mode::empty())?;
    for at in &directories[0].files {
        if let Some(stat) = &mut taken[*at] {
            let path = index.entries()[*at].path(index).as_bytes();
            let now = rustix::fs::statat(&into, path, AtFlags::SYMLINK_NOFOLLOW)?;
            *stat = entry_stat(&now);
        }
    }
    Ok(taken)
}

impl Parked<'_> {
    /// Deletes everything in a directory that is not to be taken. `of` are the files that the new
    /// index has there.
    fn sweep(&self, directory: OwnedFd, of: &Directory<'_>, taken: &mut Taken) -> io::Result<()> {
        let mut listing = Dir::new(directory)?;
        // All of them before the first is deleted, in one piece: there are many.
        let mut names = Vec::new();
        while let Some(entry) = listing.read() {
            names.extend_from_slice(entry?.file_name().to_bytes_with_nul());
        }
        let directory = listing.fd()?;
        for name in names.split_inclusive(|byte| *byte == 0) {
            let name = CStr::from_bytes_with_nul(name).map_err(io::Error::other)?;
            let bytes = name.to_bytes();
            if bytes == b"." || bytes == b".." {
                continue;
            }
            let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                let file = of.file(bytes, self.index);
                match file.filter(|at| self.is_untouched(*at, &stat)) {
                    Some(at) => taken[at] = Some(entry_stat(&stat)),
                    None => rustix::fs::unlinkat(directory, name, AtFlags::empty())?,
                }
                continue;
            }
            let Some(below) = of.directory(bytes) else {
                let path = self.root.join(OsStr::from_bytes(of.path));
                delete_tree(&path.join(OsStr::from_bytes(bytes)))?;
                continue;
            };
            let child = rustix::fs::openat(directory, name, DIRECTORY, Mode::empty())?;
            if stat.st_mode & 0o7777 != self.modes[0] || has_attributes(&child)? {
                return Err(io::Error::other("a directory has another mode or attributes"));
            }
            self.sweep(child, &self.directories[below], taken)?;
        }
        Ok(())
    }

    /// True if nobody has touched the file of this entry of the new index, and it is the same there.
    fn is_untouched(&self, at: usize, stat: &Stat) -> bool {
        let new = &self.index.entries()[at];
        let Some(old) = entry_at(&self.old, at, new.path(self.index)) else { return false };
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
        has_mode && is_old && is_same && stat.st_nlink == 1
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
