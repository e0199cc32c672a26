//! The times of the files of a new checkout.
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::index::entry::{Flags, Mode};
use rustix::fs::{AtFlags, Timespec, Timestamps, UTIME_OMIT};

use crate::error::{IoContext, Result};
use crate::git::index::{entry_stat, read_index};

/// The times that the files of a new checkout get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTimes {
    /// The second before the one in which the checkout was made, without nanoseconds. Then no file
    /// is racily clean: git need not read a file to know that it is unchanged.
    ///
    /// Also, a file that is written later has another time in whole seconds. Python compares only
    /// whole seconds to find out whether a compiled module belongs to its source.
    LastSecond,
    /// The times at which the files are written. This is for worktrees with copied build outputs
    /// that are younger than the last second. If the sources were older than these outputs, a build
    /// tool would not build them again.
    Current,
}

impl FileTimes {
    /// The times for the files of a checkout in the directory `new`, which was just made. `None` if
    /// the files keep the times at which they are written.
    pub(super) fn stamp(self, new: &Path) -> Result<Option<Timestamps>> {
        if self == FileTimes::Current {
            return Ok(None);
        }
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let made = rustix::fs::lstat(new).map_err(io::Error::from);
        let made = made.could_not("read", new)?;
        let last_second = made.st_mtime - 1;
        let last_modification = Timespec { tv_sec: last_second, tv_nsec: 0 };
        Ok(Some(Timestamps { last_access, last_modification }))
    }
}

/// Gives `times` to the files that git has just checked out below `root`, and to their entries in
/// `index`. Does nothing if `times` is `None`.
pub(super) fn set(root: &Path, index: &Path, times: Option<&Timestamps>) -> Result<()> {
    let Some(times) = times else { return Ok(()) };
    set_all(root, index, times).could_not("set the times of files in", root)
}

fn set_all(root: &Path, index: &Path, times: &Timestamps) -> io::Result<()> {
    let mut index = read_index(index).map_err(io::Error::other)?;
    let root = std::fs::File::open(root)?;
    for (entry, path) in index.entries_mut_with_paths() {
        if entry.mode == Mode::COMMIT || entry.flags.contains(Flags::SKIP_WORKTREE) {
            continue;
        }
        let path = OsStr::from_bytes(path);
        rustix::fs::utimensat(&root, path, times, AtFlags::SYMLINK_NOFOLLOW)?;
        entry.stat = entry_stat(&rustix::fs::statat(&root, path, AtFlags::SYMLINK_NOFOLLOW)?);
    }
    index.write(Default::default()).map_err(io::Error::other)
}
