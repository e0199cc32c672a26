//! Records landings that a person finishes after `apply --conflicts`. The person resolves the
//! conflicts on the fresh branch and commits the result. The person may also merge the fresh branch
//! into another one.
use std::iter;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::git::commit::commit_to_ref;
use crate::git::landing::intent::Intent;
use crate::git::reflog;
use crate::git::repo::Repo;
use crate::git::{refs, worktree};
use crate::model::candidate::{Candidate, Landing};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::ops::land::record::{LandedState, save_state};
use crate::store::Store;
use crate::store::candidate::CandidateRef;
use crate::store::events::{BranchMove, Event, MoveDetails};
use crate::store::landed::LeftConflicts;

/// Records a landing for each candidate whose conflicts a person has resolved and committed since
/// the last call. `names` are the refs under `refs/frites/`. Does nothing while another process
/// lands. Returns a message for each candidate that cannot be examined.
pub fn detect(store: &Store, names: &[RefName]) -> Result<Vec<String>> {
    let mut messages = Vec::new();
    let left: Vec<(Name, Name)> = names.iter().filter_map(|n| refs::conflicts_of(n)).collect();
    if left.is_empty() {
        return Ok(messages);
    }
    let Some(_lock) = store.try_lock_landing()? else { return Ok(messages) };
    for (run, candidate) in left {
        let detected = store.run(&run).and_then(|found| match &found {
            Some(run) => detect_one(store, store.candidate(run, &candidate)),
            None => Ok(()),
        });
        // A damaged run must not make commands on other runs fail.
        if let Err(error) = detected {
            messages.push(format!("the landing of {run}/{candidate} cannot be looked at: {error}"));
        }
    }
    Ok(messages)
}

fn detect_one(store: &Store, candidate: CandidateRef<'_>) -> Result<()> {
    let repo = store.repo();
    let run = &candidate.run.run;
    let name = candidate.name;
    let Some(left) = store.left_conflicts(run, name)? else { return Ok(()) };
    let record = candidate.record()?;
    if record.landing == Landing::Merged && by_hand(repo, &record)? {
        return Ok(());
    }
    let branch = &left.branch;
    let commit = match resolution(repo, &left, &record)? {
        Resolution::Committed(commit) => commit,
        Resolution::Open => return Ok(()),
        Resolution::GivenUp => return store.forget_conflicts(run, name),
    };
    let merged = other_branch(repo, &commit, branch)?;
    let landing = if merged.is_some() { Landing::Merged } else { Landing::Landed };
    let place = merged.as_ref().unwrap_or(branch);
    let is_same = record.landing == landing && record.landing_commit == Some(commit);
    if is_same && record.landing_branch.as_ref() == Some(place) {
        return Ok(());
    }
    if let Some(intent) = store.landed(&record).filter(|it| it.from.commit == left.from) {
        let branch = branch.clone();
        let to = repo.commit(&commit)?.tree;
        store.save_landed(&Intent { branch, to, commit: true, ..intent })?;
    }
    let state = LandedState { landing, branch: place.clone(), commit: Some(commit) };
    save_state(store, run, name, &state)?;
    if is_same {
        return Ok(());
    }
    let candidate = name.clone();
    let branch = place.short().to_owned();
    let LeftConflicts { iteration, from, .. } = left;
    let event = if landing == Landing::Merged {
        let choices = Some(Value::Array(Vec::new()));
        let details = MoveDetails { choices, ..MoveDetails::default() };
        let moved = BranchMove { iteration, from, commit, verified: false, details };
        Event::Merged { candidate, branch, moved }
    } else {
        let tree = repo.commit(&commit)?.tree;
        let commit = Some(commit);
        Event::Landed { candidate, iteration, branch, tree, commit, verified: false }
    };
    store.record_event(run, &event)
}

/// True if a person's commit landed a merged candidate. Such a commit has one parent; a merge by
/// git-frites has two.
fn by_hand(repo: &Repo, landed: &Candidate) -> Result<bool> {
    let Some(commit) = &landed.landing_commit else { return Ok(false) };
    Ok(repo.commit(commit)?.parents.len() == 1)
}

