//! Deletes the files that commands have moved to the trash: a few files right away, many files in
//! the background.
use std::path::Path;

use crate::error::Result;
use crate::fs::trash;
use crate::process;
use crate::process::environment::caller;
use crate::store::Store;

/// Deletes the trash in `root`, a directory of worktrees. If the trash is large, a background
/// process deletes it. If that process is killed, the next command deletes the rest.
///
/// If an attempt called git-frites, nothing runs in the background, because every process that
/// outlives an attempt is ended and reported.
pub fn empty(store: &Store, root: &Path) -> Result<()> {
    if trash::is_little(root) || caller(&store.dir().runs()).is_some() {
        return trash::empty(root);
    }
    if trash::is_being_emptied(root) || process::empty_trash(root).is_ok() {
        return Ok(());
    }
    trash::empty(root)
}
