//! Python: pytest, tox, nox, unittest and ruff; through uv or poetry if their lock file is there.
use toml::Table;

use crate::ecosystems::ecosystem::{Ecosystem, InstalledDirectory};
use crate::ecosystems::manifest::{PutBackPart, ini_sections, line_hunks, toml_values};
use crate::ecosystems::project::{RootFiles, command};
use crate::ecosystems::python_library::MODULES;
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// Python.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[python_project],
    extensions: &["py"],
    installed: &[virtual_environment(".venv"), virtual_environment("venv")],
    other_extensions: &["pxd", "pyi", "pyx"],
    is_source_if_new: |file| file.is_in_package("__init__.py"),
    project_files: &["Pipfile", "requirements.txt", "setup.py"],
    lock_files: &["Pipfile.lock", "pdm.lock", "poetry.lock", "uv.lock"],
    comment: "#",
    test_marks: &["def test", "class Test"],
    skip_marks: &[
        "mark.skip",
        "mark.xfail",
        "pytest.skip",
        "pytest.exit",
        "unittest.skip",
        "SkipTest",
        "skipTest",
        "@skip",
        "collect_ignore",
        "pytest_collection_modifyitems",
        "expectedFailure",
        "os._exit(",
        "def load_tests(",
    ],
    is_test_file: |stem, extension| {
        extension == "py"
            && (stem.starts_with("test_")
                || stem.ends_with("_test")
                || matches!(stem, "test" | "tests"))
    },
    decisive_files: &[
        "*.pyc",
        ".coveragerc",
        ".flake8",
        ".mypy.ini",
        ".pylintrc",
        ".pytest.ini",
        ".ruff.toml",
        "conftest.py",
        "mypy.ini",
        "noxfile.py",
        "setup.py",
        "pyrightconfig.json",
        "pytest.ini",
        "pytest.toml",
        "ruff.toml",
        "sitecustomize.py",
        "tox.ini",
        "usercustomize.py",
        "uv.toml",
    ],
    manifest: |name| match name {
        "pyproject.toml" => Some(pyproject_part as PutBackPart),
        "setup.cfg" => Some(setup_cfg_part),
        name if name.starts_with("requirements") && name.ends_with(".txt") => Some(list_part),
        _ => None,
    },
    shadows_tool,
    shadows_library,
    interpreters: &["python", "python3"],
    recipe_files: &["tox.ini"],
    ..Ecosystem::NOTHING
};

const fn virtual_environment(directory: &'static str) -> InstalledDirectory {
    let manifests = &["pyproject.toml", "requirements.txt", "setup.py"];
    InstalledDirectory { directory, manifests, is_tied_to_its_place: true }
}

/// The words of a command, or of its start.
type Words = &'static [&'static str];

/// The commands that run a tool in the environment that a lock file describes.
struct LockedEnvironment {
    /// The words before a tool.
    run: Words,
    /// The words that start the interpreter.
    python: Words,
    /// The lock file, and the command that installs its packages.
    setup: Option<(&'static str, Words)>,
}

impl LockedEnvironment {
    fn of(files: &RootFiles<'_>) -> LockedEnvironment {
        if files.has("uv.lock") {
            LockedEnvironment {
                run: &["uv", "run", "--locked"],
                python: &["uv", "run", "--locked", "python"],
                setup: Some(("uv.lock", &["uv", "sync", "--locked"])),
            }
        } else if files.has("poetry.lock") {
            LockedEnvironment {
                run: &["poetry", "run"],
                python: &["poetry", "run", "python"],
                setup: Some(("poetry.lock", &["poetry", "install", "--no-interaction"])),
            }
        } else {
            LockedEnvironment { run: &[], python: &["python3"], setup: None }
        }
    }
}

/// The settings files of a project that several tools share.
struct Settings<'a> {
    files: &'a RootFiles<'a>,
    pyproject: Option<Table>,
}

