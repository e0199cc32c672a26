//! Which tests fail, told by real test runners that nobody configured for it.
use std::fs;

use serde_json::{Value, json};

use crate::common::World;
use crate::common::sealed::confined;
use crate::tool::{CARGO, LANDLOCK, NAMESPACES, NEXTEST, NODE, PYTEST, PYTHON, trials};

trials! {
    unittest_tells_which_tests_an_attempt_broke: [PYTHON];
    pytest_is_asked_and_says_nothing_of_it: [PYTEST];
    pytest_is_asked_in_a_sealed_world: [PYTEST, NAMESPACES];
    pytest_is_asked_where_landlock_confines_it: [PYTEST, LANDLOCK];
    pytest_that_writes_a_report_of_its_own_is_not_asked: [PYTEST];
    cargo_test_tells_which_tests_fail: [CARGO];
    nextest_tells_which_tests_fail: [CARGO, NEXTEST];
    node_tells_which_tests_fail: [NODE];
    node_names_a_file_that_fails_as_a_whole_by_its_path_from_the_root: [NODE];
}

/// A repository with these files.
pub fn project(files: &[(&str, &str)], mode: &str) -> World {
    let mut world = confined(mode);
    for (path, text) in files {
        world.write(path, text);
    }
    world.commit("a project");
    world.set_env("CARGO_NET_OFFLINE", "true");
    world.set_env("PYTHONDONTWRITEBYTECODE", "1");
    world
}

/// The report of a result of this candidate, or of the base.
pub fn tests_of(verdict: &Value, candidate: Option<usize>) -> &Value {
    let results = match candidate {
        Some(at) => &verdict["candidates"][at]["results"],
        None => &verdict["baseline"]["results"],
    };
    let results = results.as_array().unwrap();
    &results.iter().find(|result| result["stage"] == "test").unwrap()["tests"]
}

/// The lines of a text below the row of this candidate, up to the next row.
pub fn below_row(text: &str, candidate: &str) -> String {
    let is_row = |line: &&str| line.trim_start_matches(['*', '~', ' ']).starts_with(candidate);
    let mut lines = text.lines().skip_while(|line| !is_row(line));
    let row = lines.next().unwrap_or_else(|| panic!("{candidate} has a row:\n{text}"));
    let more = lines.take_while(|line| line.starts_with("     ")).map(str::trim);
    [row.trim()].into_iter().chain(more).collect::<Vec<_>>().join(" ")
}

const UNITTEST: &str = "import unittest, value
class T(unittest.TestCase):
    def test_two(self): self.assertEqual(value.VALUE, 2)
    def test_positive(self): self.assertGreater(value.VALUE, 0)
    @unittest.skipIf(value.VALUE == 7, 'seven')
    def test_small(self): self.assertLess(value.VALUE, 100)
";

fn unittest_tells_which_tests_an_attempt_broke() {
    let world = project(&[("value.py", "VALUE = 1\n"), ("test_value.py", UNITTEST)], "off");
    world.attempts(&["echo VALUE = -1 > value.py", "echo VALUE = 7 > value.py"]);
    let answer = world.frites(["judge", "--explain"]).expect(1);
    let out = answer.out();
    let expected = "2 of 3 tests fail: test_value.T.test_positive (does not fail on the base), \
                    test_value.T.test_two (fails on the base, too)";
    assert!(below_row(&out, "1/c1").ends_with(expected), "{out}");
    let skipped = "skips 1 test, where the base skips 0, 1 of 3 tests fails: test_value.T.test_two (fails on the base, too)";
    assert!(below_row(&out, "1/c2").ends_with(skipped), "{out}");
    assert!(
        below_row(&out, "1/@base").ends_with("1 of 3 tests fails: test_value.T.test_two"),
        "{out}"
    );
    let told = "c1: test_value.T.test_positive fails; it does not fail on the base";
    assert!(answer.stderr.lines().any(|line| line == told), "{}", answer.stderr);
    let status = world.frites(["status", "1"]).expect(0).out();
    assert!(status.contains("test_value.T.test_positive (does not fail on the base)"), "{status}");
    let verdict = world.frites(["judge", "--replay", "--json"]).expect(1).json();
    let entry = &verdict["candidates"][0];
    assert_eq!(
        entry["failing_tests"],
        json!({"broken": [], "before": ["test_value.T.test_two"], "new": [],
            "only_here": ["test_value.T.test_positive"]})
    );
    assert_eq!(verdict["candidates"][1]["more_skipped"], json!({"base": 0, "candidate": 1}));
    assert_eq!(tests_of(&verdict, Some(0))["printed_by"], "unittest");
    world.assert_clean();
}

