//! Checks that new worktrees and checkouts leave enough disk space free.
use std::path::Path;

use crate::config::keys;
use crate::error::{Error, Result};
use crate::fs::tree;
use crate::git::worktree;
use crate::model::oid::Oid;
use crate::ops::session::Session;
use crate::ui::table;

/// Fails if the worktrees of a new run would leave less than `limits.min-free-disk` free.
pub fn require_space(session: &Session, base: &Oid, candidates: usize) -> Result<()> {
    let root = session.store.worktrees(session.config.get(keys::SPAWN_WORKTREE_ROOT).as_deref());
    require_free(session, &root, base, candidates, "worktrees").map_err(|e| {
        e.hint("make room with `git frites clean RUN`, or spawn fewer with `-n`").hint(LESS_FREE)
    })
}

/// Fails if the judge checkouts of `jobs` parallel jobs in `directory` would leave less than
/// `limits.min-free-disk` free.
pub fn require_space_to_judge(
    session: &Session,
    directory: &Path,
    base: &Oid,
    jobs: usize,
) -> Result<()> {
    require_free(session, directory, base, jobs, "checkouts").map_err(|e| {
        e.hint("make room with `git frites clean RUN`, or judge fewer at once with `-j`")
            .hint(LESS_FREE)
    })
}

const LESS_FREE: &str = "or let less stay free: `git config frites.limits.min-free-disk SIZE`";

fn require_free(
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
    )))
}
