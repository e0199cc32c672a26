//! Runs commands in candidates' worktrees, several at once. Meanwhile, changes outside of the
//! worktrees are watched.
use std::time::Duration;

use crate::error::{Error, Result};
use crate::fs::parallel;
use crate::git::diff;
use crate::integrity::WatchedCommands;
use crate::integrity::watch::{IntegrityWatch, TamperReport};
use crate::integrity::{trust, watch};
use crate::model::board::Standing;
use crate::model::candidate::State;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::beside::{AttemptsAtWork, Beside, NextAttempt, UntilAllEnded};
use crate::ops::board::{self, Board, Ending, WorkKind};
use crate::ops::capture::Captured;
use crate::ops::guard::{self, Guard};
use crate::ops::hooks;
use crate::ops::session::Session;
use crate::ops::spawn::command::{CandidateCommand, words};
use crate::ops::spawn::cost_limit;
use crate::ops::spawn::limits;
use crate::ops::spawn::one_attempt::{AttemptTerms, OneAttempt};
use crate::ops::spawn::recover::lock_recovered;
use crate::ops::start_gate::StartGate;
use crate::process::interrupt::Cancel;
use crate::process::work_queue::WorkQueue;
use crate::process::{self, Limits};
use crate::store::candidate::CandidateRef;
use crate::store::events::Event;
use crate::store::intents::Phase;

/// The options with which the candidates' commands run.
#[derive(Clone)]
pub struct AttemptOptions {
    /// The number of commands that run at once; `None` if the user did not give it.
    pub jobs: Option<usize>,
    /// The time limits of each command.
    pub limits: Limits,
    /// The interval at which candidates are captured while their commands run. With `None`, they
    /// are not captured before their commands end.
    pub checkpoint: Option<Duration>,
    /// True if the worktree of a candidate is kept even if its command changed nothing.
    pub keep: bool,
}

/// The number of agents that run at once by default.
const AGENTS_AT_ONCE: usize = 16;

impl AttemptOptions {
    /// The number of these commands that run at once. If all commands are agents, the number may
    /// exceed the number of processors, because agents mostly wait for the network.
    pub fn jobs_for<'c>(&self, commands: impl IntoIterator<Item = &'c CandidateCommand>) -> usize {
        let are_agents = commands.into_iter().all(|command| command.agent.is_some());
        let usual = if are_agents { AGENTS_AT_ONCE } else { process::processors() };
        self.jobs.unwrap_or(usual)
    }
}

/// The results of the commands.
#[derive(Default)]
pub struct AttemptReport {
    /// The result of each command, in the order of the commands. Commands that were added
    /// meanwhile, as further rounds in existing worktrees, come last.
    pub results: Vec<Captured>,
    /// The changes that happened outside of the worktrees while the commands ran, in words.
    pub escaped: Vec<String>,
    /// True if one of these changes may alter the outcome of commands.
    pub affects_outcomes: bool,
}

/// The running attempts of a run, and the work that is done beside them.
pub struct Attempts<'a> {
    pub session: &'a Session,
    pub run: &'a Run,
    /// How the commands run.
    pub options: &'a AttemptOptions,
    /// The work beside them.
    pub beside: &'a dyn Beside,
}

