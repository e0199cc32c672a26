//! Commands that download the dependencies of a tree: a tree that is judged cold finds what they left
//! for the base, and nothing else that the base's commands did.
use crate::ecosystems::ALL;
use crate::ecosystems::project::{RootFiles, command};
use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::process;

/// The directory in which a project tracks its dependencies: then there is nothing to download.
const VENDORED: &str = "vendor";

/// The words by which a command says that it does without the network.
const OFFLINE: [&str; 2] = ["--offline", "--frozen"];

/// The commands that download the dependencies of a base, which these commands judge. None where a
/// setup does that, where the commands go without the network, or where the program is missing.
///
/// The source of each is the file that names the dependencies.
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
    let all = ALL.iter().filter_map(|ecosystem| ecosystem.download.as_ref());
    let needed = all.filter(|download| {
        files.has(download.lock) && process::find(download.words[0].as_ref()).is_some()
    });
    Ok(needed.map(|download| command(Stage::Setup, download.words, download.lock)).collect())
}

/// The download commands whose dependencies differ between two trees.
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
