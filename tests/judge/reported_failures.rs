//! An exit code of 0 that the tests' own report contradicts.
use std::fs;

use serde_json::json;

use crate::common::edits::{LARGE, SMALL};
use crate::common::{World, sentence};

/// A test whose exit code is lost in a pipe: it prints the summary of pytest, by which a tree with
/// `word` in `src/lib.txt` has two failures.
fn lost_in_a_pipe(word: &str) -> String {
    format!(
        "{{ echo ran >> \"$HOME/ran\"; grep -q '{word}' src/lib.txt && echo '=== 2 failed, 1 passed in 0.10s ===' \
         || echo '=== 3 passed in 0.10s ==='; }} | cat"
    )
}

fn runs(world: &World) -> usize {
    fs::read_to_string(world.home().join("ran")).unwrap_or_default().lines().count()
}

#[test]
fn pass_that_the_runners_last_summary_contradicts_is_not_verified() {
    let world = World::new();
    world.attempts(&["echo broken >> src/lib.txt"]);
    let test = lost_in_a_pipe("broken");
    let answer = world.frites(["judge", "--test", &test]).expect(3);
    assert_eq!(
        sentence(&answer.out()),
        "reported-failures: c1 is the one usable candidate, and it failed test (exit 0 although 2 tests \
         failed), as if a pipe had lost its exit code, with 1 line in 1 file; the base passes"
    );
    assert!(answer.out().contains("test reports 2 failed"), "{}", answer.out());
    assert!(answer.stderr.contains("set -o pipefail"), "{}", answer.stderr);
    assert!(answer.stderr.contains("oracle.trust-exit true"), "{}", answer.stderr);
    assert!(!answer.stderr.contains("warning"), "the base is right: {}", answer.stderr);
    let json = world.frites(["judge", "--json", "--test", &test]).expect(3).json();
    assert_eq!(json["decision"], "reported-failures");
    assert_eq!((&json["passed"], &json["failed"]), (&json!([]), &json!(["c1"])));
    let result = &json["candidates"][0]["results"][0];
    assert_eq!((&result["outcome"], &result["failed"]), (&json!("reported-failures"), &json!(2)));
    // Nothing was cached but the base's pass.
    assert_eq!(runs(&world), 2 + 1);
    world.frites(["judge", "--replay"]).expect(3);
    world.frites(["judge", "-q", "--test", &test]).expect(3);
    world
        .frites(["apply"])
        .refuses(1, "nothing verified to land: c1 is the one usable candidate, and it failed test");
    let junit = world.home().join("junit.xml");
    world.frites(["judge", "--junit", junit.to_str().unwrap(), "--test", &test]).expect(3);
    let junit = fs::read_to_string(junit).unwrap();
    assert!(junit.contains("<failure message=\"test: exit 0 although 2 tests failed\""), "{junit}");
    let page = world.frites(["report", "-o", "-"]).expect(0).out();
    assert!(page.contains("exit 0 although 2 tests failed"));
    world.frites(["judge", "--candidate", "c1", "--test", &test]).expect(3);
    world.frites(["judge", "--replay", "--test", &test]).expect(3);
    world.frites(["apply", "-m", "x", "--allow-unverified", "1/c1"]).expect(0);
    let message = world.git(["log", "-1", "--format=%B"]);
    assert!(message.contains("Frites-Reason: c1 is the one usable candidate"), "{message}");
    world.assert_clean();
}

#[test]
fn candidate_that_passed_cleanly_comes_before_a_smaller_one_whose_tests_report_failures() {
    let world = World::new();
    world.attempts(&["echo broken >> src/lib.txt", LARGE]);
    let test = lost_in_a_pipe("broken");
    let answer = world.frites(["judge", "--explain", "--test", &test]).expect(0);
    let step = "c2 before c1: it passed, the other failed test (exit 0 although 2 tests failed)";
    assert!(answer.stderr.contains(step), "{}", answer.stderr);
    let json = world.frites(["judge", "--until-pass", "--json", "--test", &test]).expect(0).json();
    assert_eq!(json["recommended"], "c2");
    world.assert_clean();
}

#[test]
fn exit_code_is_trusted_where_failures_are_known() {
    let world = World::new();
    world.attempts(&["echo broken >> src/lib.txt"]);
    let test = lost_in_a_pipe("broken");
    world.frites(["judge", "-q", "--test", &test]).expect(3);
    world.git(["config", "frites.oracle.trust-exit", "true"]);
    let json = world.frites(["judge", "--json", "--test", &test]).expect(0).json();
    assert_eq!((&json["decision"], &json["terms"]["trust_exit"]), (&json!("single"), &json!(true)));
    // One who does not trust it takes no pass of one who did.
    world.git(["config", "frites.oracle.trust-exit", "false"]);
    world.frites(["judge", "-q", "--test", &test]).expect(3);
    world.assert_clean();
}

