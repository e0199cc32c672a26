//! Finding the project's own commands in the base's files, when nobody named any.
//!
//! One file a family of projects. The first kind whose files give any command wins whole, in the order of
//! [`DETECTORS`]. A command is only taken where the project's files show that it is in use; a file that cannot
//! be understood is an error, for what it would have said is not known.
mod javascript;
mod jvm;
mod native;
mod others;
mod python;
mod recipes;
mod rust;

use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::Stage;

/// What looks for one kind of project.
type Detector = fn(&Files<'_>) -> Result<Vec<OracleCommand>>;

/// Languages first, then build tools, then what a project wrote itself, which often calls the others.
const DETECTORS: [Detector; 13] = [
    javascript::package_json,
    javascript::deno,
    rust::cargo,
    others::go,
    python::python,
    others::dotnet,
    others::mix,
    jvm::maven,
    jvm::gradle,
    native::cmake,
    native::bazel,
    recipes::justfile,
    recipes::makefile,
];

/// The commands that a commit's files show; none if it is no kind of project known here.
pub fn detect(repo: &Repo, commit: &Oid) -> Result<Vec<OracleCommand>> {
    let tree = repo.commit(commit)?.tree;
    let names = repo.root_entries(&tree)?;
    let files = Files { repo, tree, names };
    for detector in DETECTORS {
        let mut found = detector(&files)?;
        if found.iter().any(|c| c.stage != Stage::Setup) {
            found.sort_by_key(|c| c.stage);
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// A tree's root, as the detectors see it.
struct Files<'a> {
    repo: &'a Repo,
    tree: Oid,
    names: Vec<(String, bool)>,
}

impl Files<'_> {
    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|(n, is_dir)| n == name && !is_dir)
    }

    fn has_directory(&self, name: &str) -> bool {
        self.names.iter().any(|(n, is_dir)| n == name && *is_dir)
    }

    /// The first of these that is there.
    fn first<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// The files whose names end so, sorted.
    fn ending(&self, end: &str) -> Vec<&str> {
        let mut found: Vec<&str> = self
            .names
            .iter()
            .filter(|(n, is_dir)| n.ends_with(end) && !is_dir)
            .map(|(n, _)| n.as_str())
            .collect();
        found.sort_unstable();
        found
    }

    /// A file's text, wherever it lies.
    fn text(&self, path: &str) -> Result<Option<String>> {
        Ok(self
            .repo
            .file(&self.tree, path)?
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn toml(&self, name: &str) -> Result<Option<toml::Table>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|e: toml::de::Error| unreadable(name, e.message()))
    }

    /// JSON, with the comments and commas that some tools allow.
    fn json(&self, name: &str) -> Result<Option<serde_json::Value>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let value =
            jsonc_parser::parse_to_serde_value(&text, &jsonc_parser::ParseOptions::default());
        value.map(Some).map_err(|e| unreadable(name, &e.to_string()))
    }
}

/// A command, and the file that says so.
fn command(stage: Stage, words: &[&str], source: impl Into<String>) -> OracleCommand {
    let words = words.iter().map(|w| (*w).to_owned()).collect();
    OracleCommand { stage, command: CommandLine::Argv(words), source: source.into() }
}

fn unreadable(file: &str, why: &str) -> Error {
    Error::fatal(format!(
        "{file} of the base cannot be understood: {}",
        why.lines().next().unwrap_or_default()
    ))
    .hint("name the commands with `--build`, `--lint` and `--test`, or in .frites.toml")
}
