//! Locks that end with the process that holds them: `flock` on files of our own.
//!
//! Locks are taken in this order, so that no two processes wait for each other: landing, run,
//! candidate, repository.
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use crate::error::{Error, IoContext, Result};
use crate::fs::regular;

/// How often a lock's file is opened while others remove its directory.
const TRIES: u32 = 100;

/// A held lock. It is released when it is dropped, or when the process ends. The descriptor is
/// close-on-exec, so that no daemon that a command leaves behind keeps the lock.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Waits for the lock.
pub fn wait(path: &Path) -> Result<Lock> {
    let failed = || format!("could not lock '{}'", path.display());
    loop {
        let file = open(path).context(failed)?;
        lock_and_trace(path, &file).context(failed)?;
        if still_there(path, &file) {
            return Ok(Lock { _file: file });
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

/// Takes the lock, which several processes can share; `None` if another process holds it exclusively.
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
            Ok(()) if still_there(path, &file) => return Ok(Some(Lock { _file: file })),
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
        // Refuses anything but a regular file, because an attempt may have put it there.
        regular::open_own_to_write(path, false)
    };
    // A process that held the lock may remove its directory at any moment, also between these two calls.
    for _ in 1..TRIES {
        match once() {
            // `create_dir_all` fails with `AlreadyExists` if others make and remove the directory meanwhile.
            Err(e)
                if [io::ErrorKind::NotFound, io::ErrorKind::AlreadyExists].contains(&e.kind()) => {}
            opened => return opened,
        }
    }
    once()
}

/// True if the locked file is still the one at the path. `git clean -ffdx` may have removed it between
/// opening and locking. Then two processes could each hold a lock.
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
