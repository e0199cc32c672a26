//! Helpers for the detectors: a project's files, and commands made from them.
use std::cell::OnceCell;

use crate::ecosystems::ci_steps::{CiCommands, is_ci_file};
use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::Stage;

/// Commands that belong together; empty if the files do not show that the project has them.
pub type FoundCommands = Result<Vec<OracleCommand>>;

/// The evidence for commands that belong together, and the function that finds these commands in a
/// project's files.
pub type Detector = (Evidence, fn(&RootFiles<'_>) -> FoundCommands);

/// The evidence that commands are the project's own. A later kind counts more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Only the name of a file or directory suggests the commands: `spec/`.
    Names,
    /// A recipe has the usual name of such a command: `make test`.
    Recipe,
    /// A tool's own file shows how the tool builds or tests.
    Settings,
}

/// The files of a commit, as the detectors read them: the names in the root, and any file by its
/// path.
pub struct RootFiles<'a> {
    repo: &'a Repo,
    commit: Oid,
    tree: Oid,
    /// The names in the root. The flag is true for a directory.
    names: Vec<(String, bool)>,
    paths: OnceCell<Vec<String>>,
    ci: OnceCell<CiCommands>,
}

impl<'a> RootFiles<'a> {
    /// Reads the names in a commit's root. Other files are read when they are asked for.
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

    /// The first of these names that is the name of a file in the root.
    pub fn first<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// The text of a file anywhere in the tree; `None` if there is no such file.
    pub fn text(&self, path: &str) -> Result<Option<String>> {
        text_by_links(self.repo, &self.tree, path)
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

/// The text of the file to which a path leads; `None` if there is no such file.
pub fn text_by_links(repo: &Repo, tree: &Oid, path: &str) -> Result<Option<String>> {
    let bytes = repo.file_by_links(tree, path)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// The command with these words. `source` is the file in which it was found.
pub fn command(stage: Stage, words: &[&str], source: impl Into<String>) -> OracleCommand {
    let words = words.iter().map(|w| (*w).to_owned()).collect();
    OracleCommand { stage, command: CommandLine::Argv(words), source: source.into() }
}

/// The command that makes a shell run this line. `source` is the file in which it was found.
pub fn shell_command(stage: Stage, line: String, source: impl Into<String>) -> OracleCommand {
    OracleCommand { stage, command: CommandLine::Shell(line), source: source.into() }
}

/// True if a lint script repairs the files that it checks: then it would report no fault.
pub fn repairs(script: &str) -> bool {
    script.split_whitespace().any(|word| word == "--fix" || word == "--write")
}

/// The commands with which `tool` runs these recipes, if `recipes` has them: `build` (or else
/// `all`), `lint`, and `test` (or else `check`).
pub fn recipe_commands(tool: &str, recipes: &[&str], source: &str) -> Vec<OracleCommand> {
    let stages: [(Stage, &[&str]); 3] = [
        (Stage::Build, &["build", "all"]),
        (Stage::Lint, &["lint"]),
        (Stage::Test, &["test", "check"]),
    ];
    let found = stages.into_iter().filter_map(|(stage, names)| {
        let name = names.iter().find(|name| recipes.contains(name))?;
        Some(command(stage, &[tool, name], source))
    });
    found.collect()
}

/// The error for a file of the base that cannot be parsed.
pub fn unreadable(file: &str, why: &str) -> Error {
    let first = why.lines().next().unwrap_or_default();
    Error::fatal(format!("{file} of the base cannot be understood: {first}"))
        .hint("name the commands with `--build`, `--lint` and `--test`, or in .frites.toml")
}
