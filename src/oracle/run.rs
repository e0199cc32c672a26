//! Running the oracle on one tree: setup, build, lint, test, stopping at the first that says no.
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::{Outcome, StageResult};
use crate::process::{self, Job};

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

/// Runs the oracle in a pristine checkout at `dir`. `log` says where a command's output goes; `told`
/// hears of each command as it ends.
pub fn run(
    dir: &Path,
    oracle: &[OracleCommand],
    log: &dyn Fn(&OracleCommand) -> std::path::PathBuf,
    told: &dyn Fn(&StageResult),
) -> Result<Vec<StageResult>> {
    let mut results: Vec<StageResult> = Vec::new();
    for command in oracle {
        let stage = command.stage;
        if results.iter().any(|r| !r.outcome.passed()) {
            results.push(StageResult { stage, seconds: 0.0, outcome: Outcome::Skipped });
            continue;
        }
        let (mut argv, log) = (command.command.argv(), log(command));
        // A program that is part of the tree: duct alone would look for `./check` in our own folder.
        if let Some(program) = argv.first_mut().filter(|p| p.as_bytes().contains(&b'/')) {
            *program = dir.join(&*program).into();
        }
        let job = Job { argv: &argv, dir, env: Vec::new(), hide: &CANDIDATE_VARIABLES, log: &log };
        let end = process::run(&job).map_err(|e| {
            Error::fatal(format!("could not write '{}': {}", log.display(), crate::error::describe(&e)))
        })?;
        let result = StageResult { stage, seconds: end.elapsed.as_secs_f64(), outcome: end.outcome };
        told(&result);
        results.push(result);
    }
    Ok(results)
}

fn missing(command: &OracleCommand, program: &str) -> Error {
    Error::fatal(format!("the {} command cannot run: '{program}' is not on PATH", command.stage)).hint(format!(
        "install it, or name another command with `--{} CMD` (this one is from {})",
        command.stage, command.source
    ))
}
