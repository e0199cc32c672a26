//! Runs the oracle on one tree: setup, build, lint and test, up to the first command that fails.
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::error::{Cause, Error, Result};
use crate::model::env;
use crate::model::error_line::{is_about_others, looks_like_error};
use crate::model::layout::{log_name, log_of_try};
use crate::model::name::Name;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::{Attempt, CANNOT_TELL, Obstacle, Outcome, Results, Stage, StageResult};
use crate::model::path::TreePath;
use crate::model::terms::{CommandSettings, Terms};
use crate::oracle::obstacles;
use crate::oracle::sealed::machine_paths::SandboxOptions;
use crate::oracle::test_reports::TestReports;
use crate::process::environment::Policy;
use crate::process::interrupt::{self, Cancel};
use crate::process::processor_share::ProcessorShare;
use crate::process::world_spec::Confinement;
use crate::process::{self, End, Job, Limits, last_lines, lines_from};

/// The options that are the same for every oracle command.
#[derive(Clone, Debug, Serialize)]
pub struct OracleOptions {
    /// The time limit of each try.
    pub timeout: Duration,
    /// The settings of the world in which the commands run; `None` for the open world.
    pub sandbox: Option<SandboxOptions>,
}

/// The checkout in which the commands on a tree run.
pub struct JudgedPlace<'p> {
    /// The path of the checkout, as the commands see it.
    pub dir: &'p Path,
    /// The directory where the commands' writes to the checkout really go.
    pub written: &'p Path,
    /// Returns the confinement for the command of a stage; `None` if the command is not confined.
    pub confinement: &'p dyn Fn(Stage) -> Option<Confinement>,
    /// The dependencies that the tree needs and that are not in the place yet.
    pub downloads: Downloads,
    /// Returns the tracked files that have changed since they were checked out.
    pub changed: &'p dyn Fn() -> Result<Vec<TreePath>>,
}

/// The dependencies that are downloaded before the oracle's commands run.
#[derive(Default)]
pub struct Downloads {
    /// The commands that download the dependencies.
    pub commands: Vec<OracleCommand>,
    /// True if, after a failed download, a failure of an oracle command does not count.
    pub are_needed: bool,
    /// Set once a download has failed.
    pub have_failed: Cell<bool>,
}

/// The surroundings that the commands on one tree run in.
pub struct ExecContext<'a> {
    /// The place in which the commands run.
    pub place: &'a JudgedPlace<'a>,
    pub settings: &'a CommandSettings,
    /// The time limit of each try.
    pub timeout: Duration,
    /// The directory for the logs: `STAGE.log` of the last try, and `STAGE.try-N.log` of each
    /// earlier try.
    pub logs: &'a Path,
    /// The variables that the commands see.
    pub policy: &'a Policy,
    /// Ends the commands early.
    pub cancel: &'a Cancel,
    /// The share of the processor that each command gets.
    pub share: ProcessorShare,
    /// Called with the result of each command when the command ends.
    pub on_end: &'a dyn Fn(&StageResult),
}

/// A result keeps at most this many characters of a line of output.
const LONGEST_ERROR: usize = 200;

/// At most this many lines at the end of a log are searched for one that is about the command
/// itself.
const SEARCHED_LINES: usize = 20;

/// Runs the oracle's commands in order, up to the first one that does not pass. The rest are
/// skipped. Returns `None` if the commands were cancelled because their results do not matter any
/// more.
///
/// Fails if git-frites is interrupted, because a partial result is neither a pass nor a failure.
pub fn run(oracle: &[OracleCommand], context: &ExecContext<'_>) -> Result<Option<Results>> {
    let JudgedPlace { downloads, changed: changed_now, .. } = context.place;
    for command in &downloads.commands {
        let Some(result) = run_with_retries(command, context)? else {
            return Ok(None);
        };
        if !result.outcome.passed() {
            downloads.have_failed.set(true);
            (context.on_end)(&StageResult { obstacle: Some(Obstacle::Download), ..result });
        }
    }
    let mut results = Results::default();
    let mut changed: Vec<TreePath> = Vec::new();
    for command in oracle {
        if results.iter().any(|r| !r.outcome.passed()) {
            results.0.push(StageResult::new(command.stage, 0.0, Outcome::Skipped));
            continue;
        }
        let Some(mut result) = run_with_retries(command, context)? else {
            return Ok(None);
        };
        let now = changed_now()?;
        let new = now.iter().filter(|path| !changed.contains(path));
        result.changed = new.map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        changed = now;
        let lacks_some = downloads.are_needed && downloads.have_failed.get();
        if lacks_some && !result.outcome.passed() {
            result.outcome = Outcome::CannotTell;
            result.obstacle = Some(Obstacle::Download);
        }
        (context.on_end)(&result);
        results.0.push(result);
    }
    Ok(Some(results))
}

