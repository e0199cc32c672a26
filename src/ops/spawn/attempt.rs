//! Runs commands in candidates' worktrees and captures the results.
use std::path::Path;
use std::time::{Duration, Instant};

use crate::agents;
use crate::error::{Cause, Error, Result};
use crate::fs::{atomic, tree};
use crate::git::capture::omitted::Omissions;
use crate::git::worktree::{self, WorktreeLock};
use crate::integrity::watch::TamperReport;
use crate::integrity::{trust, watch};
use crate::model::board::Standing;
use crate::model::candidate::{Candidate, Capture, State};
use crate::model::env;
use crate::model::name::Name;
use crate::model::outcome::Outcome;
use crate::model::run::Run;
use crate::model::usage::{RoundUsage, Usage};
use crate::ops::capture::{self, Captured};
use crate::ops::progress::{self, Board, Ending, WorkKind};
use crate::ops::session::Session;
use crate::ops::spawn::agent_limits::AgentLimits;
use crate::ops::spawn::checkpoint;
use crate::ops::spawn::command::{CandidateCommand, CommandContext};
use crate::ops::spawn::cost_limit::{self, CostLimit};
use crate::ops::spawn::guard::{self, Guard};
use crate::ops::spawn::limits;
use crate::ops::{clean, hooks, log_end};
use crate::process::interrupt::Cancel;
use crate::process::{self, End, Job, Limits};
use crate::store::candidate::CandidateRef;
use crate::store::events::{Event, HowEnded};
use crate::store::intents::{Active, Phase};
use crate::store::logs::AGENT;
use crate::ui::table;

/// The options with which the candidates' commands run.
#[derive(Clone)]
pub struct AttemptOptions {
    /// The number of commands that run at once.
    pub jobs: usize,
    /// The time limits of each command.
    pub limits: Limits,
    /// The interval at which running candidates are captured; never if none.
    pub checkpoint: Option<Duration>,
    /// True if a candidate whose command changed nothing keeps its worktree.
    pub keep: bool,
}

/// What holds for all commands that are started together.
struct AttemptTerms<'a> {
    options: &'a AttemptOptions,
    guard: Option<Guard>,
    /// The agents that came to their limits meanwhile.
    at_limit: AgentLimits,
    cost_limit: CostLimit,
}

/// The results of the commands.
#[derive(Default)]
pub struct AttemptReport {
    /// The candidates whose commands ran, in the order of the commands.
    pub results: Vec<Captured>,
    /// The changes outside of the worktrees meanwhile, in words.
    pub escaped: Vec<String>,
    /// True if one of these changes may alter the outcome of commands.
    pub affects_outcomes: bool,
}

/// Runs commands in worktrees, and captures each worktree as its command ends. The caller holds the
/// run's lock, and the run is marked as running.
///
/// `beside` is done meanwhile, under the same watch, and is cancelled if git-frites itself fails.
pub fn run_attempts(
    session: &Session,
    run: &Run,
    commands: &[(Name, CandidateCommand)],
    options: &AttemptOptions,
    beside: &(dyn Fn(&Cancel) + Sync),
) -> Result<AttemptReport> {
    let store = &session.store;
    let guard = guard::choose(session)?;
    let watch = watch::begin(session.integrity(), run, None)?;
    let names: Vec<Name> = commands.iter().map(|(name, _)| name.clone()).collect();
    let cancel = Cancel::default();
    let terms = AttemptTerms {
        options,
        guard,
        at_limit: AgentLimits::default(),
        cost_limit: CostLimit::default(),
    };
    let board = Board::new(WorkKind::Attempts, options.jobs);
    let span = tracing::Span::current();
    let results = std::thread::scope(|scope| {
        scope.spawn(|| span.in_scope(|| beside(&cancel)));
        progress::live(session, run, &names, &board, || {
            checkpoint::beside(session, run, &names, options.checkpoint, || {
                process::in_parallel(options.jobs, commands, |(name, command)| {
                    let candidate = store.candidate(run, name);
                    board.began(name);
                    let done = attempt(session, candidate, command, &terms)
                        .inspect_err(|error| mark_cancelled(candidate, error));
                    board.ended(name, ending(&done));
                    if let Ok(captured) = &done {
                        hooks::tell_ended(session, candidate, captured);
                    }
                    done
                })
            })
        })
        .inspect_err(|_| cancel.cancel())
    });
    // The watch reports even if an attempt failed: a changed configuration may be the cause.
    let watched = watch.end(session.integrity(), run);
    // While a record still says that its command runs, the next command must find the run
    // interrupted.
    let done =
        if results.is_ok() || !names.iter().any(|name| is_running(store.candidate(run, name))) {
            store.clear_active(&run.run)
        } else {
            Ok(())
        };
    let results = match results {
        Ok(results) => results,
        Err(error) => {
            // The first error is the cause; the others are only reported.
            for later in watched.err().into_iter().chain(done.err()) {
                session.ui.warn(later.message);
            }
            return Err(error);
        }
    };
    done?;
    let TamperReport { words, affects_outcomes } = watched?;
    Ok(AttemptReport { results, escaped: words, affects_outcomes })
}

