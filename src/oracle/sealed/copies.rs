//! Copies of the base's layers in plain directories, where Landlock confines the commands.
//!
//! A copy lies at another path than the base's checkout did. Outputs with that path in them can make
//! a command fail, or pass: a result over copies is a claim like every result over outputs.
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{IoContext, Result};
use crate::git::layers::base::BaseEnd;
use crate::git::layers::{copied, written};
use crate::git::repo::Repo;
use crate::git::worktree::Worktree;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::oracle::pool::CheckoutRoom;
use crate::oracle::sealed::SealedCheckouts;
use crate::oracle::sealed::plan::WorldRoom;

/// A tree in a worktree, with copies of the base's outputs.
pub struct CopiedTree {
    room: WorldRoom,
    _room: CheckoutRoom,
    dir: PathBuf,
    /// True if there are outputs of the base.
    pub has_outputs: bool,
    /// The time from which on commands change files.
    complete: SystemTime,
}

impl SealedCheckouts<'_> {
    /// Fills a worktree that was registered at a commit without files: the commit's files, with the
    /// times of the base's where they are the same, the seeds, and the base's outputs. None if the
    /// tree cannot stand above the base's files; then the worktree stays empty.
    pub fn copy_into(&self, worktree: &Worktree, commit: &Oid) -> Result<Option<CopiedTree>> {
        let guard = CheckoutRoom::sealed(self.store, &self.dir)?;
        let room = WorldRoom::at(guard.path());
        let Some(laid) = self.over_base(commit, &room)? else { return Ok(None) };
        let dir = worktree.path.clone();
        copied::copy(&laid.layers, &dir)?;
        let index = worktree.admin.join("index");
        let complete = written::hand_out_index(&room.index(), &index)
            .and_then(|()| written::after_changes(&index))
            .context(|| format!("could not prepare '{}'", worktree.admin.display()))?;
        let has_outputs = laid.has_outputs;
        Ok(Some(CopiedTree { room, _room: guard, dir, has_outputs, complete }))
    }

    /// Makes what the base's commands left in this worktree, which it loses, a layer of every later
    /// checkout, unless there is such a layer.
    pub fn keep_copied_outputs(&self, worktree: &Path, end: BaseEnd) -> Result<()> {
        self.take_outputs(worktree, None, end, Some(worktree))
    }
}

impl CopiedTree {
    /// The tracked files that commands have changed, sorted.
    pub fn changed(&self, repo: &Repo) -> Result<Vec<TreePath>> {
        written::changed_in(&repo.git(), &self.room.index(), &self.dir, self.complete)
    }
}
