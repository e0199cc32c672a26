//! Python: tox, nox, pytest, unittest and ruff. They run through uv or poetry if the project has a
//! lock file of one of these. Else pytest and unittest run in a virtual environment of the
//! checkout, if there is something to install.
use toml::Table;

use crate::ecosystems::ecosystem::{Ecosystem, InstalledDirectory};
use crate::ecosystems::manifest::{
    entry_points, ini_entries, ini_value, line_hunks, toml_as_json, toml_text, toml_values, words,
};
use crate::ecosystems::paths::{directory_of, file_name};
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command, shell_command};
use crate::error::Result;
use crate::model::oracle::{OracleCommand, shell_line};
use crate::model::outcome::Stage;
use crate::process;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[
        (Evidence::Settings, tox),
        (Evidence::Settings, nox),
        (Evidence::Settings, |files| configured_pytest(&Project::of(files)?)),
        (Evidence::Names, |files| named_tests(&Project::of(files)?)),
        (Evidence::Names, without_the_lock_file),
    ],
    extensions: &["py"],
    installed: &[virtual_environment(".venv"), virtual_environment("venv")],
    other_extensions: &["pxd", "pyi", "pyx"],
    declarations: &["pyi"],
    is_source_if_new: |file| file.is_in_package(ECOSYSTEM.package_file),
    package_file: "__init__.py",
    project_files: &["Pipfile", "requirements.txt", "setup.py"],
    lock_files: &["Pipfile.lock", "pdm.lock", "poetry.lock", "uv.lock"],
    comment: "#",
    quotes: &["\"\"\"", "'''", "\"", "'"],
    test_marks: "def test*|class Test*",
    // A test asserts, or its file loads a library for tests.
    may_run: |code, part| {
        let words = ["assert", "Assert", "TestCase", "pytest", "unittest"];
        part.contains("def test") && words.iter().any(|word| code.contains(word))
    },
    skip_marks: "\
        def load_tests(|mark.skip*|pytest.skip*|pytest.exit|unittest.skip*|SkipTest|skipTest|@skip*|\
        collect_ignore|pytest_collection_modifyitems|expectedFailure|os._exit(",
    test_words: (&["test"], &["test"]),
    decisive_files: "*.pyc .coveragerc .flake8 .mypy.ini .pylintrc .pytest.ini .ruff.toml
        conftest.py mypy.ini noxfile.py setup.py pyrightconfig.json pytest.ini
        pytest.toml ruff.toml sitecustomize.py tox.ini usercustomize.py uv.toml",
    manifests: &[
        (&["pyproject.toml"], pyproject_part),
        (&["setup.cfg"], setup_cfg_part),
        (&["requirements*.txt"], list_part),
    ],
    entry_points: &[
        ("pyproject.toml", |text, is_task| {
            Some(entry_points(&toml_as_json(text)?, &ENTRY_POINTS, is_task))
        }),
        ("setup.cfg", setup_cfg_entry_points),
    ],
    shadows_tool: |path| is_module_in_root(path, "pytest _pytest unittest ruff"),
    shadows_library: |path, _| is_module_in_root(path, STANDARD_LIBRARY),
    recipe_files: &["tox.ini"],
    ..Ecosystem::NOTHING
};

/// The names of the files that say how a project is built.
pub const MANIFESTS: [&str; 3] = ["pyproject.toml", "setup.cfg", "setup.py"];

const fn virtual_environment(directory: &'static str) -> InstalledDirectory {
    let manifests = &["pyproject.toml", "requirements.txt", "setup.py"];
    InstalledDirectory { directory, manifests, is_tied_to_its_place: true }
}

/// The words of a command, or the words with which it begins.
type Words = &'static [&'static str];

/// The environment in which a checkout's tools run. The default is the machine's own Python,
/// without a lock file.
#[derive(Default)]
struct Environment {
    /// The words before the name of a tool: `uv run --locked`.
    run: Words,
    /// The command that installs the packages.
    setup: Option<OracleCommand>,
    /// The text of the lock file; empty if there is none.
    lock: String,
}

