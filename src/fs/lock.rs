//! Locks between processes: `flock` on files of our own. A lock ends with the process that holds
//! it.
//!
//! A process that takes several locks takes them in this order: landing, run, candidate,
//! repository. So no two processes wait for each other.
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use rustix::io::FdFlags;

use crate::error::{Error, IoContext, Result};
use crate::fs::regular;

/// The number of times that we try to open a lock file while other processes remove its directory.
const TRIES: u32 = 100;

/// A held lock. It is released when this is dropped, or when the process ends. The descriptor is
/// close-on-exec unless the lock is handed on, so a daemon that a command leaves behind does not
/// keep the lock.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Adds this process's id to the lock file. From now on, a program that replaces this process
    /// holds the lock, and so does every process that the program starts.
    pub fn hand_on(self) -> io::Result<()> {
        (&self.file).seek(SeekFrom::End(0))?;
        (&self.file).write_all(format!("{}\n", std::process::id()).as_bytes())?;
        rustix::io::fcntl_setfd(&self.file, FdFlags::empty())?;
        std::mem::forget(self);
        Ok(())
    }
}

/// Waits until the lock is free, and takes it.
pub fn wait(path: &Path) -> Result<Lock> {
    loop {
        let file = open(path).could_not("lock", path)?;
        lock_and_trace(path, &file).could_not("lock", path)?;
        if still_there(path, &file) {
            return Ok(Lock { file });
        }
    }
}

/// Locks the open file, and logs how long that took if another process held the lock.
fn lock_and_trace(path: &Path, file: &File) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) => {
            tracing::trace!(path = %path.display(), "locked");
            return Ok(());
        }
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(e)) => return Err(e),
    }
    tracing::debug!(path = %path.display(), "waiting for a lock");
    let started = Instant::now();
    file.lock()?;
    let ms = started.elapsed().as_millis();
    tracing::debug!(path = %path.display(), ms, "locked after waiting");
    Ok(())
}

/// Takes the lock if it is free; `None` if another process holds it.
pub fn attempt(path: &Path) -> Result<Option<Lock>> {
    attempt_by(path, File::try_lock)
}

/// Takes the lock as a shared lock, which several processes can hold at the same time. `None` if
/// another process holds it exclusively.
pub fn attempt_shared(path: &Path) -> Result<Option<Lock>> {
    attempt_by(path, File::try_lock_shared)
}

fn attempt_by(
    path: &Path,
    lock: fn(&File) -> std::result::Result<(), TryLockError>,
) -> Result<Option<Lock>> {
    let failed = || format!("could not lock '{}'", path.display());
    loop {
        let file = open(path).context(failed)?;
        match lock(&file) {
            Ok(()) if still_there(path, &file) => return Ok(Some(Lock { file })),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => {
                return Err(Error::io(failed(), e));
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let once = || {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        // This fails for anything except a regular file. An attempt may have put e.g. a FIFO at the
        // path.
        regular::open_own_to_write(path, false)
    };
    // A process that held the lock may remove the directory at any moment, even between
    // `create_dir_all` and the opening of the file.
    for _ in 1..TRIES {
        match once() {
            // `create_dir_all` fails with `AlreadyExists` if other processes make and remove the
            // directory at the same time.
            Err(e)
                if [io::ErrorKind::NotFound, io::ErrorKind::AlreadyExists].contains(&e.kind()) => {}
            opened => return opened,
        }
    }
    once()
}

/// True if the locked file is still the one at the path. If e.g. `git clean -ffdx` has removed it,
/// another process can make and lock a new one. Then both processes would hold the lock.
fn still_there(path: &Path, file: &File) -> bool {
    match (fs::metadata(path), file.metadata()) {
        (Ok(a), Ok(b)) => a.ino() == b.ino() && a.dev() == b.dev(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn directory_that_others_remove_meanwhile_is_made_again() {
        let root = tempfile::tempdir().expect("a directory");
        let room = root.path().join("room");
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let _ = fs::remove_dir_all(&room);
                }
            });
            let failed = (0..5_000).find_map(|_| attempt(&room.join("lock")).err());
            is_done.store(true, Ordering::Relaxed);
            assert!(failed.is_none(), "{failed:?}");
        });
    }
}
