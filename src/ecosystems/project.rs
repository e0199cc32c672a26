//! Helpers for the detectors: a project's files, and commands made from them.
use std::cell::OnceCell;

use crate::ecosystems::ci_steps::{CiCommands, is_ci_file};
use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::Stage;

/// Finds commands that belong together in a project's files.
pub struct Detector {
    /// The evidence for these commands in the files.
    pub evidence: Evidence,
    /// Returns the commands; empty if the files show no such project.
    pub find: fn(&RootFiles<'_>) -> Result<Vec<OracleCommand>>,
}

/// The evidence that commands are the project's own. A later kind counts more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Files and directories have names that such projects use.
    Names,
    /// The author has a recipe of that name.
    Recipe,
    /// A tool's own file shows how the tool builds or tests.
    Settings,
}

/// The files of a tree's root, as the detectors see them.
pub struct RootFiles<'a> {
    repo: &'a Repo,
    commit: Oid,
    tree: Oid,
    /// The names; true for directories.
    names: Vec<(String, bool)>,
    paths: OnceCell<Vec<String>>,
    ci: OnceCell<CiCommands>,
}

impl<'a> RootFiles<'a> {
    /// The files of a commit's root.
    pub fn of_commit(repo: &'a Repo, commit: &Oid) -> Result<RootFiles<'a>> {
        let tree = repo.commit(commit)?.tree;
        let names = repo.root_entries(&tree)?;
        Ok(RootFiles {
            repo,
            commit: *commit,
            tree,
            names,
            paths: OnceCell::new(),
            ci: OnceCell::new(),
        })
    }

    /// The paths of all files; empty if they cannot be read.
    pub fn paths(&self) -> &[String] {
        self.paths.get_or_init(|| self.repo.paths_of(&self.commit).unwrap_or_default())
    }

    /// The commands that the project's CI runs.
    pub fn ci(&self) -> &CiCommands {
        self.ci.get_or_init(|| {
            let files = self.paths().iter().filter(|path| is_ci_file(path));
            CiCommands::of(files.filter_map(|path| Some((path.clone(), self.text(path).ok()??))))
        })
    }

    /// True if the root has a file of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|(n, is_dir)| n == name && !is_dir)
    }

    /// True if the root has a directory of this name.
    pub fn has_directory(&self, name: &str) -> bool {
        self.names.iter().any(|(n, is_dir)| n == name && *is_dir)
    }

    /// The first of these names that a file of the root has.
    pub fn first<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// The files whose names have this ending, sorted.
    pub fn ending(&self, end: &str) -> Vec<&str> {
        let mut found: Vec<&str> = self
            .names
            .iter()
            .filter(|(n, is_dir)| n.ends_with(end) && !is_dir)
            .map(|(n, _)| n.as_str())
            .collect();
        found.sort_unstable();
        found
    }

    /// The text of a file anywhere in the tree; `None` if there is no such file.
    pub fn text(&self, path: &str) -> Result<Option<String>> {
        let bytes = self.repo.file_by_links(&self.tree, path)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// A file as TOML; `None` if there is no such file.
    pub fn toml(&self, path: &str) -> Result<Option<toml::Table>> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        text.parse().map(Some).map_err(|e: toml::de::Error| unreadable(path, e.message()))
    }

    /// A file as JSON, with the comments and trailing commas that some tools allow; `None` if there
    /// is no such file.
    pub fn json(&self, path: &str) -> Result<Option<serde_json::Value>> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        let value =
            jsonc_parser::parse_to_serde_value(&text, &jsonc_parser::ParseOptions::default());
        value.map(Some).map_err(|e| unreadable(path, &e.to_string()))
    }
}

/// A command of these words; `source` is the file that shows it.
pub fn command(stage: Stage, words: &[&str], source: impl Into<String>) -> OracleCommand {
    let words = words.iter().map(|w| (*w).to_owned()).collect();
    OracleCommand { stage, command: CommandLine::Argv(words), source: source.into() }
}

/// A command for a shell; `source` is the file that shows it.
pub fn shell_command(stage: Stage, line: String, source: impl Into<String>) -> OracleCommand {
    OracleCommand { stage, command: CommandLine::Shell(line), source: source.into() }
}

/// True if a lint script changes the files that it checks, so that it finds no fault.
pub fn repairs(script: &str) -> bool {
    script.split_whitespace().any(|word| word == "--fix" || word == "--write")
}

/// The commands that run a project's own recipes by `tool`: those of `build` or `all`, `lint`, `test` or
/// `check` that are in `recipes`.
pub fn recipe_commands(tool: &str, recipes: &[&str], source: &str) -> Vec<OracleCommand> {
    let stages: [(Stage, &[&str]); 3] = [
        (Stage::Build, &["build", "all"]),
        (Stage::Lint, &["lint"]),
        (Stage::Test, &["test", "check"]),
    ];
    let mut found = Vec::new();
    for (stage, names) in stages {
        if let Some(name) = names.iter().find(|name| recipes.contains(name)) {
            found.push(command(stage, &[tool, name], source));
        }
    }
    found
}

/// The error for a file of the base that cannot be parsed.
pub fn unreadable(file: &str, why: &str) -> Error {
    let first = why.lines().next().unwrap_or_default();
    Error::fatal(format!("{file} of the base cannot be understood: {first}"))
        .hint("name the commands with `--build`, `--lint` and `--test`, or in .frites.toml")
}