impl Environment {
    /// The environment of uv or poetry if the project has a lock file of one of these, else the
    /// machine's.
    fn of(files: &RootFiles<'_>) -> Result<Environment> {
        let text = |name: &str| Ok(files.text(name)?.unwrap_or_default());
        Ok(if files.has("uv.lock") {
            Environment {
                run: &["uv", "run", "--locked"],
                setup: Some(command(Stage::Setup, &["uv", "sync", "--locked"], "uv.lock")),
                lock: text("uv.lock")?,
            }
        } else if files.has("poetry.lock") {
            let words = ["poetry", "install", "--no-interaction"];
            Environment {
                run: &["poetry", "run"],
                setup: Some(command(Stage::Setup, &words, "poetry.lock")),
                lock: text("poetry.lock")?,
            }
        } else {
            Environment::default()
        })
    }
}

/// A project's settings, and the environment for its tests.
struct Project<'a> {
    files: &'a RootFiles<'a>,
    pyproject: Option<Table>,
    environment: Environment,
}

impl<'a> Project<'a> {
    fn of(files: &'a RootFiles<'a>) -> Result<Project<'a>> {
        let pyproject = files.toml("pyproject.toml")?;
        Ok(Project { files, pyproject, environment: Environment::of(files)? })
    }

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

    /// The commands `setup` and `test`, and a lint by ruff if ruff is configured.
    fn with_lint(
        &self,
        test: Option<OracleCommand>,
        setup: Option<OracleCommand>,
    ) -> Vec<OracleCommand> {
        let config = self.files.first(&["ruff.toml", ".ruff.toml"]);
        let ruff = config.or_else(|| self.pyproject_for("ruff")).map(|source| {
            let words = [self.environment.run, &["ruff", "check"]].concat();
            command(Stage::Lint, &words, source)
        });
        [setup, ruff, test].into_iter().flatten().collect()
    }

    /// The commands for a project that is tested by a tool with environments of its own, such as
    /// tox. If the lock file names the tool, the tool runs in the environment of the lock file.
    fn by_tool(&self, words: &[&str], source: &str) -> Vec<OracleCommand> {
        let environment = &self.environment;
        let entry = format!("name = \"{}\"", words[0]);
        let is_locked = environment.lock.lines().any(|line| line == entry);
        let before = if is_locked { environment.run } else { &[] };
        let test = command(Stage::Test, &[before, words].concat(), source);
        self.with_lint(Some(test), environment.setup.clone())
    }

    /// The commands that run a test module (`python -m WORDS`). The module runs in the environment
    /// of the lock file. Without a lock file, it runs in a virtual environment of the checkout if
    /// there is something to install: the machine's Python may import another release of the
    /// project.
    fn by_module(&self, words: &[&str], source: &str) -> Vec<OracleCommand> {
        let environment = &self.environment;
        let own = match environment.setup {
            None => virtual_environment_of(self, words),
            Some(_) => None,
        };
        let python = match (&own, environment.run) {
            (Some(_), _) => ".venv/bin/python",
            (None, []) => "python3",
            (None, _) => "python",
        };
        let test = [environment.run, &[python, "-m"], words].concat();
        let test = command(Stage::Test, &test, source);
        self.with_lint(Some(test), own.or_else(|| environment.setup.clone()))
    }
}

/// tox, with its environment `py`. Without `-e`, tox runs the tests with all interpreters that it
/// is configured for, most of which are not installed.
fn tox(files: &RootFiles<'_>) -> FoundCommands {
    let project = Project::of(files)?;
    let Some(source) = tox_settings(&project)? else { return Ok(Vec::new()) };
    let settings = if source == "tox.ini" { files.text(source)? } else { None };
    let factor = settings.as_deref().and_then(factor_of_commands);
    let environment = factor.map_or("py".to_owned(), |factor| format!("py-{factor}"));
    Ok(project.by_tool(&["tox", "run", "-e", &environment], source))
}

