//! Go.
use crate::ecosystems::ecosystem::{Download, Ecosystem, PackagesFound};
use crate::ecosystems::manifest::{PutBackPart, line_hunks};
use crate::ecosystems::project::{Detector, Evidence, RootFiles, command};
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// Go.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[Detector { evidence: Evidence::Settings, find: go_module }],
    extensions: &["go"],
    is_source_if_new: |file| file.has_its_language(),
    project_files: &["go.work"],
    lock_files: &["go.sum"],
    finds: PackagesFound::Named,
    comment: "//",
    test_marks: &["func Test", "func Benchmark", "func Fuzz", "func Example"],
    // A package's own TestMain decides whether its tests run at all.
    skip_marks: &[".Skip(", ".SkipNow(", ".Skipf(", "//go:build ignore", "func TestMain("],
    is_test_file: |stem, extension| {
        extension == "go" && (stem.ends_with("_test") || stem.ends_with("_tests"))
    },
    test_directories: &["testdata"],
    decisive_files: &["go.work", ".golangci.*", "magefile.go"],
    manifest: |name| if name == "go.mod" { Some(go_mod_part as PutBackPart) } else { None },
    download: Some(Download { lock: "go.sum", words: &["go", "mod", "download"] }),
    ..Ecosystem::NOTHING
};

/// Builds, lints and tests all packages of the module.
fn go_module(files: &RootFiles<'_>) -> Result<Vec<OracleCommand>> {
    if !files.has("go.mod") {
        return Ok(Vec::new());
    }
    let configs = [".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"];
    let lint = match files.first(&configs) {
        Some(config) => command(Stage::Lint, &["golangci-lint", "run"], config),
        None => command(Stage::Lint, &["go", "vet", "./..."], "go.mod"),
    };
    Ok(vec![
        command(Stage::Build, &["go", "build", "./..."], "go.mod"),
        lint,
        command(Stage::Test, &["go", "test", "./..."], "go.mod"),
    ])
}

/// Everything but the versions of the modules and of the language. Other lines put other code in the place
/// of a module, choose the compiler, or change what the run time does (`godebug`).
fn go_mod_part(base: Option<&str>, own: &str) -> Option<String> {
    let names_module = |line: &&str| {
        let code = line.split("//").next().unwrap_or(line);
        let words: Vec<&str> = code.split_whitespace().collect();
        match words[..] {
            [] | [")"] | ["require", "("] | ["go", _] => true,
            [_, version] | ["require", _, version] => version
                .strip_prefix('v')
                .is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit())),
            _ => false,
        }
    };
    line_hunks(base, own, |hunk| !hunk.removed.iter().chain(hunk.added).all(names_module))
}
