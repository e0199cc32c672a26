//! Commands that download the dependencies of a tree. A tree that is judged cold, i.e. without the
//! base's build outputs, still gets the base's downloads.
use crate::ecosystems::ALL;
use crate::ecosystems::project::{RootFiles, command};
use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::process;

/// The directory in which a project tracks its dependencies, so that nothing needs to be
/// downloaded.
const VENDORED: &str = "vendor";

/// The options that keep a command off the network.
const OFFLINE: [&str; 2] = ["--offline", "--frozen"];

/// The commands that download the dependencies of `base`, which the commands of `oracle` judge.
/// There are none in these cases:
/// * The oracle has a setup, which downloads the dependencies.
/// * A command of the oracle runs offline.
/// * The project tracks its dependencies.
/// * The program that downloads them is missing.
///
/// The `source` of each command is the file that names the dependencies.
pub fn of_base(repo: &Repo, base: &Oid, oracle: &[OracleCommand]) -> Result<Vec<OracleCommand>> {
    let is_offline =
        |c: &OracleCommand| c.command.words().iter().any(|word| OFFLINE.contains(&word.as_str()));
    if oracle.iter().any(|c| c.stage == Stage::Setup || is_offline(c)) {
        return Ok(Vec::new());
    }
    let files = RootFiles::of_commit(repo, base)?;
    if files.has_directory(VENDORED) {
        return Ok(Vec::new());
    }
    let all = ALL.iter().filter_map(|ecosystem| ecosystem.download);
    let needed =
        all.filter(|(lock, words)| files.has(lock) && process::find(words[0].as_ref()).is_some());
    Ok(needed.map(|(lock, words)| command(Stage::Setup, words, lock)).collect())
}

/// The download commands whose `source`, the file that names the dependencies, differs between two
/// trees.
pub fn that_differ(
    repo: &Repo,
    commands: &[OracleCommand],
    [first, second]: [&Oid; 2],
) -> Result<Vec<OracleCommand>> {
    let mut found = Vec::new();
    for command in commands {
        if repo.file(first, &command.source)? != repo.file(second, &command.source)? {
            found.push(command.clone());
        }
    }
    Ok(found)
}