/// The factor without which an environment of tox has no command; `None` if the environment `py`
/// has a command. For example, `tests: pytest` runs only in environments such as `py-tests`.
fn factor_of_commands(settings: &str) -> Option<&str> {
    let lines = settings.lines().skip_while(|line| line.trim() != "[testenv]").skip(1);
    let mut first = None;
    let mut is_command = false;
    let mut goes_on = false;
    for line in lines.take_while(|line| !line.starts_with('[')) {
        let value = match line.split_once('=') {
            Some((key, value)) if !line.starts_with(char::is_whitespace) => {
                is_command = key.trim() == "commands";
                value.trim()
            }
            _ => line.trim(),
        };
        if is_command && !goes_on && !value.is_empty() && !value.starts_with('#') {
            let (factors, _) = value.split_once(": ")?;
            if !factors.chars().all(|c| c.is_alphanumeric() || "_-.,".contains(c)) {
                return None; // a negated factor, or no factor at all
            }
            first = first.or(Some(factors));
        }
        goes_on = value.ends_with('\\');
    }
    // A factor such as `py311` is left out, because that version of Python may not be installed.
    first?.split(['-', ',']).find(|factor| !factor.is_empty() && !factor.starts_with("py"))
}

/// The test session of nox.
fn nox(files: &RootFiles<'_>) -> FoundCommands {
    let noxfile = files.text("noxfile.py")?.unwrap_or_default();
    let Some(session) = nox_session(&noxfile) else { return Ok(Vec::new()) };
    Ok(Project::of(files)?.by_tool(&["nox", "-s", &session], "noxfile.py"))
}

fn configured_pytest(project: &Project<'_>) -> FoundCommands {
    Ok(match pytest_settings(project)? {
        Some(source) => project.by_module(&["pytest"], source),
        None => project.with_lint(None, None),
    })
}

/// Tests that are not configured, but that the names of files and directories suggest. These are
/// the tests of a package, the tests beside a list of requirements, the test files in the root, or
/// all sessions of nox.
fn named_tests(project: &Project<'_>) -> FoundCommands {
    let files = project.files;
    if let Some(source) = package_with_tests(project) {
        let unittest =
            files.ci().words_of("unittest").filter(|_| files.ci().words_of("pytest").is_none());
        let words =
            unittest.map_or(vec!["pytest"], |words| words.iter().map(String::as_str).collect());
        return Ok(project.by_module(&words, source));
    }
    let in_root = files.paths().iter().filter(|path| !path.contains('/'));
    let mut in_root = in_root.filter(|path| path.starts_with("test") && path.ends_with(".py"));
    let found = match tests_beside_requirements(files) {
        Some(directory) => Some((directory, "requirements.txt")),
        None => in_root.next().map(|name| ("", name.as_str())),
    };
    if let Some((directory, source)) = found {
        let unittest = ["unittest", "discover", "-s", directory];
        let words = match directory {
            _ if needs_pytest(files, directory)? => &["pytest"],
            "" => &unittest[..2],
            _ => &unittest[..],
        };
        return Ok(project.by_module(words, source));
    }
    if files.has("noxfile.py") {
        let mut found = project.by_tool(&["nox"], "noxfile.py");
        found.retain(|command| command.stage == Stage::Test);
        return Ok(found);
    }
    Ok(Vec::new())
}

/// The commands that run the tests in a virtual environment of the checkout. None if the tool that
/// wrote the lock file (uv or poetry) is installed. The error about the missing tool suggests these
/// commands.
fn without_the_lock_file(files: &RootFiles<'_>) -> FoundCommands {
    let mut project = Project::of(files)?;
    let tool = project.environment.run.first();
    if tool.is_none_or(|tool| process::on_path(tool.as_ref())) {
        return Ok(Vec::new());
    }
    project.environment = Environment::default();
    let configured = configured_pytest(&project)?;
    let has_test = configured.iter().any(|command| command.stage == Stage::Test);
    if has_test { Ok(configured) } else { named_tests(&project) }
}

