//! The oracle: finding the project's commands, a pristine checkout for each tree, running them there.
pub mod cache;
pub mod junit;
pub mod pool;
pub mod run;

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

/// What to run: if flags name any command, only those; else if configuration does, only those; else
/// what the base's files tell, unless `oracle.detect = false`. `spawn.setup` comes first wherever the
/// others come from.
///
/// Only the base is looked at: an attempt cannot choose its own judge.
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
