//! Deletes the files that commands have moved to the trash: few at once, many in the background.
use std::path::Path;

use crate::error::Result;
use crate::fs::trash;
use crate::process::background;
use crate::process::environment::caller;
use crate::store::Store;

/// Deletes the trash in `root`, a directory of worktrees. If there is much of it, a background
/// process does that; the next command deletes the files that this process leaves.
///
/// If an attempt calls git-frites, the deletion is not done in the background: a background process
/// that outlives the attempt would be ended and reported.
pub fn empty(store: &Store, root: &Path) -> Result<()> {
    if trash::is_little(root) || caller(&store.dir().runs()).is_some() {
        return trash::empty(root);
    }
    if trash::is_being_emptied(root) || background::empty_trash(root).is_ok() {
        return Ok(());
    }
    trash::empty(root)
}
