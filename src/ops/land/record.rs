//! Records of landings: the ref, the candidate's record and the event of each.
use jiff::Timestamp;

use crate::error::Result;
use crate::git::refs;
use crate::model::candidate::{Candidate, Landing};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::store::Store;
use crate::store::events::{BranchMove, Event, MoveDetails};
use crate::store::intents::{LandingIntent, MoveIntent};

/// Records that a landing on a fresh branch is complete. The caller holds the landing lock.
pub fn record_landing(store: &Store, landing: &LandingIntent, commit: Option<&Oid>) -> Result<()> {
    let LandingIntent { run, candidate, iteration, branch, tree, verified, .. } = landing;
    store.forget_conflicts(run, candidate)?;
    store.save_landed(landing)?;
    save_state(store, run, candidate, Landing::Landed, branch, commit)?;
    let event = Event::Landed {
        candidate: candidate.clone(),
        iteration: *iteration,
        branch: branch.short().to_owned(),
        tree: *tree,
        commit: commit.copied(),
        verified: *verified,
    };
    store.record_event(run, &event)
}

/// Sets the ref of a candidate's landing and its record: it landed on `branch` with `commit`, or
/// that was undone.
pub(super) fn save_state(
    store: &Store,
    run: &Name,
    name: &Name,
    landing: Landing,
    branch: &RefName,
    commit: Option<&Oid>,
) -> Result<()> {
    let mark = refs::landing(run, name);
    let marked = store.repo().read_ref(&mark)?;
    if marked.as_ref() != commit {
        store.repo().update_ref(&mark, commit, marked.as_ref(), "apply")?;
    }
    store.repo().sync_refs(&[branch, &mark])?;
    let Some(run) = store.run(run)? else { return Ok(()) };
    if commit.is_none() {
        store.note_state(&run, name, landing, Some(branch))?;
    }
    store.candidate(&run, name).update(|candidate| {
        candidate.landing = landing;
        candidate.landing_commit = commit.copied();
        candidate.landing_branch = Some(branch.clone());
        candidate.landing_time = Some(Timestamp::now());
    })?;
    Ok(())
}

/// Records that a fresh branch was taken back. The caller holds the landing lock.
pub fn record_rollback(store: &Store, landed: &Candidate, branch: &RefName) -> Result<()> {
    store.forget_conflicts(&landed.run, &landed.candidate)?;
    save_state(store, &landed.run, &landed.candidate, Landing::Undone, branch, None)?;
    let event = Event::Undone {
        candidate: landed.candidate.clone(),
        branch: branch.short().to_owned(),
        moved: None,
    };
    store.record_event(&landed.run, &event)
}

/// Records that a branch has moved, by a merge or the undo of one. The caller
/// holds the landing lock.
pub fn record_move(store: &Store, moved: &MoveIntent, details: MoveDetails) -> Result<()> {
    store.forget_conflicts(&moved.run, &moved.candidate)?;
    // Both refs move together; but git writes one after the other, and a kill may fall between.
    let MoveIntent { run, candidate, landing, target, new, .. } = moved;
    save_state(store, run, candidate, *landing, target, Some(new))?;
    let candidate = moved.candidate.clone();
    let branch = moved.target.short().to_owned();
    let branch_move = BranchMove {
        iteration: moved.iteration,
        from: moved.old,
        commit: moved.new,
        verified: moved.verified,
        details,
    };
    let event = match moved.landing {
        Landing::Undone => Event::Undone { candidate, branch, moved: Some(branch_move) },
        _ => Event::Merged { candidate, branch, moved: branch_move },
    };
    store.record_event(&moved.run, &event)
}
