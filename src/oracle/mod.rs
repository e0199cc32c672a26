//! The oracle: the project's commands, the clean checkouts to run them in, and the cache of
//! their results.
pub mod cache;
pub mod junit;
pub mod outcomes;
pub mod pool;
pub mod run;
pub mod surroundings;

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

/// The commands to run. If flags name any, only those run; else if configuration does, only those;
/// else those that the base's files show, unless `oracle.detect = false`. `spawn.setup` comes first
/// in every case.
///
/// Only the base's files count: an attempt must not choose the commands that judge it.
pub fn resolve(
    repo: &Repo,
    config: &Config,
    flags: &OracleFlags,
    base: &Oid,
) -> Result<Vec<OracleCommand>> {
    let stages = [
        (Stage::Build, &flags.build, keys::ORACLE_BUILD),
        (Stage::Lint, &flags.lint, keys::ORACLE_LINT),
        (Stage::Test, &flags.test, keys::ORACLE_TEST),
    ];
    let mut found: Vec<OracleCommand> = stages
        .iter()
        .filter_map(|(stage, text, _)| {
            let command = CommandLine::Shell(text.as_ref()?.clone());
            Some(OracleCommand { stage: *stage, command, source: format!("--{stage}") })
        })
        .collect();
    if found.is_empty() {
        found = stages
            .iter()
            .filter_map(|(stage, _, key)| {
                let (command, source) = config.command(*key)?;
                Some(OracleCommand { stage: *stage, command, source })
            })
            .collect();
    }
    if found.is_empty() && config.get(keys::ORACLE_DETECT) {
        found = detect_commands(repo, base)?;
    }
    if let Some((command, source)) = config.command(keys::SPAWN_SETUP) {
        found.retain(|c| c.stage != Stage::Setup);
        if !found.is_empty() {
            found.insert(0, OracleCommand { stage: Stage::Setup, command, source });
        }
    }
    Ok(found)
}