const PYTEST_TESTS: &str = "import pytest, value
def test_two(): assert value.VALUE == 2
def test_positive(): assert value.VALUE > 0
@pytest.mark.skipif(value.VALUE == 7, reason='seven')
def test_small(): assert value.VALUE < 100
";

/// Judges attempts at a project with pytest, whose report names the passing tests, too.
#[track_caller]
fn assert_pytest_is_asked(mode: &str) -> World {
    let mut world = project(&[("value.py", "VALUE = 1\n"), ("test_value.py", PYTEST_TESTS)], mode);
    world.attempts(&["echo VALUE = -1 > value.py", "echo VALUE = 2 > value.py"]);
    world.set_env("PYTEST_ADDOPTS", "-rA -p no:cacheprovider");
    let answer = world.frites(["judge", "--json", "--test", "pytest"]).expect(0);
    let verdict = answer.json();
    assert_eq!(
        verdict["candidates"][0]["failing_tests"],
        json!({"broken": ["test_value::test_positive"], "before": ["test_value::test_two"], "new": []}),
        "{}",
        answer.stderr
    );
    let base = tests_of(&verdict, None);
    assert_eq!(base["passing"], json!(["test_value::test_positive", "test_value::test_small"]));
    assert_eq!(tests_of(&verdict, Some(1))["total"], 3);
    let log = fs::read_to_string(world.repo.join(".frites/runs/1/c1/test.log")).unwrap();
    assert!(!log.contains("xml"), "{log}");
    assert!(log.contains("PASSED test_value.py::test_small"), "the user's options count: {log}");
    world
}

fn pytest_is_asked_and_says_nothing_of_it() {
    let world = assert_pytest_is_asked("off");
    // The log is what pytest says by itself, but for the time.
    let own = world.sh(&world.worktree("1/c1"), "pytest").expect(1).out();
    let log = fs::read_to_string(world.repo.join(".frites/runs/1/c1/test.log")).unwrap();
    let told = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|l| !l.starts_with("rootdir") && !l.contains(" in 0."));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(told(&log), told(&own));
    world.assert_clean();
}

fn pytest_is_asked_in_a_sealed_world() {
    assert_pytest_is_asked("sealed").assert_clean();
}

fn pytest_is_asked_where_landlock_confines_it() {
    assert_pytest_is_asked("landlock").assert_clean();
}

fn pytest_that_writes_a_report_of_its_own_is_not_asked() {
    let world = project(
        &[
            ("value.py", "VALUE = 2\n"),
            ("test_value.py", PYTEST_TESTS),
            ("pytest.ini", "[pytest]\naddopts = --junitxml=own.xml\n"),
        ],
        "off",
    );
    world.attempts(&["echo VALUE = 1 > value.py", "echo VALUE = 1+1 > value.py"]);
    let test = "pytest; code=$?; test -s own.xml || exit 9; exit $code";
    let verdict = world.frites(["judge", "--json", "--test", test]).expect(0).json();
    let report = tests_of(&verdict, Some(0));
    assert_eq!(report["printed_by"], "pytest");
    assert_eq!(report["failing"], json!(["test_value.py::test_two"]));
    world.assert_clean();
}

