//! Detection: what a project's files show is what runs, as `judge --explain` says.
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::common::{World, make_executable, write};

/// A committed project of these files, and one attempt that adds a file to it.
fn project(files: &[File<'_>]) -> World {
    let world = World::unborn();
    for (path, text) in files {
        world.write(path, text);
    }
    world.commit("base");
    // Of a known kind of project, such a file is not source by its name.
    world.git(["config", "frites.oracle.source", "attempt.txt"]);
    world.attempts(&["echo x > attempt.txt"]);
    world
}

/// Puts a stand-in for a program first on PATH. It fails on the base; elsewhere it writes how it
/// was called to `$HOME/calls`.
fn stand_in(world: &mut World, program: &str) {
    let bin = world.home().join("bin");
    let path = bin.join(program);
    write(
        &path,
        "#!/bin/sh\ntest -e attempt.txt && echo \"${0##*/}${*:+ $*}\" >> \"$HOME/calls\"\n\
         [ \"$1 $2\" != '-m venv' ] || { mkdir -p .venv/bin; cp \"$0\" .venv/bin/python; }\n",
    );
    make_executable(&path);
    let old = std::env::var("PATH").unwrap();
    let ours = Path::new(env!("CARGO_BIN_EXE_git-frites")).parent().unwrap().display();
    world.set_env("PATH", format!("{}:{ours}:{old}", bin.display()));
}

fn calls(world: &World) -> String {
    fs::read_to_string(world.home().join("calls")).unwrap_or_default()
}

/// The virtual environment of a checkout whose project can be installed.
const VENV: &str = "setup: python3 -m venv .venv && .venv/bin/python -m pip install -U pip && \
                    .venv/bin/python -m pip install -e . pytest, from setup.py";

/// A path and a text.
type File<'a> = (&'a str, &'a str);

/// The lines of `--explain`: `STAGE: COMMAND, from SOURCE`, without the quotes.
fn explained(stderr: &str) -> Vec<String> {
    let runs = |l: &&str| l.contains(", from ") && !l.starts_with("passed over: ");
    let lines = stderr.lines().filter(runs);
    lines.map(|l| l.replace('`', "")).collect()
}

const SCRIPTS: &str =
    r#""scripts": {"build": "tsc", "lint": "eslint .", "test": "jest", "start": "node ."}"#;

/// Each project, what is run for it, and from which file that was read.
#[test]
fn each_kind_of_project_runs_its_own_commands() {
    let scripts = format!("{{{SCRIPTS}}}");
    let needing = format!("{{{SCRIPTS}, \"devDependencies\": {{\"jest\": \"1\"}}}}");
    let declared = format!(
        "{{{SCRIPTS}, \"packageManager\": \"yarn@4.1.0\", \"dependencies\": {{\"a\": \"1\"}}}}"
    );
    let by = |manager: &str, why: &str| {
        ["build", "lint", "test"]
            .map(|s| format!("{s}: {manager} run {s}, from package.json{why}"))
            .to_vec()
    };
    // The setup ends in the lock file's name.
    let with = |setup: &str, manager: &str| {
        let why = format!(" ({manager} by {})", setup.rsplit(' ').next().unwrap());
        [vec![format!("setup: {setup}")], by(manager, &why)].concat()
    };
    let only = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
    let cases: Vec<(&str, Vec<File<'_>>, Vec<String>)> = vec![
        ("npm", vec![("package.json", &scripts)], by("npm", "")),
        (
            "npm",
            vec![("package.json", &scripts), ("package-lock.json", "{}")],
            by("npm", " (npm by package-lock.json)"),
        ),
        (
            "npm",
            vec![("package.json", &needing), ("package-lock.json", "{}")],
            with("npm ci, from package-lock.json", "npm"),
        ),
        (
            "npm",
            vec![
                ("package.json", r#"{"workspaces": ["packages/*"], "scripts": {"build": "tsc"}}"#),
                ("package-lock.json", "{}"),
                ("packages/a/package.json", r#"{"scripts": {"test": "jest"}}"#),
                ("packages/b/package.json", r#"{"scripts": {"build": "tsc"}}"#),
            ],
            only(&[
                "setup: npm ci, from package-lock.json",
                "build: npm run build, from package.json (npm by package-lock.json)",
                "test: npm run test --workspaces --if-present, from package.json (npm by \
                 package-lock.json)",
            ]),
        ),
        (
            "pnpm",
            vec![
                ("package.json", "{}"),
                ("pnpm-workspace.yaml", "packages:\n  - 'a'\n"),
                ("pnpm-lock.yaml", ""),
                ("a/package.json", r#"{"scripts": {"test": "jest"}}"#),
            ],
            only(&[
                "setup: pnpm install --frozen-lockfile, from pnpm-lock.yaml",
                "test: pnpm --recursive run test, from package.json (pnpm by pnpm-lock.yaml)",
            ]),
        ),
        (
            "go",
            vec![
                ("go.work", "go 1.22\n\nuse .\nuse (\n\t./a // first\n\t./b/\n\t../c\n)\n"),
                ("go.mod", "module root\n"),
                ("a/go.mod", "module a\n"),
                ("b/go.mod", "module b\n"),
            ],
            only(&[
                "build: go build ./... ./a/... ./b/..., from go.work",
                "lint: go vet ./... ./a/... ./b/..., from go.work",
                "test: go test -v ./... ./a/... ./b/..., from go.work",
            ]),
        ),
        (
            "pnpm",
            vec![("package.json", &needing), ("pnpm-lock.yaml", "")],
            with("pnpm install --frozen-lockfile, from pnpm-lock.yaml", "pnpm"),
        ),
        (
            "yarn",
            vec![("package.json", &needing), ("yarn.lock", "")],
            with("yarn install --frozen-lockfile, from yarn.lock", "yarn"),
        ),
        (
            "yarn",
            vec![("package.json", &declared), ("yarn.lock", ""), (".yarnrc.yml", "")],
            [
                vec!["setup: yarn install --immutable, from yarn.lock".to_owned()],
                by("yarn", " (packageManager)"),
            ]
            .concat(),
        ),
        (
            "yarn",
            vec![
                ("package.json", &needing),
                ("yarn.lock", "# generated\n\n__metadata:\n  version: 6\n"),
            ],
            with("yarn install --immutable, from yarn.lock", "yarn"),
        ),
        (
            "bun",
            vec![("package.json", &needing), ("bun.lock", "{}")],
            with("bun install --frozen-lockfile, from bun.lock", "bun"),
        ),
        (
            "npm",
            vec![(
                "package.json",
                r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1", "lint": "eslint"}}"#,
            )],
            only(&["lint: npm run lint, from package.json"]),
        ),
        // Nothing is locked, so that the plain command installs; a lint that repairs is none.
        (
            "npm",
            vec![(
                "package.json",
                r#"{"scripts": {"test": "jest", "lint": "eslint --fix .", "lint:check": "eslint ."}, "devDependencies": {"jest": "1"}}"#,
            )],
            only(&[
                "setup: npm install, from package.json (no lock file)",
                "lint: npm run lint:check, from package.json",
                "test: npm run test, from package.json",
            ]),
        ),
        // The package manager of CI, and how it installs.
        (
            "yarn",
            vec![
                (
                    "package.json",
                    r#"{"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}"#,
                ),
                (
                    ".github/workflows/a.yml",
                    "jobs:\n  a:\n    steps:\n      - run: yarn install --ignore-engines\n      - run: yarn test\n",
                ),
            ],
            only(&[
                "setup: yarn install --ignore-engines, from package.json (no lock file)",
                "test: yarn run test, from package.json",
            ]),
        ),
        // CI decides between the ways to test.
        (
            "make",
            vec![
                ("go.mod", "module a\n"),
                ("Makefile", "test:\n"),
                (".gitlab-ci.yml", "unit:\n  script: [make test]\n"),
            ],
            only(&["test: make test, from Makefile"]),
        ),
        // Else the language with most source.
        (
            "mix",
            vec![
                ("package.json", &scripts),
                ("a.js", ""),
                ("mix.exs", ""),
                ("lib/a.ex", ""),
                ("lib/b.ex", ""),
            ],
            only(&["build: mix compile, from mix.exs", "test: mix test, from mix.exs"]),
        ),
        (
            "zig",
            vec![("build.zig", "b.step(\"test\", \"\")\n")],
            only(&["build: zig build, from build.zig", "test: zig build test, from build.zig"]),
        ),
        (
            "swift",
            vec![("Package.swift", "// no tests\n")],
            only(&["build: swift build, from Package.swift"]),
        ),
        (
            "swift",
            vec![("Package.swift", ".testTarget(name: \"a\")\n")],
            only(&[
                "build: swift build, from Package.swift",
                "test: swift test, from Package.swift",
            ]),
        ),
        ("bats", vec![("test/a.bats", "")], only(&["test: bats test, from test/*.bats"])),
        (
            "prove",
            vec![("cpanfile", ""), ("t/a.t", "")],
            only(&["test: prove -lr t, from cpanfile"]),
        ),
        // A Makefile that hands every target on, and a tool's rules without any test.
        (
            "make",
            vec![
                ("Makefile", ".DEFAULT:\n\tcd src && $(MAKE) $@\n"),
                ("src/Makefile", "all test:\n"),
                ("MODULE.bazel", ""),
                ("BUILD", "cc_library(name = 'a')\n"),
            ],
            only(&["build: make all, from Makefile", "test: make test, from Makefile"]),
        ),
        (
            "dotnet",
            vec![("src/App.sln", ""), ("src/App.csproj", "")],
            only(&[
                "build: dotnet build src/App.sln, from src/App.sln",
                "test: dotnet test src/App.sln --no-build, from src/App.sln",
            ]),
        ),
        (
            "cargo",
            vec![("Cargo.toml", "[package]\nname = \"a\"\n"), ("rustfmt.toml", "")],
            only(&[
                "build: cargo build, from Cargo.toml",
                "lint: cargo fmt --all --check, from rustfmt.toml",
                "test: cargo test --no-fail-fast, from Cargo.toml",
            ]),
        ),
        // The author's own target before a guess by names.
        (
            "make",
            vec![("setup.py", ""), ("tests/test_a.py", ""), ("Makefile", "test:\n")],
            only(&["test: make test, from Makefile"]),
        ),
        // Members of a workspace have dependencies where the project has none.
        (
            "npm",
            vec![
                (
                    "package.json",
                    r#"{"scripts": {"test": "npm test --workspaces"}, "workspaces": ["packages/*"]}"#,
                ),
                ("packages/a/package.json", r#"{"name": "a", "dependencies": {"left-pad": "1"}}"#),
                ("package-lock.json", "{}"),
            ],
            only(&[
                "setup: npm ci, from package-lock.json",
                "test: npm run test, from package.json (npm by package-lock.json)",
            ]),
        ),
        (
            "cargo",
            vec![("Cargo.toml", "[package]\nname = \"a\"\n")],
            only(&[
                "build: cargo build, from Cargo.toml",
                "test: cargo test --no-fail-fast, from Cargo.toml",
            ]),
        ),
        (
            "cargo",
            vec![
                (
                    "Cargo.toml",
                    "[workspace]\nmembers = []\n[workspace.lints.rust]\nunsafe_code = \"forbid\"\n",
                ),
                ("Cargo.lock", ""),
            ],
            only(&[
                "build: cargo build --locked --workspace, from Cargo.toml",
                "lint: cargo clippy --locked --workspace, from Cargo.toml",
                "test: cargo test --locked --workspace --no-fail-fast, from Cargo.toml",
            ]),
        ),
        (
            "go",
            vec![("go.mod", "module a\n")],
            only(&[
                "build: go build ./..., from go.mod",
                "lint: go vet ./..., from go.mod",
                "test: go test -v ./..., from go.mod",
            ]),
        ),
        (
            "python3",
            vec![("test_a.py", "")],
            only(&["test: python3 -m unittest discover, from test_a.py"]),
        ),
        (
            "python3",
            vec![("test_a.py", "import unittest\n"), ("test_b.py", "def test_b():\n    pass\n")],
            only(&["test: python3 -m pytest, from test_a.py"]),
        ),
        (
            "python3",
            vec![("test_a.py", "from pytest import mark\n")],
            only(&["test: python3 -m pytest, from test_a.py"]),
        ),
        (
            "python3",
            vec![("pyproject.toml", "[tool.pytest.ini_options]\n")],
            only(&["test: python3 -m pytest, from pyproject.toml"]),
        ),
        (
            "python3",
            vec![("setup.cfg", "[tool:pytest]\n")],
            only(&["test: python3 -m pytest, from setup.cfg"]),
        ),
        (
            "python3",
            vec![("tox.ini", "[pytest]\n")],
            only(&["test: python3 -m pytest, from tox.ini"]),
        ),
        (
            "python3",
            vec![("conftest.py", "")],
            only(&["test: python3 -m pytest, from conftest.py"]),
        ),
        (
            "python3",
            vec![("setup.py", ""), ("tests/test_a.py", "")],
            only(&[VENV, "test: .venv/bin/python -m pytest, from the tests directory"]),
        ),
        ("ruff", vec![("ruff.toml", "")], only(&["lint: ruff check, from ruff.toml"])),
        (
            "make",
            vec![("Makefile", "CC := gcc\nall:\n\ttrue\nlint check: all\n\ttrue\n")],
            only(&[
                "build: make all, from Makefile",
                "lint: make lint, from Makefile",
                "test: make check, from Makefile",
            ]),
        ),
        (
            "make",
            vec![("Makefile", "TOOL = ruff\nlint: x\n\t$(TOOL) check --fix .\ntest:\n\ttrue\n")],
            only(&["test: make test, from Makefile"]),
        ),
        (
            "make",
            vec![("Makefile", "lint:\n"), ("GNUmakefile", "test check build all:\n")],
            only(&["build: make build, from GNUmakefile", "test: make test, from GNUmakefile"]),
        ),
        (
            "cargo",
            vec![
                ("Cargo.toml", "[package]\nname = \"a\"\n"),
                (".config/nextest.toml", ""),
                ("clippy.toml", ""),
            ],
            only(&[
                "build: cargo build, from Cargo.toml",
                "lint: cargo clippy, from clippy.toml",
                "test: cargo nextest run --no-fail-fast, from .config/nextest.toml",
            ]),
        ),
        // One interpreter, not the matrix of all: one environment or session where tox or nox makes
        // it.
        (
            "tox",
            vec![("tox.ini", "[tox]\n[pytest]\n")],
            only(&["test: tox run -e py, from tox.ini"]),
        ),
        (
            "tox",
            vec![("tox.ini", "[testenv]\ncommands =\n    py312-tests: pytest \\\n      -x\n")],
            only(&["test: tox run -e py-tests, from tox.ini"]),
        ),
        (
            "tox",
            vec![("tox.ini", "[testenv]\ncommands =\n    tests: pytest\n    !lint: make check\n")],
            only(&["test: tox run -e py, from tox.ini"]),
        ),
        (
            "python3",
            vec![("noxfile.py", ""), ("conftest.py", "")],
            only(&["test: python3 -m pytest, from conftest.py"]),
        ),
        (
            "tox",
            vec![
                ("tox.ini", "[tox]\nenvlist = py38,py312\n"),
                ("setup.py", ""),
                ("tests/a.py", ""),
            ],
            only(&["test: tox run -e py, from tox.ini"]),
        ),
        (
            "tox",
            vec![("pyproject.toml", "[tool.tox]\n")],
            only(&["test: tox run -e py, from pyproject.toml"]),
        ),
        (
            "nox",
            vec![(
                "noxfile.py",
                "import nox\n@nox.session\ndef test_types(s):\n    pass\n\n@nox.session(\n    python=[\n        *ALL,\n    ],\n    default=False,\n)\ndef tests(s):\n    pass\n",
            )],
            only(&["test: nox -s tests, from noxfile.py"]),
        ),
        (
            "python3",
            vec![
                ("requirements.txt", "flask\n"),
                ("requirements-dev.txt", "pytest>=7\n"),
                ("tests/a.py", ""),
            ],
            only(&[
                "setup: python3 -m venv .venv && .venv/bin/python -m pip install -U pip && \
                 .venv/bin/python -m pip install -r requirements.txt -r requirements-dev.txt \
                 pytest, from requirements.txt",
                "test: .venv/bin/python -m pytest, from requirements.txt",
            ]),
        ),
        (
            "python3",
            vec![("requirements.txt", "flask\n"), ("tests/test_a.py", "")],
            only(&[
                "setup: python3 -m venv .venv && .venv/bin/python -m pip install -U pip && \
                 .venv/bin/python -m pip install -r requirements.txt, from requirements.txt",
                "test: .venv/bin/python -m unittest discover -s tests, from requirements.txt",
            ]),
        ),
        (
            "python3",
            vec![("requirements.txt", "flask\n"), ("tests/test_a.py", "import pytest\n")],
            only(&[
                "setup: python3 -m venv .venv && .venv/bin/python -m pip install -U pip && \
                 .venv/bin/python -m pip install -r requirements.txt pytest, from requirements.txt",
                "test: .venv/bin/python -m pytest, from requirements.txt",
            ]),
        ),
        (
            "make",
            vec![("requirements.txt", "flask\n"), ("tests/test_a.py", ""), ("Makefile", "test:\n")],
            only(&["test: make test, from Makefile"]),
        ),
        (
            "bundle",
            vec![("Gemfile", ""), (".rspec", ""), (".rubocop.yml", "")],
            only(&[
                "setup: bundle install, from Gemfile (no lock file)",
                "lint: bundle exec rubocop, from .rubocop.yml",
                "test: bundle exec rspec, from .rspec",
            ]),
        ),
        (
            "bundle",
            vec![("Gemfile", ""), ("Rakefile", "Rake::TestTask.new\n")],
            only(&[
                "setup: bundle install, from Gemfile (no lock file)",
                "test: bundle exec rake test, from Rakefile",
            ]),
        ),
        ("rake", vec![("Rakefile", "task :default\n")], only(&["test: rake, from Rakefile"])),
        (
            "composer",
            vec![
                ("composer.json", r#"{"scripts": {"test": "phpunit", "lint": ["phpcs"]}}"#),
                ("composer.lock", "{}"),
            ],
            only(&[
                "setup: composer install --no-interaction, from composer.lock",
                "lint: composer run-script lint, from composer.json",
                "test: composer run-script test, from composer.json",
            ]),
        ),
        (
            "php",
            vec![("composer.json", "{}"), ("phpunit.dist.xml", "<phpunit/>")],
            only(&["test: php vendor/bin/phpunit, from phpunit.dist.xml"]),
        ),
        (
            "php",
            vec![("composer.json", "{}"), ("phpunit.xml.dist", "<phpunit/>")],
            only(&["test: php vendor/bin/phpunit, from phpunit.xml.dist"]),
        ),
        // What is only linted or built is left to a kind that has a test.
        (
            "make",
            vec![("ruff.toml", ""), ("Makefile", "test:\n")],
            only(&["test: make test, from Makefile"]),
        ),
        (
            "uv",
            vec![("pyproject.toml", "[tool.pytest.ini_options]\n[tool.ruff]\n"), ("uv.lock", "")],
            only(&[
                "setup: uv sync --locked, from uv.lock",
                "lint: uv run --locked ruff check, from pyproject.toml",
                "test: uv run --locked python -m pytest, from pyproject.toml",
            ]),
        ),
        (
            "poetry",
            vec![
                ("pyproject.toml", "[project]\nname = \"a\"\n"),
                ("poetry.lock", ""),
                ("tests/test_a.py", ""),
            ],
            only(&[
                "setup: poetry install --no-interaction, from poetry.lock",
                "test: poetry run python -m pytest, from the tests directory",
            ]),
        ),
        (
            "deno",
            vec![
                (
                    "deno.jsonc",
                    "{\n  // a comment\n  \"tasks\": {\"test\": \"deno test -A\"},\n}\n",
                ),
                ("package.json", "{}"),
            ],
            only(&[
                "build: deno check ., from deno.jsonc",
                "lint: deno lint, from deno.jsonc",
                "test: deno task test, from deno.jsonc (tasks)",
            ]),
        ),
        (
            "dotnet",
            vec![("App.sln", ""), ("App.csproj", ""), (".editorconfig", "")],
            only(&[
                "build: dotnet build App.sln, from App.sln",
                "lint: dotnet format App.sln --verify-no-changes --no-restore, from .editorconfig",
                "test: dotnet test App.sln --no-build, from App.sln",
            ]),
        ),
        (
            "mix",
            vec![("mix.exs", ""), ("mix.lock", ""), (".formatter.exs", "")],
            only(&[
                "setup: mix deps.get --check-locked, from mix.lock",
                "build: mix compile, from mix.exs",
                "lint: mix format --check-formatted, from .formatter.exs",
                "test: mix test, from mix.exs",
            ]),
        ),
        (
            "mvn",
            vec![("pom.xml", "<project/>")],
            only(&[
                "build: mvn --batch-mode test-compile, from pom.xml",
                "test: mvn --batch-mode test, from pom.xml",
            ]),
        ),
        (
            "gradle",
            vec![("settings.gradle.kts", ""), ("build.gradle.kts", "")],
            only(&[
                "build: gradle --no-daemon assemble, from settings.gradle.kts",
                "test: gradle --no-daemon check, from settings.gradle.kts",
            ]),
        ),
        (
            "bazel",
            vec![
                ("MODULE.bazel", ""),
                ("a/BUILD", "cc_test(name = 'a')\n"),
                ("Makefile", "test:\n"),
            ],
            only(&[
                "build: bazel --batch build //..., from MODULE.bazel",
                "test: bazel --batch test //..., from MODULE.bazel",
            ]),
        ),
        (
            "just",
            vec![
                (
                    "justfile",
                    "test name:\n  true\nalias build := all\nall:\n  true\ncheck *args:\n",
                ),
                ("Makefile", "lint:\n"),
            ],
            only(&[
                "build: just build, from justfile",
                "lint: make lint, from Makefile",
                "test: just check, from justfile",
            ]),
        ),
        // The first kind whose files give a command wins whole.
        (
            "go",
            vec![("package.json", "{}"), ("go.mod", "module a\n"), ("Makefile", "test:\n")],
            only(&[
                "build: go build ./..., from go.mod",
                "lint: go vet ./..., from go.mod",
                "test: go test -v ./..., from go.mod",
            ]),
        ),
        (
            "make",
            vec![("pyproject.toml", "[project]\nname = \"a\"\n"), ("Makefile", "test:\n")],
            only(&["test: make test, from Makefile"]),
        ),
    ];
    let check = |(program, files, expected): &(&str, Vec<File<'_>>, Vec<String>)| {
        let mut world = project(files);
        stand_in(&mut world, program);
        let has_test = expected.iter().any(|line| line.starts_with("test: "));
        let answer = world.frites(["judge", "--explain"]).expect(if has_test { 0 } else { 3 });
        assert_eq!(explained(&answer.stderr), *expected, "{files:?}");
        // Of a line for a shell, each program; a lint of another tool is no call of this stand-in.
        let called: Vec<String> = expected
            .iter()
            .map(|l| l.split(": ").nth(1).unwrap().split(", from").next().unwrap())
            .flat_map(|line| line.split(" && "))
            .map(|line| line.strip_prefix(".venv/bin/").unwrap_or(line).replace('\'', ""))
            .filter(|line| !line.starts_with("make lint") || program == &"make")
            .collect();
        assert_eq!(calls(&world).lines().collect::<Vec<_>>(), called, "{files:?}");
        world.assert_clean();
    };
    // Each is a world of its own. The name of the test says in which kind of world it judges.
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    std::thread::scope(|scope| {
        for part in cases.chunks(cases.len().div_ceil(4)) {
            let thread = std::thread::Builder::new().name(test.clone());
            thread.spawn_scoped(scope, move || part.iter().for_each(check)).unwrap();
        }
    });
}

#[test]
fn project_without_a_known_build_file_has_no_commands() {
    let cases = [
        ("README", "hello\n"),
        (
            "package.json",
            r#"{"name": "a", "scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#,
        ),
        ("package.json", r#"{"name": "a", "dependencies": {"b": "1"}}"#),
        ("pyproject.toml", "[project]\nname = \"a\"\n"),
        ("Makefile", "install:\n\ttrue\n# test: not a rule\n.PHONY: test\nTEST = a:b\n"),
        ("sub/Makefile", "test:\n\ttrue\n"),
    ];
    for (path, text) in cases {
        let world = project(&[(path, text)]);
        let answer = world.frites(["judge", "--explain"]).expect(3);
        assert!(
            answer.stderr.contains("no command was given, configured or detected"),
            "{path}: {}",
            answer.stderr
        );
        world.assert_clean();
    }
}

#[test]
fn unreadable_build_file_is_fatal() {
    let cases = [
        ("package.json", "{\"scripts\": ", "package.json of the base cannot be understood: EOF"),
        (
            "package.json",
            "{\"scripts\": {\"test\": \"x\"}, \"packageManager\": \"pip@1\"}",
            "unknown packageManager 'pip'",
        ),
        ("Cargo.toml", "[package\n", "Cargo.toml of the base cannot be understood: "),
        ("pyproject.toml", "= 1\n", "pyproject.toml of the base cannot be understood: "),
        ("deno.json", "{\"tasks\": ", "deno.json of the base cannot be understood: "),
        ("CMakePresets.json", "{", "CMakePresets.json of the base cannot be understood: "),
    ];
    for (path, text, words) in cases {
        let world = project(&[(path, text)]);
        let answer = world.frites(["judge"]).refuses(128, words);
        assert!(
            answer.stderr.contains("hint: name the commands with `--build`, `--lint` and `--test`"),
            "{}",
            answer.stderr
        );
        // A named command needs no detection.
        world.frites(["judge", "--test", "true"]).expect(0);
        world.assert_clean();
    }
}

/// Leaves nothing on PATH but these programs and our own; gives the directory of these.
fn have_only(world: &mut World, programs: &[&str]) -> PathBuf {
    let bin = world.home().join("few");
    fs::create_dir(&bin).unwrap();
    for program in programs {
        let found = world.sh(&world.repo, &format!("command -v {program}")).expect(0).out();
        symlink(found.trim(), bin.join(program)).unwrap();
    }
    let ours = Path::new(env!("CARGO_BIN_EXE_git-frites")).parent().unwrap().display();
    world.set_env("PATH", format!("{}:{ours}", bin.display()));
    bin
}

#[test]
fn missing_build_tool_is_fatal_and_names_its_source() {
    let mut world = project(&[("go.mod", "module a\n")]);
    have_only(&mut world, &["git", "sh"]);
    let answer =
        world.frites(["judge"]).refuses(128, "the build command cannot run: 'go' is not on PATH");
    let hint = "hint: install it (this one is from go.mod)\n";
    assert!(answer.stderr.contains(hint), "{}", answer.stderr);
    world.assert_clean();
}

#[test]
fn meson_is_configured_built_and_tested_in_a_new_directory() {
    let mut world = project(&[("meson.build", "project('a', 'c')\n"), ("build/keep", "")]);
    stand_in(&mut world, "meson");
    world.frites(["judge"]).expect(0);
    let expected = "meson setup meson-build\nmeson compile -C meson-build\n\
                    meson test -C meson-build --print-errorlogs\n";
    assert_eq!(calls(&world), expected);
    world.assert_clean();
}

#[test]
fn cmake_without_presets_is_configured_built_and_tested_in_a_new_directory() {
    for (lists, test) in [("enable_testing()\nadd_test(a a)\n", true), ("project(a)\n", false)] {
        let mut world = project(&[("CMakeLists.txt", lists), ("build/keep", "")]);
        stand_in(&mut world, "cmake");
        stand_in(&mut world, "ctest");
        world.frites(["judge"]).expect(if test { 0 } else { 3 });
        let ctest = "ctest --test-dir cmake-build --no-tests=error --output-on-failure \
                     --output-junit Testing/Temporary/report.xml\n";
        assert_eq!(
            calls(&world),
            format!(
                "cmake -S . -B cmake-build\ncmake --build cmake-build\n{}",
                if test { ctest } else { "" }
            )
        );
        world.assert_clean();
    }
}

#[test]
fn project_with_nothing_but_a_build_is_built_and_not_verified() {
    let world = project(&[("Makefile", "all:\n\t@test -e attempt.txt\n")]);
    let answer = world.frites(["judge"]).expect(3);
    let words = "no-tests: nothing tests the change: no test command was named or detected, so nothing is \
                 verified; c1 is the only usable candidate, and it passed build: 1 line in 1 file";
    assert_eq!(answer.out().lines().last().unwrap(), words);
    assert!(
        answer.stderr.contains("hint: name a test: `git frites judge 1 --test CMD`"),
        "{}",
        answer.stderr
    );
    let json = world.frites(["judge", "--replay", "--json"]).expect(3).json();
    assert_eq!(
        (&json["decision"], &json["terms"]["tests_nothing"]),
        (&"no-tests".into(), &true.into())
    );
    assert_eq!(world.frites(["judge", "-q"]).expect(3).out(), "");
    world.frites(["apply"]).refuses(1, "nothing verified to land: nothing tests the change");
    world.frites(["apply", "1/c1"]).refuses(1, "nothing verified to land");
    world.frites(["judge", "--candidate", "c1"]).expect(3);
    // What the user named is the oracle, in an option as in the configuration.
    world.frites(["judge", "--build", "make all"]).expect(0);
    world.git(["config", "frites.oracle.build", "make all"]);
    world.frites(["judge"]).expect(0);
    world.assert_clean();
}

#[test]
fn empty_command_takes_its_stage_out() {
    let world = project(&[("Makefile", "all lint:\n\tfalse\ntest:\n\t@test -e attempt.txt\n")]);
    let stages = |args: &[&str]| {
        let answer = world.frites([&["judge", "--explain"], args].concat());
        explained(&answer.stderr).join("; ")
    };
    assert_eq!(stages(&["--lint", "", "--build", ""]), "test: make test, from Makefile");
    world.git(["config", "frites.oracle.lint", ""]);
    world.git(["config", "frites.oracle.build", " "]);
    assert_eq!(stages(&[]), "test: make test, from Makefile");
    assert_eq!(stages(&["--lint", "true"]), "lint: true, from --lint");
    world.git(["config", "frites.oracle.build", "true"]);
    assert!(stages(&[]).starts_with("build: true, from git config"), "{}", stages(&[]));
    assert_eq!(stages(&["--build", "", "--test", "true"]), "test: true, from --test");
    world.assert_clean();
}

#[test]
fn named_command_says_which_detected_ones_it_leaves_out() {
    let world = project(&[("Makefile", "all lint test:\n\ttrue\n")]);
    let left_out = "detected, but left out because of commands in the options: build `make all`, lint `make lint`\n";
    let answer = world.frites(["judge", "--test", "true"]).expect(0);
    assert!(answer.stderr.contains(left_out), "{}", answer.stderr);
    assert_eq!(world.frites(["judge", "-q", "--test", "true"]).expect(0).stderr, "");
    world.git(["config", "frites.oracle.build", "true"]);
    let answer = world.frites(["judge", "--test", "true"]).expect(0);
    assert!(
        !answer.stderr.contains("left out"),
        "configuration is no detection: {}",
        answer.stderr
    );
    world.assert_clean();
}

#[test]
fn configured_test_says_that_it_leaves_out_the_detected_setup() {
    let package =
        r#"{"scripts": {"lint": "true", "test": "true"}, "dependencies": {"left-pad": "1"}}"#;
    let mut world = project(&[("package.json", package), ("package-lock.json", "{}")]);
    stand_in(&mut world, "npm");
    let left_out = |by: &str| {
        format!(
            "detected, but left out because of commands in the {by}: setup `npm ci`, lint `npm run lint`\n"
        )
    };
    let hint =
        "hint: if the test needs the setup, keep it: `git config frites.oracle.setup 'npm ci'`\n";
    let told = world.frites(["judge", "--test", "true"]).expect(0).stderr;
    assert!(told.contains(&left_out("options")) && told.contains(hint), "{told}");
    world.git(["config", "frites.oracle.test", "true"]);
    let told = world.frites(["judge"]).expect(0).stderr;
    assert!(told.contains(&left_out("configuration")) && told.contains(hint), "{told}");
    // The stages that are set are no news, and neither is one that is taken out.
    world.git(["config", "frites.oracle.setup", "true"]);
    world.git(["config", "frites.oracle.lint", ""]);
    let told = world.frites(["judge"]).expect(0).stderr;
    assert!(!told.contains("left out"), "{told}");
}

#[test]
fn file_behind_a_link_in_the_tree_shows_the_commands() {
    const RECIPE: &str = "test:\n\tsh check.sh\n";
    const SCRIPTS: &str = "{\"scripts\": {\"test\": \"sh check.sh\"}}\n";
    let shown = |link: &str, target: &str, file: &str, text: &str| {
        let world = World::new();
        world.write("build/x", "");
        world.write("check.sh", ":\n");
        if !file.is_empty() {
            world.write(file, text);
        }
        symlink(target, world.repo.join(link)).unwrap();
        world.commit("base");
        let plan = world.frites(["judge", "-n"]);
        (world, plan.out().lines().find(|line| line.starts_with("test: ")).unwrap().to_owned())
    };
    let (_, test) = shown("package.json", "web/package.json", "web/package.json", SCRIPTS);
    assert_eq!(test, "test: `npm run test`, from package.json");
    for target in ["build/rules", "./build/../build/./rules"] {
        let (world, test) = shown("Makefile", target, "build/rules", RECIPE);
        assert_eq!(test, "test: `make test`, from Makefile");
        // It decides by the name of the link, too, and so does the script in its recipe.
        world.attempts(&["echo '# more' >> build/rules", "echo exit >> check.sh"]);
        let json = world.frites(["judge", "--json"]).expect(0).json();
        for (at, path) in [(0, "build/rules"), (1, "check.sh")] {
            let flags = serde_json::json!([{ "flag": "oracle-changed", "path": path }]);
            assert_eq!(json["candidates"][at]["flags"], flags, "{json:#}");
        }
    }
    for target in ["/etc/passwd", "../Makefile", "Makefile", "build/nothing"] {
        assert_eq!(shown("Makefile", target, "", "").1, "test: none", "{target}");
    }
}

#[test]
fn dependencies_that_only_the_users_checkout_has_are_named_with_the_seed() {
    let files = [
        ("package.json", r#"{"scripts": {"test": "true"}, "dependencies": {"a": "1"}}"#),
        (".gitignore", "node_modules\n"),
    ];
    let world = project(&files);
    world.write("node_modules/a/index.js", "");
    let hint = "hint: 'node_modules' exists only in your checkout: if the attempts and the checks need it, `git config --add frites.seed.copy /node_modules/`\n";
    let said = |args: &[&str]| world.frites(args).stderr.contains(hint);
    world.git(["config", "frites.oracle.setup", ""]);
    world.git(["config", "frites.oracle.test", "true"]);
    assert!(said(&["judge"]));
    assert!(said(&["run", "-n", "1", "--", "sh", "-c", "echo x > x"]));
    world.git(["config", "--add", "frites.seed.copy", "/node_modules/"]);
    assert!(!said(&["judge", "1"]), "it is seeded");
    world.assert_clean();
}

#[test]
fn presets_and_wrapper_scripts_are_used_unchanged() {
    const PRESETS: &str = r#"{"version": 3, "configurePresets": [{"name": "base", "hidden": true}, {"name": "it's", "inherits": "base"}],
        "buildPresets": [{"name": "other", "configurePreset": "base"}, {"name": "all", "configurePreset": "it's"}],
        "testPresets": [{"name": "fast", "configurePreset": "it's"}]}"#;
    let mut world = project(&[("CMakeLists.txt", "project(a)\n"), ("CMakePresets.json", PRESETS)]);
    stand_in(&mut world, "cmake");
    stand_in(&mut world, "ctest");
    let answer = world.frites(["judge", "--explain"]).expect(0);
    assert!(
        answer.stderr.contains("test: `ctest --preset fast`, from CMakePresets.json"),
        "{}",
        answer.stderr
    );
    assert_eq!(
        calls(&world),
        "cmake --preset it's\ncmake --build --preset all\nctest --preset fast\n"
    );
    world.assert_clean();
    for (wrapper, script, goals) in [
        ("mvnw", "pom.xml", "--batch-mode test-compile\n--batch-mode test\n"),
        ("gradlew", "build.gradle", "--no-daemon assemble\n--no-daemon check\n"),
    ] {
        // Not even executable.
        let lines = "test -e attempt.txt && echo \"$*\" >> \"$HOME/calls\"\n";
        let world = project(&[(script, "<project/>\n"), (wrapper, lines)]);
        let answer = world.frites(["judge", "--explain"]).expect(0);
        assert!(
            answer.stderr.contains(&format!(", from {script} ({wrapper})")),
            "{}",
            answer.stderr
        );
        assert_eq!(calls(&world), goals);
        world.assert_clean();
    }
    let answer = project(&[("A.sln", ""), ("B.sln", "")]).frites(["judge"]);
    answer.refuses(128, "A.sln of the base cannot be understood: there is 'B.sln', too");
}

#[test]
fn tests_of_cmake_come_before_recipes_that_do_not_call_it() {
    let lists = ("CMakeLists.txt", "enable_testing()\noption(A_BUILD_TESTS \"Build tests\" OFF)\n");
    let test_of = |makefile: &str| {
        let world = project(&[lists, ("Makefile", makefile)]);
        let plan = world.frites(["judge", "-n", "--json"]).json();
        let commands = plan["commands"].as_array().unwrap().iter();
        commands.map(|c| c["command"].to_string().replace('"', "")).collect::<Vec<_>>()
    };
    let ci = "jobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n    - run: cmake -B out -DB_ALL=ON -DOTHER=ON -DCXX=${{ matrix.cxx }}\n\
              \x20   - run: cmake -B out -DB_SANE=ON\n";
    let options =
        "enable_testing()\noption(B_ALL \"With tests\" OFF)\noption(B_SANE \"Sanitizers\" OFF)\n";
    let world = project(&[("CMakeLists.txt", options), (".github/workflows/ci.yml", ci)]);
    let plan = world.frites(["judge", "-n", "--json"]).json();
    let configure = plan["commands"][0]["command"].to_string();
    assert!(configure.contains("cmake -S . -B build -DB_ALL=ON && "), "{configure}");
    let own = test_of("test:\n\t./own_test\n");
    assert!(own[0].contains("cmake -S . -B build -DA_BUILD_TESTS=ON"), "{own:?}");
    assert!(own[1].starts_with("[ctest,"), "{own:?}");
    assert_eq!(test_of("test:\n\tcmake -B out && ctest --test-dir out\n"), ["[make,test]"]);
}

#[test]
fn autotools_are_configured_and_their_own_target_tests() {
    for (makefile, target) in [("test:\n\ttrue\n", "test"), ("TESTS = a\n", "check")] {
        let world = project(&[("configure.ac", "AC_INIT\n"), ("Makefile.am", makefile)]);
        let plan = world.frites(["judge", "-n", "--json"]).json();
        assert_eq!(plan["commands"][0]["command"], "autoreconf -fi && ./configure && make");
        assert_eq!(plan["commands"][1]["command"], serde_json::json!(["make", target]));
    }
}

#[test]
fn commands_of_ci_come_from_the_base_and_are_shown_where_ours_differ() {
    let ci = |line: &str| format!("jobs:\n  a:\n    steps:\n      - run: {line}\n");
    let files = [
        ("go.mod", "module a\n"),
        ("Makefile", "test:\n\ttrue\n"),
        (".github/workflows/ci.yml", &ci("go test -race ./... && make test-slow")),
    ];
    let world = project(&files);
    world.attempts(&[&format!(
        "mkdir -p .github/workflows; echo '{}' > .github/workflows/ci.yml",
        ci("make test")
    )]);
    for run in ["1", "2"] {
        let plan = world.frites(["judge", "-n", run]).out();
        assert!(plan.contains("\ntest: `go test -v ./...`, from go.mod\n"), "{plan}");
        let other = "passed over: test `make test-slow`, from .github/workflows/ci.yml: CI runs it, too, but git-frites runs only one test command\n";
        assert!(plan.contains(other), "{plan}");
        let first = "from Makefile: go.mod comes before Makefile, because CI runs a command like `go test -v ./...`\n";
        assert!(plan.contains(first), "{plan}");
    }
}

#[test]
fn ruby_is_tested_without_bundler_if_ci_does() {
    for (ci, expected) in [
        ("rake test", "setup: none\nbuild: none\nlint: none\ntest: `rake test`, from Rakefile\n"),
        ("bundle exec rake test", "test: `bundle exec rake test`, from Rakefile\n"),
    ] {
        let ci = format!("jobs:\n  a:\n    steps:\n      - run: {ci}\n");
        let world = project(&[
            ("Gemfile", ""),
            ("Rakefile", "Rake::TestTask.new\n"),
            (".github/workflows/ci.yml", &ci),
        ]);
        let plan = world.frites(["judge", "-n"]).out();
        assert!(plan.contains(expected), "{plan}");
    }
}

#[test]
fn perl_is_tested_as_ci_does_or_by_prove_if_that_finds_the_modules() {
    let built = "build: `perl Makefile.PL && make`, from Makefile.PL\n";
    let by_make = format!("{built}lint: none\ntest: `make test`, from Makefile.PL\n");
    let by_prove = "test: `prove -lr t`, from Makefile.PL\n";
    for (module, ci, expected) in [
        ("A.pm", "", by_make.as_str()),
        ("lib/A.pm", "", by_prove),
        ("lib/A.pm", "make test", &by_make),
    ] {
        let ci = format!("script: {ci}\n");
        let world =
            project(&[("Makefile.PL", ""), (module, ""), ("t/a.t", ""), (".travis.yml", &ci)]);
        let plan = world.frites(["judge", "-n"]).out();
        assert!(plan.contains(expected), "{module}, {ci}: {plan}");
    }
}

#[test]
fn script_that_ci_tests_by_is_the_test_where_nothing_else_is() {
    let ci =
        "jobs:\n  a:\n    steps:\n      - run: ./test/run --all\n      - run: ./missing-test\n";
    let world = project(&[(".github/workflows/ci.yml", ci), ("test/run", "#!/bin/sh\n")]);
    let plan = world.frites(["judge", "-n"]).out();
    let line = "test: `./test/run --all`, from .github/workflows/ci.yml\n";
    assert!(plan.contains(line), "{plan}");
}

#[test]
fn lint_that_is_not_installed_and_that_no_ci_names_is_left_out() {
    let ci = (".gitlab-ci.yml", "lint:\n  script: golangci-lint run\n");
    let files = [("go.mod", "module a\n"), (".golangci.yml", ""), ("README", "")];
    let words = "lint `golangci-lint run`, from .golangci.yml";
    let mut world = project(&files);
    stand_in(&mut world, "go");
    let plan = world.frites(["judge", "-n"]).expect(0).out();
    let reason = "it is not installed, and no CI file names it";
    assert!(plan.contains(&format!("passed over: {words}: {reason}\n")), "{plan}");
    world.frites(["judge"]).expect(0);
    let mut world = project(&[files[0], files[1], ci, ("Makefile", "test:\n\ttrue\n")]);
    stand_in(&mut world, "go");
    let told = world
        .frites(["judge"])
        .refuses(128, "the lint command cannot run: 'golangci-lint' is not on PATH")
        .stderr;
    assert!(told.contains("hint: install it, or leave it out with `--lint ''`"), "{told}");
    assert!(!told.contains("another test"), "the test is not missing: {told}");
    let plan = world.frites(["judge", "-n", "--lint", ""]).expect(0).out();
    assert!(plan.contains("\ntest: `go test -v ./...`, from go.mod\n"), "{plan}");
}

#[test]
fn lint_that_several_proposals_have_is_passed_over_once() {
    let pyproject = "[tool.ruff]\nline-length = 100\n";
    let files = [("tox.ini", "[tox]\n"), ("pyproject.toml", pyproject), ("test_a.py", "")];
    let mut world = project(&files);
    stand_in(&mut world, "tox");
    let plan = world.frites(["judge", "-n"]).expect(0).out();
    assert_eq!(plan.matches("passed over: lint `ruff check`").count(), 1, "{plan}");
    assert!(plan.contains("passed over: test `python3 -m unittest discover`"), "{plan}");
}

#[test]
fn package_below_src_is_tested_from_the_checkout() {
    let pyproject = "[project]\nname = \"a\"\n[project.optional-dependencies]\ntests = [\"b\"]\n\
                     [dependency-groups]\ndev = [\"c\"]\n[tool.pytest.ini_options]\n";
    let files = [("pyproject.toml", pyproject), ("src/a/__init__.py", ""), ("tests/test_a.py", "")];
    let setup = |files: &[File<'_>]| {
        let world = project(files);
        let plan = world.frites(["judge", "-n", "--json"]).json();
        assert_eq!(plan["commands"][1]["command"][0], ".venv/bin/python");
        plan["commands"][0]["command"].as_str().unwrap().to_owned()
    };
    let own = setup(&files);
    assert!(own.ends_with("pip install -e '.[tests]' --group dev pytest"), "{own}");
    let ci = "jobs:\n  a:\n    steps:\n      - run: pip install -r ci.txt\n      - run: pytest\n  \
              b:\n    steps:\n      - run: pip install docs\n";
    for (line, expected) in [
        ("pip install -r ci.txt", "-r ci.txt && .venv/bin/python -m pip install -e ."),
        ("pip install -e .[x] c", "-e '.[x]' c"),
    ] {
        let ci = ci.replace("pip install -r ci.txt", line);
        let of_ci =
            setup(&[files[0], files[1], files[2], (".github/workflows/ci.yml", ci.as_str())]);
        assert!(
            of_ci.ends_with(&format!("-U pip && .venv/bin/python -m pip install {expected}")),
            "{of_ci}"
        );
    }
}

#[test]
fn missing_program_of_a_test_is_fatal_and_names_the_next_test() {
    let mut world = project(&[("mix.exs", ""), ("Makefile", "test:\n\t@test -e attempt.txt\n")]);
    let bin = have_only(&mut world, &["git", "sh", "make"]);
    let answer = world.frites(["judge"]).refuses(128, "'mix' is not on PATH");
    let hint = "hint: Makefile shows another test: `--test 'make test'`\n";
    assert!(answer.stderr.contains(hint), "{}", answer.stderr);
    world.frites(["judge", "--test", "make test"]).expect(0);
    // One that needs a setup is told with it: options alone would leave that out.
    world.git(["rm", "-q", "Makefile"]);
    world.write(
        "package.json",
        "{\"scripts\": {\"test\": \"true\"}, \"dependencies\": {\"a\": \"1\"}}",
    );
    world.commit("other tests");
    symlink("/bin/true", bin.join("npm")).unwrap();
    let answer =
        world.frites(["judge", "-n", "--base", "HEAD"]).refuses(128, "'mix' is not on PATH");
    let hint = "hint: package.json shows another test, which needs a setup; set both:\n\
                hint: `git config frites.oracle.setup 'npm install'`\n\
                hint: `git config frites.oracle.test 'npm run test'`\n";
    assert!(answer.stderr.contains(hint), "{}", answer.stderr);
}

#[test]
fn missing_tool_of_a_lock_file_names_the_setup_and_the_test_that_need_no_lock() {
    let pyproject = "[project]\nname = \"a\"\n[project.optional-dependencies]\ntests = [\"b\"]\n\
                     [dependency-groups]\ndev = [\"c\"]\n[tool.pytest.ini_options]\n";
    let files = [("pyproject.toml", pyproject), ("uv.lock", ""), ("tests/test_a.py", "")];
    let mut world = project(&files);
    have_only(&mut world, &["git", "sh"]);
    let told = world.frites(["judge", "-n"]).refuses(128, "'uv' is not on PATH").stderr;
    let (_, both) =
        told.split_once("shows another test, which needs a setup; set both:\n").unwrap();
    let lines: Vec<&str> =
        both.lines().map(|l| l.trim_start_matches("hint: ").trim_matches('`')).collect();
    let [setup, test] = lines.as_slice() else { panic!("{told}") };
    assert!(setup.ends_with("pip install -e '\\''.[tests]'\\'' --group dev pytest'"), "{setup}");
    assert_eq!(*test, "git config frites.oracle.test '.venv/bin/python -m pytest'");
    // They can be copied.
    for line in lines {
        world.sh(&world.repo, line).expect(0);
    }
    let plan = world.frites(["judge", "-n", "--json"]).json();
    let setup = plan["commands"][0]["command"].as_str().unwrap();
    assert!(setup.starts_with("python3 -m venv .venv && "), "{setup}");
    assert!(setup.ends_with("pip install -e '.[tests]' --group dev pytest"), "{setup}");
    assert_eq!(plan["commands"][1]["command"], ".venv/bin/python -m pytest");
    // Where the tool is there, nothing but its commands is shown.
    world.git(["config", "--remove-section", "frites.oracle"]);
    stand_in(&mut world, "uv");
    let plan = world.frites(["judge", "-n"]).expect(0).out();
    assert!(plan.contains("`uv sync --locked`") && !plan.contains(".venv"), "{plan}");
}

#[test]
fn command_that_is_passed_over_is_told_what_comes_before_it() {
    let pyproject = "[tool.pytest.ini_options]\n[tool.tox]\n";
    let passed_over = |files: &[File<'_>]| {
        let out = project(files).frites(["judge", "-n"]).out();
        let lines = out.lines().filter(|line| line.starts_with("passed over: ")).map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    let found = passed_over(&[("pyproject.toml", pyproject)]);
    let pytest = "passed over: test `python3 -m pytest`, from pyproject.toml: ";
    assert_eq!(found, [format!("{pytest}`tox run -e py` comes before `python3 -m pytest`")]);
    let ci =
        (".github/workflows/ci.yml", "jobs:\n  a:\n    steps:\n      - run: python -m pytest\n");
    let tox = "passed over: test `tox run -e py`, from tox.ini: ";
    let found = passed_over(&[("pyproject.toml", &pyproject[..25]), ("tox.ini", "[tox]\n"), ci]);
    let why = "comes before tox.ini, because CI runs a command like";
    assert_eq!(found, [format!("{tox}pyproject.toml {why} `python3 -m pytest`")]);
    // Without settings of pytest, the tests of a package run as CI runs them.
    let ci = (ci.0, "jobs:\n  a:\n    steps:\n      - run: coverage run -m unittest -b\n");
    let files = [("setup.py", ""), ("tests/test_a.py", ""), ("tox.ini", "[tox]\n"), ci];
    let found = passed_over(&files);
    assert_eq!(
        found,
        [format!("{tox}the tests directory {why} `.venv/bin/python -m unittest -b`")]
    );
    let plan = project(&files).frites(["judge", "-n"]).out();
    assert!(plan.contains("-m unittest -b`, from the tests directory"), "{plan}");
}

#[test]
fn command_of_several_proposals_is_passed_over_once_and_a_setup_with_its_test() {
    let files = [
        ("pyproject.toml", "[project]\nname = \"a\"\n[tool.pytest.ini_options]\n"),
        ("tests/test_a.py", "import pytest\n"),
        ("tox.ini", "[tox]\n"),
        ("uv.lock", ""),
        (".github/workflows/ci.yml", "jobs:\n  a:\n    steps:\n      - run: make test\n"),
        ("Makefile", "test:\n\ttrue\n"),
    ];
    let plan = project(&files).frites(["judge", "-n"]).out();
    let lines = plan.lines().filter_map(|line| line.strip_prefix("passed over: "));
    let told: Vec<&str> = lines.filter_map(|line| Some(line.split_once(", from ")?.0)).collect();
    let different: std::collections::BTreeSet<&&str> = told.iter().collect();
    assert_eq!(different.len(), told.len(), "{plan}");
    let setup =
        "setup `uv sync --locked`, from uv.lock: it is for `tox run -e py`, which is passed over\n";
    assert!(plan.contains(setup), "{plan}");
}

#[test]
fn run_says_in_one_line_what_was_passed_over() {
    let ci = "jobs:\n  a:\n    steps:\n      - run: make test-slow\n";
    let files = [("Makefile", "test:\n\t@test -e attempt.txt\n"), (".github/workflows/ci.yml", ci)];
    let world = project(&files);
    let words = ["run", "-n", "1", "--", "sh", "-c", "echo x > attempt.txt"];
    let told = world.frites(words).expect(0).stderr;
    let line = "passed over: 1 command, `make test-slow`, which CI runs; `git frites judge -n` lists all\n";
    assert!(told.contains(line), "{told}");
}

#[test]
fn setup_of_the_oracle_prepares_checkouts_for_judging_alone() {
    let world = project(&[("Makefile", "test:\n\t@test -e attempt.txt && test -e prepared\n")]);
    world.git(["config", "frites.spawn.setup", "touch spawned"]);
    world.git(["config", "frites.oracle.setup", "test ! -e spawned && touch prepared"]);
    let plan = world.frites(["judge", "-n"]).expect(0).out();
    assert!(plan.contains("\nsetup: `test ! -e spawned && touch prepared`, from "), "{plan}");
    world.frites(["judge"]).expect(0);
    world.attempts(&["test -e spawned && test ! -e prepared && echo x > attempt.txt"]);
    world.frites(["judge", "2"]).expect(0);
    // The empty text is none.
    world.git(["config", "frites.oracle.setup", ""]);
    assert!(world.frites(["judge", "-n"]).expect(0).out().contains("\nsetup: none\n"));
}

#[test]
fn change_in_a_project_that_no_test_enters_is_not_verified() {
    type Files<'a> = &'a [(&'a str, &'a str)];
    let go: Files<'_> = &[("go.mod", "module a\n"), ("x.go", "package a\n")];
    let nested: Files<'_> = &[("sub/go.mod", "module b\n"), ("sub/y.go", "package b\n")];
    let web: Files<'_> = &[("web/package.json", "{}\n"), ("web/i.js", "a\n")];
    let cargo: Files<'_> = &[("y/Cargo.toml", ""), ("y/src/lib.rs", "\n")];
    let embeds: Files<'_> = &[("e.go", "package a\n//go:embed web/i.js\n")];
    let excludes: Files<'_> = &[("Cargo.toml", "[workspace]\nexclude = ['y']\n")];
    let alone: Files<'_> = &[("Cargo.toml", "[package]\n"), ("src/lib.rs", "\n")];
    let members: Files<'_> = &[("Cargo.toml", "[package]\n[workspace]\nmembers = [\n'y',\n]\n")];
    let by_path: Files<'_> = &[("Cargo.toml", "[package]\n[dependencies]\ny = { path = 'y' }\n")];
    let own: Files<'_> = &[("y/Cargo.toml", "[workspace]\n"), ("y/src/lib.rs", "\n")];
    // The files of the base, those that change, the test command, and the manifest of the project
    // that no test enters.
    let cases: [(&[Files<'_>], &str, &str, Option<&str>); 17] = [
        (&[go, nested], "sub/y.go", "go test ./...", Some("sub/go.mod")),
        (&[go, nested], "sub/y.go sub/README.md", "go test ./...", Some("sub/go.mod")),
        (&[go, nested], "sub/y.go x.go data", "go test ./...", Some("sub/go.mod")),
        (&[go, nested], "sub/y_test.go x.go", "go test ./...", None),
        (
            &[go, nested, &[("go.work", "use (\n.\n./sub\n)\n")]],
            "sub/y.go",
            "go test ./...",
            Some("sub/go.mod"),
        ),
        (&[go, nested], "sub/y.go", "go test ./... ./sub/...", None),
        (&[go, nested], "sub/y.go", "go test ./... && (cd sub && go test ./...)", None),
        (&[go, web], "web/i.js", "go test ./...", Some("web/package.json")),
        (&[go, web, embeds], "web/i.js", "go test ./...", None),
        (&[go, web, &[("web/z.go", "package z\n")]], "web/z.go", "go test ./...", None),
        (&[excludes, cargo], "y/src/lib.rs", "cargo test", Some("y/Cargo.toml")),
        (&[&[("Cargo.toml", "[workspace]\n")], cargo], "y/src/lib.rs", "cargo test", None),
        (
            &[&[("Cargo.toml", "[workspace]\n")], own],
            "y/src/lib.rs",
            "cargo test",
            Some("y/Cargo.toml"),
        ),
        (&[alone, cargo], "y/src/lib.rs", "cargo test", Some("y/Cargo.toml")),
        (&[members, cargo], "y/src/lib.rs", "cargo test", Some("y/Cargo.toml")),
        (&[members, cargo], "y/src/lib.rs", "cargo test --workspace", None),
        (&[by_path, cargo], "y/src/lib.rs", "cargo test", None),
    ];
    for (files, changed, test, manifest) in cases {
        let mut world = World::unborn();
        stand_in(&mut world, "go");
        stand_in(&mut world, "cargo");
        files
            .iter()
            .flat_map(|files| files.iter())
            .for_each(|(path, text)| world.write(path, text));
        world.commit("base");
        world.attempts(&[&format!("for f in {changed}; do echo >> $f; done")]);
        let code = if manifest.is_some() { 3 } else { 0 };
        let json = world.frites(["judge", "--json", "--test", test]).expect(code).json();
        assert_eq!(json["candidates"][0]["untested"].as_str(), manifest, "{changed}: {json:#}");
        let Some(manifest) = manifest else { continue };
        assert_eq!(json["decision"], "no-tests", "{changed}: {json:#}");
        let why = format!("it changes the project of '{manifest}', which no test command enters");
        world.frites(["apply", "1/c1"]).refuses(1, &why);
    }
}
