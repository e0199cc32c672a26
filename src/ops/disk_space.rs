//! Checks that new worktrees and checkouts leave enough disk space free.
use std::path::Path;

use crate::config::keys;
use crate::error::{Error, Result};
use crate::fs::tree;
use crate::git::worktree;
use crate::model::oid::Oid;
use crate::ops::session::Session;
use crate::ui::table;

/// Fails if `count` checkouts of `base` in the directory `place` would leave less than
/// `limits.min-free-disk` free. `what` are the words for the checkouts.
pub fn require_space(
    session: &Session,
    place: &Path,
    base: &Oid,
    count: usize,
    what: &str,
) -> Result<()> {
    let reserve = session.config.get(keys::LIMITS_MIN_FREE_DISK).0;
    let free = tree::free_space(place)?;
    let each = worktree::checkout_size(&session.repo, base)?;
    let needed = each.saturating_mul(count as u64).saturating_add(reserve);
    if free >= needed {
        return Ok(());
    }
    let size = table::size;
    Err(Error::fatal(format!(
        "the disk is too full: {} are free, and {} are needed ({count} × {} for {what}, {} to stay free)",
        size(free),
        size(needed),
        size(each),
        size(reserve)
    ))
    .hint("make room with `git frites clean RUN`, or ask for fewer at once (`-n`, `-j`)")
    .hint("or let less stay free: `git config frites.limits.min-free-disk SIZE`"))
}
