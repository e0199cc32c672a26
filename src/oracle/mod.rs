//! The oracle: finding the project's commands, a pristine checkout for each tree, running them there.
pub mod checkout;
pub mod detect;
pub mod run;

use crate::config::Config;
use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::Stage;

/// The commands that flags named.
#[derive(Clone, Debug, Default)]
pub struct Flags {
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
pub fn resolve(repo: &Repo, config: &Config, flags: &Flags, base: &Oid) -> Result<Vec<OracleCommand>> {
    let stages = [(Stage::Build, &flags.build), (Stage::Lint, &flags.lint), (Stage::Test, &flags.test)];
    let mut found: Vec<OracleCommand> = stages
        .iter()
        .filter_map(|(stage, text)| {
            let command = CommandLine::Shell(text.as_ref()?.clone());
            Some(OracleCommand { stage: *stage, command, source: format!("--{stage}") })
        })
        .collect();
    if found.is_empty() {
        found = stages
            .iter()
            .filter_map(|(stage, _)| {
                let (command, source) = config.command(&format!("oracle.{stage}"))?;
                Some(OracleCommand { stage: *stage, command: command.clone(), source: source.to_owned() })
            })
            .collect();
    }
    if found.is_empty() && config.switch("oracle.detect", true) {
        found = detect::detect(repo, base)?;
    }
    if let Some((command, source)) = config.command("spawn.setup") {
        found.retain(|c| c.stage != Stage::Setup);
        if !found.is_empty() {
            let setup = OracleCommand { stage: Stage::Setup, command: command.clone(), source: source.to_owned() };
            found.insert(0, setup);
        }
    }
    Ok(found)
}
