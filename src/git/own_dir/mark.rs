//! The mark of a fork: a file in its git directory that names the worktree's administrative entry.
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::fs::regular;
use crate::fs::tree::is_real_directory;

/// The name of that file.
pub(super) const MARK: &str = "frites-fork";

/// True if a worktree is a fork.
pub fn is_fork(worktree: &Path) -> bool {
    let dir = worktree.join(".git");
    is_real_directory(&dir, &dir) && regular::open(&dir.join(MARK)).is_ok()
}

/// The administrative entry of the worktree that this git directory of a fork belongs to; none if it
/// is no fork's.
pub fn entry_of(git_dir: &Path) -> Option<PathBuf> {
    let mut bytes = regular::read(&git_dir.join(MARK)).ok()?;
    bytes.pop_if(|last| *last == b'\n');
    Some(OsString::from_vec(bytes).into())
}