impl Settings<'_> {
    /// `pyproject.toml`, if it has a table for this tool.
    fn pyproject_for(&self, tool: &str) -> Option<&'static str> {
        let tools = self.pyproject.as_ref()?.get("tool")?;
        tools.get(tool).map(|_| "pyproject.toml")
    }

    /// True if an INI file has this section, given with its brackets.
    fn has_section(&self, file: &str, section: &str) -> Result<bool> {
        let text = self.files.text(file)?.unwrap_or_default();
        Ok(text.lines().any(|line| line.trim() == section))
    }
}

/// pytest if it is configured, else one environment of tox or one session of nox if the project has
/// their file, else unittest if the root has tests in its style; ruff if it is configured.
///
/// tox and nox by themselves run a matrix of all interpreters, most of which are not installed.
fn python_project(files: &RootFiles<'_>) -> Result<Vec<OracleCommand>> {
    let settings = Settings { files, pyproject: files.toml("pyproject.toml")? };
    let environment = LockedEnvironment::of(files);
    let mut found = Vec::new();
    let ruff = files.first(&["ruff.toml", ".ruff.toml"]).or_else(|| settings.pyproject_for("ruff"));
    if let Some(source) = ruff {
        let words = [environment.run, &["ruff", "check"]].concat();
        found.push(command(Stage::Lint, &words, source));
    }
    found.extend(test_command(&settings, &environment)?);
    if let Some((lock, install)) = environment.setup {
        found.push(command(Stage::Setup, install, lock));
    }
    Ok(found)
}

fn test_command(
    settings: &Settings<'_>,
    environment: &LockedEnvironment,
) -> Result<Option<OracleCommand>> {
    let files = settings.files;
    let nox_session = nox_session(&files.text("noxfile.py")?.unwrap_or_default());
    let (words, source) = if let Some(source) = pytest_settings(settings)? {
        ([environment.python, &["-m", "pytest"]].concat(), source)
    } else if let Some(source) = tox_settings(settings)? {
        ([environment.run, &["tox", "run", "-e", "py"]].concat(), source)
    } else if let Some(session) = &nox_session {
        ([environment.run, &["nox", "-s", session]].concat(), "noxfile.py")
    } else if files.has("noxfile.py") {
        ([environment.run, &["nox"]].concat(), "noxfile.py")
    } else if let Some(source) = package_with_tests(settings) {
        ([environment.python, &["-m", "pytest"]].concat(), source)
    } else if let Some(directory) = tests_beside_requirements(files)? {
        let runner: &[&str] = if directory.has_pytest {
            &["-m", "pytest"]
        } else {
            &["-m", "unittest", "discover", "-s", directory.name]
        };
        ([environment.python, runner].concat(), "requirements.txt")
    } else if let Some(name) = files.ending(".py").into_iter().find(|n| n.starts_with("test")) {
        ([environment.python, &["-m", "unittest", "discover"]].concat(), name)
    } else {
        return Ok(None);
    };
    Ok(Some(command(Stage::Test, &words, source)))
}

/// The first session of a noxfile whose name says that it tests.
fn nox_session(noxfile: &str) -> Option<String> {
    let lines: Vec<&str> = noxfile.lines().map(str::trim).collect();
    let functions = lines.iter().enumerate().filter_map(|(at, line)| {
        let name = line.strip_prefix("def ")?.split('(').next()?;
        let decorators = lines[..at].iter().rev().take_while(|line| {
            line.starts_with('@')
                || line.starts_with([')', ']', '"', '\''])
                || line.ends_with(['(', '['])
        });
        decorators.into_iter().any(|line| line.contains("session")).then_some(name)
    });
    functions.into_iter().find(|name| name.contains("test")).map(str::to_owned)
}

/// The directory of tests in a project that has nothing but a list of its requirements.
struct TestDirectory {
    name: &'static str,
    /// True if the requirements name pytest.
    has_pytest: bool,
}