/// Whether a person has resolved the conflicts.
enum Resolution {
    /// No resolution is committed yet.
    Open,
    /// The commit that resolves the conflicts.
    Committed(Oid),
    /// The fresh branch was deleted, and no other branch has a commit that was made on it.
    GivenUp,
}

fn resolution(repo: &Repo, left: &LeftConflicts, record: &Candidate) -> Result<Resolution> {
    let LeftConflicts { branch, from, .. } = left;
    if repo.read_ref(branch)?.is_some() {
        let made = made_on_branch(repo, branch, from)?;
        return Ok(made.map_or(Resolution::Open, Resolution::Committed));
    }
    // The fresh branch was deleted, perhaps after it was merged. The reflogs of HEAD in all
    // checkouts still list the commits that were made on it.
    let admins = worktree::entries(repo)?;
    for git_dir in iter::once(repo.common_dir()).chain(admins.iter().map(|admin| admin.as_path())) {
        let log = reflog::read(git_dir, &RefName::new("HEAD"));
        for commit in reflog::made_on(&log, branch, from).into_iter().rev() {
            let is_first = repo.is_commit(&commit) && repo.commit(&commit)?.parents == [*from];
            if is_first && other_branch(repo, &commit, branch)?.is_some() {
                return Ok(Resolution::Committed(commit));
            }
        }
    }
    match record.landing_commit {
        Some(commit) if record.landing == Landing::Landed => Ok(Resolution::Committed(commit)),
        _ => Ok(Resolution::GivenUp),
    }
}

/// The first commit that was made on the branch itself after `from`, not merged into it.
fn made_on_branch(repo: &Repo, branch: &RefName, from: &Oid) -> Result<Option<Oid>> {
    let log = reflog::read(repo.common_dir(), branch);
    let made: Vec<Oid> = log.iter().filter(|entry| entry.is_commit()).map(|e| e.new).collect();
    if made.is_empty() {
        return Ok(None);
    }
    let call = repo.git().call("rev-list").args(["--first-parent", "--reverse"]);
    let list = call.args([branch.as_str(), &format!("^{from}")]).bytes()?;
    let list = String::from_utf8_lossy(&list);
    Ok(list.lines().filter_map(Oid::parse).find(|commit| made.contains(commit)))
}

/// A branch of the user, other than `made_on`, that reaches a commit. Prefers the current branch.
fn other_branch(repo: &Repo, commit: &Oid, made_on: &RefName) -> Result<Option<RefName>> {
    let mut branches = repo.refs_that_contain(commit, "refs/heads/")?;
    branches.retain(|name| name != made_on && !name.starts_with(refs::ATTEMPT_BRANCHES));
    let current = repo.head_branch().filter(|branch| branches.contains(branch));
    Ok(current.or_else(|| branches.into_iter().next()))
}

/// The error of an undo that is not possible yet, because the landing's conflicts are not resolved.
pub(super) fn unresolved(run: &Run, name: &Name, branch: &RefName) -> Error {
    let short = branch.short();
    Error::no(format!("the conflicts of {run}/{name} on '{short}' are not committed yet"))
        .hint("resolve them there, then `git add` and `git commit`")
        .hint(format!("or give up: `git checkout -f -` and `git branch -D {short}`"))
}

/// Keeps a person's resolution of conflicts under a ref, before the fresh branch is deleted. `tip`
/// is the tip of this branch. Fails if `tip` does not follow directly on `from`, because then the
/// resolution was rebased.
pub(super) fn keep_resolution(repo: &Repo, run: &Run, from: &Oid, tip: &Oid) -> Result<()> {
    let resolution = repo.commit(tip)?;
    if resolution.parents != [*from] {
        return Err(Error::no("the commit that resolves the conflicts was rebased")
            .hint("delete its branch yourself: `git branch -D`"));
    }
    let keep = refs::withdrawn(&run.run);
    commit_to_ref(repo, &keep, &resolution.tree, &[tip], "frites: withdrawn", "apply withdrawn")
}
