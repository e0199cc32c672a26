//! The times of new files.
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::index::entry::{Flags, Mode};
use rustix::fs::{AtFlags, Timespec, Timestamps, UTIME_OMIT};

use crate::error::{IoContext, Result};
use crate::git::stat::entry_stat;
use crate::git::worktree::Worktree;

/// The times that the files of new worktrees get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTimes {
    /// The last whole second that was over when the worktree was made. Then no file is racily
    /// clean: git need not read any of them to know that it is unchanged.
    LastSecond,
    /// The times at which they are written. For worktrees with build outputs that are younger than
    /// the last second: a build tool takes a source that is older than its output for built.
    Current,
}

impl FileTimes {
    /// The times for files in the worktree at `path`, by the clock of its file system; none if they
    /// stay as they are.
    pub(super) fn stamp(self, path: &Path) -> Result<Option<Timestamps>> {
        if self == FileTimes::Current {
            return Ok(None);
        }
        let made = rustix::fs::lstat(path.join(".git")).map_err(io::Error::from);
        let made = made.context(|| format!("could not read '{}'", path.display()))?;
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let last_modification = Timespec { tv_sec: made.st_mtime - 1, tv_nsec: 0 };
        Ok(Some(Timestamps { last_access, last_modification }))
    }

    /// Gives these times to the files that git has just checked out, and to its index. Whatever
    /// fails only costs git some time later.
    pub(super) fn set(self, worktree: &Worktree) {
        if let Err(reason) = self.try_to_set(worktree) {
            tracing::debug!(%reason, "files keep their times");
        }
    }

    fn try_to_set(self, worktree: &Worktree) -> io::Result<()> {
        let Ok(Some(times)) = self.stamp(&worktree.path) else { return Ok(()) };
        let hash = gix::hash::Kind::Sha1;
        let index = gix::index::File::at(worktree.index(), hash, false, Default::default());
        let mut index = index.map_err(io::Error::other)?;
        let root = std::fs::File::open(&worktree.path)?;
        for (entry, path) in index.entries_mut_with_paths() {
            if entry.mode == Mode::COMMIT || entry.flags.contains(Flags::SKIP_WORKTREE) {
                continue;
            }
            let path = std::ffi::OsStr::from_bytes(path);
            rustix::fs::utimensat(&root, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            entry.stat = entry_stat(&rustix::fs::statat(&root, path, AtFlags::SYMLINK_NOFOLLOW)?);
        }
        index.write(Default::default()).map_err(io::Error::other)
    }
}
