//! Finding the project's own commands in the base's files, when nobody named any.
//!
//! The first kind of project whose files give any command wins whole: package.json, Cargo, Go, Python,
//! Makefile. A command is only taken where the project's files show that it is in use.
use serde_json::Value;

use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::Stage;

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

    fn has_folder(&self, name: &str) -> bool {
        self.names.iter().any(|(n, is_dir)| n == name && *is_dir)
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        if !self.has(name) {
            return Ok(None);
        }
        Ok(self.repo.file(&self.tree, name)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn toml(&self, name: &str) -> Result<Option<toml::Table>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|e: toml::de::Error| unreadable(name, e.message()))
    }
}

/// The commands that a commit's files show; none if it is no kind of project known here.
pub fn detect(repo: &Repo, commit: &Oid) -> Result<Vec<OracleCommand>> {
    let tree = repo.commit(commit)?.tree;
    let names = repo.root_entries(&tree)?;
    let files = Files { repo, tree, names };
    for detector in [package_json, cargo, go, python, makefile] {
        let mut found = detector(&files)?;
        if found.iter().any(|c| c.stage != Stage::Setup) {
            found.sort_by_key(|c| c.stage);
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

fn command(stage: Stage, words: &[&str], source: &str) -> OracleCommand {
    let words = words.iter().map(|w| (*w).to_owned()).collect();
    OracleCommand { stage, command: CommandLine::Argv(words), source: source.to_owned() }
}

/// Scripts `build`, `lint` and `test`, by the package manager whose lock file is there. A checkout has
/// no `node_modules`, so what the lock file names is installed first.
fn package_json(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    let Some(text) = files.text("package.json")? else { return Ok(Vec::new()) };
    let package: Value = serde_json::from_str(&text).map_err(|e| unreadable("package.json", &e.to_string()))?;
    let declared = package["packageManager"].as_str().and_then(|p| p.split('@').next());
    let locked = [
        ("pnpm", "pnpm-lock.yaml"),
        ("yarn", "yarn.lock"),
        ("bun", "bun.lock"),
        ("bun", "bun.lockb"),
        ("npm", "package-lock.json"),
        ("npm", "npm-shrinkwrap.json"),
    ]
    .into_iter()
    .find(|(_, lock)| files.has(lock));
    let manager = match declared.or(locked.map(|(m, _)| m)).unwrap_or("npm") {
        known @ ("pnpm" | "yarn" | "bun" | "npm") => known,
        other => return Err(unreadable("package.json", &format!("unknown packageManager '{other}'"))),
    };
    let mut found = Vec::new();
    for stage in [Stage::Build, Stage::Lint, Stage::Test] {
        let Some(script) = package["scripts"][stage.as_str()].as_str() else { continue };
        // What `npm init` writes when there is no test.
        if !script.contains("no test specified") {
            found.push(command(stage, &[manager, "run", stage.as_str()], "package.json"));
        }
    }
    let needs =
        ["dependencies", "devDependencies"].iter().any(|k| package[k].as_object().is_some_and(|d| !d.is_empty()));
    if let Some((_, lock)) = locked.filter(|_| needs) {
        let install: &[&str] = match manager {
            "npm" => &["npm", "ci"],
            "yarn" if files.has(".yarnrc.yml") => &["yarn", "install", "--immutable"],
            "yarn" => &["yarn", "install", "--frozen-lockfile"],
            "pnpm" => &["pnpm", "install", "--frozen-lockfile"],
            _ => &["bun", "install", "--frozen-lockfile"],
        };
        found.push(command(Stage::Setup, install, lock));
    }
    Ok(found)
}

/// `cargo build` and `cargo test`, `--locked` when the lock file is tracked; clippy where the project
/// configures it.
fn cargo(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    let Some(manifest) = files.toml("Cargo.toml")? else { return Ok(Vec::new()) };
    let workspace = manifest.get("workspace").and_then(toml::Value::as_table);
    let mut options: Vec<&str> = Vec::new();
    if files.has("Cargo.lock") {
        options.push("--locked");
    }
    if workspace.is_some() {
        options.push("--workspace");
    }
    let with = |verb: &[&'static str]| -> Vec<&str> { verb.iter().copied().chain(options.iter().copied()).collect() };
    let mut found = vec![command(Stage::Build, &with(&["cargo", "build"]), "Cargo.toml")];
    let lints = |table: Option<&toml::Table>| table.is_some_and(|t| t.contains_key("lints"));
    if files.has("clippy.toml") || files.has(".clippy.toml") || lints(Some(&manifest)) || lints(workspace) {
        found.push(command(Stage::Lint, &with(&["cargo", "clippy"]), "Cargo.toml"));
    }
    found.push(command(Stage::Test, &with(&["cargo", "test"]), "Cargo.toml"));
    Ok(found)
}

fn go(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    if !files.has("go.mod") {
        return Ok(Vec::new());
    }
    Ok(vec![
        command(Stage::Build, &["go", "build", "./..."], "go.mod"),
        command(Stage::Lint, &["go", "vet", "./..."], "go.mod"),
        command(Stage::Test, &["go", "test", "./..."], "go.mod"),
    ])
}

/// pytest where it is configured, unittest where there are tests in its style; ruff where configured.
fn python(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    let project = files.toml("pyproject.toml")?;
    let tool = |name: &str| project.as_ref().is_some_and(|p| p.get("tool").and_then(|t| t.get(name)).is_some());
    let section =
        |file: &str, name: &str| Ok::<_, Error>(files.text(file)?.is_some_and(|t| t.lines().any(|l| l.trim() == name)));
    let mut found = Vec::new();
    if tool("ruff") || files.has("ruff.toml") || files.has(".ruff.toml") {
        found.push(command(Stage::Lint, &["ruff", "check"], "ruff settings"));
    }
    let pytest = if tool("pytest") {
        Some("pyproject.toml")
    } else if section("setup.cfg", "[tool:pytest]")? {
        Some("setup.cfg")
    } else if section("tox.ini", "[pytest]")? {
        Some("tox.ini")
    } else {
        ["pytest.ini", "conftest.py"].into_iter().find(|f| files.has(f))
    };
    let is_package = project.is_some() || files.has("setup.py") || files.has("setup.cfg");
    let test_file = files.names.iter().find(|(n, dir)| !dir && n.starts_with("test") && n.ends_with(".py"));
    if let Some(source) = pytest {
        found.push(command(Stage::Test, &["python3", "-m", "pytest"], source));
    } else if is_package && (files.has_folder("tests") || files.has_folder("test")) {
        found.push(command(Stage::Test, &["python3", "-m", "pytest"], "the tests folder"));
    } else if let Some((name, _)) = test_file {
        found.push(command(Stage::Test, &["python3", "-m", "unittest", "discover"], name));
    }
    Ok(found)
}

/// Targets `build` (or `all`), `lint` and `test` (or `check`).
fn makefile(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    // In the order in which GNU make looks.
    let Some(name) = ["GNUmakefile", "makefile", "Makefile"].into_iter().find(|f| files.has(f)) else {
        return Ok(Vec::new());
    };
    let text = files.text(name)?.unwrap_or_default();
    let targets = targets(&text);
    let stages: [(Stage, &[&str]); 3] =
        [(Stage::Build, &["build", "all"]), (Stage::Lint, &["lint"]), (Stage::Test, &["test", "check"])];
    let pick = |(stage, names): (Stage, &[&str])| {
        let target = names.iter().find(|n| targets.contains(n))?;
        Some(command(stage, &["make", target], name))
    };
    Ok(stages.into_iter().filter_map(pick).collect())
}

/// The explicit targets of a Makefile: words before a colon that begins no assignment.
fn targets(makefile: &str) -> Vec<&str> {
    let rule = |line: &'_ str| -> Option<(usize, bool)> {
        let colon = line.find(':')?;
        let rest = line[colon..].trim_start_matches(':');
        Some((colon, line.starts_with(['\t', '#', ' ', '.']) || rest.starts_with('=') || line[..colon].contains('=')))
    };
    makefile
        .lines()
        .filter_map(|line| rule(line).filter(|(_, other)| !other).map(|(colon, _)| &line[..colon]))
        .flat_map(str::split_whitespace)
        .collect()
}

fn unreadable(file: &str, why: &str) -> Error {
    Error::fatal(format!("{file} of the base cannot be understood: {}", why.lines().next().unwrap_or_default()))
        .hint("name the commands with `--build`, `--lint` and `--test`, or in .frites.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rules_are_targets() {
        let text =
            "CC := gcc\nall: test\ntest lint:\n\t@echo a:b\n.PHONY: build\nX = a:b\n# check: no\ninstall::\nv::=1\n";
        assert_eq!(targets(text), ["all", "test", "lint", "install"]);
    }
}
