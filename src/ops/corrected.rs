//! Corrected attempts: attempts that failed, and whose files a person has changed since.
//!
//! A failed attempt is not judged. A person can correct its files and then capture it by name (`git
//! frites capture c2`). Its state then becomes `open`, so the next judging includes it.
use crate::error::Result;
use crate::model::candidate::{CommandEnd, State};
use crate::model::oid::Oid;
use crate::ops::capture::Captured;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;
use crate::ui::Ui;

/// True if an attempt failed, and its newest capture has other files than the capture at its end.
pub fn is_corrected(candidate: CandidateRef<'_>, state: State, tree: Option<&Oid>) -> Result<bool> {
    let ended_badly =
        matches!(state, State::Failed | State::TimedOut | State::Cancelled | State::Limited);
    let (Some(tree), true) = (tree, ended_badly) else { return Ok(false) };
    Ok(match candidate.logs().round() {
        // It is not known which files the attempt had when its command ended.
        None => false,
        // Nothing was captured at the end, so the attempt had changed nothing.
        Some(0) => true,
        Some(iteration) => candidate.iteration(iteration)?.tree != *tree,
    })
}

/// Changes the state of a corrected attempt to `open`, and captures it again. Returns the new
/// capture; `None` if the attempt is not corrected, or if `captured` has a problem.
pub fn open(
    session: &Session,
    candidate: CandidateRef<'_>,
    captured: &Captured,
) -> Result<Option<Captured>> {
    let tree = captured.capture.as_ref().map(|capture| &capture.tree);
    let state = captured.candidate.state;
    if captured.problem.is_some() || !is_corrected(candidate, state, tree)? {
        return Ok(None);
    }
    candidate.update(|record| {
        record.state = State::Open;
        record.end = CommandEnd::default();
        record.reason = None;
    })?;
    // This capture stores the new state for other clones, which see only captures.
    session.capture(candidate).map(Some)
}

/// The hint that tells how to have a corrected attempt judged.
pub fn hint(candidate: CandidateRef<'_>) -> String {
    format!(
        "{candidate} has changed since its command ended: after `git frites capture {candidate}`, `{}` judges it",
        candidate.judge_command()
    )
}

/// The hint that tells how a failed attempt can be judged if its files are right. For example, a
/// program may exit non-zero because it could not fix everything.
pub fn acceptance_hint(address: &str) -> String {
    format!("if its files are right as they are, `git frites retry {address} -- true` accepts them")
}

/// Prints [`hint`] if the attempt is corrected. Reads only records, not the worktree.
pub fn tell(ui: &Ui, candidate: CandidateRef<'_>) -> Result<()> {
    let newest = candidate.latest()?.map(|capture| capture.tree);
    if is_corrected(candidate, candidate.record()?.state, newest.as_ref())? {
        ui.hint(hint(candidate));
    }
    Ok(())
}
