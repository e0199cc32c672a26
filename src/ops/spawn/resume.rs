//! Resumes a run: the interrupted commands run again from the base.
use crate::error::{Cause, Result};
use crate::integrity::trust;
use crate::model::candidate::{Candidate, CommandEnd, State};
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::guard;
use crate::ops::session::Session;
use crate::ops::spawn::attempts::{AttemptReport, Attempts};
use crate::ops::spawn::command::CandidateCommand;
use crate::ops::spawn::limits;
use crate::ops::spawn::prepare::Preparation;
use crate::ops::spawn::put_back::put_back;
use crate::ops::{clean, spawn};
use crate::store::candidate::CandidateRef;
use crate::store::events::Event;
use crate::store::intents::Phase;

/// True if `run --resume` goes on with a candidate that has a command.
fn is_unfinished(record: &Candidate) -> bool {
    matches!(record.state, State::Cancelled | State::Limited) && !record.is_stopped()
}

/// The commands that [`resume`] would start now.
pub fn to_start(
    session: &Session,
    run: &Run,
    commands: &[(Name, CandidateCommand)],
) -> Result<Vec<(Name, CandidateCommand)>> {
    let mut pending = Vec::new();
    for (name, command) in commands {
        let record = session.store.candidate(run, name).record()?;
        if is_unfinished(&record) && !record.again {
            pending.push((name.clone(), command.clone()));
        }
    }
    Ok(pending)
}

/// Runs again the commands of candidates that are `cancelled` or `limited`. A `cancelled` command
/// was ended by a signal, or git-frites was killed. The agent of a `limited` command could not go
/// on.
///
/// Each of these candidates gets a fresh worktree, so that the command starts from the base and not
/// from half-finished work. The old worktree is captured first, so its files stay available as an
/// iteration. A later round is not run again, but taken back. `beside` does its work while the
/// commands run. The caller holds the run's lock.
pub fn resume(
    attempts: &Attempts<'_>,
    commands: &[(Name, CandidateCommand)],
) -> Result<AttemptReport> {
    let Attempts { session, run, .. } = *attempts;
    trust::require_trust(session.integrity(), Some(run))?;
    limits::require_depth(session)?;
    let pending = to_start(session, run, commands)?;
    pending.iter().try_for_each(|(_, command)| command.require_program())?;
    for (name, _) in commands {
        let candidate = session.store.candidate(run, name);
        let record = candidate.record()?;
        // A later round (`retry`, `run --rounds`) does not run again in a fresh worktree, which
        // would lack the work of the earlier rounds.
        if is_unfinished(&record) && record.again {
            take_back_round(session, candidate)?;
        }
    }
    if pending.is_empty() {
        return Ok(AttemptReport::default());
    }
    start_again(attempts, &pending)
}

/// Takes back an interrupted later round: restores the files of the candidate's newest capture that
/// can be judged. The changes of the round stay available as an iteration.
fn take_back_round(session: &Session, candidate: CandidateRef<'_>) -> Result<()> {
    let go_on = format!("go on in its worktree with `git frites retry {candidate}`");
    let (Some((capture, state)), true) =
        (candidate.latest_usable()?, candidate.worktree().is_dir())
    else {
        session
            .ui
            .warn(format!("{candidate}: another round of it was interrupted, and is not resumed"));
        session.ui.hint(go_on);
        return Ok(());
    };
    let exit_code = (state == State::Succeeded).then_some(0);
    let end = CommandEnd { exit_code, ..CommandEnd::default() };
    let record = Candidate { state, end, reason: None, ..candidate.record()? };
    let work = session.capture(candidate)?.capture.filter(|work| work.tree != capture.tree);
    if let Err(error) = put_back(session, candidate, &capture.tree, &record) {
        session.ui.warn(format!(
            "{candidate}: another round of it was interrupted, and is not taken back: {error}"
        ));
        session.ui.hint(go_on);
        return Ok(());
    }
    session.ui.warn(format!(
        "{candidate}: another round of it was interrupted; its files are again those of iteration {}",
        capture.iteration
    ));
    if let Some(work) = work {
        let iteration = work.iteration;
        session.ui.hint(format!("its work is kept: `git frites diff {candidate}@{iteration}`"));
    }
    Ok(())
}

/// Runs these commands in fresh worktrees. The candidates' old worktrees are captured and removed
/// first. The caller holds the run's lock.
pub fn start_again(
    attempts: &Attempts<'_>,
    commands: &[(Name, CandidateCommand)],
) -> Result<AttemptReport> {
    let Attempts { session, run, .. } = *attempts;
    let store = &session.store;
    guard::choose(session)?;
    let preparation = Preparation::new(session, &run.base, commands.len())?;
    let mut starting = Vec::new();
    for (name, command) in commands {
        let candidate = store.candidate(run, name);
        match clean::remove_for_another(session, candidate) {
            Err(error) if error.cause == Cause::Uncapturable && commands.len() > 1 => {
                session.ui.warn(format!("{candidate} is not started again: {error}"));
                error.hints.iter().for_each(|hint| session.ui.hint(hint));
                continue;
            }
            removed => removed?,
        }
        store.note_fresh_start(run, name)?;
        starting.push((name.clone(), command.clone()));
    }
    let commands = &starting;
    let names: Vec<Name> = commands.iter().map(|(name, _)| name.clone()).collect();
    if names.is_empty() {
        return Ok(AttemptReport::default());
    }
    store.record_event(&run.run, &Event::Resumed { candidates: names.clone() })?;
    store.set_active(&run.run, Phase::Running)?;
    let repository = store.lock_repository()?;
    let registered = spawn::register_all(session, run, &names);
    drop(repository);
    let prepared = registered
        .and_then(|places| spawn::populate(session, run, &names, &places, &preparation))
        .map_err(|e| {
            e.hint("the old files are captured; the same command makes the worktrees again")
        })?;
    preparation.report(session, run, &names, &prepared);
    attempts.run(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cancelled_and_limited_candidates_are_unfinished() {
        let name: Name = "c1".parse().expect("a name");
        let mut record = Candidate::new(&name, &name, 1, State::Open);
        for state in [
            State::Open,
            State::Running,
            State::Succeeded,
            State::Empty,
            State::Failed,
            State::TimedOut,
        ] {
            record.state = state;
            assert!(!is_unfinished(&record), "{state}");
        }
        for state in [State::Cancelled, State::Limited] {
            record.state = state;
            assert!(is_unfinished(&record), "{state}");
        }
    }
}
