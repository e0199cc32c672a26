//! Keeps commits alive while they are judged. For each run, the judging process makes a ref that
//! reaches these commits. No other ref reaches them yet. So without this ref, `git repack -ad` or
//! `git gc --prune=now` would delete them during the judging.
use std::collections::BTreeSet;

use parking_lot::Mutex;

use crate::error::Result;
use crate::git::commit::{commit_tree, neutral_commit};
use crate::git::refs;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::ops::session::Session;

/// Allows one update at a time, because candidates are judged in parallel and share one ref.
static ORDER: Mutex<()> = Mutex::new(());

/// When this is dropped, deletes the ref that keeps a run's commits. By then, the record of the
/// verdict keeps the commits that are still needed.
pub struct KeptCommits<'a> {
    /// The session of the repository.
    pub session: &'a Session,
    /// The run whose commits are kept.
    pub run: &'a Run,
}

impl Drop for KeptCommits<'_> {
    fn drop(&mut self) {
        let repo = &self.session.repo;
        let name = refs::judging(&self.run.run, std::process::id());
        // If this fails, a later command deletes the ref, because this process will have ended.
        if let Ok(Some(old)) = repo.read_ref(&name) {
            let _ = repo.update_ref(&name, None, Some(&old), "judging ended");
        }
    }
}

/// Keeps a tree that was just written, if another git process may be deleting unreachable objects
/// right now. If none does, the caller can keep the tree later, together with others.
pub fn keep_beside_housekeeping(session: &Session, run: &Run, tree: &Oid) -> Result<()> {
    if session.repo.is_beside_housekeeping() {
        keep_tree(session, run, tree)?;
    }
    Ok(())
}

/// Commits a tree on the run's base, and keeps the new commit. Returns the commit.
pub fn keep_tree(session: &Session, run: &Run, tree: &Oid) -> Result<Oid> {
    let commit = neutral_commit(&session.repo, tree, &run.base)?;
    keep(session, run, &[commit], &run.base)?;
    Ok(commit)
}

/// Makes this process's ref for a run reach `commits`, in addition to the commits that the ref
/// reaches already.
///
/// Fails if an object that one of the commits needs no longer exists. Objects that `base` reaches
/// are not checked, because other refs keep them.
pub fn keep(session: &Session, run: &Run, commits: &[Oid], base: &Oid) -> Result<()> {
    let repo = &session.repo;
    let _order = ORDER.lock();
    let name = refs::judging(&run.run, std::process::id());
    let old = repo.read_ref(&name)?;
    let kept = old.as_ref().map(|old| repo.commit(old)).transpose()?;
    let kept = kept.map(|kept| kept.parents).unwrap_or_default();
    let new: BTreeSet<&Oid> = commits.iter().filter(|commit| !kept.contains(commit)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let tree = repo.commit(base)?.tree;
    let commit = commit_tree(repo, &tree, kept.iter().chain(new), "frites: judged commits")?;
    let known: Vec<&Oid> = [base].into_iter().chain(&old).collect();
    repo.set_ref_whole(&name, &commit, old.as_ref(), &known, "judge")
}
