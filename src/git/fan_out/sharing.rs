//! Files with the same content that share their blocks, where the file system can (Btrfs, XFS).
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

/// The size from which sharing is faster than writing, also where the first copy must go to a slow disk
/// before its blocks can be shared (GIT-FACTS, "The checkout writer").
const WORTH_SHARING: usize = 128 << 10;

/// Whether the new worktrees can share blocks: they can until the file system has refused it once.
///
/// All of them lie below one directory, and so on one file system.
#[derive(Default)]
pub struct Sharing {
    refused: AtomicBool,
}

impl Sharing {
    /// True if files of this size are to share their blocks.
    pub fn is_worth(&self, size: usize) -> bool {
        size >= WORTH_SHARING && !self.refused.load(Ordering::Relaxed)
    }

    /// Gives a new, empty file the blocks of another one. After a failure it may have some of them: it
    /// is to be written from its beginning.
    ///
    /// Only a file that this process has just written, and keeps open, may be given: nobody knows what
    /// else becomes of others.
    pub fn share(&self, from: &File, to: &File) -> bool {
        let shared = clone_blocks(from, to);
        if let Err(reason) = &shared {
            tracing::debug!(%reason, "files share no blocks");
            self.refused.store(true, Ordering::Relaxed);
        }
        shared.is_ok()
    }
}

#[cfg(target_os = "linux")]
fn clone_blocks(from: &File, to: &File) -> rustix::io::Result<()> {
    rustix::fs::ioctl_ficlone(to, from)
}

/// Elsewhere blocks are shared by paths alone.
#[cfg(not(target_os = "linux"))]
fn clone_blocks(_: &File, _: &File) -> rustix::io::Result<()> {
    Err(rustix::io::Errno::NOTSUP)
}
