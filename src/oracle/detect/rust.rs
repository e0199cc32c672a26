//! Cargo, with nextest where it is configured.
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::oracle::detect::{Files, command};

/// `cargo build` and `cargo test`, `--locked` when the lock file is tracked; clippy where the project
/// configures it, nextest likewise.
pub fn cargo(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
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
    let with = |verb: &[&'static str]| -> Vec<&str> {
        verb.iter().copied().chain(options.iter().copied()).collect()
    };
    let mut found = vec![command(Stage::Build, &with(&["cargo", "build"]), "Cargo.toml")];
    let lints = |table: Option<&toml::Table>| table.is_some_and(|t| t.contains_key("lints"));
    if let Some(file) = files.first(&["clippy.toml", ".clippy.toml"]) {
        found.push(command(Stage::Lint, &with(&["cargo", "clippy"]), file));
    } else if lints(Some(&manifest)) || lints(workspace) {
        found.push(command(Stage::Lint, &with(&["cargo", "clippy"]), "Cargo.toml"));
    }
    found.push(match files.toml(NEXTEST)? {
        Some(_) => command(Stage::Test, &with(&["cargo", "nextest", "run"]), NEXTEST),
        None => command(Stage::Test, &with(&["cargo", "test"]), "Cargo.toml"),
    });
    Ok(found)
}