/// Runs one command until it passes or no retries are left. Returns `None` if it was cancelled.
fn run_with_retries(
    command: &OracleCommand,
    context: &ExecContext<'_>,
) -> Result<Option<StageResult>> {
    let stage = command.stage;
    let argv = command.command.argv();
    let log = context.logs.join(log_name(stage.as_str()));
    let ExecContext { policy, share, place, settings, timeout, .. } = *context;
    let JudgedPlace { dir, written, .. } = *place;
    let limits = Limits { hard: Some(timeout), idle: None, share };
    let confinement = (place.confinement)(stage);
    let reports = (stage == Stage::Test).then(|| {
        let junit = settings.junit.as_deref();
        let places = (dir, written);
        TestReports::of(&command.command, junit, places, confinement.as_ref(), policy)
    });
    let job = Job {
        argv: &argv,
        dir,
        policy,
        env: reports.as_ref().map(TestReports::variables).unwrap_or_default(),
        hide: &env::ALL,
        stdin: None,
        log: &log,
        limits,
        confinement: confinement.as_ref(),
    };
    let mut earlier: Vec<Attempt> = Vec::new();
    loop {
        let Some(mut result) = run_once(&job, stage, reports.as_ref(), context)? else {
            return Ok(None);
        };
        let StageResult { seconds, outcome, .. } = &result;
        if may_pass_again(outcome) && earlier.len() < settings.retries as usize {
            earlier.push(Attempt { seconds: *seconds, outcome: outcome.clone() });
            // Go on even if the log cannot be renamed.
            let aside = context.logs.join(log_of_try(stage.as_str(), earlier.len()));
            let _ = fs::rename(&log, aside);
            continue;
        }
        if *outcome == Outcome::Passed && !earlier.is_empty() {
            result.outcome = Outcome::Flaky { refused: settings.refuse_flaky };
        }
        let tests = result.tests.as_ref();
        let names_failures = tests.is_some_and(|t| !t.failing.is_empty() && !t.none_passed());
        if matches!(result.outcome, Outcome::Failed { .. }) && !names_failures {
            let line = line_of_failure(&log);
            result.error = line.map(|line| line.trim().chars().take(LONGEST_ERROR).collect());
        }
        return Ok(Some(StageResult { earlier, ..result }));
    }
}

/// Runs a stage's command once. Returns `None` if it was cancelled.
fn run_once(
    job: &Job<'_>,
    stage: Stage,
    reports: Option<&TestReports>,
    context: &ExecContext<'_>,
) -> Result<Option<StageResult>> {
    let before = reports.map(TestReports::files).unwrap_or_default();
    let end = match process::run_until(job, context.cancel) {
        // An earlier command has removed the checkout. This is a failure of the tree, not of
        // git-frites.
        Err(e) if !job.dir.is_dir() && e.cause != Cause::EndUnknown => {
            End::not_started(e.message.trim_start_matches("could not start: ").to_owned())
        }
        Err(e) => return Err(with_advice(e, stage, job.log)),
        Ok(end) => end,
    };
    if end.cancelled && interrupt::signal().is_some() {
        return Err(interrupted());
    }
    if end.cancelled {
        return Ok(None);
    }
    // The lost lines may have been a summary of failed tests.
    if let (Outcome::Passed, Some(why)) = (&end.outcome, &end.lost_output) {
        let text = format!("it is not known how it ended: its output could not be stored ({why})");
        let error = Error::fatal(text).because(Cause::EndUnknown);
        return Err(with_advice(error, stage, job.log));
    }
    let ended = reports.map(|reports| reports.read(&before, job.log)).unwrap_or_default();
    let confinement = job.confinement.filter(|_| !end.outcome.passed());
    let is_full = !end.outcome.passed() && obstacles::disk_is_full(job.log, context.place.written);
    let obstacle = match confinement {
        _ if is_full => Some(Obstacle::FullDisk),
        world => world.and_then(|world| obstacles::in_log(job.log, &end.outcome, world)),
    };
    let reported = if context.settings.trust_exit { 0 } else { ended.failed };
    let mut outcome = believed(end.outcome, obstacle.as_ref(), reported);
    if outcome == Outcome::Passed
        && stage == Stage::Test
        && let Some(target) = target_that_make_left(job.log)
    {
        outcome = Outcome::CouldNotStart {
            reason: format!(
                "make says that '{target}' is up to date, so no test ran; `.PHONY: {target}` makes it run"
            ),
        };
    }
    let result = StageResult::new(stage, end.elapsed.as_secs_f64(), outcome);
    Ok(Some(StageResult { leaky: end.leaky, obstacle, tests: ended.report, ..result }))
}

