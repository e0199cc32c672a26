//! The oracle: the project's commands, the clean checkouts in which they run, and the cache of
//! their results.
pub mod cache;
pub mod ledger;
pub mod obstacles;
pub mod pool;
pub mod restricted;
pub mod run;
pub mod sealed;
pub mod test_reports;

use crate::config::{Config, keys};
use crate::ecosystems::detect::{Detected, PassedOver, detect};
use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand, as_options, shell_quoted};
use crate::model::outcome::Stage;
use crate::model::shell;
use crate::process;

/// The commands that the user names with `--build`, `--lint` and `--test`. An empty command leaves
/// its stage out.
pub fn named_by_flags([build, lint, test]: [&Option<String>; 3]) -> Vec<OracleCommand> {
    let flags = [(Stage::Build, build), (Stage::Lint, lint), (Stage::Test, test)];
    let commands = flags.into_iter().filter_map(|(stage, text)| {
        let command = CommandLine::Shell(text.clone()?);
        Some(OracleCommand { stage, command, source: format!("--{stage}") })
    });
    commands.collect()
}

/// The commands that the configuration names. An empty command leaves its stage out.
fn named_by_config(config: &Config) -> Vec<OracleCommand> {
    let settings = [
        (Stage::Build, keys::ORACLE_BUILD),
        (Stage::Lint, keys::ORACLE_LINT),
        (Stage::Test, keys::ORACLE_TEST),
    ];
    let commands = settings.into_iter().filter_map(|(stage, key)| {
        let (command, source) = config.command(key)?;
        Some(OracleCommand { stage, command, source })
    });
    commands.collect()
}

/// True if a flag leaves the stage out. Also true if the configuration leaves it out, and no flag
/// names a command for it.
fn is_off(stage: Stage, flags: &[OracleCommand], configured: &[OracleCommand]) -> bool {
    let set = flags.iter().chain(configured).find(|c| c.stage == stage);
    set.is_some_and(|c| c.command.is_empty())
}

/// The commands that judge a run, and other commands that were found but do not run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvedOracle {
    /// The commands to run, in order.
    pub commands: Vec<OracleCommand>,
    /// True if the commands were detected from the base's files, because neither flags nor the
    /// configuration name any.
    pub is_detected: bool,
    /// Detected commands that do not run, because flags or the configuration name other commands.
    pub left_out: Vec<OracleCommand>,
    /// The commands that detection found but did not choose, each with the reason.
    pub not_taken: Vec<PassedOver>,
}

impl ResolvedOracle {
    /// Fails if a program of the commands is not installed. The error then hints at the next
    /// detected test command whose program is installed.
    pub fn require_programs(&self) -> Result<()> {
        let Err(error) = require_programs(&self.commands, keys::ORACLE_SETUP.name) else {
            return Ok(());
        };
        let missing = missing_programs(&self.commands);
        if missing.first().is_some_and(|(command, _)| command.stage == Stage::Lint) {
            // The error proposes to leave out the lint command, so no other test is proposed.
            return Err(error);
        }
        let others: Vec<&OracleCommand> =
            self.not_taken.iter().filter_map(|other| other.command.as_ref()).collect();
        let is_usable = |command: &&OracleCommand| {
            let missing = missing_programs(std::slice::from_ref(*command));
            command.stage == Stage::Test && missing.is_empty()
        };
        let Some(at) = others.iter().position(is_usable) else { return Err(error) };
        let next = others[at];
        let mut own = others[..at].iter().rev().take_while(|c| c.stage != Stage::Test);
        let Some(setup) = own.find(|c| c.stage == Stage::Setup) else {
            let options = as_options(std::iter::once(next));
            let options = options.trim_start();
            return Err(error.hint(format!("{} shows another test: `{options}`", next.source)));
        };
        Err(error
            .hint(format!("{} shows another test, which needs a setup; set both:", next.source))
            .hint(setting(setup))
            .hint(setting(next)))
    }

    /// True if a pass says nothing about the change, because the commands were detected and none of
    /// them is a test.
    pub fn tests_nothing(&self) -> bool {
        self.is_detected
            && !self.commands.is_empty()
            && !self.commands.iter().any(|c| c.stage == Stage::Test)
    }
}

/// The `git config` command that makes this command the configured command of its stage.
pub fn setting(command: &OracleCommand) -> String {
    let line = shell_quoted(&command.command.to_string());
    format!("`git config frites.oracle.{} {line}`", command.stage)
}

/// The commands to run. They come from the first of these sources that names any:
/// * the flags;
/// * the configuration;
/// * detection from the base's files, unless `oracle.detect` is false.
///
/// A stage with an empty command is left out. If any commands are found, the command of
/// `oracle.setup`, or else of `spawn.setup`, comes first and replaces a detected setup.
///
/// Only the base's files are used for detection, because an attempt must not choose the commands by
/// which it is judged.
pub fn resolve(
    repo: &Repo,
    config: &Config,
    flags: &[OracleCommand],
    base: &Oid,
) -> Result<ResolvedOracle> {
    let by_config = named_by_config(config);
    let detected = || -> Result<Detected> {
        if !config.get(keys::ORACLE_DETECT) {
            return Ok(Detected::default());
        }
        let mut found = detect(repo, base)?;
        found.commands.retain(|c| !is_off(c.stage, flags, &by_config));
        if found.commands.iter().all(|c| c.stage == Stage::Setup) {
            found.commands.clear();
        }
        Ok(found)
    };
    let mut configured = to_run(&by_config);
    let mut oracle = ResolvedOracle { commands: to_run(flags), ..ResolvedOracle::default() };
    let flags_replace_configured = !oracle.commands.is_empty() && !configured.is_empty();
    if oracle.commands.is_empty() {
        configured.retain(|c| !is_off(c.stage, flags, &[]));
        oracle.commands = configured;
    }
    if oracle.commands.is_empty() {
        let found = detected()?;
        oracle.commands = found.commands;
        oracle.not_taken = found.passed_over;
        oracle.is_detected = true;
    } else if !flags_replace_configured {
        // These commands are only reported, so an error in a file of the base is ignored.
        oracle.left_out = detected().unwrap_or_default().commands;
        oracle.left_out.retain(|c| !oracle.commands.iter().any(|named| named.stage == c.stage));
    }
    if let Some((command, source)) = setup_of(config) {
        for commands in [&mut oracle.commands, &mut oracle.left_out] {
            commands.retain(|c| c.stage != Stage::Setup);
        }
        if !oracle.commands.is_empty() && !command.is_empty() {
            oracle.commands.insert(0, OracleCommand { stage: Stage::Setup, command, source });
        }
    }
    Ok(oracle)
}

