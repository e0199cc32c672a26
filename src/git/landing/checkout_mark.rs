//! The git processes that write a checkout for a landing.
//!
//! If git-frites is killed, such a process goes on, and a recovery beside it would damage the index
//! (GIT-FACTS.md, "Landing"). So each has the mark of its checkout as its standard input: a lock that
//! is free when the last of them has ended.
use std::fs::{File, TryLockError};
use std::sync::Arc;

use crate::error::{Cause, Error, IoContext, Result};
use crate::git::cli::Git;

/// git for a landing in a checkout: its calls hold the checkout's mark.
///
/// Fails with [`Cause::Locked`] while a process of a killed landing still writes there.
pub fn begin(git: &Git) -> Result<Git> {
    let mark = File::open(git.git_dir())
        .context(|| format!("could not open '{}'", git.git_dir().display()))?;
    match mark.try_lock() {
        Ok(()) => Ok(git.clone().holding(Arc::new(mark))),
        Err(TryLockError::WouldBlock) => Err(Error::fatal(format!(
            "a git process of an interrupted landing still writes to '{}'",
            git.root().unwrap_or(git.git_dir()).display()
        ))
        .because(Cause::Locked)
        .hint("try again when it has ended")),
        // Some network file systems have no such locks.
        Err(TryLockError::Error(_)) => Ok(git.clone()),
    }
}
