//! Looks up the programs that the oracle's commands start, before any command runs.
//!
//! If a program is missing, its command fails on every tree, and no candidate is the cause. So if the words
//! of a command show which programs it needs, git-frites reports missing programs before the attempts begin.
use crate::error::{Error, Result};
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::Stage;
use crate::model::shell;
use crate::process;

/// Fails if a program that a command of the oracle needs is not installed. `setup` is the key that sets another
/// setup command.
///
/// A program that is a path in the checkout is not checked, because the setup, a build or an attempt can make
/// the file.
pub fn require_programs(oracle: &[OracleCommand], setup: &str) -> Result<()> {
    match all_missing(oracle).next() {
        Some((command, program)) => Err(missing(command, &program, setup)),
        None => Ok(()),
    }
}

/// The programs that are not installed, each with the stage of the command that needs it.
pub fn missing_programs(oracle: &[OracleCommand]) -> Vec<(Stage, String)> {
    all_missing(oracle).map(|(command, program)| (command.stage, program)).collect()
}

fn all_missing(oracle: &[OracleCommand]) -> impl Iterator<Item = (&OracleCommand, String)> {
    let needed = oracle.iter().flat_map(|command| {
        programs(&command.command).into_iter().map(move |program| (command, program))
    });
    needed.filter(|(_, program)| {
        let is_relative = program.contains('/') && !program.starts_with('/');
        !is_relative && !process::on_path(program.as_ref())
    })
}

/// The programs without which a command cannot pass, as far as its words show them.
pub fn programs(command: &CommandLine) -> Vec<String> {
    match command {
        CommandLine::Argv(words) => words.first().cloned().into_iter().collect(),
        CommandLine::Shell(text) => shell::programs(text),
    }
}

fn missing(command: &OracleCommand, program: &str, setup: &str) -> Error {
    let other = match command.stage {
        Stage::Setup => format!(", or set `{setup}` to another command"),
        Stage::Test => ", or name another command with `--test CMD`".to_owned(),
        // The error does not propose to leave out the build, because the test usually needs the build's
        // outputs.
        Stage::Build => String::new(),
        // The error does not propose to name another lint command: with `--lint CMD`, no detected command
        // would run, so there would be no test.
        Stage::Lint => ", or leave it out with `--lint ''`".to_owned(),
    };
    let why = if program.contains('/') { "is not a program" } else { "is not on PATH" };
    Error::fatal(format!("the {} command cannot run: '{program}' {why}", command.stage))
        .hint(format!("install it{other} (this one is from {})", command.source))
}