/// The command that creates a virtual environment in the checkout, with the project and the
/// packages of its tests. These are the packages that CI installs for the tests, or else the
/// packages that the project names. `None` if there is nothing to install.
fn virtual_environment_of(project: &Project<'_>, words: &[&str]) -> Option<OracleCommand> {
    let files = project.files;
    let table = |name: &str| project.pyproject.as_ref().and_then(|p| p.get(name));
    let is_project = table("project").is_some() || table("build-system").is_some();
    let can_be_installed = is_project || files.has("setup.py");
    let lists = REQUIREMENTS.split_whitespace().filter(|name| files.has(name));
    let lists: Vec<String> = lists.map(|name| format!("-r {name}")).collect();
    if !can_be_installed && lists.is_empty() {
        return None;
    }
    let of_ci = files.ci().pip_installs(words[0]);
    let ci_names_project = of_ci.iter().flatten().any(|word| word.starts_with('.'));
    let mut installs: Vec<String> = of_ci.iter().map(|words| shell_line(words)).collect();
    if installs.is_empty() {
        let extras = table("project").and_then(|project| project.get("optional-dependencies"));
        let extra = named_group(extras).map(|name| format!("-e '.[{name}]'"));
        let own = extra.unwrap_or_else(|| "-e .".to_owned());
        let group = named_group(table("dependency-groups")).map(|name| format!("--group {name}"));
        let mut packages = Vec::new();
        packages.extend(can_be_installed.then_some(own));
        packages.extend(lists);
        packages.extend(group.filter(|_| can_be_installed));
        packages.extend((words[0] == "pytest").then(|| "pytest".to_owned()));
        installs.push(packages.join(" "));
    } else if can_be_installed && !ci_names_project {
        installs.push("-e .".to_owned());
    }
    let pip = |packages: String| format!(" && .venv/bin/python -m pip install {packages}");
    let line: String = std::iter::once("-U pip".to_owned()).chain(installs).map(pip).collect();
    let source = if is_project { "pyproject.toml" } else { "setup.py" };
    let source = if can_be_installed { source } else { "requirements.txt" };
    Some(shell_command(Stage::Setup, format!("python3 -m venv .venv{line}"), source))
}

/// The name of the group of test packages in a table of groups.
fn named_group(groups: Option<&toml::Value>) -> Option<&'static str> {
    ["test", "tests", "testing", "dev"]
        .into_iter()
        .find(|name| groups.is_some_and(|g| g.get(name).is_some()))
}

/// The session `tests` or `test` of a noxfile, or else the first session whose name contains
/// `test`.
fn nox_session(noxfile: &str) -> Option<String> {
    let lines: Vec<&str> = noxfile.lines().map(str::trim).collect();
    let functions = lines.iter().enumerate().filter_map(|(at, line)| {
        let name = line.strip_prefix("def ")?.split('(').next()?;
        let mut above = lines[..at].iter().rev().take_while(|line| !line.is_empty());
        let is_session = above.any(|line| line.starts_with('@') && line.contains("session"));
        is_session.then_some(name)
    });
    let about_tests: Vec<&str> = functions.filter(|name| name.contains("test")).collect();
    let plain = about_tests.iter().find(|name| ["tests", "test"].contains(name));
    plain.or_else(|| about_tests.first()).map(|name| (*name).to_owned())
}

/// The files that may list packages that the tests need.
const REQUIREMENTS: &str = "requirements.txt requirements-dev.txt requirements-test.txt
    dev-requirements.txt test-requirements.txt";