#[test]
fn base_with_reported_failures_is_warned_of_once() {
    let world = World::new();
    world.attempts(&["echo fixed > src/lib.txt", SMALL]);
    let test = lost_in_a_pipe("two\\|TWO");
    let answer = world.frites(["judge", "--test", &test]).expect(0);
    let warning =
        "warning: run 1: the test command ends on the base with exit 0 although 2 tests failed";
    assert_eq!(answer.stderr.matches(warning).count(), 1, "{}", answer.stderr);
    assert!(answer.stderr.contains("trust-exit true"), "{}", answer.stderr);
    assert!(!answer.out().contains("the base passes"), "{}", answer.out());
    let run = ["run", "-n", "1", "--test", &test, "--", "sh", "-c", "echo fixed > src/lib.txt"];
    let answer = world.frites(run).expect(0);
    assert_eq!(
        answer.stderr.matches("ends on the base with exit 0").count(),
        1,
        "{}",
        answer.stderr
    );
    world.assert_clean();
}

#[test]
fn junit_file_with_failures_contradicts_an_exit_code_of_0() {
    let world = World::new();
    world.write(".gitignore", "r.xml\n");
    world.write(".frites.toml", "[oracle]\njunit = 'r.xml'\ntest = 'sh check.sh'\n");
    world.write("check.sh", "cat cases > r.xml\n");
    let file = |cases: &str| format!("<testsuite>{cases}</testsuite>\n");
    let bad = "<testcase name=\"a\"><failure/></testcase>";
    world.write("cases", file("<testcase name=\"a\"/>"));
    world.commit("tests");
    let write = |cases: &str| format!("printf '%s' '{}' > cases", file(cases));
    world.attempts(&[
        &write(&format!("{bad}<testcase name=\"b\"/>")),
        // Surefire, nextest and gotestsum write these of tests that ran again; pytest that of an
        // xfail.
        &write(&format!("{bad}<testcase name=\"a\"/>")),
        &write("<testcase name=\"a\"><flakyFailure/><rerunFailure/></testcase>"),
        &write(
            "<testcase name=\"a\"/><testcase name=\"b\"><skipped type=\"pytest.xfail\"/></testcase>",
        ),
        // A test that passes on the base may not begin to fail in this way.
        &write("<testcase name=\"a\"><skipped type=\"pytest.xfail\"/></testcase>"),
    ]);
    let json = world.frites(["judge", "--json"]).expect(0).json();
    assert_eq!(json["passed"], json!(["c2", "c3", "c4"]), "{json}");
    assert_eq!(json["candidates"][0]["results"][0]["outcome"], "reported-failures");
    assert_eq!(json["candidates"][4]["results"][0]["outcome"], "missing-tests");
    world.assert_clean();
}

#[test]
fn summary_that_a_test_prints_is_not_that_of_the_runner() {
    let world = World::new();
    world.attempts(&[SMALL]);
    for test in [
        "echo '=== 1 failed in 0.10s ==='; echo 'as it should'",
        "echo '=== 1 failed in 0.10s ==='; echo '=== 2 passed in 0.20s ==='",
        "echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored'; echo; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'",
        "printf 'not ok 1 - a\\n1..1\\n'; echo done",
    ] {
        let answer = world.frites(["judge", "--test", test]).expect(0);
        assert!(!answer.stderr.contains("although"), "{test}: {}", answer.stderr);
    }
    let told = "1/c1: test exit 0 (";
    let answer = world.frites(["judge", "--test", "printf 'not ok 1 - a\\n1..1\\n'; echo end"]);
    assert!(answer.stderr.contains(told), "{}", answer.stderr);
    assert!(!answer.stderr.contains("test passed"), "{}", answer.stderr);
    world.assert_clean();
}

#[test]
fn merged_tree_with_reported_failures_lands_only_as_unverified() {
    let world = World::new();
    let test = "test -e moved && echo '=== 1 failed in 0.10s ===' || true";
    world.judged(test, &[SMALL]);
    world.write("moved", "x\n");
    world.commit("moved");
    let before = world.belongings();
    world.frites(["apply", "-m", "x"]).refuses(
        1,
        "1/c1: merged with HEAD, it failed test (exit 0 although 1 test failed); nothing was changed",
    );
    assert_eq!(world.belongings(), before);
    world.frites(["apply", "-m", "x", "--allow-unverified"]).expect(0);
    world.assert_clean();
}

#[test]
fn merged_tree_needs_the_tests_that_the_target_has() {
    let test = "mode=$(cat mode); passed=3; if test $mode = fewer; then passed=2; fi; \
                if grep -q TWO src/lib.txt; then case $mode in skipped) passed=1 ;; failing) \
                echo 'FAILED t/a.py::one - x'; echo '=== 1 failed in 0.10s ===' ;; esac; fi; \
                echo \"=== $passed passed in 0.10s ===\"";
    for (mode, why) in [
        // Beside the change, the target's tests skip themselves or fail.
        ("skipped", Some("by its report only 1 of the base's 3 tests ran")),
        ("failing", Some("although 1 test failed")),
        // The target has dropped a test itself.
        ("fewer", None),
    ] {
        let world = World::new();
        world.write("mode", "all\n");
        world.commit("with a mode");
        world.judged(test, &[SMALL]);
        world.write("mode", mode);
        world.commit("moved");
        let answer = world.frites(["apply", "-m", "x"]);
        assert!(answer.stderr.contains("compared with those of HEAD"), "{}", answer.stderr);
        match why {
            Some(why) => answer.refuses(1, why),
            None => answer.expect(0),
        };
    }
}

