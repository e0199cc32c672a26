//! Test runners whose exit code a pipe loses: their own reports say that tests failed.
use crate::test_reports::project;
use crate::tool::{CARGO, GO, NEXTEST, NODE, PROVE, PYTEST, PYTHON, RSPEC, trials};

trials! {
    pytest_through_a_pipe_has_failed: [PYTEST];
    unittest_through_a_pipe_has_failed: [PYTHON];
    cargo_test_through_a_pipe_has_failed: [CARGO];
    nextest_through_a_pipe_has_failed: [CARGO, NEXTEST];
    go_test_through_a_pipe_has_failed: [GO];
    node_through_a_pipe_has_failed: [NODE];
    prove_through_a_pipe_has_failed: [PROVE];
    rspec_through_a_pipe_has_failed: [RSPEC];
}

/// Judges with commands that end with exit code 0: one test fails by each of `failing`, and none by
/// those of `passing`.
#[track_caller]
fn assert_ends(files: &[(&str, &str)], failing: &[&str], passing: &[&str]) {
    let world = project(files, "off");
    world.attempts(&["echo x > x"]);
    let judge = |test: &str, code| {
        let candidate = ["judge", "--candidate", "c1", "--no-cache", "--json", "--test", test];
        let answer = world.frites(candidate).expect(code);
        answer.json()["candidates"][0]["candidate"]["results"][0].clone()
    };
    for command in failing {
        let result = judge(&format!("{command} 2>&1 | cat"), 3);
        assert_eq!(
            (&result["outcome"], &result["failed"]),
            (&"reported-failures".into(), &1.into()),
            "{command}"
        );
    }
    for command in passing {
        assert_eq!(judge(&format!("{command} 2>&1 | cat"), 0)["outcome"], "passed", "{command}");
    }
}

/// A test of the second file runs pytest on the first one, and prints its summary.
fn pytest_through_a_pipe_has_failed() {
    let bad = "import pytest\ndef test_ok(): pass\ndef test_bad(): assert 0\n@pytest.mark.xfail\ndef test_x(): assert 0\n";
    let nested =
        "import subprocess\ndef test_child(): subprocess.call(['pytest', 'test_bad.py'])\n";
    let xfail = "import pytest\n@pytest.mark.xfail\ndef test_x(): assert 0\n";
    let recipes = "bad:\n\tpytest -q test_bad.py\nnested:\n\tpytest -q -s test_nested.py\n";
    assert_ends(
        &[
            ("test_bad.py", bad),
            ("test_nested.py", nested),
            ("test_xfail.py", xfail),
            ("Makefile", recipes),
        ],
        &["pytest test_bad.py", "make -s bad"],
        &["pytest -s test_nested.py", "make -s nested", "pytest test_xfail.py"],
    );
}

fn unittest_through_a_pipe_has_failed() {
    let expected = "import unittest\nclass T(unittest.TestCase):\n  @unittest.expectedFailure\n  def test_x(self): self.fail()\n";
    let bad = format!("{expected}  def test_bad(self): self.fail()\n");
    assert_ends(
        &[("test_bad.py", &bad), ("test_expected.py", expected)],
        &["python3 -m unittest test_bad.py"],
        &["python3 -m unittest test_expected.py"],
    );
}

const CRATE: [(&str, &str); 4] = [
    ("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
    (
        "src/lib.rs",
        "#[test] fn bad() { assert!(false); }\n#[test] #[should_panic] fn x() { assert!(false); }\n",
    ),
    ("tests/other.rs", "#[test] fn fine() {}\n"),
    (".gitignore", "target\n"),
];

fn cargo_test_through_a_pipe_has_failed() {
    assert_ends(&CRATE, &["cargo test", "cargo test --no-fail-fast"], &["cargo test --test other"]);
}

fn nextest_through_a_pipe_has_failed() {
    assert_ends(&CRATE, &["cargo nextest run"], &["cargo nextest run --test other"]);
}

fn go_test_through_a_pipe_has_failed() {
    let bad = "package tiny\nimport \"testing\"\nfunc TestBad(t *testing.T) { t.Error(\"no\") }\n";
    let fine = "package fine\nimport \"testing\"\nfunc TestFine(t *testing.T) {}\n";
    assert_ends(
        &[("go.mod", "module tiny\n"), ("bad_test.go", bad), ("fine/fine_test.go", fine)],
        &["go test ./...", "go test", "go test -v ./..."],
        &["go test ./fine"],
    );
}

fn node_through_a_pipe_has_failed() {
    let todo = "const {test} = require('node:test'); test('later', {todo: true}, () => { throw new Error('no') });\n";
    let bad = format!("{todo}test('bad', () => {{ throw new Error('no') }});\n");
    let run = |reporter: &str, file: &str| format!("node --test --test-reporter={reporter} {file}");
    let [spec, tap] = ["spec", "tap"].map(|reporter| run(reporter, "bad.js"));
    let [spec_todo, tap_todo] = ["spec", "tap"].map(|reporter| run(reporter, "todo.js"));
    assert_ends(&[("bad.js", &bad), ("todo.js", todo)], &[&spec, &tap], &[&spec_todo, &tap_todo]);
}

fn prove_through_a_pipe_has_failed() {
    let todo = "TODO: { local $TODO = 'later'; ok(0); }\n";
    let bad = format!("use Test::More tests => 2; ok(0);\n{todo}");
    let todo = format!("use Test::More tests => 1;\n{todo}");
    assert_ends(
        &[("bad.t", &bad), ("todo.t", &todo)],
        &["prove bad.t", "perl bad.t"],
        &["prove todo.t", "perl todo.t"],
    );
}

fn rspec_through_a_pipe_has_failed() {
    let pending = "it('later') { pending; expect(1).to eq 2 }\n";
    let bad = format!("describe 'x' do\n{pending}it('bad') {{ expect(1).to eq 2 }}\nend\n");
    let pending = format!("describe 'x' do\n{pending}end\n");
    assert_ends(
        &[("bad_spec.rb", &bad), ("pending_spec.rb", &pending)],
        &["rspec ./bad_spec.rb"],
        &["rspec ./pending_spec.rb"],
    );
}
