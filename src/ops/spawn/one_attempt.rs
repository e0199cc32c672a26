//! Runs the command of one candidate in its worktree, and captures the result.
use std::path::Path;
use std::time::{Duration, Instant};

use crate::agents;
use crate::error::{Cause, Result};
use crate::fs::{atomic, tree};
use crate::git::capture::omitted::Omissions;
use crate::git::worktree::{self, WorktreeLock};
use crate::model::agent_stop::AgentStop;
use crate::model::candidate::{Candidate, CommandEnd, ENOUGH_PASSED, State};
use crate::model::env;
use crate::model::layout::AGENT;
use crate::model::name::Name;
use crate::model::outcome::Outcome;
use crate::model::separation::AttemptAccess;
use crate::model::usage::{RoundUsage, Usage};
use crate::ops::capture::Captured;
use crate::ops::guard::{self, Guard};
use crate::ops::session::Session;
use crate::ops::spawn::command::{CandidateCommand, CommandContext};
use crate::ops::spawn::cost_limit::CostLimit;
use crate::ops::spawn::limits;
use crate::ops::spawn::stopped_agents::StoppedAgents;
use crate::ops::spawn::waiting;
use crate::ops::{agent_state, clean, log_excerpt};
use crate::oracle::obstacles;
use crate::process::interrupt::{self, Cancel};
use crate::process::{self, End, Job, Limits};
use crate::store::candidate::CandidateRef;
use crate::store::events::{Event, HowEnded};
use crate::ui::table;

/// The hint for a command that failed because it could not rename a directory in HOME.
const RENAMES_HINT: &str = "in a HOME of its own no attempt can rename a directory of yours; with \
                            `git config frites.spawn.home shared` it can, and judging sees what it \
                            writes there";

/// The terms that are the same for all commands that are started together.
#[derive(Default)]
pub(super) struct AttemptTerms {
    /// The time limits of each command.
    pub limits: Limits,
    /// True if the worktree of a candidate is kept even if its command changed nothing.
    pub keep: bool,
    pub guard: Option<Guard>,
    /// The agents that have reported, since the commands began, that they cannot go on.
    pub stopped: StoppedAgents,
    pub cost_limit: CostLimit,
    /// Ends the running commands once enough candidates have passed.
    pub enough: Cancel,
}

/// The command of a candidate, and what it needs to run.
pub(super) struct OneAttempt<'a> {
    pub session: &'a Session,
    pub candidate: CandidateRef<'a>,
    pub command: &'a CandidateCommand,
    pub terms: &'a AttemptTerms,
}

/// The result of a command.
struct RanCommand {
    end: Result<End>,
    seconds: f64,
    /// The reason why the command's agent cannot go on; `None` if the agent has not reported one.
    stop: Option<AgentStop>,
    /// The usage that the command's agent has reported.
    usage: Option<Usage>,
}

