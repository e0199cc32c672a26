//! Deletes what commands have removed, at once if that is little, and else in the background.
use std::path::Path;

use crate::error::Result;
use crate::fs::trash;
use crate::process::background;
use crate::process::environment::caller;
use crate::store::Store;

/// Deletes the trash in `root`, a directory of worktrees. If there is much of it, a process of its
/// own does that; whatever that process leaves, the next command deletes.
///
/// An attempt that calls git-frites waits for the deletion: a process that it left behind would be
/// ended, and reported.
pub fn empty(store: &Store, root: &Path) -> Result<()> {
    if trash::is_little(root) || caller(&store.dir().runs()).is_some() {
        return trash::empty(root);
    }
    if trash::is_being_emptied(root) || background::empty_trash(root).is_ok() {
        return Ok(());
    }
    trash::empty(root)
}
