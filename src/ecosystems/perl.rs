//! Perl: its source files, and its tests by prove.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::project::{Detector, Evidence, FoundCommands, RootFiles, command};
use crate::model::outcome::Stage;

/// Perl.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[Detector { evidence: Evidence::Names, find: prove }],
    other_extensions: &["pl", "pm", "t", "xs"],
    test_extensions: &["t"],
    test_words: (&[], &[]),
    test_directories: &["t", "xt"],
    project_files: &PROJECT_FILES,
    ..Ecosystem::NOTHING
};

const PROJECT_FILES: [&str; 4] = ["Makefile.PL", "Build.PL", "cpanfile", "dist.ini"];

/// Runs the tests below `t` with the modules in `lib`, if they need no compiler.
fn prove(files: &RootFiles<'_>) -> FoundCommands {
    let has = |start: &str, end: &str| {
        files.paths().iter().any(|path| path.starts_with(start) && path.ends_with(end))
    };
    let source = files.first(&PROJECT_FILES).filter(|_| has("t/", ".t") && !has("", ".xs"));
    let test = source.map(|source| command(Stage::Test, &["prove", "-lr", "t"], source));
    Ok(test.into_iter().collect())
}