/// The directory of tests, if the project has a `requirements.txt`.
fn tests_beside_requirements(files: &RootFiles<'_>) -> Option<&'static str> {
    let name = ["tests", "test"].into_iter().find(|name| files.has_directory(name))?;
    files.has("requirements.txt").then_some(name)
}

/// True if requirements, CI or the test files of a directory show that pytest runs the tests.
/// unittest would find none of them, or not all. The root is the directory `""`.
fn needs_pytest(files: &RootFiles<'_>, directory: &str) -> Result<bool> {
    for list in REQUIREMENTS.split_whitespace() {
        let text = files.text(list)?.unwrap_or_default();
        if text.lines().any(|line| line.trim_start().starts_with("pytest")) {
            return Ok(true);
        }
    }
    for path in files.paths() {
        let is_test = file_name(path).starts_with("test") && path.ends_with(".py");
        if !is_test || directory_of(path) != directory {
            continue;
        }
        let text = files.text(path)?.unwrap_or_default();
        let marks = ["import pytest", "from pytest ", "def test"];
        if text.lines().any(|line| marks.iter().any(|mark| line.starts_with(mark))) {
            return Ok(true);
        }
    }
    Ok(files.ci().names("pytest"))
}

/// The file that configures tox.
fn tox_settings(project: &Project<'_>) -> Result<Option<&'static str>> {
    if project.has_section("tox.ini", "[tox]")? || project.has_section("tox.ini", "[testenv]")? {
        return Ok(Some("tox.ini"));
    }
    Ok(project.files.first(&["tox.toml"]).or_else(|| project.pyproject_for("tox")))
}

/// The file that configures pytest.
fn pytest_settings(project: &Project<'_>) -> Result<Option<&'static str>> {
    if let Some(pyproject) = project.pyproject_for("pytest") {
        return Ok(Some(pyproject));
    }
    for (file, section) in [("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]")] {
        if project.has_section(file, section)? {
            return Ok(Some(file));
        }
    }
    Ok(project.files.first(&["pytest.ini", ".pytest.ini", "pytest.toml", "conftest.py"]))
}

/// The source to show for a command that was detected from a directory of tests; `None` unless the
/// project is a package and has such a directory.
fn package_with_tests(project: &Project<'_>) -> Option<&'static str> {
    let files = project.files;
    let is_package = project.pyproject.is_some() || files.has("setup.py") || files.has("setup.cfg");
    let has_tests = files.has_directory("tests") || files.has_directory("test");
    (is_package && has_tests).then_some("the tests directory")
}

/// True if Python finds this file in the root in place of an installed module with one of these
/// names.
fn is_module_in_root(path: &str, names: &str) -> bool {
    let top = path.split('/').next().unwrap_or(path);
    let module = top.strip_suffix(".py").unwrap_or(top);
    path.ends_with(".py") && words(names).contains(&module)
}

/// The modules of the standard library (`sys.stdlib_module_names`, Python 3.11) that a test runner
/// may import: without private ones, games and tools. A file of an attempt can replace a module
/// that the test runner imports.
const STANDARD_LIBRARY: &str = "\
    abc aifc argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii
    bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop
    collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg
    crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email
    encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib
    functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac
    html http imaplib imghdr imp importlib inspect io ipaddress itertools json keyword linecache
    locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt
    multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os
    ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix
    posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue
    quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors
    shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3
    sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess
    sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap
    threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty types
    typing unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg
    winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// Restores the base's pyproject.toml, but keeps the attempt's description of the package and its
/// dependencies. In a new file, everything else is dropped, because it may configure tools. The
/// Python version that the package requires (`requires-python`) is restored, because linters check
/// for that version.
fn pyproject_part(base: Option<&str>, own: &str) -> Option<String> {
    const KEPT: &str = "\
        build-system.requires build-system.build-backend dependency-groups project.authors
        project.classifiers project.dependencies project.description project.dynamic
        project.keywords project.license project.license-files project.maintainers project.name
        project.optional-dependencies project.readme project.urls project.version tool.pdm.dev-dependencies tool.poetry.authors tool.poetry.dependencies
        tool.poetry.description tool.poetry.dev-dependencies tool.poetry.extras
        tool.poetry.group.*.dependencies tool.poetry.name tool.poetry.readme tool.poetry.version
        tool.uv.dev-dependencies";
    let base: Table = base.unwrap_or_default().parse().ok()?;
    let project: Table = own.parse().ok()?;
    toml_text(own, &project, &toml_values(&base, &project, &words(KEPT)))
}

/// Restores the base's list of requirements, but keeps the attempt's lines that only name a package
/// and its versions.
fn list_part(base: Option<&str>, own: &str) -> Option<String> {
    let names_package = |line: &&str| {
        let line = line.trim();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " .,;'\"()[]<>=!~*-_#".contains(c);
        !line.starts_with(['-', '.']) && line.chars().all(is_plain)
    };
    line_hunks(base, own, |hunk| !hunk.removed.iter().chain(hunk.added).all(names_package))
}

/// Restores the base's setup.cfg, but keeps the attempt's description of the package and its
/// dependencies.
/// The value of a key in pytest's settings; empty if there is none. `text` reads a file of the root.
fn pytest_value(text: impl Fn(&str) -> String, key: &str) -> Vec<String> {
    const IN_INI: [(&str, &str); 4] = [
        ("pytest.ini", "pytest"),
        (".pytest.ini", "pytest"),
        ("tox.ini", "pytest"),
        ("setup.cfg", "tool:pytest"),
    ];
    let pyproject = toml_as_json(&text("pyproject.toml")).unwrap_or_default();
    let in_ini = IN_INI.iter().filter_map(|(file, section)| ini_value(&text(file), section, key));
    let values = match &pyproject["tool"]["pytest"]["ini_options"][key] {
        serde_json::Value::Array(values) => {
            values.iter().filter_map(|value| value.as_str()).map(str::to_owned).collect()
        }
        value => value.as_str().map(str::to_owned).into_iter().collect::<Vec<_>>(),
    };
    let values = values.into_iter().chain(in_ini);
    values
        .flat_map(|value| words(&value).into_iter().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// The patterns of test files that pytest's settings (`python_files`) add to the usual ones. `text`
/// reads a file of the root. A pattern for all files counts in the directories of tests alone
/// (`testpaths`).
pub fn patterns_of_tests(text: impl Fn(&str) -> String) -> Vec<String> {
    let mut found = Vec::new();
    for pattern in pytest_value(&text, "python_files") {
        if pattern.trim_end_matches(".py") != "*" {
            found.push(format!("*/{pattern}"));
            found.push(pattern);
        } else {
            let directories = pytest_value(&text, "testpaths").into_iter();
            found.extend(
                directories.map(|directory| format!("{}/*.py", directory.trim_end_matches('/'))),
            );
        }
    }
    found
}

/// The tables of a pyproject.toml that name the package's own files, for installers and builders.
const ENTRY_POINTS: [&str; 11] = [
    "project",
    "tool.flit",
    "tool.hatch.build",
    "tool.hatch.version",
    "tool.maturin",
    "tool.pdm.build",
    "tool.poetry.include",
    "tool.poetry.packages",
    "tool.poetry.plugins",
    "tool.poetry.scripts",
    "tool.setuptools",
];

/// The lines of the sections of a setup.cfg that are about the package.
fn setup_cfg_entry_points(text: &str, is_task: &dyn Fn(&str) -> bool) -> Option<Vec<String>> {
    let mut is_of_package = false;
    let mut names_programs = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            is_of_package = ["metadata", "options"].iter().any(|own| section.starts_with(own));
            names_programs = section.starts_with("options.entry_points");
        } else if is_of_package
            && !(names_programs && line.split('=').next().is_some_and(|key| is_task(key.trim())))
        {
            found.push(line.to_owned());
        }
    }
    Some(found)
}

fn setup_cfg_part(base: Option<&str>, own: &str) -> Option<String> {
    const NEEDED: [&str; 4] = ["", "install_requires", "setup_requires", "tests_require"];
    ini_entries(base, own, |section, key| match section {
        "metadata" | "options.extras_require" => true,
        "options" => NEEDED.contains(&key),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_pytest_say_which_files_are_tests() {
        let in_toml = |value: &str| format!("[tool.pytest.ini_options]\npython_files = {value}\n");
        let cases = [
            ("pytest.ini", "[pytest]\npython_files = check_*.py\n    x.py\n".into(), "check_*.py"),
            ("setup.cfg", "[tool:pytest]\npython_files = check_*.py\n".into(), "check_*.py"),
            ("pyproject.toml", in_toml("'check_*.py'"), "check_*.py"),
            ("pyproject.toml", in_toml("['x.py', 'check_*.py']"), "*/check_*.py"),
            ("tox.ini", "[pytest]\npython_files = *.py\ntestpaths = a it/\n".into(), "it/*.py"),
        ];
        for (file, settings, pattern) in cases {
            let text = |name: &str| if name == file { settings.clone() } else { String::new() };
            assert!(patterns_of_tests(text).contains(&pattern.to_owned()), "{file}: {settings}");
        }
        let all = |_: &str| "[pytest]\npython_files = *.py\n".to_owned();
        assert!(patterns_of_tests(all).is_empty());
    }
}
