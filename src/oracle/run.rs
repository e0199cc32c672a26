//! Running the oracle on one tree: setup, build, lint, test, stopping at the first that says no.
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::model::env;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::{Attempt, Outcome, Stage, StageResult};
use crate::model::path::TreePath;
use crate::oracle::junit;
use crate::process::environment::Policy;
use crate::process::interrupt::{self, Cancel};
use crate::process::{self, End, Job, Limits};

/// How the commands are run.
#[derive(Clone, Debug)]
pub struct OracleOptions {
    /// How long each may take.
    pub timeout: Duration,
    /// How often one that failed is tried again.
    pub retries: u32,
    /// Whether a pass after a failure is a no.
    pub refuse_flaky: bool,
    /// Where tests leave a JUnit file, from the checkout's root.
    pub junit: Option<String>,
}

/// Refuses an oracle whose program is not there, before anything is checked out: that would make
/// every candidate fail for a reason of its own.
pub fn require_programs(oracle: &[OracleCommand]) -> Result<()> {
    for command in oracle {
        let CommandLine::Argv(words) = &command.command else { continue };
        let Some(program) = words.first().filter(|p| !p.contains('/')) else { continue };
        if !process::on_path(program.as_ref()) {
            return Err(missing(command, program));
        }
    }
    Ok(())
}

/// Where commands run, who may stop them and who hears of them.
pub struct ExecContext<'a> {
    /// The checkout.
    pub dir: &'a Path,
    /// Gets `STAGE.log`, and `STAGE.try-N.log` of attempts before the one that counts.
    pub logs: &'a Path,
    /// Which variables they see.
    pub policy: &'a Policy,
    /// Ends it all.
    pub cancel: &'a Cancel,
    /// Tells which tracked files are not as they were checked out.
    pub changed: &'a dyn Fn() -> Result<Vec<TreePath>>,
    /// Hears of each command as it ends.
    pub told: &'a dyn Fn(&StageResult),
}

/// Runs the oracle; none if it was cancelled.
///
/// Fails when git-frites is asked to stop: a partial result is never a pass, nor a fail.
pub fn run(
    oracle: &[OracleCommand],
    manner: &OracleOptions,
    stand: &ExecContext<'_>,
) -> Result<Option<Vec<StageResult>>> {
    let mut results: Vec<StageResult> = Vec::new();
    let mut changed: Vec<TreePath> = Vec::new();
    for command in oracle {
        if results.iter().any(|r| !r.outcome.passed()) {
            results.push(StageResult::new(command.stage, 0.0, Outcome::Skipped));
            continue;
        }
        let Some(mut result) = attempts(command, manner, stand)? else { return Ok(None) };
        let now = (stand.changed)()?;
        let new = now.iter().filter(|path| !changed.contains(path));
        result.changed = new.map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        changed = now;
        (stand.told)(&result);
        results.push(result);
    }
    Ok(Some(results))
}

/// Runs one command until it passes, or there are no retries left; none if it was cancelled.
fn attempts(
    command: &OracleCommand,
    manner: &OracleOptions,
    stand: &ExecContext<'_>,
) -> Result<Option<StageResult>> {
    let stage = command.stage;
    let (argv, log) = (command.command.argv(), stand.logs.join(format!("{stage}.log")));
    forget_logs(stand.logs, stage);
    let limits = Limits { hard: Some(manner.timeout), idle: None };
    let (dir, policy, hide) = (stand.dir, stand.policy, &env::ALL);
    let job =
        Job { argv: &argv, dir, policy, env: Vec::new(), hide, stdin: None, log: &log, limits };
    let mut earlier: Vec<Attempt> = Vec::new();
    loop {
        let report = manner
            .junit
            .as_ref()
            .filter(|_| stage == Stage::Test)
            .map(|path| junit::expect(stand.dir, path));
        let end = match process::run_until(&job, stand.cancel) {
            // The command before has removed the checkout: that is this tree's affair alone.
            Err(e) if !dir.is_dir() => End::not_started(crate::error::describe(&e)),
            other => {
                other.map_err(|e| Error::io(format!("could not run the {stage} command"), e))?
            }
        };
        if end.cancelled && interrupt::signal().is_some() {
            return Err(Error::no("interrupted; nothing was decided")
                .hint("judge again: `git frites judge`"));
        }
        if end.cancelled {
            return Ok(None);
        }
        let seconds = end.elapsed.as_secs_f64();
        let again = matches!(
            end.outcome,
            Outcome::Failed { .. } | Outcome::Signalled { .. } | Outcome::TimedOut
        );
        if again && earlier.len() < manner.retries as usize {
            earlier.push(Attempt { seconds, outcome: end.outcome });
            // A log that cannot be kept aside is no reason to stop.
            let _ = fs::rename(&log, stand.logs.join(format!("{stage}.try-{}.log", earlier.len())));
            continue;
        }
        let End { outcome, leaky, .. } = end;
        let flaky = outcome == Outcome::Passed && !earlier.is_empty();
        let outcome = if flaky { Outcome::Flaky { refused: manner.refuse_flaky } } else { outcome };
        let tests = report.map(|expected| expected.read());
        return Ok(Some(StageResult {
            leaky,
            tests,
            earlier,
            ..StageResult::new(stage, seconds, outcome)
        }));
    }
}

/// Removes the logs of a stage from an earlier judging: what is there is of this one.
fn forget_logs(logs: &Path, stage: Stage) {
    let _ = fs::remove_file(logs.join(format!("{stage}.log")));
    for n in 1.. {
        if fs::remove_file(logs.join(format!("{stage}.try-{n}.log"))).is_err() {
            break;
        }
    }
}

/// What is recorded for a tree that cannot be checked out whole: the first command could not start on it.
pub fn not_started(oracle: &[OracleCommand], reason: &str) -> Vec<StageResult> {
    let outcome = |at| {
        if at == 0 {
            Outcome::CouldNotStart { reason: reason.to_owned() }
        } else {
            Outcome::Skipped
        }
    };
    oracle.iter().enumerate().map(|(at, c)| StageResult::new(c.stage, 0.0, outcome(at))).collect()
}

fn missing(command: &OracleCommand, program: &str) -> Error {
    let other = match command.stage {
        Stage::Setup => "set `spawn.setup` to another command".to_owned(),
        stage => format!("name another command with `--{stage} CMD`"),
    };
    Error::fatal(format!("the {} command cannot run: '{program}' is not on PATH", command.stage))
        .hint(format!("install it, or {other} (this one is from {})", command.source))
}
