//! Suspicion: what an attempt does to what it is judged by, read off the paths it changes and their text.
//!
//! No proof of anything: an honest attempt may have to change a test. But a reviewer should know.
use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::flag::Flag;

/// One changed path.
#[derive(Clone, Copy, Debug)]
pub struct Touched<'a> {
    /// Where, from the root.
    pub path: &'a str,
    /// What was there.
    pub before: Option<&'a [u8]>,
    /// What is there now.
    pub after: Option<&'a [u8]>,
    /// Whether anything of it went: a line, or bytes of a binary file.
    pub loses: bool,
}

/// What there is to say about a changed path. `scripts` are files that the oracle's commands name as
/// what to run.
pub fn flags(touched: Touched<'_>, scripts: &BTreeSet<String>) -> Vec<Flag> {
    let Touched { path, before, after, loses } = touched;
    let owned = path.to_owned();
    let mut found = Vec::new();
    if scripts.contains(path) || defines_oracle(path, before, after) {
        found.push(Flag::OracleChanged { path: owned.clone() });
    }
    let language = language(path);
    let count = |bytes: Option<&[u8]>, marks: &[&str]| match (bytes, language) {
        (Some(bytes), Some(language)) => language.count(&String::from_utf8_lossy(bytes), marks),
        _ => 0,
    };
    let fewer = language.is_some_and(|l| count(after, l.tests) < count(before, l.tests));
    if (is_test(path) && before.is_some() && after.is_none()) || fewer {
        found.push(Flag::TestsDeleted { path: owned.clone() });
    } else if (is_test(path) && before.is_some() && loses) || edits_inner_tests(path, before, after)
    {
        found.push(Flag::TestsEdited { path: owned.clone() });
    }
    let more = language
        .map_or(&[][..], |l| l.skips)
        .iter()
        .find(|m| count(after, &[m]) > count(before, &[m]));
    if let Some(marker) = more {
        found.push(Flag::TestsSkipped { path: owned, marker: (*marker).to_owned() });
    }
    found
}

/// Whether a Rust file loses lines of the tests that it holds itself.
fn edits_inner_tests(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    if !path.ends_with(".rs") {
        return false;
    }
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let kept: BTreeSet<&str> = inner_tests(&after).collect();
    inner_tests(&before).any(|line| !kept.contains(line))
}

/// The lines of a Rust file from its module of tests on.
fn inner_tests(text: &str) -> impl Iterator<Item = &str> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let module = lines().zip(lines().skip(1)).position(|(mark, next)| {
        mark == "#[cfg(test)]"
            && next.ends_with('{')
            && next.split_whitespace().any(|word| word == "mod")
    });
    lines().skip(module.unwrap_or(usize::MAX))
}

/// Whether a link's target lies elsewhere than in the checkout: then what is there is no part of the tree.
pub fn leads_outside(path: &str, target: &str) -> bool {
    let mut depth = path.matches('/').count();
    target.starts_with('/')
        || target.split('/').any(|part| match part {
            "" | "." => false,
            ".." if depth == 0 => true,
            ".." => {
                depth -= 1;
                false
            }
            _ => {
                depth += 1;
                false
            }
        })
}

/// How tests look in a language.
struct Language {
    extensions: &'static [&'static str],
    comment: &'static str,
    /// What a line holds that begins a test.
    tests: &'static [&'static str],
    /// What a line holds by which tests are left out.
    skips: &'static [&'static str],
}

