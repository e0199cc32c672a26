//! The times of the files of a new checkout.
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::index::entry::{Flags, Mode};
use rustix::fs::{AtFlags, Timespec, Timestamps, UTIME_OMIT};

use crate::error::{IoContext, Result};
use crate::git::index::read_index;
use crate::git::stat::entry_stat;

/// The times that the files of a new checkout get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTimes {
    /// The last whole second that was over when the checkout was made. Then no file is racily clean:
    /// git need not read any of them to know that it is unchanged. Nor does a file that is written
    /// later have the same time in seconds, which is all that Python compares to tell whether a
    /// compiled module belongs to its source.
    LastSecond,
    /// The times at which they are written. For worktrees with build outputs that are younger than
    /// the last second: a build tool takes a source that is older than its output for built.
    Current,
}

impl FileTimes {
    /// The times for the files of a checkout, by the time of a `new` file of it; none if they stay as
    /// they are.
    pub(super) fn stamp(self, new: &Path) -> io::Result<Option<Timestamps>> {
        if self == FileTimes::Current {
            return Ok(None);
        }
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let last_second = rustix::fs::lstat(new)?.st_mtime - 1;
        let last_modification = Timespec { tv_sec: last_second, tv_nsec: 0 };
        Ok(Some(Timestamps { last_access, last_modification }))
    }

    /// Gives these times to the files that git has just checked out below `root`, and to their
    /// entries in the `index`. `new` is a file of the checkout with the time at which it was made.
    pub(super) fn set(self, root: &Path, index: &Path, new: &Path) -> Result<()> {
        let times = self.stamp(new);
        times
            .and_then(|times| times.map_or(Ok(()), |times| set(root, index, |_| Ok(times.clone()))))
            .context(|| failure(root))
    }
}

/// Gives the files of a checkout below `root`, and their entries in the `index`, the times that the
/// files with these paths have below `from`.
pub(super) fn take_from(from: &Path, root: &Path, index: &Path) -> Result<()> {
    let times_of = |path: &OsStr| {
        let stat = rustix::fs::lstat(from.join(path))?;
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let tv_nsec = stat.st_mtime_nsec.try_into().unwrap_or_default();
        let last_modification = Timespec { tv_sec: stat.st_mtime, tv_nsec };
        Ok(Timestamps { last_access, last_modification })
    };
    set(root, index, times_of).context(|| failure(root))
}

fn failure(root: &Path) -> String {
    format!("could not set the times of files in '{}'", root.display())
}

fn set(
    root: &Path,
    index: &Path,
    times_of: impl Fn(&OsStr) -> io::Result<Timestamps>,
) -> io::Result<()> {
    let mut index = read_index(index).map_err(io::Error::other)?;
    let root = std::fs::File::open(root)?;
    for (entry, path) in index.entries_mut_with_paths() {
        if entry.mode == Mode::COMMIT || entry.flags.contains(Flags::SKIP_WORKTREE) {
            continue;
        }
        let path = OsStr::from_bytes(path);
        let times = times_of(path)?;
        rustix::fs::utimensat(&root, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        entry.stat = entry_stat(&rustix::fs::statat(&root, path, AtFlags::SYMLINK_NOFOLLOW)?);
    }
    index.write(Default::default()).map_err(io::Error::other)
}
