//! Zig: the steps that its build file defines.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command};
use crate::model::outcome::Stage;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Settings, build_steps)],
    other_extensions: &["zig"],
    project_files: &["build.zig"],
    decisive_files: "build.zig",
    ..Ecosystem::NOTHING
};

/// `zig build`, and its step `test` if the build defines one.
fn build_steps(files: &RootFiles<'_>) -> FoundCommands {
    const BUILD: &str = "build.zig";
    let Some(text) = files.text(BUILD)? else { return Ok(Vec::new()) };
    let mut found = vec![command(Stage::Build, &["zig", "build"], BUILD)];
    if text.contains("step(\"test\"") {
        found.push(command(Stage::Test, &["zig", "build", "test"], BUILD));
    }
    Ok(found)
}
