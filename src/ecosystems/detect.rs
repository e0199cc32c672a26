//! Detection of the project's own commands in the base's files, when nobody named any.
//!
//! The first detector that finds a test decides alone; if none does, the first that finds any
//! command. A command is only taken where the project's files show that it is in use. A file that cannot be parsed is an error, because
//! nobody can say which commands it would have shown.
use crate::ecosystems::ALL;
use crate::ecosystems::project::RootFiles;
use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// All commands that a commit's files show, by the detectors that find any, in their order; or why a
/// detector could not read its files. [`detect_commands`] takes those of one of them.
pub fn detect_all(repo: &Repo, commit: &Oid) -> Result<Vec<Result<Vec<OracleCommand>>>> {
    let files = RootFiles::of_commit(repo, commit)?;
    let detectors = ALL.iter().flat_map(|ecosystem| ecosystem.detectors);
    let found = detectors.map(|detector| detector(&files));
    Ok(found.filter(|found| found.as_ref().map_or(true, |all| !all.is_empty())).collect())
}

/// The commands that a commit's files show, in the order of their stages; none if no detector
/// finds a command.
pub fn detect_commands(repo: &Repo, commit: &Oid) -> Result<Vec<OracleCommand>> {
    let files = RootFiles::of_commit(repo, commit)?;
    let mut without_test = Vec::new();
    for detector in ALL.iter().flat_map(|ecosystem| ecosystem.detectors) {
        let mut found = match detector(&files) {
            // What cannot be read matters only as long as nothing else is found.
            Err(_) if !without_test.is_empty() => continue,
            found => found?,
        };
        found.sort_by_key(|c| c.stage);
        if found.iter().any(|c| c.stage == Stage::Test) {
            return Ok(found);
        }
        if without_test.is_empty() && found.iter().any(|c| c.stage != Stage::Setup) {
            without_test = found;
        }
    }
    Ok(without_test)
}
