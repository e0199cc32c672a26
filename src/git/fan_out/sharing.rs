//! Lets files with the same content share their blocks on the disk, where the file system can
//! (Btrfs, XFS).
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_os = "linux")]
use rustix::fs::{Mode, OFlags};

/// For a file of at least this many bytes, sharing is faster than writing, even on a slow disk.
/// Blocks can be shared only when the first copy is on the disk (GIT-FACTS, "The checkout writer").
const WORTH_SHARING: usize = 128 << 10;

/// Tells whether the new worktrees can share blocks. Sharing is tried until the file system has
/// refused once.
///
/// All worktrees lie below one directory, so they are on one file system.
#[derive(Default)]
pub struct Sharing {
    refused: AtomicBool,
}

impl Sharing {
    /// Makes a file with this content, whose blocks the files in the worktrees will share. `None`
    /// if sharing saves nothing or was refused.
    ///
    /// The file has no name. An attempt could open a file with a name, and change it before the
    /// last worktree shares its blocks.
    pub fn original(&self, directory: &OwnedFd, content: &[u8]) -> Option<File> {
        if content.len() < WORTH_SHARING || self.refused.load(Ordering::Relaxed) {
            return None;
        }
        let made = nameless(directory).and_then(|mut file| {
            file.write_all(content)?;
            Ok(file)
        });
        made.inspect_err(|reason| self.refuse(reason)).ok()
    }

    /// Gives the blocks of `original` to `to`, a new, empty file. If this returns false, `to` may
    /// have some of the blocks. The caller must then write the content of `to` from the beginning.
    pub fn share(&self, original: &File, to: &File) -> bool {
        let shared = clone_blocks(original, to);
        shared.inspect_err(|reason| self.refuse(reason)).is_ok()
    }

    fn refuse(&self, reason: &dyn Display) {
        tracing::debug!(%reason, "files share no blocks");
        self.refused.store(true, Ordering::Relaxed);
    }
}

/// Makes a file without a name on the file system of a directory.
#[cfg(target_os = "linux")]
fn nameless(directory: &OwnedFd) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, ".", flags, Mode::from_raw_mode(0o600))?.into())
}

/// Only Linux can make a file without a name.
#[cfg(not(target_os = "linux"))]
fn nameless(_: &OwnedFd) -> io::Result<File> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(target_os = "linux")]
fn clone_blocks(from: &File, to: &File) -> rustix::io::Result<()> {
    rustix::fs::ioctl_ficlone(to, from)
}

/// Other systems can share blocks only between files that are given by path.
#[cfg(not(target_os = "linux"))]
fn clone_blocks(_: &File, _: &File) -> rustix::io::Result<()> {
    Err(rustix::io::Errno::NOTSUP)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn nobody_can_open_the_file_of_which_others_get_the_blocks() {
        let place = tempfile::tempdir().expect("a directory");
        let directory: OwnedFd = File::open(place.path()).expect("a directory").into();
        let content = vec![7; WORTH_SHARING];
        let sharing = Sharing::default();
        assert!(sharing.original(&directory, &content[1..]).is_none(), "too small");
        // Not every file system has files without names.
        if let Some(original) = sharing.original(&directory, &content) {
            let mut read = vec![0; WORTH_SHARING];
            original.read_exact_at(&mut read, 0).expect("readable");
            assert_eq!(read, content);
            assert_eq!(original.metadata().expect("metadata").nlink(), 0);
            assert_eq!(std::fs::read_dir(place.path()).expect("readable").count(), 0);
            let other = File::create(place.path().join("other")).expect("a file");
            // ext4 and tmpfs refuse to share. After that, no original is made any more.
            let shared = sharing.share(&original, &other);
            assert_eq!(sharing.original(&directory, &content).is_some(), shared);
        }
    }
}