impl Attempts<'_> {
    /// Runs commands in worktrees, and captures each worktree when its command ends. The caller
    /// holds the run's lock, and the run is marked as running.
    ///
    /// Meanwhile, `beside` does its work. Changes outside of the worktrees are watched during both.
    /// `beside` opens the gate that the commands wait for, and can add further rounds. Fails if
    /// `beside` locks the gate before any command has started.
    pub fn run(&self, commands: &[(Name, CandidateCommand)]) -> Result<AttemptReport> {
        let first = commands.iter().map(|(name, command)| NextAttempt {
            candidate: name.clone(),
            command: command.clone(),
            is_further_round: false,
        });
        self.run_all(first.collect())
    }

    fn run_all(&self, attempts: Vec<NextAttempt>) -> Result<AttemptReport> {
        let Attempts { session, run, options, beside } = *self;
        let store = &session.store;
        let guard = guard::choose_for(session, &run.base)?;
        let watched = guard.as_ref().map_or(WatchedCommands::Attempts, Guard::watched_commands);
        let watch = watch::begin(session.integrity(), run, watched, None)?;
        let names: Vec<Name> = attempts.iter().map(|one| one.candidate.clone()).collect();
        let access = guard.as_ref().map_or_else(guard::unguarded, Guard::access);
        let mut candidates = names.iter().map(|name| store.candidate(run, name));
        candidates
            .try_for_each(|one| one.update(|record| record.begin_access(&access)).map(drop))?;
        let AttemptOptions { limits, keep, .. } = *options;
        let terms = AttemptTerms { limits, keep, guard, ..AttemptTerms::default() };
        let jobs = options.jobs_for(attempts.iter().map(|one| &one.command));
        let board = Board::new(WorkKind::Attempts, jobs);
        let cancel = Cancel::default();
        let gate = StartGate::default();
        let queue = WorkQueue::new(attempts);
        let run_one = |next: NextAttempt| {
            let NextAttempt { candidate: name, command, is_further_round } = &next;
            let candidate = store.candidate(run, name);
            if *is_further_round {
                begin_round(session, candidate, command)?;
            }
            if let Some(refused) = gate.refuse(session, candidate)? {
                return Ok(refused);
            }
            board.attempt_began(name);
            let one = OneAttempt { session, candidate, command, terms: &terms };
            let done = one.run().inspect_err(|error| mark_cancelled(candidate, error));
            if let Ok(captured) = &done {
                board.counted_lines(name, diff::lines_of(&captured.changes));
            }
            board.ended(name, ending(&done));
            if let Ok(captured) = &done {
                beside.attempt_ended(name);
                hooks::tell_ended(session, candidate, captured);
            }
            done
        };
        let results = board::live(session, run, &names, &board, || {
            let at_work = AttemptsAtWork {
                board: &board,
                queue: &queue,
                gate: &gate,
                cancel: &cancel,
                stop: &terms.enough,
            };
            do_beside(beside, at_work, || {
                let work =
                    || queue.work_on(jobs.min(run.candidates.len()), run_one).into_iter().collect();
                let Some(every) = options.checkpoint else { return work() };
                let checkpoint_all = || {
                    session
                        .store
                        .candidates(run)
                        .for_each(|candidate| checkpoint(session, candidate));
                    every
                };
                parallel::beside(every, checkpoint_all, work)
            })
        });
        let report = self.end_all(watch, results)?;
        gate.require_passed(run)?;
        Ok(report)
    }

    /// Runs further commands in candidates' existing worktrees. Captures each worktree before its
    /// new command starts, so that the earlier work is an iteration of its own.
    pub fn rerun(&self, rounds: Vec<NextAttempt>) -> Result<AttemptReport> {
        let Attempts { session, run, .. } = *self;
        let store = &session.store;
        trust::require_trust(session.integrity(), Some(run))?;
        limits::require_depth(session)?;
        if let Some(reached) = cost_limit::reached(session, run)? {
            return Err(reached.into_error(run));
        }
        guard::choose(session)?;
        rounds.iter().try_for_each(|round| round.command.require_program())?;
        let _lock = lock_recovered(store, &session.ui, &run.run)?;
        // This is checked before the run is marked as active, so that an error here leaves
        // everything unchanged.
        for round in &rounds {
            store.candidate(run, &round.candidate).require_worktree()?;
        }
        store.set_active(&run.run, Phase::Running)?;
        self.run_all(rounds)
    }

    /// Ends the watch over the attempts, which have ended with `results`. Clears the mark that says
    /// that the run is running.
    fn end_all(
        &self,
        watch: IntegrityWatch,
        results: Result<Vec<Captured>>,
    ) -> Result<AttemptReport> {
        let Attempts { session, run, .. } = *self;
        let store = &session.store;
        // Even after an error, the watch reports what has changed, because a changed configuration
        // may be the cause of the error.
        let watched = watch.end(session.integrity(), run);
        // After an error, a candidate's record may still say that its command runs. Then the run
        // stays marked as active, so that the next git-frites command recovers it.
        let done = if results.is_ok() || !store.candidates(run).any(is_running) {
            store.clear_active(&run.run)
        } else {
            Ok(())
        };
        // The first error is returned; later errors are only warnings.
        let warn = |later: &Error| session.ui.warn(&later.message);
        let ended = watch::with_work(results, watched, warn);
        let ((results, report), ()) = watch::with_work(ended, done, warn)?;
        let TamperReport { words, affects_outcomes } = report;
        Ok(AttemptReport { results, escaped: words, affects_outcomes })
    }
}