/// None if the project has recipes: they know better how its tests are run.
fn tests_beside_requirements(files: &RootFiles<'_>) -> Result<Option<TestDirectory>> {
    let directories = ["tests", "test"];
    let Some(name) = directories.into_iter().find(|name| files.has_directory(name)) else {
        return Ok(None);
    };
    if !files.has("requirements.txt") || files.has_recipes() {
        return Ok(None);
    }
    let mut has_pytest = false;
    for list in [
        "requirements.txt",
        "requirements-dev.txt",
        "requirements-test.txt",
        "dev-requirements.txt",
        "test-requirements.txt",
    ] {
        let text = files.text(list)?.unwrap_or_default();
        has_pytest |= text.lines().any(|line| line.trim_start().starts_with("pytest"));
    }
    Ok(Some(TestDirectory { name, has_pytest }))
}

/// The file that configures tox.
fn tox_settings(settings: &Settings<'_>) -> Result<Option<&'static str>> {
    if settings.has_section("tox.ini", "[tox]")? || settings.has_section("tox.ini", "[testenv]")? {
        return Ok(Some("tox.ini"));
    }
    Ok(settings.files.first(&["tox.toml"]).or_else(|| settings.pyproject_for("tox")))
}

/// The file that configures pytest.
fn pytest_settings(settings: &Settings<'_>) -> Result<Option<&'static str>> {
    let files = settings.files;
    if let Some(pyproject) = settings.pyproject_for("pytest") {
        return Ok(Some(pyproject));
    }
    if settings.has_section("setup.cfg", "[tool:pytest]")? {
        return Ok(Some("setup.cfg"));
    }
    if settings.has_section("tox.ini", "[pytest]")? {
        return Ok(Some("tox.ini"));
    }
    Ok(files.first(&["pytest.ini", ".pytest.ini", "pytest.toml", "conftest.py"]))
}

/// The directory of tests that a package has, if it has one.
fn package_with_tests(settings: &Settings<'_>) -> Option<&'static str> {
    let files = settings.files;
    let is_package =
        settings.pyproject.is_some() || files.has("setup.py") || files.has("setup.cfg");
    let has_tests = files.has_directory("tests") || files.has_directory("test");
    (is_package && has_tests).then_some("the tests directory")
}

/// True if `python -m` finds this file in the root instead of an installed tool.
fn shadows_tool(path: &str) -> bool {
    let top = path.split('/').next().unwrap_or(path);
    let module = top.strip_suffix(".py").unwrap_or(top);
    path.ends_with(".py") && ["pytest", "_pytest", "unittest", "ruff"].contains(&module)
}

/// True if Python finds this module in the root instead of the one of its library.
fn shadows_library(path: &str) -> bool {
    let top = path.split('/').next().unwrap_or(path);
    let module = top.strip_suffix(".py").unwrap_or(top);
    path.ends_with(".py") && MODULES.binary_search(&module).is_ok()
}

/// The settings of test and lint tools. A new file may configure them, too.
fn pyproject_part(base: Option<&str>, own: &str) -> Option<String> {
    const TOOLS: [&[&str]; 12] = [
        &["tool", "pytest"],
        &["tool", "ruff"],
        &["tool", "tox"],
        &["tool", "nox"],
        &["tool", "coverage"],
        &["tool", "mypy"],
        &["tool", "flake8"],
        &["tool", "pylint"],
        &["tool", "pyright"],
        &["tool", "hatch"],
        &["tool", "poe"],
        &["tool", "taskipy"],
    ];
    let base: Table = base.unwrap_or_default().parse().ok()?;
    let mut project: Table = own.parse().ok()?;
    if !toml_values(&base, &mut project, &TOOLS)? {
        return Some(own.to_owned());
    }
    toml::to_string(&project).ok()
}

/// Every line of a list of requirements that does not name a package and its versions.
fn list_part(base: Option<&str>, own: &str) -> Option<String> {
    let names_package = |line: &&str| {
        let line = line.trim();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " .,;'\"()[]<>=!~*-_#".contains(c);
        !line.starts_with(['-', '.']) && line.chars().all(is_plain)
    };
    line_hunks(base, own, |hunk| !hunk.removed.iter().chain(hunk.added).all(names_package))
}

/// Everything but what describes the package.
fn setup_cfg_part(base: Option<&str>, own: &str) -> Option<String> {
    ini_sections(base, own, |name| {
        name == "metadata" || name == "options" || name.starts_with("options.")
    })
}