impl OneAttempt<'_> {
    /// Runs the command, and captures the result. If the command is not started, records the
    /// reason.
    pub fn run(&self) -> Result<Captured> {
        let OneAttempt { session, candidate, terms, .. } = *self;
        if candidate.record()?.state == State::Failed {
            return session.stored(candidate); // its setup failed
        }
        if let Some(refused) = terms.stopped.refuse(session, candidate, self.agent())? {
            return Ok(refused);
        }
        if let Some(refused) = terms.cost_limit.refuse(session, candidate)? {
            return Ok(refused);
        }
        let before = candidate.latest()?.map(|capture| capture.tree);
        let record = self.record_start()?;
        let ran = self.run_command(&record)?;
        self.record_end(&record, &ran)?;
        let captured = self.capture(&ran)?;
        let capture = captured.capture.as_ref();
        candidate.logs().end_round(capture.map(|capture| capture.iteration))?;
        let after = capture.map(|capture| capture.tree);
        let changed_nothing = record.again && captured.problem.is_none() && after == before;
        // The command of an interrupted round does not become the candidate's maker, because the
        // round is taken back later.
        if record.again && after != before && captured.candidate.state != State::Cancelled {
            candidate.update(|record| record.maker = Some(self.command.maker()))?;
        }
        report_end(session, candidate, &captured, ran.seconds, changed_nothing)?;
        if !terms.keep {
            remove_empty(session, candidate, &captured);
        }
        Ok(captured)
    }

    fn agent(&self) -> Option<&Name> {
        self.command.agent.as_ref()
    }

    /// Writes the prompt, and records that the command starts now.
    fn record_start(&self) -> Result<Candidate> {
        if let Some(text) = &self.command.prompt_text() {
            atomic::write(&self.candidate.directory().prompt(), text)?;
        }
        let started = jiff::Timestamp::now();
        let access = self.terms.guard.as_ref().map_or_else(guard::unguarded, Guard::access);
        self.candidate.update(|record| {
            // `attempts::run_all` has already noted the access of the commands that it was called
            // with. This line notes the access of a round that was added later. If the record has
            // no access, an older version wrote the record, and it is not known what earlier
            // commands could do.
            record.access = record.access.take().map(|earlier| access.with(&earlier));
            record.started = Some(started);
            record.ended = None;
            record.end = CommandEnd::default();
            record.reason = None;
            record.leaky = false;
        })
    }

    /// Runs the command to its end. `record` is the candidate's record when the command starts.
    fn run_command(&self, record: &Candidate) -> Result<RanCommand> {
        let OneAttempt { session, candidate, command, terms } = *self;
        let dir = candidate.worktree();
        let prompt_file = candidate.directory().prompt();
        let log = candidate.directory().logs().log(AGENT);
        let prompt = command.prompt_text();
        let context = CommandContext {
            run: candidate.run,
            candidate: record,
            dir: &dir,
            prompt: prompt.as_deref(),
            prompt_file: &prompt_file,
            depth: Some(limits::depth(session)?),
            is_guarded: terms.guard.is_some(),
        };
        let mut variables = context.variables();
        match agent_state::prepare(session, candidate, self.agent()) {
            Ok(state) => variables.extend(state),
            // Only this candidate fails: an earlier command of the candidate may have damaged its
            // agent's state directory.
            Err(error) => {
                agent_state::settle(session, candidate);
                return Ok(RanCommand { end: Err(error), seconds: 0.0, stop: None, usage: None });
            }
        }
        let job = Job {
            argv: &context.argv(&command.argv),
            dir: &dir,
            policy: &session.policy,
            env: variables,
            // If git-frites runs inside another candidate's command, that candidate's variables
            // must not be passed on.
            hide: &env::ALL,
            stdin: (prompt.is_some() && command.stdin).then_some(prompt_file.as_path()),
            log: &log,
            limits: terms.limits,
            confinement: None,
        };
        let clock = Instant::now();
        let end = self.run_guarded(job);
        let seconds = clock.elapsed().as_secs_f64();
        // No copy of the user's login stays, even after a failure.
        agent_state::settle(session, candidate);
        let end = end?;
        self.heal_after(&end)?;
        let is_run = end.as_ref().is_ok_and(|end| !end.outcome.could_not_start());
        let agent = self.agent();
        let usage = match agent {
            Some(agent) if is_run => reported_usage(session, agent, &log),
            _ => None,
        };
        let stop = StoppedAgents::reason_in_log(session, agent, &log);
        Ok(RanCommand { end, seconds, stop, usage })
    }

    /// Runs a job under the guard, if there is one. Meanwhile the worktree is locked, so that git
    /// does not remove it.
    fn run_guarded(&self, job: Job<'_>) -> Result<Result<End>> {
        let guard = self.terms.guard.as_ref();
        let world = guard.map(|guard| guard.world(self.session, self.candidate)).transpose()?;
        let job = Job { confinement: world.as_ref().map(|world| &world.confinement), ..job };
        let admin = worktree::admin_of(&self.session.repo, job.dir)?;
        let reason = format!("the command of {} runs here", self.candidate);
        let _lock = admin.map(|admin| WorktreeLock::new(admin, &reason)).transpose()?;
        let patterns = self.agent().map(|agent| agents::stop_patterns(&self.session.config, agent));
        let tell = |patience: Duration| {
            let patience = table::duration(patience.as_secs_f64());
            let line =
                format!("{} waits for the network; after {patience} it is ended", self.candidate);
            self.session.ui.note(line);
        };
        let enough = &self.terms.enough;
        Ok(waiting::run(&job, &patterns.unwrap_or_default(), enough, &tell))
    }

    /// If the command was ended, removes lock files that a killed git may have left. They would
    /// prevent commits in the worktree.
    fn heal_after(&self, end: &Result<End>) -> Result<()> {
        let was_ended = end.as_ref().is_ok_and(|end| {
            end.cancelled || matches!(end.outcome, Outcome::TimedOut | Outcome::Signalled { .. })
        });
        let dir = self.candidate.worktree();
        if let (true, Some(admin)) = (was_ended, worktree::admin_of(&self.session.repo, &dir)?) {
            worktree::heal_locks(&admin);
        }
        Ok(())
    }

    /// Records how the command ended. `start` is the candidate's record when the command started.
    fn record_end(&self, start: &Candidate, ran: &RanCommand) -> Result<()> {
        let bytes = tree::disk_usage(&self.candidate.worktree());
        self.candidate.update(|record| {
            record.ended = Some(jiff::Timestamp::now());
            // An unguarded command can change the record, so the access is taken from the record as
            // it was when the command started.
            record.access = start.access.clone();
            record.bytes = bytes;
            record.usage.extend(ran.usage.map(|usage| RoundUsage { iteration: None, usage }));
            record_end(record, &ran.end);
            let is_stopped = self.terms.enough.is_cancelled() && interrupt::signal().is_none();
            if record.state == State::Cancelled && is_stopped {
                record.reason = Some(ENOUGH_PASSED.to_owned());
            }
            if record.state == State::TimedOut {
                record.reason = silence(self.terms.limits, ran.seconds);
            }
            if let (Some(stop), State::Failed | State::TimedOut) = (&ran.stop, record.state) {
                self.terms.stopped.mark(self.agent(), record, stop);
            }
        })?;
        Ok(())
    }

    /// Captures the result of the command, and updates the candidate's record accordingly.
    fn capture(&self, ran: &RanCommand) -> Result<Captured> {
        let OneAttempt { session, candidate, terms, .. } = *self;
        let mut captured = session.capture_or_tell(candidate)?;
        if ran.usage.is_some() {
            let iteration = captured.capture.as_ref().map(|capture| capture.iteration);
            captured.candidate = candidate.update(|record| {
                if let Some(last) = record.usage.last_mut() {
                    last.iteration = iteration;
                }
            })?;
        }
        // Some agents exit with code 0 even if they could not go on.
        if let (Some(stop), State::Empty) = (&ran.stop, captured.candidate.state) {
            captured.candidate =
                candidate.update(|record| terms.stopped.mark(self.agent(), record, stop))?;
        }
        if captured.candidate.state == State::Succeeded
            && captured.changes.is_empty()
            && captured.problem.is_none()
        {
            // If the worktree existed and were unchanged, the state would be `empty`. So the
            // worktree no longer exists.
            captured.candidate = candidate.update(|record| {
                record.state = State::Failed;
                record.end.exit_code = None;
                record.reason = Some("its worktree is gone".into());
            })?;
        }
        Ok(captured)
    }
}

