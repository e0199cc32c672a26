//! Records of landings: the ref, the candidate's record and the event of each.
use jiff::Timestamp;

use crate::error::Result;
use crate::git::refs;
use crate::model::candidate::{Candidate, Landing};
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::store::Store;
use crate::store::events::{BranchMove, Event, MoveDetails};
use crate::store::intents::{LandingIntent, MoveIntent};

/// Records that a landing on a fresh branch is complete. The caller holds the landing lock.
pub fn record_landing(store: &Store, landing: &LandingIntent, commit: Option<&Oid>) -> Result<()> {
    let mark = refs::landing(&landing.run, &landing.candidate);
    let marked = store.repo().read_ref(&mark)?;
    if marked.as_ref() != commit {
        store.repo().update_ref(&mark, commit, marked.as_ref(), "apply")?;
    }
    store.save_landed(landing)?;
    if let Some(run) = store.run(&landing.run)? {
        let _lock = store.lock_candidate(&run.run, &landing.candidate)?;
        let mut candidate = store.candidate(&run, &landing.candidate).record()?;
        candidate.landing = Landing::Landed;
        candidate.landing_commit = commit.copied();
        candidate.landing_branch = Some(landing.branch.clone());
        candidate.landing_time = Some(Timestamp::now());
        store.save_candidate(&candidate)?;
    }
    let event = Event::Landed {
        candidate: landing.candidate.clone(),
        iteration: landing.iteration,
        branch: landing.branch.short().to_owned(),
        tree: landing.tree,
        commit: commit.copied(),
        verified: landing.verified,
    };
    store.record_event(&landing.run, &event)
}

/// Records that a fresh branch was taken back. The caller holds the landing lock.
pub fn record_rollback(store: &Store, landed: &Candidate, branch: &RefName) -> Result<()> {
    let mark = refs::landing(&landed.run, &landed.candidate);
    if let Some(marked) = store.repo().read_ref(&mark)? {
        store.repo().update_ref(&mark, None, Some(&marked), "undo")?;
    }
    let _lock = store.lock_candidate(&landed.run, &landed.candidate)?;
    store.save_candidate(&Candidate {
        landing: Landing::Undone,
        landing_commit: None,
        landing_time: Some(Timestamp::now()),
        ..landed.clone()
    })?;
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
    if let Some(run) = store.run(&moved.run)? {
        let _lock = store.lock_candidate(&run.run, &moved.candidate)?;
        // Both refs move together; but git writes one after the other, and a kill may fall between.
        let mark = refs::landing(&moved.run, &moved.candidate);
        let marked = store.repo().read_ref(&mark)?;
        if marked.as_ref() != Some(&moved.new) {
            store.repo().update_ref(&mark, Some(&moved.new), marked.as_ref(), "apply")?;
        }
        let mut candidate = store.candidate(&run, &moved.candidate).record()?;
        candidate.landing = moved.landing;
        candidate.landing_commit = Some(moved.new);
        candidate.landing_branch = Some(moved.target.clone());
        candidate.landing_time = Some(Timestamp::now());
        store.save_candidate(&candidate)?;
    }
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