const LANGUAGES: [Language; 9] = [
    Language {
        extensions: &["rs"],
        comment: "//",
        tests: &["#[test]", "::test]", "::test(", "#[rstest", "proptest!"],
        skips: &["#[ignore", "cfg(any())", "cfg(FALSE)", "cfg(false)"],
    },
    Language {
        extensions: &["py"],
        comment: "#",
        tests: &["def test", "class Test"],
        skips: &[
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
        ],
    },
    Language {
        extensions: &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"],
        comment: "//",
        tests: &["it(", "test(", "describe(", "it.each", "test.each", "Deno.test("],
        skips: &[
            "it.skip",
            "test.skip",
            "describe.skip",
            "suite.skip",
            "xit(",
            "xtest(",
            "xdescribe(",
            "fit(",
            "fdescribe(",
            ".only(",
            "it.todo",
            "test.todo",
            "Deno.test.ignore",
            "ignore: true",
            "skip: true",
            "this.skip(",
            "t.skip(",
        ],
    },
    Language {
        extensions: &["go"],
        comment: "//",
        tests: &["func Test", "func Benchmark", "func Fuzz", "func Example"],
        // A main of the tests' own may run none of them.
        skips: &[".Skip(", ".SkipNow(", ".Skipf(", "//go:build ignore", "func TestMain("],
    },
    Language {
        extensions: &["java", "kt", "kts", "groovy", "scala"],
        comment: "//",
        tests: &["@Test", "@ParameterizedTest", "@RepeatedTest", "@Property"],
        skips: &["@Disabled", "@Ignore", "Assumptions.", "assumeTrue("],
    },
    Language {
        extensions: &["cs", "fs", "vb"],
        comment: "//",
        tests: &["[Fact", "[Theory", "[Test", "<Fact", "<Test"],
        skips: &["Skip =", "Skip=", "[Ignore", "[Explicit"],
    },
    Language {
        extensions: &["ex", "exs"],
        comment: "#",
        tests: &["test \"", "describe \"", "doctest "],
        skips: &["@tag :skip", "@moduletag :skip", "@describetag :skip", "@tag skip:", "exclude:"],
    },
    Language {
        extensions: &["c", "cc", "cpp", "cxx", "h", "hpp"],
        comment: "//",
        tests: &["TEST(", "TEST_F(", "TEST_P(", "TEST_CASE(", "SCENARIO("],
        skips: &["GTEST_SKIP", "DISABLED_", "SKIP("],
    },
    Language {
        extensions: &["rb"],
        comment: "#",
        tests: &["it \"", "it '", "def test_", "describe ", "test \""],
        skips: &["xit ", "xdescribe ", "pending ", "skip "],
    },
];

impl Language {
    /// How many lines hold one of these marks; a line that is a comment counts only for marks that are
    /// comments themselves.
    fn count(&self, text: &str, marks: &[&str]) -> usize {
        let holds = |line: &str| {
            let comment = line.trim_start().starts_with(self.comment);
            marks.iter().any(|m| (!comment || m.starts_with(self.comment)) && holds_mark(line, m))
        };
        text.lines().filter(|line| holds(line)).count()
    }
}

/// Whether a line holds a mark that is no end of a longer word: `await it(` and not `submit(`, and no method
/// of something else: `pattern.test(`.
fn holds_mark(line: &str, mark: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(mark).any(|(at, _)| {
        !mark.starts_with(is_word)
            || !line[..at]
                .ends_with(|c: char| is_word(c) || c == '$' || (c == '.' && mark.ends_with('(')))
    })
}

fn language(path: &str) -> Option<&'static Language> {
    let (_, extension) = path.rsplit_once('.')?;
    LANGUAGES.iter().find(|l| l.extensions.contains(&extension))
}

