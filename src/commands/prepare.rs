//! What a new worktree needs before it is handed out: room on the disk.
use super::session::Session;
use crate::error::{Error, Result};
use crate::git::worktree;
use crate::model::oid::Oid;
use crate::ui::table;

/// Refuses a run whose worktrees would leave less than `limits.min-free-disk` free.
pub fn require_space(session: &Session, base: &Oid, candidates: usize) -> Result<()> {
    let reserve = session.config.size("limits.min-free-disk", 2 << 30);
    let root = session.store.worktrees(session.config.text("spawn.worktree-root"));
    let free = worktree::free_space(&root)?;
    let each = worktree::checkout_size(&session.repo, base)?;
    let needed = each.saturating_mul(candidates as u64).saturating_add(reserve);
    if free >= needed {
        return Ok(());
    }
    let size = table::size;
    Err(Error::fatal(format!(
        "the disk is too full: {} are free, and {} are needed ({candidates} × {} for worktrees, {} to stay free)",
        size(free),
        size(needed),
        size(each),
        size(reserve)
    ))
    .hint("make room with `git frites clean RUN`, or spawn fewer with `-n`")
    .hint("or let less stay free: `git config frites.limits.min-free-disk SIZE`"))
}
