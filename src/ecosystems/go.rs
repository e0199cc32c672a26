//! Go.
use crate::ecosystems::ecosystem::{Download, Ecosystem};
use crate::ecosystems::project::{RootFiles, command};
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// Go.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[go_module],
    extensions: &["go"],
    comment: "//",
    test_marks: &["func Test", "func Benchmark", "func Fuzz", "func Example"],
    // A package's own TestMain decides whether its tests run at all.
    skip_marks: &[".Skip(", ".SkipNow(", ".Skipf(", "//go:build ignore", "func TestMain("],
    is_test_file: |stem, extension| {
        extension == "go" && (stem.ends_with("_test") || stem.ends_with("_tests"))
    },
    test_directories: &["testdata"],
    decisive_files: &["go.work", ".golangci.*"],
    download: Some(Download { lock: "go.sum", words: &["go", "mod", "download"] }),
    ..Ecosystem::NOTHING
};

/// Builds, vets and tests all packages of the module.
fn go_module(files: &RootFiles<'_>) -> Result<Vec<OracleCommand>> {
    if !files.has("go.mod") {
        return Ok(Vec::new());
    }
    Ok(vec![
        command(Stage::Build, &["go", "build", "./..."], "go.mod"),
        command(Stage::Lint, &["go", "vet", "./..."], "go.mod"),
        command(Stage::Test, &["go", "test", "./..."], "go.mod"),
    ])
}
