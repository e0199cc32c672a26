//! `apply --undo`: undoes a merge by a commit that reverts it, and a landing on a fresh branch by
//! deleting the branch.
use crate::error::{Error, Result};
use crate::model::candidate::{Candidate, Landing};
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::ops::land::by_hand::unresolved;
use crate::ops::land::undo_branch::delete_branch;
use crate::ops::land::undo_merge::revert;
use crate::ops::session::Session;
use crate::process::interrupt;
use crate::store::select::Selection;

pub struct UndoneLanding {
    /// The candidate that had landed.
    pub candidate: Candidate,
    /// The branch that the candidate had landed on.
    pub branch: RefName,
    /// The commit that reverts the merge; `None` if the branch was deleted.
    pub commit: Option<Oid>,
    /// The addresses of candidates that landed on the branch later, newest first.
    pub later: Vec<String>,
}

/// Undoes the selected landing. Waits for other landings to end.
pub fn undo(session: &Session, selection: &Selection) -> Result<UndoneLanding> {
    let _landing = session.store.lock_landing()?;
    interrupt::listen();
    let candidate = landed(session, selection)?;
    if candidate.landing == Landing::Merged {
        let (branch, commit, later) = revert(session, &selection.run, &candidate)?;
        return Ok(UndoneLanding { candidate, branch, commit: Some(commit), later });
    }
    let branch = delete_branch(session, &selection.run, &candidate)?;
    Ok(UndoneLanding { candidate, branch, commit: None, later: Vec::new() })
}

/// The candidate that the user named, or else the only candidate of the run that has landed.
fn landed(session: &Session, selection: &Selection) -> Result<Candidate> {
    let Selection { run, candidate: named, .. } = selection;
    let names = named.as_ref().map_or(run.candidates.as_slice(), std::slice::from_ref);
    let mut candidates = Vec::new();
    for name in names {
        candidates.push(session.store.candidate(run, name).record()?);
    }
    let mut standing: Vec<&Candidate> = candidates.iter().collect();
    standing.retain(|candidate| has_landed(candidate));
    match standing.as_slice() {
        [] => {}
        [one] => return Ok((*one).clone()),
        [first, ..] => {
            let names: Vec<String> = standing.iter().map(|candidate| candidate.address()).collect();
            return Err(Error::usage(format!(
                "several candidates of run {run} landed: {}",
                names.join(", ")
            ))
            .hint(format!("name one: `git frites apply --undo {}`", first.address())));
        }
    }
    for name in names {
        if let Some(left) = session.store.left_conflicts(&run.run, name)? {
            return Err(unresolved(run, name, &left.branch));
        }
    }
    let what = match named {
        Some(name) => format!("{run}/{name}"),
        None => format!("run {run}"),
    };
    let is_undone = candidates.iter().any(|candidate| candidate.landing == Landing::Undone);
    let why = if is_undone { "was undone already" } else { "has not landed" };
    let error = Error::no(format!("{what} {why}"));
    if is_undone {
        return Err(error.hint(format!(
            "to undo an earlier merge: `git revert -m 1 COMMIT`; `git log --merges --grep 'Frites-Run: {run}/'` \
             lists such commits"
        )));
    }
    Err(match last_landed(session)? {
        Some(other) => error.hint(format!("{other} landed: `git frites apply --undo {other}`")),
        None => error.hint("`git frites status` shows what landed"),
    })
}

/// The address of a candidate whose landing is in effect, from the newest run that has one.
fn last_landed(session: &Session) -> Result<Option<String>> {
    for run in session.store.runs()?.iter().rev() {
        for candidate in session.store.candidates(run) {
            let record = candidate.record()?;
            if has_landed(&record) {
                return Ok(Some(record.address()));
            }
        }
    }
    Ok(None)
}

fn has_landed(candidate: &Candidate) -> bool {
    matches!(candidate.landing, Landing::Landed | Landing::Merged)
}