/// Whether a path is a test's, or data of one, as far as names tell.
pub fn is_test(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let directory = |name: &str| {
        matches!(
            name,
            "test"
                | "tests"
                | "__tests__"
                | "spec"
                | "specs"
                | "testing"
                | "testdata"
                | "__snapshots__"
                | "e2e"
        ) || name.ends_with(".Tests")
            || name.ends_with(".Test")
    };
    // A submodule or a link may be called so, too.
    if path.split('/').any(directory) {
        return true;
    }
    let Some((stem, extension)) = file.rsplit_once('.') else { return false };
    let ends = |endings: &[&str]| endings.iter().any(|e| stem.ends_with(e));
    match extension {
        "py" => stem.starts_with("test_") || ends(&["_test"]) || stem == "tests",
        "go" | "rs" | "dart" => {
            ends(&["_test", "_tests"]) || (extension == "rs" && matches!(stem, "test" | "tests"))
        }
        "exs" | "ex" => ends(&["_test"]),
        "rb" => ends(&["_spec", "_test"]) || stem.starts_with("test_"),
        "c" | "cc" | "cpp" | "cxx" => {
            ends(&["_test", "_unittest", "-test"]) || stem.starts_with("test_")
        }
        "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" => {
            ends(&[".test", ".spec", "_test", "-test", ".cy"]) || stem == "test"
        }
        "java" | "kt" | "groovy" | "scala" => ends(&["Test", "Tests", "IT", "Spec", "TestCase"]),
        "cs" | "fs" | "vb" => ends(&["Test", "Tests"]),
        "snap" | "bats" => true,
        "sh" => stem.starts_with("test") || ends(&["_test", "-test"]),
        _ => false,
    }
}

/// Files that decide what is run whatever changes in them, by their names.
const DECISIVE: [&str; 70] = [
    "Makefile",
    "GNUmakefile",
    "makefile",
    "justfile",
    "Justfile",
    ".justfile",
    "Taskfile.yml",
    "Rakefile",
    "tox.ini",
    "noxfile.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    "conftest.py",
    "setup.cfg",
    "ruff.toml",
    ".ruff.toml",
    ".flake8",
    "mypy.ini",
    ".mypy.ini",
    ".coveragerc",
    ".pylintrc",
    "sitecustomize.py",
    "usercustomize.py",
    "clippy.toml",
    ".clippy.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "nextest.toml",
    ".mocharc",
    "biome.json",
    "biome.jsonc",
    "tslint.json",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    "bunfig.toml",
    "pnpm-workspace.yaml",
    ".pnpmfile.cjs",
    "go.work",
    "CMakePresets.json",
    "CMakeUserPresets.json",
    "CTestConfig.cmake",
    "CTestCustom.cmake",
    ".bazelrc",
    ".bazelversion",
    "gradlew",
    "mvnw",
    "gradle.properties",
    "testng.xml",
    "global.json",
    "Directory.Build.props",
    "Directory.Build.targets",
    ".credo.exs",
    ".formatter.exs",
    "Jenkinsfile",
    ".gitlab-ci.yml",
    ".travis.yml",
    "azure-pipelines.yml",
    ".pre-commit-config.yaml",
    ".frites.toml",
    "phpunit.xml",
    ".gitattributes",
    "build.rs",
    "pyrightconfig.json",
    "uv.toml",
    "turbo.json",
    "nx.json",
    "lerna.json",
    ".eslintignore",
];

/// The same, by how their names begin.
const DECISIVE_BEGINNINGS: [&str; 21] = [
    "jest.config.",
    "vitest.config.",
    "vitest.workspace.",
    "ava.config.",
    "karma.conf.",
    "playwright.config.",
    "cypress.config.",
    "eslint.config.",
    ".eslintrc",
    ".mocharc.",
    ".golangci.",
    "gradle-wrapper.",
    "jest.setup.",
    "vitest.setup.",
    "setupTests.",
    "vite.config.",
    "babel.config.",
    ".babelrc",
    "tsconfig.",
    ".prettierrc",
    ".stylelintrc",
];

/// The same, by the directories they lie in.
const DECISIVE_FOLDERS: [&str; 7] = [
    ".github/workflows/",
    ".github/actions/",
    ".circleci/",
    ".buildkite/",
    ".husky/",
    ".cargo/",
    ".mvn/",
];

/// What `python -m` would find in the root instead of the program that is meant.
const SHADOWED: [&str; 4] = ["pytest", "_pytest", "unittest", "ruff"];

