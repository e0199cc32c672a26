//! The tools of the detectors: a project's files, and commands made from them.
use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::Stage;

/// Finds the commands of one kind of project; none if the files show no such project.
pub type Detector = fn(&RootFiles<'_>) -> Result<Vec<OracleCommand>>;

/// The files of a tree's root, as the detectors see them.
pub struct RootFiles<'a> {
    repo: &'a Repo,
    tree: Oid,
    /// Each name, and true for a directory.
    names: Vec<(String, bool)>,
}

impl<'a> RootFiles<'a> {
    /// The files of a commit's root.
    pub fn of_commit(repo: &'a Repo, commit: &Oid) -> Result<RootFiles<'a>> {
        let tree = repo.commit(commit)?.tree;
        let names = repo.root_entries(&tree)?;
        Ok(RootFiles { repo, tree, names })
    }

    /// True if the root has a file of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|(n, is_dir)| n == name && !is_dir)
    }

    /// True if the root has a directory of this name.
    pub fn has_directory(&self, name: &str) -> bool {
        self.names.iter().any(|(n, is_dir)| n == name && *is_dir)
    }

    /// The first of these names that the root has a file of.
    pub fn first<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// True if the root has the recipes of a tool that runs any project's commands.
    pub fn has_recipes(&self) -> bool {
        let recipes = ["Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", ".justfile"];
        self.first(&recipes).is_some()
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

    /// The text of a file anywhere in the tree; none if there is no such file.
    pub fn text(&self, path: &str) -> Result<Option<String>> {
        let bytes = self.repo.file(&self.tree, path)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// A file as TOML; none if there is no such file.
    pub fn toml(&self, path: &str) -> Result<Option<toml::Table>> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        text.parse().map(Some).map_err(|e: toml::de::Error| unreadable(path, e.message()))
    }

    /// A file as JSON, with the comments and trailing commas that some tools allow; none if there
    /// is no such file.
    pub fn json(&self, path: &str) -> Result<Option<serde_json::Value>> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        let value =
            jsonc_parser::parse_to_serde_value(&text, &jsonc_parser::ParseOptions::default());
        value.map(Some).map_err(|e| unreadable(path, &e.to_string()))
    }
}

/// A command of these words; `source` names the file that shows it.
pub fn command(stage: Stage, words: &[&str], source: impl Into<String>) -> OracleCommand {
    let words = words.iter().map(|w| (*w).to_owned()).collect();
    OracleCommand { stage, command: CommandLine::Argv(words), source: source.into() }
}

/// The commands that run a project's own recipes by `tool`: `build` or `all`, `lint`, `test` or
/// `check`, as far as `recipes` has them.
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
