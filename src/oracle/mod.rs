//! The oracle: the project's commands, the clean checkouts to run them in, and the cache of
//! their results.
pub mod cache;
pub mod junit;
pub mod outcomes;
pub mod pool;
pub mod programs;
pub mod restricted;
pub mod run;
pub mod sealed;
pub mod surroundings;

use crate::config::keys::Key;
use crate::config::{Config, keys};
use crate::ecosystems::detect::detect_commands;
use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::Stage;

/// The commands that flags named.
#[derive(Clone, Debug, Default)]
pub struct OracleFlags {
    /// `--build`.
    pub build: Option<String>,
    /// `--lint`.
    pub lint: Option<String>,
    /// `--test`.
    pub test: Option<String>,
}

impl OracleFlags {
    /// True if any command was named.
    pub fn any(&self) -> bool {
        [&self.build, &self.lint, &self.test].into_iter().any(Option::is_some)
    }
}

/// The commands that judge a run, and what is left out of those that the base's files show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvedOracle {
    /// The commands to run, in order.
    pub commands: Vec<OracleCommand>,
    /// True if the base's files show the commands: nobody named them.
    pub is_detected: bool,
    /// Commands that the base's files show and that do not run, because options name others.
    pub left_out: Vec<OracleCommand>,
}

impl ResolvedOracle {
    /// True if a pass shows nothing about the change: nobody named the commands, and none of those
    /// that the base's files show is a test.
    pub fn tests_nothing(&self) -> bool {
        self.is_detected
            && !self.commands.is_empty()
            && !self.commands.iter().any(|c| c.stage == Stage::Test)
    }
}

/// The commands to run. If flags name any, only those run; else if configuration does, only those;
/// else those that the base's files show, unless `oracle.detect = false`. A stage whose command is
/// the empty text has none. `spawn.setup` comes first in every case.
///
/// Only the base's files count: an attempt must not choose the commands that judge it.
pub fn resolve(
    repo: &Repo,
    config: &Config,
    flags: &OracleFlags,
    base: &Oid,
) -> Result<ResolvedOracle> {
    let by_flags = stages(flags).map(|(stage, text, _)| {
        let command = CommandLine::Shell(text.clone()?);
        Some(OracleCommand { stage, command, source: format!("--{stage}") })
    });
    let by_config = stages(flags).map(|(stage, _, key)| {
        let (command, source) = config.command(key)?;
        Some(OracleCommand { stage, command, source })
    });
    let named = |all: &[Option<OracleCommand>; 3]| -> Vec<OracleCommand> {
        all.iter().flatten().filter(|c| !c.command.is_empty()).cloned().collect()
    };
    let is_off = |stage: Stage| {
        let set = by_flags.iter().chain(&by_config).flatten().find(|c| c.stage == stage);
        set.is_some_and(|c| c.command.is_empty())
    };
    let detect = || -> Result<Vec<OracleCommand>> {
        if !config.get(keys::ORACLE_DETECT) {
            return Ok(Vec::new());
        }
        let mut found = detect_commands(repo, base)?;
        found.retain(|c| !is_off(c.stage));
        if found.iter().all(|c| c.stage == Stage::Setup) {
            found.clear();
        }
        Ok(found)
    };
    let mut oracle = ResolvedOracle { commands: named(&by_flags), ..ResolvedOracle::default() };
    if !oracle.commands.is_empty() {
        if named(&by_config).is_empty() {
            // Only a remark: files that cannot be parsed matter to nobody here.
            oracle.left_out = detect().unwrap_or_default();
        }
        oracle.left_out.retain(|c| !oracle.commands.iter().any(|named| named.stage == c.stage));
    } else {
        oracle.commands = named(&by_config);
        oracle.commands.retain(|c| !is_off(c.stage));
    }
    if oracle.commands.is_empty() {
        oracle.commands = detect()?;
        oracle.is_detected = true;
    }
    if let Some((command, source)) = config.command(keys::SPAWN_SETUP) {
        for commands in [&mut oracle.commands, &mut oracle.left_out] {
            commands.retain(|c| c.stage != Stage::Setup);
        }
        if !oracle.commands.is_empty() && !command.is_empty() {
            oracle.commands.insert(0, OracleCommand { stage: Stage::Setup, command, source });
        }
    }
    Ok(oracle)
}

/// A stage of the oracle with its flag and its key.
type NamedStage<'a> = (Stage, &'a Option<String>, Key<Option<CommandLine>>);

fn stages(flags: &OracleFlags) -> [NamedStage<'_>; 3] {
    [
        (Stage::Build, &flags.build, keys::ORACLE_BUILD),
        (Stage::Lint, &flags.lint, keys::ORACLE_LINT),
        (Stage::Test, &flags.test, keys::ORACLE_TEST),
    ]
}
