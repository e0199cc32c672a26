//! Records a landing or its undo: sets the landing's ref, updates the candidate's record, and
//! writes the event.
use jiff::Timestamp;

use crate::error::Result;
use crate::git::landing::intent::Intent;
use crate::git::refs;
use crate::model::candidate::Landing;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::store::Store;
use crate::store::events::{BranchMove, Event, MoveDetails};

/// Records that a landing or its undo is done. `commit` is the new tip of the branch; `None` if the
/// change is only staged, or if the branch was deleted. The caller holds the landing lock.
pub fn record(
    store: &Store,
    intent: &Intent,
    commit: Option<Oid>,
    details: MoveDetails,
) -> Result<()> {
    let Intent { iteration, to, verified, .. } = *intent;
    let landing = intent.landing();
    let candidate = intent.candidate.clone();
    let branch = intent.branch.short().to_owned();
    let from = intent.from.commit;
    let moved = commit.map(|commit| BranchMove { iteration, from, commit, verified, details });
    let event = match (landing, moved) {
        (Landing::Undone, moved) => Event::Undone { candidate, branch, moved },
        (Landing::Merged, Some(moved)) => Event::Merged { candidate, branch, moved },
        _ => {
            store.save_landed(intent)?;
            Event::Landed { candidate, iteration, branch, tree: to, commit, verified }
        }
    };
    let state = LandedState { landing, branch: intent.branch.clone(), commit };
    record_state(store, &intent.run, &intent.candidate, &state, &event)
}

/// Records that a landing has left conflicts, which a person is to resolve. The caller holds the
/// landing lock.
pub fn record_conflicts(store: &Store, intent: &Intent) -> Result<()> {
    // `apply --undo` reads this intent to restore the checkout.
    store.save_landed(intent)?;
    let event = Event::Conflicts {
        candidate: intent.candidate.clone(),
        iteration: intent.iteration,
        branch: intent.branch.short().to_owned(),
    };
    store.record_event(&intent.run, &event)
}

/// Records a candidate's state after a landing or its undo, and then the event. The caller holds
/// the landing lock.
pub(super) fn record_state(
    store: &Store,
    run: &Name,
    name: &Name,
    state: &LandedState,
    event: &Event,
) -> Result<()> {
    store.forget_conflicts(run, name)?;
    // The landing's ref has usually moved together with the branch, in one transaction. But git
    // writes the refs one after the other, and may be killed in between. So the ref is set again
    // here.
    save_state(store, run, name, state)?;
    store.record_event(run, event)
}

/// A candidate's state after its landing or the undo of its landing.
pub(super) struct LandedState {
    pub landing: Landing,
    pub branch: RefName,
    /// The tip of the branch; `None` if the change is only staged, or if the branch was deleted.
    pub commit: Option<Oid>,
}

/// Sets the ref of a candidate's landing, and updates the candidate's record.
pub(super) fn save_state(
    store: &Store,
    run: &Name,
    name: &Name,
    state: &LandedState,
) -> Result<()> {
    let LandedState { landing, branch, commit } = state;
    let mark = refs::landing(run, name);
    let marked = store.repo().read_ref(&mark)?;
    if marked != *commit {
        store.repo().update_ref(&mark, commit.as_ref(), marked.as_ref(), "apply")?;
    }
    store.repo().sync_refs(&[branch, &mark])?;
    let Some(run) = store.run(run)? else { return Ok(()) };
    if commit.is_none() {
        store.note_state(&run, name, *landing, Some(branch))?;
    }
    store.candidate(&run, name).update(|candidate| {
        candidate.landing = *landing;
        candidate.landing_commit = *commit;
        candidate.landing_branch = Some(branch.clone());
        candidate.landing_time = Some(Timestamp::now());
    })?;
    Ok(())
}