#[test]
fn reported_failure_starts_a_round_of_repair_and_a_retry() {
    let world = World::new();
    let test = lost_in_a_pipe("broken");
    let attempt = "if test -e again; then sed -i '/broken/d' src/lib.txt; echo fine >> src/lib.txt; else \
                   echo broken >> src/lib.txt; touch again; fi";
    let run = ["run", "-n", "1", "--rounds", "1", "--test", &test, "--", "sh", "-c", attempt];
    let answer = world.frites(run).expect(0);
    assert!(answer.stderr.contains("led to a pass"), "{}", answer.stderr);
    // A second try can show that the failure was none.
    let flaky = "echo x >> \"$HOME/tries\"; test $(wc -l < \"$HOME/tries\") -gt 1 || echo '=== 1 failed in 0.10s ==='";
    world.attempts(&[SMALL]);
    let judge = ["judge", "--candidate", "c1", "--retries", "1", "--json", "--test", flaky];
    let json = world.frites(judge).expect(0).json();
    assert_eq!(json["candidates"][0]["candidate"]["results"][0]["outcome"], "flaky", "{json}");
    world.assert_clean();
}

#[test]
fn failure_of_an_earlier_suite_that_the_base_does_not_have_counts() {
    let world = World::new();
    let suite = |name: &str, fails: &str| {
        format!(
            "if grep -q '{fails}' src/lib.txt; then echo 'FAILED t/{name}.py::one - x'; echo '=== 1 failed in 0.10s ==='; \
             else echo '=== 1 passed in 0.10s ==='; fi;"
        )
    };
    // The first suite is a runner's own test, which prints a failure on the base, too.
    let test = [suite("runner", ""), suite("a", "broken"), suite("b", "never")].concat();
    world.attempts(&["echo broken >> src/lib.txt", "echo fine >> src/lib.txt"]);
    let answer = world.frites(["judge", "--test", &test]).expect(0);
    let out = answer.out();
    assert!(out.contains("test reports 1 failed"), "{out}");
    assert!(out.contains("t/a.py::one (does not fail on the base)"), "{out}");
    assert!(out.contains("tests: only c2 of 2 passed test"), "{out}");
    // So it counts for a candidate that changes tests, too.
    let run = world.attempts(&["echo broken >> src/lib.txt; mkdir tests; echo x > tests/new"]);
    world.frites(["judge", "--test", &test, &run]).expect(3);
    // A test that passes when it runs again has passed.
    let again = "grep -q again src/lib.txt && echo 't/c.py::one FAILED'; echo 't/c.py::one PASSED'; echo '=== 1 passed in 0.10s ==='";
    let run = world.attempts(&["echo again >> src/lib.txt"]);
    world.frites(["judge", "--test", again, &run]).expect(0);
}

#[test]
fn test_that_make_did_not_run_is_no_pass() {
    let world = World::unborn();
    world.write("test/a.sh", "grep -q good app.py\n");
    world.write("app.py", "good\n");
    world.write("Makefile", "test:\n\tsh test/a.sh\n");
    world.commit("base");
    let phony = "printf '.PHONY: test\\n' >> Makefile";
    world.attempts(&["echo bad > app.py", &format!("echo >> app.py; {phony}")]);
    let answer = world.frites(["judge", "--test", "make test"]);
    let why = "make says that 'test' is up to date, so no test ran; `.PHONY: test` makes it run";
    assert!(answer.stderr.contains("warning: run 1: the test command cannot start on the base"));
    assert!(answer.stderr.contains(why), "{}", answer.stderr);
    let json = world.frites(["judge", "--json", "--test", "make test"]).json();
    assert_eq!(json["verified"], false, "{json:#}");
    assert_eq!(json["candidates"][0]["results"][0]["outcome"], "could-not-start", "{json:#}");
    assert_eq!(json["candidates"][1]["results"][0]["outcome"], "passed", "{json:#}");
    // Other words beside it may be those of tests.
    let more = world.frites(["judge", "--json", "--test", "echo 1 passed; make test"]).json();
    assert_eq!(more["candidates"][0]["results"][0]["outcome"], "passed", "{more:#}");
}

#[test]
fn test_that_make_ran_for_no_tree_is_an_error() {
    let world = World::unborn();
    world.write("test", "\n");
    world.write("Makefile", "test:\n\tfalse\n");
    world.commit("base");
    world.attempts(&["echo > app.py"]);
    let answer = world.frites(["judge", "--test", "make test"]).expect(128);
    assert!(answer.stderr.contains("`.PHONY: test` makes it run"), "{}", answer.stderr);
    world.assert_clean();
}
