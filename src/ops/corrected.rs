//! Attempts that did not end well, and whose files a person has changed since.
//!
//! Such an attempt is not judged, because its author said that it failed. Somebody who changes its files
//! has another opinion, and says so by capturing it by name: it is open then, and judged.
use crate::error::Result;
use crate::model::candidate::State;
use crate::model::oid::Oid;
use crate::ops::capture::Captured;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;
use crate::ui::Ui;

/// True if an attempt did not end well, and its newest capture has other files than the one with which
/// it ended.
pub fn is_corrected(candidate: CandidateRef<'_>, state: State, tree: Option<&Oid>) -> Result<bool> {
    let ended_badly =
        matches!(state, State::Failed | State::TimedOut | State::Cancelled | State::Limited);
    let (Some(tree), true) = (tree, ended_badly) else { return Ok(false) };
    Ok(match candidate.logs()?.round() {
        // Nobody knows with which files it ended.
        None => false,
        // Nothing was captured then, so it had changed nothing.
        Some(0) => true,
        Some(iteration) => candidate.iteration(iteration)?.tree != *tree,
    })
}

/// Makes a corrected attempt one that a person works on; `None` if it is not corrected.
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
        (record.exit_code, record.signal) = (None, None);
        (record.reason, record.resets) = (None, None);
        record.fault = None;
    })?;
    // The capture tells other clones.
    session.capture(candidate).map(Some)
}

/// The hint about an attempt that is corrected but not open yet.
pub fn hint(candidate: CandidateRef<'_>) -> String {
    format!(
        "{candidate} has changed since its command ended: after `git frites capture {candidate}` the next `git frites judge` judges it"
    )
}

/// Gives that hint if it fits, by the records alone.
pub fn tell(ui: &Ui, candidate: CandidateRef<'_>) -> Result<()> {
    let newest = candidate.latest()?.map(|capture| capture.tree);
    if is_corrected(candidate, candidate.record()?.state, newest.as_ref())? {
        ui.hint(hint(candidate));
    }
    Ok(())
}