/// Whether a change to a path is one of what is run, or how. Of a manifest only that part counts: who adds
/// a dependency does not change the tests.
fn defines_oracle(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let top = path.split('/').next().unwrap_or(path);
    let shadows =
        path.ends_with(".py") && SHADOWED.contains(&top.strip_suffix(".py").unwrap_or(top));
    if shadows
        || DECISIVE.contains(&name)
        || DECISIVE_BEGINNINGS.iter().any(|b| name.starts_with(b))
        || DECISIVE_FOLDERS.iter().any(|f| path.starts_with(f) || path.contains(&format!("/{f}")))
        || name.ends_with(".mk")
        || name.ends_with(".runsettings")
    {
        return true;
    }
    let part: fn(&str) -> Option<String> = match name {
        "package.json" => |text| {
            json_part(
                text,
                &[
                    "scripts",
                    "config",
                    "jest",
                    "mocha",
                    "ava",
                    "vitest",
                    "tap",
                    "eslintConfig",
                    "packageManager",
                ],
            )
        },
        "deno.json" | "deno.jsonc" => |text| json_part(text, &["tasks", "test", "lint", "exclude"]),
        "Cargo.toml" => cargo_part,
        "pyproject.toml" => python_part,
        "pom.xml" => |text| Some(without(text, "<dependencies>", "</dependencies>")),
        "build.gradle" | "build.gradle.kts" => |text| Some(without(text, "dependencies {", "\n}")),
        "mix.exs" => |text| Some(without(text, "defp deps do", "\n  end")),
        "CMakeLists.txt" | "BUILD" | "BUILD.bazel" => |text| Some(lines_about_tests(text)),
        _ if name.ends_with("proj") && name.contains('.') => |text| {
            Some(text.lines().filter(|l| !l.contains("Reference ")).collect::<Vec<_>>().join("\n"))
        },
        _ => return false,
    };
    // A new manifest is a new package: there was nothing to change.
    let Some(before) = before else { return false };
    let Some(after) = after else { return true };
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    match (part(&before), part(&after)) {
        (Some(before), Some(after)) => before != after,
        // What cannot be understood is compared as it stands.
        _ => before != after,
    }
}

fn json_part(text: &str, keys: &[&str]) -> Option<String> {
    let document: Value = serde_json::from_str(text).ok()?;
    Some(keys.iter().map(|key| format!("{key}: {}\n", document[*key])).collect())
}

fn cargo_part(text: &str) -> Option<String> {
    let manifest: toml::Table = text.parse().ok()?;
    let at = |keys: &[&str]| {
        let first = keys.first().and_then(|k| manifest.get(*k));
        keys.iter().skip(1).fold(first, |value, key| value.and_then(|v| v.get(*key))).cloned()
    };
    let of_targets = |kind: &str| -> Vec<Option<toml::Value>> {
        let targets = manifest.get(kind).and_then(toml::Value::as_array).into_iter().flatten();
        targets
            .flat_map(|t| ["test", "harness"].map(|k| t.get(k).cloned()))
            .flatten()
            .map(Some)
            .collect()
    };
    let paths: [&[&str]; 13] = [
        &["lints"],
        &["test"],
        &["profile"],
        &["workspace", "lints"],
        &["workspace", "members"],
        &["workspace", "default-members"],
        &["workspace", "exclude"],
        &["package", "autotests"],
        &["package", "build"],
        &["package", "metadata", "nextest"],
        &["lib", "test"],
        &["lib", "doctest"],
        &["lib", "harness"],
    ];
    Some(format!("{:?} {:?}", paths.map(at), of_targets("bin")))
}

fn python_part(text: &str) -> Option<String> {
    let project: toml::Table = text.parse().ok()?;
    let tools = [
        "pytest", "ruff", "tox", "nox", "coverage", "mypy", "flake8", "pylint", "pyright", "hatch",
        "poe", "taskipy",
    ];
    let tool = |name: &str| project.get("tool").and_then(|t| t.get(name)).cloned();
    Some(format!("{:?}", tools.map(tool)))
}

