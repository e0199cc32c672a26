//! Makes one attempt of a run that is stored in another repository. The worktree is made in this
//! repository, and the capture is pushed to the other one.
use crate::error::{Error, Result};
use crate::integrity::trust;
use crate::model::candidate::State;
use crate::model::name::Name;
use crate::ops::capture::Captured;
use crate::ops::clean;
use crate::ops::session::Session;
use crate::ops::shard::captures::{has_ended, recorded_state};
use crate::ops::shard::exchange::Exchange;
use crate::ops::spawn::attempts::{AttemptOptions, Attempts};
use crate::ops::spawn::command::CandidateCommand;
use crate::ops::spawn::limits;
use crate::ops::spawn::resume::start_again;
use crate::store::candidate::CandidateRef;

/// A finished attempt whose capture is stored in the other repository.
pub struct StoredAttempt {
    /// How the attempt ended.
    pub state: State,
    /// True if the capture had been stored in the other repository before, so that no command ran
    /// now.
    pub before: bool,
}

/// Runs the command of one candidate, and stores the finished attempt at `place`. Does not run the
/// command if `place` already has a finished attempt of this candidate.
///
/// If this repository has a finished attempt that could not be pushed before, pushes that attempt
/// instead. Fails if the remote refuses the attempt, if the command cannot start here, or if the
/// command was interrupted. Even then, the work of an interrupted attempt is stored.
pub fn run_attempt(
    session: &Session,
    place: &str,
    run: &Name,
    name: &Name,
    options: &AttemptOptions,
) -> Result<StoredAttempt> {
    let store = &session.store;
    limits::require_depth(session)?;
    if !session.is_mirror() {
        trust::require_trust(session.integrity(), None)?;
    }
    let exchange = Exchange::new(session, place, run);
    exchange.fetch_attempt(name)?;
    let run = exchange.take_run()?;
    if !run.candidates.contains(name) {
        let all: Vec<&str> = run.candidates.iter().map(Name::as_str).collect();
        return Err(Error::fatal(format!("run {run} has no candidate '{name}'"))
            .hint(format!("its candidates: {}", all.join(", "))));
    }
    let _lock = store.lock_run(&run.run)?;
    let candidate = store.candidate(&run, name);
    if let Some(state) = unstored_end(session, candidate)? {
        exchange.share_capture(candidate)?;
        return finish(session, candidate, state, options);
    }
    if let Some(state) = stored_end(session, &exchange, candidate)? {
        return Ok(StoredAttempt { state, before: true });
    }
    let command = CandidateCommand::recorded(&session.repo, candidate)?.ok_or_else(|| {
        Error::fatal(format!("{candidate} has no command")).hint(
            "people work there; `git frites shard open --attempts` makes runs for other machines",
        )
    })?;
    command.require_exact()?;
    command.require_program()?;
    // The worktree stays until the capture is stored: its removal is the mark of a stored attempt.
    let until_stored = AttemptOptions { keep: true, ..options.clone() };
    let attempts = Attempts { session, run: &run, options: &until_stored, beside: &() };
    let report = start_again(&attempts, &[(name.clone(), command)])?;
    let captured = report.results.first();
    let captured = captured.ok_or_else(|| Error::internal("an attempt has no result"))?;
    require_attempt(candidate, captured)?;
    let state = captured.candidate.state;
    if captured.capture.is_none() && has_ended(state) {
        session.store_unchanged(candidate)?;
    }
    exchange.share_capture(candidate)?;
    if !has_ended(state) {
        return Err(Error::fatal(format!("{candidate}: {}", captured.candidate.state_in_words()))
            .hint("its work so far is stored; the same command starts it again"));
    }
    finish(session, candidate, state, options)
}

/// The state of an attempt that is finished here, but is not stored at the remote; `None` if there
/// is no such attempt.
fn unstored_end(session: &Session, candidate: CandidateRef<'_>) -> Result<Option<State>> {
    let Some(latest) = candidate.latest()? else { return Ok(None) };
    let state = recorded_state(&session.repo, &latest.commit)?;
    // An attempt's worktree is cleaned once its capture is stored at the remote.
    Ok((has_ended(state) && !candidate.record()?.cleaned).then_some(state))
}

/// The state of an attempt that is finished at the remote; `None` if there is none. Also combines
/// the captures of this repository with those of the remote.
fn stored_end(
    session: &Session,
    exchange: &Exchange<'_>,
    candidate: CandidateRef<'_>,
) -> Result<Option<State>> {
    let Some((theirs, state)) = exchange.capture_there(candidate.name)? else { return Ok(None) };
    let is_there = match candidate.latest()? {
        Some(ours) => session.repo.is_ancestor(&ours.commit, &theirs)?,
        None => true,
    };
    match (has_ended(state), is_there) {
        (true, true) => {}
        (true, false) => exchange.share_capture(candidate)?,
        (false, true) => exchange.take(&candidate.capture_ref())?,
        // Both captures, the one here and the one at the remote, come from interrupted attempts.
        // The next capture will follow the one here, and `share_capture` will join it with the
        // remote's.
        (false, false) => {}
    }
    Ok(has_ended(state).then_some(state))
}

/// Fails if the attempt failed because of this machine. Such a failure says nothing about the
/// candidate, so the attempt must not be stored.
fn require_attempt(candidate: CandidateRef<'_>, captured: &Captured) -> Result<()> {
    let record = &captured.candidate;
    let not_stored = |what: String| {
        Err(Error::fatal(format!("{candidate}: {what}"))
            .hint("nothing was stored: start it on another machine, or on this one again"))
    };
    if let Some(problem) = &captured.problem {
        return not_stored(problem.clone());
    }
    let has_code = record.end.exit_code.is_some_and(|code| code != 126 && code != 127);
    let could_not_start = record.state == State::Failed
        && captured.changes.is_empty()
        && record.end.signal.is_none()
        && !has_code;
    if record.started.is_none() || could_not_start {
        return not_stored(record.state_in_words());
    }
    Ok(())
}

/// Removes the worktree of a stored attempt, unless `options` keep it.
fn finish(
    session: &Session,
    candidate: CandidateRef<'_>,
    state: State,
    options: &AttemptOptions,
) -> Result<StoredAttempt> {
    if !options.keep
        && let Err(error) = clean::remove(session, candidate)
    {
        session.ui.warn(format!("{candidate}: its worktree stays: {error}"));
    }
    Ok(StoredAttempt { state, before: false })
}
