//! Running the oracle on one tree: setup, build, lint, test, stopping at the first that says no.
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::{Outcome, Stage, StageResult};
use crate::process::environment::Policy;
use crate::process::{self, Job, Limits};

/// What a candidate's command sees and an oracle command must not: an outcome depends on the tree
/// alone.
pub const CANDIDATE_VARIABLES: [&str; 9] = [
    "FRITES_RUN",
    "FRITES_CANDIDATE",
    "FRITES_INDEX",
    "FRITES_COUNT",
    "FRITES_BASE",
    "FRITES_WORKTREE",
    "FRITES_PROMPT_FILE",
    "FRITES_PORT",
    "FRITES_DEPTH",
];

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

/// Runs the oracle in a pristine checkout at `dir`, each command for at most `timeout`, its output to
/// `STAGE.log` in the folder `logs`; `told` hears of each command as it ends.
///
/// Fails when git-frites is asked to stop: a partial result is never a pass, nor a fail.
pub fn run(
    dir: &Path,
    oracle: &[OracleCommand],
    policy: &Policy,
    timeout: Duration,
    logs: &Path,
    told: &dyn Fn(&StageResult),
) -> Result<Vec<StageResult>> {
    let mut results: Vec<StageResult> = Vec::new();
    for command in oracle {
        let stage = command.stage;
        if results.iter().any(|r| !r.outcome.passed()) {
            results.push(StageResult { stage, seconds: 0.0, leaky: false, outcome: Outcome::Skipped });
            continue;
        }
        let (argv, log) = (command.command.argv(), logs.join(format!("{stage}.log")));
        let limits = Limits { hard: Some(timeout), idle: None };
        let hide = &CANDIDATE_VARIABLES;
        let job = Job { argv: &argv, dir, policy, env: Vec::new(), hide, stdin: None, log: &log, limits };
        let end = process::run(&job).map_err(|e| Error::io(format!("could not run the {stage} command"), &e))?;
        if end.cancelled {
            return Err(Error::no("interrupted; nothing was decided").hint("judge again: `git frites judge`"));
        }
        let result = StageResult { stage, seconds: end.elapsed.as_secs_f64(), leaky: end.leaky, outcome: end.outcome };
        told(&result);
        results.push(result);
    }
    Ok(results)
}

/// What is recorded for a tree that cannot be checked out whole: the first command could not start on it.
pub fn not_started(oracle: &[OracleCommand], reason: &str) -> Vec<StageResult> {
    let outcome = |at| if at == 0 { Outcome::CouldNotStart { reason: reason.to_owned() } } else { Outcome::Skipped };
    let result = |(at, c): (usize, &OracleCommand)| StageResult {
        stage: c.stage,
        seconds: 0.0,
        leaky: false,
        outcome: outcome(at),
    };
    oracle.iter().enumerate().map(result).collect()
}

fn missing(command: &OracleCommand, program: &str) -> Error {
    let other = match command.stage {
        Stage::Setup => "set `spawn.setup` to another command".to_owned(),
        stage => format!("name another command with `--{stage} CMD`"),
    };
    Error::fatal(format!("the {} command cannot run: '{program}' is not on PATH", command.stage))
        .hint(format!("install it, or {other} (this one is from {})", command.source))
}