fn lines_about_tests(text: &str) -> String {
    let about = |line: &&str| line.to_ascii_lowercase().contains("test");
    text.lines().filter(about).collect::<Vec<_>>().join("\n")
}

/// A text without what stands between each pair of these marks.
fn without(text: &str, from: &str, to: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(from) {
        kept.push_str(before);
        rest = after.split_once(to).map_or("", |(_, after)| after);
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &str, before: Option<&str>, after: Option<&str>) -> Vec<&'static str> {
        let loses = match (before, after) {
            (Some(before), Some(after)) => before.lines().any(|l| !after.lines().any(|a| a == l)),
            _ => after.is_none(),
        };
        let touched = Touched {
            path,
            before: before.map(str::as_bytes),
            after: after.map(str::as_bytes),
            loses,
        };
        flags(touched, &BTreeSet::from(["ci/check.sh".to_owned()]))
            .iter()
            .map(Flag::label)
            .collect()
    }

    #[test]
    fn what_decides_what_is_run_is_flagged_and_the_rest_of_a_manifest_is_not() {
        let changed: &[&str] = &["oracle changed"];
        let cases: [(&str, &str, &str, &[&str]); 16] = [
            ("Makefile", "a", "b", changed),
            ("sub/Makefile", "a", "b", changed),
            (".github/workflows/ci.yml", "a", "b", changed),
            ("web/jest.config.ts", "a", "b", changed),
            ("ci/check.sh", "a", "b", changed),
            ("ci/other.sh", "a", "b", &[]),
            (
                "package.json",
                r#"{"scripts": {"test": "jest"}}"#,
                r#"{"scripts": {"test": "true"}}"#,
                changed,
            ),
            (
                "package.json",
                r#"{"scripts": {"test": "jest"}}"#,
                r#"{"scripts": {"test": "jest"}, "dependencies": {"a": "1"}}"#,
                &[],
            ),
            ("package.json", "{}", "{", changed),
            (
                "Cargo.toml",
                "[package]\nname = 'a'",
                "[package]\nname = 'a'\n[lib]\ntest = false",
                changed,
            ),
            (
                "Cargo.toml",
                "[package]\nname = 'a'",
                "[package]\nname = 'a'\n[dependencies]\nb = '1'",
                &[],
            ),
            ("Cargo.toml", "[[bin]]\nname = 'a'", "[[bin]]\nname = 'a'\ntest = false", changed),
            ("pyproject.toml", "[project]", "[project]\ndependencies = ['a']", &[]),
            (
                "pyproject.toml",
                "[tool.pytest.ini_options]",
                "[tool.pytest.ini_options]\naddopts = '-k no'",
                changed,
            ),
            (
                "CMakeLists.txt",
                "add_library(a a.c)\nadd_test(a a)",
                "add_library(a a.c b.c)",
                changed,
            ),
            (
                "pom.xml",
                "<a/><dependencies>x</dependencies>",
                "<a/><dependencies>y</dependencies>",
                &[],
            ),
        ];
        for (path, before, after, expected) in cases {
            assert_eq!(told(path, Some(before), Some(after)), expected, "{path}: {after}");
        }
        for new in [
            "conftest.py",
            "pytest.py",
            "unittest/__init__.py",
            ".gitattributes",
            "crates/a/build.rs",
            "web/tsconfig.json",
            "vite.config.ts",
        ] {
            assert_eq!(told(new, None, Some("")), changed, "{new}");
        }
        assert_eq!(told("src/unittest/a.py", None, Some("")), [""; 0]);
        assert_eq!(told("crates/new/Cargo.toml", None, Some("[package]")), [""; 0]);
    }

    const INNER: &str = "fn a() {}\n#[cfg(test)]\nmod tests {\n    is(2);\n}\n";

    #[test]
    fn a_link_that_leads_out_of_the_checkout_is_told_from_one_within() {
        let cases = [
            ("a", "/etc/passwd", true),
            ("a", "b", false),
            ("a", "../b", true),
            ("d/a", "../b", false),
            ("d/a", "./../../b", true),
            ("d/a", "x/../../../b", true),
            ("d/a", "x/../../b", false),
        ];
        for (path, target, outside) in cases {
            assert_eq!(leads_outside(path, target), outside, "{path} -> {target}");
        }
    }

    #[test]
    fn tests_that_go_change_or_are_left_out_are_flagged_and_new_ones_are_not() {
        let rust = "fn a() {}\n#[test]\nfn t() {}\n";
        /// The path, before, after, and what is said.
        type Case<'a> = (&'a str, Option<&'a str>, Option<&'a str>, &'a [&'a str]);
        let cases: [Case<'_>; 23] = [
            ("tests/a.rs", Some("a\n"), None, &["tests deleted"]),
            ("tests/a.rs", None, Some("a\n"), &[]),
            ("tests/a.rs", Some("a\n"), Some("a\nb\n"), &[]),
            ("tests/a.rs", Some("a\n"), Some("b\n"), &["tests edited"]),
            ("tests/data.txt", Some("a\n"), Some("b\n"), &["tests edited"]),
            ("src/a.rs", Some(rust), Some("fn a() {}\n"), &["tests deleted"]),
            (
                "src/a.rs",
                Some(rust),
                Some("fn a() {}\n// #[test]\nfn t() {}\n"),
                &["tests deleted"],
            ),
            (
                "src/a.rs",
                Some(rust),
                Some("fn a() {}\n#[test]\n#[ignore]\nfn t() {}\n"),
                &["tests skipped"],
            ),
            ("src/a.rs", Some(rust), Some("fn b() {}\n#[test]\nfn t() {}\n"), &[]),
            ("src/a.rs", Some("a"), Some("x.iter().skip(1)"), &[]),
            (
                "test_a.py",
                Some("def test_a(): pass"),
                Some("@pytest.mark.skip\ndef test_a(): pass"),
                &["tests skipped"],
            ),
            (
                "test_a.py",
                Some("def test_a(): pass\ndef test_b(): pass"),
                Some("def test_b(): pass"),
                &["tests deleted"],
            ),
            (
                "a.test.ts",
                Some("it('a')"),
                Some("it.skip('a')"),
                &["tests deleted", "tests skipped"],
            ),
            ("a.js", Some("submit('a')"), Some("a"), &[]),
            (
                "a_test.go",
                Some("func TestA() {}"),
                Some("func TestA() { t.Skip() }"),
                &["tests edited", "tests skipped"],
            ),
            (
                "src/test/java/ATest.java",
                Some("@Test"),
                Some("@Disabled\n@Test"),
                &["tests skipped"],
            ),
            ("src/contest.rs", Some("a\n"), Some("b\n"), &[]),
            (
                "src/a.rs",
                Some(INNER),
                Some("fn b() {}\n#[cfg(test)]\nmod tests {\n    is(1);\n}\n"),
                &["tests edited"],
            ),
            (
                "src/a.rs",
                Some(INNER),
                Some("fn b() {}\n#[cfg(test)]\nmod tests {\nis(2);\nis(3);\n}\n"),
                &[],
            ),
            ("src/a.rs", Some(INNER), Some("fn a() {}\n"), &["tests edited"]),
            ("src/a.rs", Some("#![x]"), Some("#![cfg(any())]"), &["tests skipped"]),
            (
                "main_test.go",
                None,
                Some("func TestMain(m *testing.M) { os.Exit(0) }"),
                &["tests skipped"],
            ),
            ("vendor/tests", Some("a"), Some("b"), &["tests edited"]),
        ];
        for (path, before, after, expected) in cases {
            assert_eq!(told(path, before, after), expected, "{path}: {after:?}");
        }
    }
}