/// The end of an attempt as a row on the terminal shows it.
fn ending(done: &Result<Captured>) -> Ending {
    let Ok(Captured { candidate, changes, problem, .. }) = done else {
        let words = State::Cancelled.to_string();
        return Ending { standing: Standing::Bad, words, elapsed: None, size: None };
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
    Ending { standing, words, elapsed: candidate.run_time(), size: capture::lines_of(changes) }
}

fn is_running(candidate: CandidateRef<'_>) -> bool {
    candidate.record().is_ok_and(|record| record.state == State::Running)
}

/// Marks a candidate whose attempt ended by an error of git-frites: the candidate can be resumed.
fn mark_cancelled(candidate: CandidateRef<'_>, error: &Error) {
    let marked = candidate.update(|record| {
        if record.state == State::Running {
            record.state = State::Cancelled;
            record.reason = Some(error.message.clone());
        }
    });
    // This most likely fails for the reason that `error` gives.
    let _ = marked;
}

/// Runs another command in a candidate's own worktree. The worktree is captured first, so that both
/// rounds are iterations of their own.
pub fn rerun(
    session: &Session,
    candidate: CandidateRef<'_>,
    command: CandidateCommand,
    options: &AttemptOptions,
) -> Result<AttemptReport> {
    rerun_all(session, candidate.run, &[(candidate.name.clone(), command)], options)
}

/// Runs other commands in candidates' own worktrees, as [`rerun`] does.
pub fn rerun_all(
    session: &Session,
    run: &Run,
    commands: &[(Name, CandidateCommand)],
    options: &AttemptOptions,
) -> Result<AttemptReport> {
    let store = &session.store;
    trust::require_trust(session.integrity(), Some(run))?;
    limits::require_depth(session)?;
    if let Some(reached) = cost_limit::reached(session, run)? {
        return Err(reached.into_error(run));
    }
    guard::choose(session)?;
    commands.iter().try_for_each(|(_, command)| command.require_program())?;
    let _lock = store.lock_run(&run.run)?;
    let candidates = || commands.iter().map(|(name, _)| store.candidate(run, name));
    for candidate in candidates() {
        if !candidate.worktree().is_dir() {
            return Err(Error::fatal(format!("{candidate} has no worktree any more"))
                .hint(format!("start from what it was: `git frites spawn --from {candidate}`")));
        }
        session.print_omissions(&session.capture(candidate)?);
        candidate.logs()?.begin_round(false)?;
    }
    store.set_active(&run.run, &Active { phase: Phase::Running, entries: Vec::new() })?;
    for candidate in candidates() {
        candidate.update(|c| (c.state, c.again) = (State::Running, true))?;
    }
    run_attempts(session, run, commands, options, &|_| ())
}

fn attempt(
    session: &Session,
    candidate: CandidateRef<'_>,
    command: &CandidateCommand,
    terms: &AttemptTerms<'_>,
) -> Result<Captured> {
    let AttemptTerms { options, guard, at_limit, cost_limit } = terms;
    if candidate.record()?.state == State::Failed {
        return session.stored(candidate); // its setup failed
    }
    let agent = command.agent.as_ref();
    if let Some(refused) = at_limit.refuse(session, candidate, agent)? {
        return Ok(refused);
    }
    if let Some(refused) = cost_limit.refuse(session, candidate)? {
        return Ok(refused);
    }
    let before = candidate.latest()?;
    let dir = candidate.worktree();
    let prompt = command.prompt_text();
    let prompt_file = candidate.prompt();
    if let Some(text) = &prompt {
        atomic::write(&prompt_file, text)?;
    }
    let started = jiff::Timestamp::now();
    let is_guarded = guard.as_ref().is_some_and(|guard| guard.protects_cache);
    let record = candidate.update(|c| {
        c.guarded = is_guarded && (c.guarded || c.started.is_none());
        c.started = Some(started);
        (c.ended, c.exit_code, c.signal, c.reason, c.leaky) = (None, None, None, None, false);
        c.resets = None;
    })?;
    let context = CommandContext {
        run: candidate.run,
        candidate: &record,
        dir: &dir,
        prompt: prompt.as_deref(),
        prompt_file: &prompt_file,
        depth: Some(limits::depth(session)?),
    };
    let argv = context.argv(&command.argv);
    let env = context.variables();
    let policy = &session.policy;
    let log = candidate.log(AGENT);
    let stdin = prompt.is_some() && command.stdin;
    let stdin = stdin.then_some(prompt_file.as_path());
    // If git-frites runs in another candidate's command, its variables are not this candidate's.
    let hide = &env::ALL;
    let world = guard.as_ref().map(|guard| guard.world(session, candidate)).transpose()?;
    let job = Job {
        argv: &argv,
        dir: &dir,
        policy,
        env,
        hide,
        stdin,
        log: &log,
        limits: options.limits,
        confinement: world.as_ref(),
    };
    let clock = Instant::now();
    let admin = worktree::admin_of(&session.repo, &dir)?;
    let reason = format!("the command of {candidate} runs here");
    let lock = admin.map(|admin| WorktreeLock::new(admin, &reason)).transpose()?;
    let end = process::run(&job);
    drop(lock);
    let seconds = clock.elapsed().as_secs_f64();
    let was_ended = end.as_ref().is_ok_and(|end| {
        end.cancelled || matches!(end.outcome, Outcome::TimedOut | Outcome::Signalled { .. })
    });
    // A git that was ended leaves its lock, and nobody could commit in the worktree.
    if let (true, Some(admin)) = (was_ended, worktree::admin_of(&session.repo, &dir)?) {
        worktree::heal_locks(&admin);
    }
    let bytes = tree::disk_usage(&dir);
    let told = AgentLimits::told(session, agent, &log);
    let is_run = end.as_ref().is_ok_and(|end| !end.outcome.could_not_start());
    let usage = agent.filter(|_| is_run).and_then(|agent| usage_told(session, agent, &log));
    candidate.update(|c| {
        c.ended = Some(jiff::Timestamp::now());
        // An unguarded command can write to the record.
        c.guarded = record.guarded;
        c.bytes = bytes;
        c.usage.extend(usage.map(|usage| RoundUsage { iteration: None, usage }));
        match &end {
            Ok(end) => record_end(c, end),
            Err(error) => record_error(c, error),
        }
        if c.state == State::TimedOut {
            c.reason = silence(options.limits, seconds);
        }
        if let (Some(told), State::Failed | State::TimedOut) = (&told, c.state) {
            at_limit.mark(agent, c, told);
        }
    })?;
    let mut captured = session.capture_or_tell(candidate)?;
    let iteration = captured.capture.as_ref().map(|capture| capture.iteration);
    if usage.is_some() {
        captured.candidate = candidate.update(|c| {
            if let Some(last) = c.usage.last_mut() {
                last.iteration = iteration;
            }
        })?;
    }
    // Some agents exit 0 all the same.
    if let (Some(told), State::Empty) = (&told, captured.candidate.state) {
        captured.candidate = candidate.update(|c| at_limit.mark(agent, c, told))?;
    }
    if captured.candidate.state == State::Succeeded
        && captured.changes.is_empty()
        && captured.problem.is_none()
    {
        // An unchanged worktree would make it `empty`: this one no longer exists.
        captured.candidate = candidate.update(|c| {
            (c.state, c.exit_code, c.reason) =
                (State::Failed, None, Some("its worktree is gone".into()));
        })?;
    }
    candidate.logs()?.end_round(iteration)?;
    let tree = |capture: &Option<Capture>| capture.as_ref().map(|capture| capture.tree);
    let changed_nothing =
        record.again && captured.problem.is_none() && tree(&captured.capture) == tree(&before);
    report_end(session, candidate, &captured, seconds, changed_nothing)?;
    if captured.candidate.state == State::Empty
        && captured.capture.is_none()
        && captured.problem.is_none()
        // The files that a note names exist in the worktree only.
        && captured.omissions == Omissions::default()
        && !options.keep
        && let Err(error) = clean::remove(session, candidate, false)
    {
        // The other candidates can be judged all the same.
        session.ui.warn(format!(
            "{}: its worktree stays: {}",
            captured.candidate.address(),
            error.message
        ));
    }
    Ok(captured)
}

/// What an agent told in its log that it used; none if nobody knows where it would tell it.
fn usage_told(session: &Session, agent: &Name, log: &Path) -> Option<Usage> {
    let format = agents::usage_format(&session.config, agent)?;
    Some(format.usage(&process::whole_log(log)))
}

/// Sets the state in a record by how the candidate's command ended.
fn record_end(record: &mut Candidate, end: &End) {
    record.leaky = end.leaky;
    record.exit_code = None;
    record.signal = None;
    record.reason = None;
    record.state = match &end.outcome {
        _ if end.cancelled => {
            record.reason = Some("interrupted".into());
            State::Cancelled
        }
        Outcome::TimedOut => State::TimedOut,
        Outcome::Passed => {
            record.exit_code = Some(0);
            State::Succeeded
        }
        Outcome::Failed { code } => {
            record.exit_code = Some(*code);
            State::Failed
        }
        Outcome::Signalled { signal } => {
            record.signal = Some(*signal);
            State::Failed
        }
        other => {
            record.reason = Some(other.to_string());
            State::Failed
        }
    };
}

/// How long a command that was ended after `seconds` had been silent; none if the other limit ended it.
fn silence(limits: Limits, seconds: f64) -> Option<String> {
    let is_over = limits.hard.is_some_and(|hard| seconds >= hard.as_secs_f64());
    let idle = limits.idle.filter(|_| !is_over)?;
    Some(format!("no output for {}", table::duration(idle.as_secs_f64())))
}

/// Sets the state in a record after an error. Only this candidate fails: its directory may be gone,
/// or its arguments too long. If nobody knows how the command ended, it may be resumed.
fn record_error(record: &mut Candidate, error: &Error) {
    (record.exit_code, record.signal) = (None, None);
    record.reason = Some(error.message.clone());
    record.state = match error.cause {
        Cause::EndUnknown => State::Cancelled,
        _ => State::Failed,
    };
}

/// Records and prints how a candidate's command ended. `changed_nothing` says that this
/// was a later round, after which the files are the same.
fn report_end(
    session: &Session,
    candidate: CandidateRef<'_>,
    captured: &Captured,
    seconds: f64,
    changed_nothing: bool,
) -> Result<()> {
    let Candidate { candidate: name, state, exit_code, signal, leaky, .. } = &captured.candidate;
    let event = Event::Ended {
        candidate: name.clone(),
        state: *state,
        how: HowEnded::Ran { exit_code: *exit_code, signal: *signal, leaky: *leaky, seconds },
    };
    session.store.record_event(&candidate.run.run, &event)?;
    let (address, words) = (candidate.address(), captured.candidate.state_in_words());
    let same = if changed_nothing { "; this round changed nothing" } else { "" };
    let time = table::duration(seconds);
    let line = format!("{address}: {words} in {time}, {}{same}", captured.blast);
    match state {
        State::Failed | State::TimedOut | State::Cancelled | State::Limited => {
            log_end::note_of_agent(session, &line, &candidate.log(AGENT));
        }
        _ => session.ui.note(line),
    }
    if *leaky {
        session.ui.warn(format!("{address}: it left processes behind, which were ended"));
    }
    session.print_omissions(captured);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// State, exit code, signal and reason of a record after a command that ended so.
    fn after(
        outcome: Outcome,
        cancelled: bool,
    ) -> (State, Option<i32>, Option<i32>, Option<String>) {
        let name: Name = "c1".parse().expect("a name");
        let mut record = Candidate::new(&name, &name, 1, State::Running);
        record.reason = Some("an earlier one".into());
        let end = End { outcome, cancelled, ..End::not_started("no directory".into()) };
        record_end(&mut record, &end);
        (record.state, record.exit_code, record.signal, record.reason)
    }

    #[test]
    fn a_candidate_whose_end_nobody_knows_is_cancelled_and_after_another_error_it_failed() {
        let name: Name = "c1".parse().expect("a name");
        let mut record = Candidate::new(&name, &name, 1, State::Running);
        record_error(&mut record, &Error::fatal("it was killed").because(Cause::EndUnknown));
        assert_eq!(
            (record.state, record.reason.as_deref()),
            (State::Cancelled, Some("it was killed"))
        );
        record_error(&mut record, &Error::fatal("no directory"));
        assert_eq!(record.state, State::Failed);
    }

    #[test]
    fn the_state_after_a_command_follows_its_outcome() {
        assert_eq!(after(Outcome::Passed, false), (State::Succeeded, Some(0), None, None));
        assert_eq!(after(Outcome::Failed { code: 3 }, false), (State::Failed, Some(3), None, None));
        let signalled = after(Outcome::Signalled { signal: 9 }, false);
        assert_eq!(signalled, (State::Failed, None, Some(9), None));
        assert_eq!(after(Outcome::TimedOut, false), (State::TimedOut, None, None, None));
    }

    #[test]
    fn a_cancelled_command_is_cancelled_whatever_its_outcome() {
        let interrupted = Some("interrupted".to_owned());
        let cancelled = (State::Cancelled, None, None, interrupted);
        assert_eq!(after(Outcome::Passed, true), cancelled);
        assert_eq!(after(Outcome::Signalled { signal: 15 }, true), cancelled);
    }
}
