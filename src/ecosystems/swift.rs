//! Swift, with its package manager.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command};
use crate::model::outcome::Stage;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Settings, package)],
    other_extensions: &["swift"],
    project_files: &["Package.swift"],
    lock_files: &["Package.resolved"],
    decisive_files: "Package*.swift",
    ..Ecosystem::NOTHING
};

/// `swift build`, and `swift test` if the package has a target of tests.
fn package(files: &RootFiles<'_>) -> FoundCommands {
    const PACKAGE: &str = "Package.swift";
    let Some(text) = files.text(PACKAGE)? else { return Ok(Vec::new()) };
    let mut found = vec![command(Stage::Build, &["swift", "build"], PACKAGE)];
    if text.contains(".testTarget(") {
        found.push(command(Stage::Test, &["swift", "test"], PACKAGE));
    }
    Ok(found)
}
