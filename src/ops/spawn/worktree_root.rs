//! The directory for the worktrees of a new run.
use std::path::Path;

use crate::config::keys;
use crate::error::{Error, Result};
use crate::fs::tree::nearest_real;
use crate::git::worktree;
use crate::ops::session::Session;
use crate::world::user_directories::{user_home, with_home};

/// The configured directory for worktrees (`spawn.worktree-root`), in the form for a run's record;
/// `None` for the default directory. Fails if worktrees cannot be there, or would show up as files
/// of a checkout.
pub(super) fn worktree_root(session: &Session) -> Result<Option<String>> {
    let Some(text) = session.config.get(keys::SPAWN_WORKTREE_ROOT) else { return Ok(None) };
    let root = with_home(&text, user_home().as_deref());
    let root = root.and_then(|root| root.into_os_string().into_string().ok());
    let root = root.unwrap_or_else(|| text.clone());
    match why_unusable(session, &root)? {
        None => Ok(Some(root)),
        Some(why) => {
            let key = keys::SPAWN_WORKTREE_ROOT.name;
            Err(Error::fatal(format!("{key}: '{text}' {why}")).hint(format!(
                "name a directory outside of the repository: `git config frites.{key} ../worktrees`"
            )))
        }
    }
}

fn why_unusable(session: &Session, root: &str) -> Result<Option<&'static str>> {
    let Session { repo, store, .. } = session;
    let path = store.worktrees(Some(root));
    if root.is_empty() {
        return Ok(Some("is empty"));
    }
    if root.starts_with('~') {
        return Ok(Some("begins with a `~` that cannot be expanded"));
    }
    if path.starts_with(store.worktrees(None)) {
        return Ok(None);
    }
    if path.starts_with(repo.common_dir()) || path.starts_with(store.dir().path()) {
        return Ok(Some("is in the git directory or in '.frites'"));
    }
    if !path.ancestors().find(|above| above.exists()).is_some_and(Path::is_dir) {
        return Ok(Some("is not in a directory"));
    }
    if !worktree::checkouts(repo)?.iter().any(|c| path.starts_with(nearest_real(c))) {
        return Ok(None);
    }
    let ignored = repo.checkout().call("check-ignore").arg("-q").arg(path.join("1")).output()?;
    Ok((ignored.code != 0).then_some("is in a checkout, and .gitignore does not name it"))
}
