//! Shell scripts, and their tests by bats.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::project::{Detector, Evidence, RootFiles, command};
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// Shells.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[Detector { evidence: Evidence::Names, find: bats }],
    other_extensions: &["bash", "bats", "fish", "sh", "zsh"],
    test_extensions: &["bats"],
    test_words: (&["test"], &["test"]),
    ..Ecosystem::NOTHING
};

/// Runs bats on the first directory among `test`, `tests` and `spec` that contains `.bats` files.
fn bats(files: &RootFiles<'_>) -> Result<Vec<OracleCommand>> {
    let of_directory = |directory: &&str| {
        let is_test = |path: &String| {
            path.strip_suffix(".bats")
                .and_then(|p| p.rsplit_once('/'))
                .is_some_and(|(d, _)| d == *directory)
        };
        files.paths().iter().any(is_test)
    };
    let found = ["test", "tests", "spec"].into_iter().find(of_directory);
    let test =
        |directory| command(Stage::Test, &["bats", directory], format!("{directory}/*.bats"));
    Ok(found.map(test).into_iter().collect())
}