/// The configured and detected commands that are not among the commands of `oracle`, each with the
/// reason. `oracle` is the result of [`resolve`].
pub fn passed_over(
    repo: &Repo,
    config: &Config,
    flags: &[OracleCommand],
    base: &Oid,
    oracle: &ResolvedOracle,
) -> Result<Vec<PassedOver>> {
    // Detection can find the same command in several files.
    let same = |a: &OracleCommand, b: &OracleCommand| {
        (a.stage, a.command.shell_line()) == (b.stage, b.command.shell_line())
    };
    let runs = |command: &OracleCommand| oracle.commands.iter().any(|own| same(own, command));
    let by_config = named_by_config(config);
    let by_flags = oracle.commands.iter().any(|c| c.source.starts_with("--"));
    let named_by = match (oracle.is_detected, by_flags) {
        (true, _) => None,
        (false, true) => Some("options name the commands"),
        (false, false) => Some("the configuration names the commands"),
    };
    let configured = to_run(&by_config).into_iter().filter(|command| !runs(command));
    let mut all: Vec<PassedOver> = configured
        .map(|command| PassedOver {
            reason: named_by.unwrap_or("an option takes this stage out").to_owned(),
            command: Some(command),
        })
        .collect();
    let has_setup = setup_of(config).is_some();
    let found = match detect(repo, base) {
        Ok(found) => found,
        Err(error) => {
            all.push(PassedOver { command: None, reason: error.message });
            return Ok(all);
        }
    };
    let chosen = found.commands.into_iter().map(|command| PassedOver {
        command: Some(command),
        reason: "it alone judges nothing".to_owned(),
    });
    for passed_over in chosen.chain(found.passed_over) {
        let Some(command) = &passed_over.command else {
            if named_by.is_none() {
                all.push(passed_over);
            }
            continue;
        };
        let mut listed = all.iter().filter_map(|other| other.command.as_ref());
        if runs(command) || listed.any(|other| same(other, command)) {
            continue;
        }
        let reason = match named_by {
            Some(named_by) => named_by.to_owned(),
            _ if !config.get(keys::ORACLE_DETECT) => "oracle.detect is false".to_owned(),
            _ if is_off(command.stage, flags, &by_config) => format!("{} is empty", command.stage),
            _ if command.stage == Stage::Setup && has_setup => "a setup is configured".to_owned(),
            None => passed_over.reason,
        };
        all.push(PassedOver { command: passed_over.command, reason });
    }
    Ok(all)
}

/// The configured setup command for judging: `oracle.setup`, or else `spawn.setup`, which sets up
/// worktrees.
fn setup_of(config: &Config) -> Option<(CommandLine, String)> {
    config.command(keys::ORACLE_SETUP).or_else(|| config.command(keys::SPAWN_SETUP))
}

/// The commands that are not empty.
fn to_run(named: &[OracleCommand]) -> Vec<OracleCommand> {
    named.iter().filter(|c| !c.command.is_empty()).cloned().collect()
}

/// Fails if a program of an oracle command is not installed, as far as the command's words show its
/// programs. Such a command would fail on every tree, and no candidate would be the cause. `setup`
/// is the key that sets another setup command.
///
/// A program that is a path in the checkout is not checked, because the setup, a build or an
/// attempt can make the file.
pub fn require_programs(oracle: &[OracleCommand], setup: &str) -> Result<()> {
    match missing_programs(oracle).first() {
        Some((command, program)) => Err(missing(command, program, setup)),
        None => Ok(()),
    }
}

/// The programs that are not installed, each with the command that needs it.
pub fn missing_programs(oracle: &[OracleCommand]) -> Vec<(&OracleCommand, String)> {
    let of_each = oracle.iter().flat_map(|command| {
        let missing = programs(&command.command).into_iter().filter(|program| is_missing(program));
        missing.map(move |program| (command, program))
    });
    of_each.collect()
}

/// True if a program is not installed. A program that is a path in the checkout is not looked for.
fn is_missing(program: &str) -> bool {
    let is_relative = program.contains('/') && !program.starts_with('/');
    !is_relative && !process::on_path(program.as_ref())
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
        // The error does not propose to leave out the build, because the test usually needs the
        // build's outputs.
        Stage::Build => String::new(),
        // The error does not propose to name another lint command. With `--lint CMD`, no detected
        // command would run, so there would be no test.
        Stage::Lint => ", or leave it out with `--lint ''`".to_owned(),
    };
    let why = if program.contains('/') { "is not a program" } else { "is not on PATH" };
    Error::fatal(format!("the {} command cannot run: '{program}' {why}", command.stage))
        .hint(format!("install it{other} (this one is from {})", command.source))
}
