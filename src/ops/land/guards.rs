//! Conditions under which nothing may land.
use std::path::Path;

use crate::error::{Error, Result};
use crate::git::landing::overwrite::overwritten_files;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::ops::session::Session;

/// Refuses to land in a candidate's worktree: its HEAD is not the user's.
pub fn refuse_candidates_worktree(session: &Session) -> Result<()> {
    let Some(root) = session.repo.work_tree() else { return Ok(()) };
    let ours = session.repo.head_branch().is_some_and(|b| b.starts_with("refs/heads/frites/run/"));
    if ours || session.store.is_candidates(root)? {
        return Err(Error::fatal("this is a candidate's worktree")
            .hint("go to your own checkout and apply there"));
    }
    Ok(())
}

/// Refuses to overwrite files that git does not track when the checkout at `root` goes from one
/// tree to another. `hint` says what to do about them.
pub fn refuse_overwrite(
    session: &Session,
    root: &Path,
    from: &Oid,
    to: &Oid,
    hint: &str,
) -> Result<()> {
    let paths = overwritten_files(&session.repo, root, from, to)?;
    if paths.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = paths.iter().map(TreePath::quoted).collect();
    Err(Error::no(format!(
        "landing would overwrite files that git does not track: {}",
        names.join(", ")
    ))
    .hint(hint))
}
