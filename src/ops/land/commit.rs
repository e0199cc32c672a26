//! Makes commits in the user's name, and checks that their tree is exactly the requested one.
use crate::error::{Error, Result};
use crate::git::commit::{self, CommitRequest};
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::ops::kept_commits;
use crate::ops::land::guards::refuse_changed_settings;
use crate::ops::session::Session;
use crate::oracle::pool::Checkouts;

/// Makes a commit without touching a checkout, and keeps its objects until the run's landing has
/// ended. Fails if git would start an attempt's version of a program, or if a hook refuses the
/// commit. Also fails if a hook changes files, because the commit would then not have the files
/// that passed.
pub fn make_commit(session: &Session, run: &Run, request: &CommitRequest<'_>) -> Result<Oid> {
    let Session { repo, store, .. } = session;
    let checkouts = Checkouts::open(store)?;
    let place = checkouts.register(request.parent)?;
    refuse_changed_settings(session, &place.worktree.git(), request.tree)?;
    let made = commit::commit_in(repo, &place.worktree, request);
    if let (Ok(Some(commit)), true) = (&made, repo.is_beside_housekeeping()) {
        // No other ref reaches the commit until its branch moves.
        kept_commits::keep(session, run, &[*commit], request.parent)?;
    }
    let commit = made?.ok_or_else(|| no_commit("nothing was changed"))?;
    require_tree(session, request.tree, &commit, "nothing was changed")?;
    Ok(commit)
}

/// The error that git made no commit. `state` tells the user in which state the repository is, e.g.
/// "nothing was changed".
pub fn no_commit(state: &str) -> Error {
    Error::no(format!("git did not make the commit; {state}")).hint(
        "see git's message above: a hook, the signature or the identity; `--no-verify` skips hooks",
    )
}

/// Fails if the tree of the commit is not `tree`. `state` tells the user in which state the
/// repository is.
pub fn require_tree(session: &Session, tree: &Oid, commit: &Oid, state: &str) -> Result<()> {
    if session.repo.commit(commit)?.tree == *tree {
        return Ok(());
    }
    Err(Error::no(format!(
        "a hook changed the files to be committed, so that they are not those that passed; {state}"
    ))
    .hint(
        "let the attempt run the same formatter and judge again, or skip hooks with `--no-verify`",
    ))
}