const CARGO_FILES: [(&str, &str); 4] = [
    ("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
    ("Cargo.lock", "version = 3\n\n[[package]]\nname = \"tiny\"\nversion = \"0.1.0\"\n"),
    (".gitignore", "target\n"),
    (
        "src/lib.rs",
        "pub const VALUE: i32 = 1;\n#[test] fn two() { assert_eq!(VALUE, 2); }\n\
         #[test] fn positive() { assert!(VALUE > 0); }\n#[test] #[ignore] fn later() {}\n",
    ),
];

#[track_caller]
fn assert_cargo_tells(test: &str, names: [&str; 2]) {
    let world = project(&CARGO_FILES, "off");
    world.attempts(&["sed -i.bak 's/= 1/= -1/' src/lib.rs; rm src/lib.rs.bak"]);
    let answer = world.frites(["judge", "--json", "--test", test]).expect(1);
    let verdict = answer.json();
    let failing = &verdict["candidates"][0]["failing_tests"];
    assert_eq!(failing["before"], json!([names[0]]), "{}", answer.stderr);
    assert_eq!(failing["broken"], json!([names[1]]), "{}", answer.stderr);
    assert_eq!(tests_of(&verdict, Some(0))["skipped"], 1);
    assert_eq!(tests_of(&verdict, Some(0))["total"], 3);
    world.assert_clean();
}

fn cargo_test_tells_which_tests_fail() {
    assert_cargo_tells("cargo test", ["tiny::two", "tiny::positive"]);
}

fn nextest_tells_which_tests_fail() {
    assert_cargo_tells("cargo nextest run --no-fail-fast", ["tiny two", "tiny positive"]);
}

fn node_names_a_file_that_fails_as_a_whole_by_its_path_from_the_root() {
    let files =
        [("value.js", "module.exports = 1;\n"), ("test/bad.js", "throw new Error('no');\n")];
    let good = ("test/good.js", "require('node:test')('good', () => {});\n");
    for options in ["", " --test-reporter=tap", " --test-reporter=spec"] {
        let world = project(&[&files[..], &[good]].concat(), "off");
        world.attempts(&["echo 'throw 1;' > test/good.js"]);
        let run = format!("node --test{options}");
        let verdict = world.frites(["judge", "--json", "--test", &run]).expect(1).json();
        assert_eq!(tests_of(&verdict, None)["failing"], json!(["test/bad.js"]), "{run}");
        let failing = &verdict["candidates"][0]["failing_tests"];
        assert_eq!(failing["before"], json!(["test/bad.js"]), "{run}: {failing}");
        assert!(failing.to_string().contains("\"test/good.js\""), "{run}: {failing}");
        world.assert_clean();
    }
}

fn node_tells_which_tests_fail() {
    let test = "const {test, describe} = require('node:test'); const assert = require('node:assert');
const value = require('./value');
describe('value', () => { test('is two', () => assert.equal(value, 2)); test('is positive', () => assert(value > 0)); });
test.skip('later', () => {});
";
    for options in ["", " --test-reporter=tap", " --test-reporter=spec"] {
        let world = project(&[("value.js", "module.exports = 1;\n"), ("a.test.js", test)], "off");
        world.attempts(&["echo 'module.exports = -1;' > value.js"]);
        let run = format!("node --test{options}");
        let answer = world.frites(["judge", "--json", "--test", &run]).expect(1);
        let verdict = answer.json();
        let failing = &verdict["candidates"][0]["failing_tests"];
        let all: String = failing.to_string();
        assert!(all.contains("is two") && all.contains("is positive"), "{}", answer.stderr);
        assert!(failing["before"][0].as_str().unwrap().ends_with("is two"), "{all}");
        assert_eq!(tests_of(&verdict, Some(0))["total"], 3);
        world.assert_clean();
    }
}
