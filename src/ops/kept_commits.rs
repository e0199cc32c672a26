//! Judged commits are kept by a ref while they are judged: no other ref reaches one yet, so that
//! `git repack -ad` or `git gc --prune=now` beside the judging would delete it.
use std::collections::BTreeSet;

use parking_lot::Mutex;

use crate::error::Result;
use crate::git::commit::{commit_tree, neutral_commit};
use crate::git::refs;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::ops::session::Session;

/// Candidates are judged in parallel, and all move one ref.
static ORDER: Mutex<()> = Mutex::new(());

/// Lets the kept commits of a run go when it is dropped. The record of the verdict keeps those that
/// are still needed then.
pub struct KeptCommits<'a> {
    session: &'a Session,
    run: &'a Run,
}

impl<'a> KeptCommits<'a> {
    /// For all commits of a run that this process keeps from now on.
    pub fn new(session: &'a Session, run: &'a Run) -> KeptCommits<'a> {
        KeptCommits { session, run }
    }
}

impl Drop for KeptCommits<'_> {
    fn drop(&mut self) {
        let repo = &self.session.repo;
        let name = refs::judging(&self.run.run, std::process::id());
        // If this fails, a later command finds the ref of a process that has ended.
        if let Ok(Some(old)) = repo.read_ref(&name) {
            let _ = repo.update_ref(&name, None, Some(&old), "judging ended");
        }
    }
}

/// Keeps a tree that was just made, if another git may be deleting objects now. Otherwise there is
/// time to keep it together with others.
pub fn keep_beside_housekeeping(session: &Session, run: &Run, tree: &Oid) -> Result<()> {
    if session.repo.is_beside_housekeeping() {
        keep_tree(session, run, tree)?;
    }
    Ok(())
}

/// Keeps a commit of a tree on the run's base; gives the commit.
pub fn keep_tree(session: &Session, run: &Run, tree: &Oid) -> Result<Oid> {
    let commit = neutral_commit(&session.repo, tree, &run.base)?;
    keep(session, run, &[commit], &run.base)?;
    Ok(commit)
}

/// Lets this process's ref for a run reach these commits, too. Objects that `base` reaches are kept
/// by other refs.
///
/// Fails if an object of a commit is gone.
pub fn keep(session: &Session, run: &Run, commits: &[Oid], base: &Oid) -> Result<()> {
    let repo = &session.repo;
    let _order = ORDER.lock();
    let name = refs::judging(&run.run, std::process::id());
    let old = repo.read_ref(&name)?;
    let kept = match &old {
        Some(old) => repo.commit(old)?.parents,
        None => Vec::new(),
    };
    let new: BTreeSet<&Oid> = commits.iter().filter(|commit| !kept.contains(commit)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let tree = repo.commit(base)?.tree;
    let commit = commit_tree(repo, &tree, kept.iter().chain(new), "frites: judged commits")?;
    repo.set_ref_whole(&name, &commit, old.as_ref(), &[base], "judge")
}