/// Captures one candidate if its command runs. The capture can fail, e.g. because a file disappears
/// while it is read. A failure is only a note, because the next checkpoint tries again.
fn checkpoint(session: &Session, candidate: CandidateRef<'_>) {
    let ui = &session.ui;
    if !candidate.record().is_ok_and(|c| c.state == State::Running && c.started.is_some()) {
        return;
    }
    match session.capture(candidate) {
        Ok(captured) => {
            if let Some(capture) = captured.capture
                && captured.fresh
            {
                ui.note(format!(
                    "{candidate}@{}: checkpoint, {}",
                    capture.iteration, captured.blast
                ));
            }
        }
        Err(error) => {
            ui.note(format!("{candidate}: no checkpoint this time: {error}"));
        }
    }
}

/// Runs the attempts and the work beside them. If git-frites fails to run the attempts, cancels the
/// work beside them.
fn do_beside<T>(
    beside: &dyn Beside,
    at_work: AttemptsAtWork<'_>,
    attempts: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let cancel = at_work.cancel;
    let span = tracing::Span::current();
    std::thread::scope(|scope| {
        let _until_all_ended = UntilAllEnded(beside, cancel);
        parallel::start(scope, move || span.in_scope(|| beside.work(&at_work)));
        attempts().inspect_err(|_| cancel.cancel())
    })
}

/// The end of an attempt, as its row on the terminal shows it.
fn ending(done: &Result<Captured>) -> Ending {
    let Ok(Captured { candidate, problem, .. }) = done else {
        let words = State::Cancelled.to_string();
        return Ending { standing: Standing::Bad, words, elapsed: None };
    };
    let standing = match candidate.state {
        _ if problem.is_some() => Standing::Bad,
        State::Open | State::Running | State::Succeeded => Standing::Good,
        State::Empty | State::Cancelled | State::Limited => Standing::Caution,
        State::Failed | State::TimedOut => Standing::Bad,
    };
    let words = match problem {
        Some(_) => "not captured".to_owned(),
        None => candidate.state_in_words(),
    };
    Ending { standing, words, elapsed: candidate.run_time() }
}

fn is_running(candidate: CandidateRef<'_>) -> bool {
    candidate.record().is_ok_and(|record| record.state == State::Running)
}

/// Marks a candidate as cancelled after an error of git-frites, so that it can be resumed.
fn mark_cancelled(candidate: CandidateRef<'_>, error: &Error) {
    let marked = candidate.update(|record| {
        if record.state == State::Running {
            record.state = State::Cancelled;
            record.reason = Some(error.message.clone());
        }
    });
    // An error here is ignored, because it most likely has the same cause as `error`.
    let _ = marked;
}

/// Captures the work of a candidate's earlier commands, keeps their logs, and marks the candidate
/// as running.
fn begin_round(
    session: &Session,
    candidate: CandidateRef<'_>,
    command: &CandidateCommand,
) -> Result<()> {
    candidate.require_worktree()?;
    session.print_omissions(&session.capture(candidate)?);
    candidate.logs().begin_round(false)?;
    let event = Event::Round { candidate: candidate.name.clone(), command: words(&command.argv) };
    session.store.record_event(&candidate.run.run, &event)?;
    candidate.update(|record| (record.state, record.again) = (State::Running, true))?;
    Ok(())
}
