//! Shell scripts, and their tests by bats.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::paths::directory_of;
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command};
use crate::model::outcome::Stage;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Names, bats)],
    other_extensions: &["bash", "bats", "fish", "sh", "zsh"],
    test_extensions: &["bats"],
    test_words: (&["test"], &["test"]),
    ..Ecosystem::NOTHING
};

/// Runs bats on the first directory among `test`, `tests` and `spec` that contains `.bats` files.
fn bats(files: &RootFiles<'_>) -> FoundCommands {
    let of_directory = |directory: &&str| {
        let mut paths = files.paths().iter();
        paths.any(|path| path.ends_with(".bats") && directory_of(path) == *directory)
    };
    let found = ["test", "tests", "spec"].into_iter().find(of_directory);
    let test =
        |directory| command(Stage::Test, &["bats", directory], format!("{directory}/*.bats"));
    Ok(found.map(test).into_iter().collect())
}