/// Removes the worktree of a candidate whose command changed nothing.
fn remove_empty(session: &Session, candidate: CandidateRef<'_>, captured: &Captured) {
    let is_empty = captured.candidate.state == State::Empty
        && captured.capture.is_none()
        && captured.problem.is_none()
        // Omitted files exist only in the worktree.
        && captured.omissions == Omissions::default();
    if is_empty && let Err(error) = clean::remove(session, candidate) {
        // This is only a warning, because the candidates can be judged all the same.
        let address = captured.candidate.address();
        session.ui.warn(format!("{address}: its worktree stays: {error}"));
    }
}

/// The usage that an agent has reported in its log; `None` if the format of its report is not
/// known.
fn reported_usage(session: &Session, agent: &Name, log: &Path) -> Option<Usage> {
    let format = agents::usage_format(&session.config, agent)?;
    Some(format.usage(&process::whole_log(log)))
}

/// Sets the state in a record according to how the candidate's command ended. If git-frites failed
/// and does not know how the command ended, the state is `cancelled`, so that the candidate can be
/// resumed.
fn record_end(record: &mut Candidate, end: &Result<End>) {
    record.end = CommandEnd::default();
    record.reason = None;
    let end = match end {
        Ok(end) => end,
        Err(error) => {
            record.reason = Some(error.message.clone());
            let is_unknown = error.cause == Cause::EndUnknown;
            record.state = if is_unknown { State::Cancelled } else { State::Failed };
            return;
        }
    };
    record.leaky = end.leaky;
    record.state = match &end.outcome {
        _ if end.cancelled => {
            record.reason = Some("interrupted".into());
            State::Cancelled
        }
        Outcome::TimedOut => State::TimedOut,
        Outcome::Passed => {
            record.end.exit_code = Some(0);
            State::Succeeded
        }
        Outcome::Failed { code } => {
            record.end.exit_code = Some(*code);
            State::Failed
        }
        Outcome::Signalled { signal } => {
            record.end.signal = Some(*signal);
            State::Failed
        }
        other => {
            record.reason = Some(other.to_string());
            State::Failed
        }
    };
}