/// The target that make passed over because a file or directory has the target's name (`test`).
/// `None` unless make's message about this is the whole output of the command.
fn target_that_make_left(log: &Path) -> Option<String> {
    let lines = last_lines(log, 2);
    let [line] = lines.as_slice() else { return None };
    let (program, rest) = line.split_once(": ")?;
    // Earlier versions of make begin a quotation with a grave accent.
    let target = rest.strip_prefix(['\'', '`'])?.strip_suffix("' is up to date.")?;
    program.trim_start_matches('g').starts_with("make").then(|| target.to_owned())
}

/// The outcome that counts for a command that ended in this way, met this obstacle, and reported
/// this many failed tests.
fn believed(end: Outcome, obstacle: Option<&Obstacle>, reported: u64) -> Outcome {
    match (end, obstacle) {
        (Outcome::Failed { code: CANNOT_TELL }, _) => Outcome::CannotTell,
        // The command may have failed only because a write was refused, or the disk was full. If it
        // could not start, that cannot be the reason.
        (failed @ Outcome::Failed { .. }, Some(Obstacle::Write { .. } | Obstacle::FullDisk))
            if !failed.could_not_start() =>
        {
            Outcome::CannotTell
        }
        (Outcome::Passed, _) if reported > 0 => Outcome::ReportedFailures { failed: reported },
        (other, _) => other,
    }
}

/// True if the command failed in a way in which a retry may pass.
fn may_pass_again(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Failed { .. }
            | Outcome::ReportedFailures { .. }
            | Outcome::Signalled { .. }
            | Outcome::TimedOut
    )
}

/// The error of an interrupted judging.
pub fn interrupted() -> Error {
    Error::no("interrupted; nothing was decided")
}

/// The error of a judging. If a signal has interrupted the judging, adds the command that judges the
/// run again on these terms, with the options `more`.
pub fn with_judge_command(error: Error, terms: &Terms, run: &Name, more: &str) -> Error {
    match interrupt::signal() {
        Some(_) => error.hint(format!("judge again: `{}`", terms.judge_command(run, more))),
        None => error,
    }
}

/// The line of a failed command's output that most likely names the cause. This is the first line
/// that looks like an error. Without such a line, it is the last one that does not merely say that
/// something else has failed.
fn line_of_failure(log: &Path) -> Option<String> {
    lines_from(log, looks_like_error, 1).pop().or_else(|| {
        last_lines(log, SEARCHED_LINES).into_iter().rfind(|line| !is_about_others(line))
    })
}

/// Adds to an error whether git-frites could not run the command, or does not know how it ended. In
/// the second case, also adds a hint.
fn with_advice(error: Error, stage: Stage, log: &Path) -> Error {
    if error.cause != Cause::EndUnknown {
        return error.context(format!("could not run the {stage} command"));
    }
    error
        .context(format!("the {stage} command"))
        .hint("nothing was stored; if the machine ended it (memory, a batch system), judge again")
        .hint(format!(
            "if the code under test ended it, the output may show how: {}",
            log.display()
        ))
}

/// The results for a tree that cannot be checked out completely: the first command could not start,
/// and the rest were skipped.
pub fn not_started(oracle: &[OracleCommand], reason: &str) -> Results {
    let skipped = oracle.iter().map(|c| StageResult::new(c.stage, 0.0, Outcome::Skipped));
    let mut results = Results(skipped.collect());
    if let Some(first) = results.0.first_mut() {
        first.outcome = Outcome::CouldNotStart { reason: reason.to_owned() };
    }
    results
}
