//! Rust: Cargo, with nextest where it is configured.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::manifest::DecisivePart;
use crate::ecosystems::project::{RootFiles, command};
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// Rust.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[cargo],
    extensions: &["rs"],
    comment: "//",
    test_marks: &["#[test]", "::test]", "::test(", "#[rstest", "proptest!"],
    skip_marks: &["#[ignore", "cfg(any())", "cfg(FALSE)", "cfg(false)"],
    inner_tests,
    is_test_file: |stem, extension| {
        extension == "rs"
            && (stem.ends_with("_test")
                || stem.ends_with("_tests")
                || matches!(stem, "test" | "tests"))
    },
    decisive_files: &[
        "clippy.toml",
        ".clippy.toml",
        "rust-toolchain",
        "rust-toolchain.toml",
        "nextest.toml",
        "build.rs",
        ".cargo/",
    ],
    decisive_part: |name| {
        if name == "Cargo.toml" { Some(cargo_part as DecisivePart) } else { None }
    },
    ..Ecosystem::NOTHING
};

/// `cargo build` and `cargo test`, `--locked` if the lock file is tracked; clippy if the project
/// configures it, nextest likewise.
fn cargo(files: &RootFiles<'_>) -> Result<Vec<OracleCommand>> {
    const NEXTEST: &str = ".config/nextest.toml";
    let Some(manifest) = files.toml("Cargo.toml")? else { return Ok(Vec::new()) };
    let workspace = manifest.get("workspace").and_then(toml::Value::as_table);
    let mut options: Vec<&str> = Vec::new();
    if files.has("Cargo.lock") {
        options.push("--locked");
    }
    if workspace.is_some() {
        options.push("--workspace");
    }
    let with_options = |words: &[&'static str]| [words, &options].concat();
    let mut found = vec![command(Stage::Build, &with_options(&["cargo", "build"]), "Cargo.toml")];
    let has_lints =
        manifest.contains_key("lints") || workspace.is_some_and(|w| w.contains_key("lints"));
    let clippy = files.first(&["clippy.toml", ".clippy.toml"]).or(if has_lints {
        Some("Cargo.toml")
    } else {
        None
    });
    if let Some(source) = clippy {
        found.push(command(Stage::Lint, &with_options(&["cargo", "clippy"]), source));
    }
    found.push(match files.toml(NEXTEST)? {
        Some(_) => command(Stage::Test, &with_options(&["cargo", "nextest", "run"]), NEXTEST),
        None => command(Stage::Test, &with_options(&["cargo", "test"]), "Cargo.toml"),
    });
    Ok(found)
}

/// The lines of a file from its `#[cfg(test)]` module to its end.
fn inner_tests(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let module = lines.windows(2).position(|pair| {
        pair[0] == "#[cfg(test)]"
            && pair[1].ends_with('{')
            && pair[1].split_whitespace().any(|word| word == "mod")
    });
    module.map_or(Vec::new(), |at| lines[at..].to_vec())
}

/// The parts of a manifest about lints, profiles, tests, the build script and the workspace.
fn cargo_part(text: &str) -> Option<String> {
    const PATHS: [&[&str]; 13] = [
        &["lints"],
        &["test"],
        &["profile"],
        &["workspace", "lints"],
        &["workspace", "members"],
        &["workspace", "default-members"],
        &["workspace", "exclude"],
        &["package", "autotests"],
        &["package", "build"],
        &["package", "metadata", "nextest"],
        &["lib", "test"],
        &["lib", "doctest"],
        &["lib", "harness"],
    ];
    let manifest = toml::Value::Table(text.parse().ok()?);
    let values = PATHS.map(|path| path.iter().try_fold(&manifest, |value, key| value.get(key)));
    let binaries = manifest.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
    let binary_tests: Vec<&toml::Value> = binaries
        .flat_map(|binary| ["test", "harness"].map(|key| binary.get(key)))
        .flatten()
        .collect();
    Some(format!("{values:?} {binary_tests:?}"))
}