/// The words for a command that was ended after `seconds`, e.g. `no output for 5m`; `None` if the
/// hard limit ended it.
fn silence(limits: Limits, seconds: f64) -> Option<String> {
    if limits.hard.is_some_and(|hard| seconds >= hard.as_secs_f64()) {
        return None;
    }
    Some(format!("no output for {}", table::duration(limits.idle?.as_secs_f64())))
}

/// Prints how a candidate's command ended, and records it in the event log. `changed_nothing` is
/// true if the command was a later round and left the files unchanged.
fn report_end(
    session: &Session,
    candidate: CandidateRef<'_>,
    captured: &Captured,
    seconds: f64,
    changed_nothing: bool,
) -> Result<()> {
    let record = &captured.candidate;
    let Candidate { candidate: name, state, end, leaky, .. } = record;
    let event = Event::Ended {
        candidate: name.clone(),
        state: *state,
        how: HowEnded::Ran { exit_code: end.exit_code, signal: end.signal, leaky: *leaky, seconds },
    };
    session.store.record_event(&candidate.run.run, &event)?;
    let address = candidate.address();
    let words = captured.candidate.state_in_words();
    let same = if changed_nothing { "; this round changed nothing" } else { "" };
    let time = table::duration(seconds);
    let line = format!("{address}: {words} in {time}, {}{same}", captured.blast);
    match state {
        State::Failed | State::TimedOut | State::Cancelled | State::Limited => {
            let log = candidate.directory().logs().log(AGENT);
            log_excerpt::note_of_agent(session, &line, &log);
            let has_layers = record.access.as_ref().is_some_and(AttemptAccess::has_layers);
            if has_layers && obstacles::speaks_of_a_rename(&log) {
                session.ui.hint(RENAMES_HINT);
            }
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
    use crate::error::Error;

    /// The state, exit code, signal and reason in a record after a command ended in this way.
    fn after(
        outcome: Outcome,
        cancelled: bool,
    ) -> (State, Option<i32>, Option<i32>, Option<String>) {
        let name: Name = "c1".parse().expect("a name");
        let mut record = Candidate::new(&name, &name, 1, State::Running);
        record.reason = Some("an earlier one".into());
        let end = End { outcome, cancelled, ..End::not_started("no directory".into()) };
        record_end(&mut record, &Ok(end));
        (record.state, record.end.exit_code, record.end.signal, record.reason)
    }

    #[test]
    fn an_unknown_end_cancels_a_candidate_and_another_error_fails_it() {
        let name: Name = "c1".parse().expect("a name");
        let mut record = Candidate::new(&name, &name, 1, State::Running);
        record_end(&mut record, &Err(Error::fatal("it was killed").because(Cause::EndUnknown)));
        assert_eq!(
            (record.state, record.reason.as_deref()),
            (State::Cancelled, Some("it was killed"))
        );
        record_end(&mut record, &Err(Error::fatal("no directory")));
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
