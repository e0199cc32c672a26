//! Python: tox, nox, pytest, unittest, ruff; through uv or poetry where their lock file is there.
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::oracle::detect::{Files, command};

/// A part of a command.
type Words = &'static [&'static str];

/// tox or nox where the project has a file of theirs, else pytest where it is configured, else unittest where
/// there are tests in its style; ruff where it is configured.
pub fn python(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    let project = files.toml("pyproject.toml")?;
    let tool = |name: &str| {
        project.as_ref().is_some_and(|p| p.get("tool").and_then(|t| t.get(name)).is_some())
    };
    let section = |file: &str, name: &str| -> Result<bool> {
        Ok(files.text(file)?.is_some_and(|text| text.lines().any(|line| line.trim() == name)))
    };
    // What the lock file names is in an environment of the project's own.
    let (within, python, setup): (Words, Words, Option<(&str, Words)>) = if files.has("uv.lock") {
        let run = &["uv", "run", "--locked"];
        (run, &["uv", "run", "--locked", "python"], Some(("uv.lock", &["uv", "sync", "--locked"])))
    } else if files.has("poetry.lock") {
        let install = &["poetry", "install", "--no-interaction"];
        (&["poetry", "run"], &["poetry", "run", "python"], Some(("poetry.lock", install)))
    } else {
        (&[], &["python3"], None)
    };
    let prefixed = |prefix: &[&'static str], words: &[&'static str]| [prefix, words].concat();
    let mut found = Vec::new();
    let ruff =
        files.first(&["ruff.toml", ".ruff.toml"]).or(tool("ruff").then_some("pyproject.toml"));
    if let Some(source) = ruff {
        found.push(command(Stage::Lint, &prefixed(within, &["ruff", "check"]), source));
    }
    let tox = if section("tox.ini", "[tox]")? || section("tox.ini", "[testenv]")? {
        Some("tox.ini")
    } else {
        files.first(&["tox.toml"]).or(tool("tox").then_some("pyproject.toml"))
    };
    if let Some(source) = tox {
        found.push(command(Stage::Test, &prefixed(within, &["tox"]), source));
    } else if files.has("noxfile.py") {
        found.push(command(Stage::Test, &prefixed(within, &["nox"]), "noxfile.py"));
    } else if let Some(source) = pytest(files, tool("pytest"), project.is_some(), &section)? {
        found.push(command(Stage::Test, &prefixed(python, &["-m", "pytest"]), source));
    } else if let Some(name) = files.ending(".py").into_iter().find(|name| name.starts_with("test"))
    {
        found.push(command(Stage::Test, &prefixed(python, &["-m", "unittest", "discover"]), name));
    }
    if let Some((lock, install)) = setup {
        found.push(command(Stage::Setup, install, lock));
    }
    Ok(found)
}

fn pytest(
    files: &Files<'_>,
    configured: bool,
    is_project: bool,
    section: &dyn Fn(&str, &str) -> Result<bool>,
) -> Result<Option<&'static str>> {
    let is_package = is_project || files.has("setup.py") || files.has("setup.cfg");
    let tests = is_package && (files.has_directory("tests") || files.has_directory("test"));
    Ok(if configured {
        Some("pyproject.toml")
    } else if section("setup.cfg", "[tool:pytest]")? {
        Some("setup.cfg")
    } else if section("tox.ini", "[pytest]")? {
        Some("tox.ini")
    } else {
        let named = files.first(&["pytest.ini", ".pytest.ini", "pytest.toml", "conftest.py"]);
        named.or(tests.then_some("the tests directory"))
    })
}
