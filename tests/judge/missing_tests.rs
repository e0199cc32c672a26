//! An exit code of 0 beside a report that lacks tests of the base's.
use serde_json::json;

use crate::common::edits::LARGE;
use crate::common::{World, sentence};

/// A test that prints the summary of pytest. A tree with `stop` in its source ends before it, and
/// one with `fewer` loses a test.
const TEST: &str = "if grep -q stop src/lib.txt; then exit 0; fi; \
     if grep -q fewer src/lib.txt; then echo '=== 2 passed in 0.10s ==='; exit 0; fi; \
     echo '=== 3 passed in 0.10s ==='";

#[test]
fn pass_without_the_report_that_the_base_has_is_not_verified() {
    let world = World::new();
    world.attempts(&["echo stop >> src/lib.txt"]);
    let answer = world.frites(["judge", "--test", TEST]).expect(3);
    assert_eq!(
        sentence(&answer.out()),
        "missing-tests: c1 is the one usable candidate, and it failed test (exit 0, but no report says \
         that tests ran; 3 tests ran on the base), as if something had ended or skipped tests, with 1 line in 1 file; the \
         base passes"
    );
    assert!(answer.out().contains("test reports 0 of 3"), "{}", answer.out());
    let hint = "if it is right that fewer tests are reported, land it: `git frites apply --allow-unverified 1/c1`";
    assert!(answer.stderr.contains(hint), "{}", answer.stderr);
    let progress =
        "1/c1: test exit 0, but no report says that tests ran; 3 tests ran on the base (";
    assert!(answer.stderr.contains(progress), "{}", answer.stderr);
    assert!(!answer.stderr.contains("1/c1: test passed"), "{}", answer.stderr);
    // The pass of the commands is cached, and does not stand again.
    let json = world.frites(["judge", "--json", "--test", TEST]).expect(3).json();
    assert_eq!((&json["decision"], &json["passed"]), (&json!("missing-tests"), &json!([])));
    let result = &json["candidates"][0]["results"][0];
    assert_eq!((&result["cached"], &result["outcome"]), (&json!(true), &json!("missing-tests")));
    world.frites(["judge", "--replay"]).expect(3);
    let alone = world.frites(["judge", "--json", "--candidate", "c1", "--test", TEST]).expect(3);
    assert_eq!(alone.json()["passed"], json!([]));
    world.frites(["apply"]).refuses(1, "nothing verified to land: c1 is the one usable candidate");
    world.git(["config", "frites.oracle.trust-exit", "true"]);
    let trusted = world.frites(["judge", "--test", TEST]).expect(0).out();
    assert!(trusted.contains("check c1: it reports none of the base's 3 tests"), "{trusted}");
    world.assert_clean();
}

#[test]
fn failure_of_the_base_before_its_first_test_is_a_report() {
    let world = World::new();
    world.attempts(&["echo stop >> src/lib.txt"]);
    let failure =
        "ERROR: setUpModule (tests.test_a)\n\nRan 0 tests in 0.000s\n\nFAILED (errors=1)\n";
    let test = format!("grep -q stop src/lib.txt || {{ printf '{failure}'; exit 1; }}");
    let json = world.frites(["judge", "--json", "--test", &test]).expect(3).json();
    assert_eq!(json["decision"], "missing-tests", "{json:#}");
    // A candidate with a report has tests, the first ones of the project.
    let test = format!("{test}; printf 'Ran 2 tests in 0.000s\n\nOK\n'");
    let json = world.frites(["judge", "--json", "--test", &test]).expect(0).json();
    assert_eq!(json["decision"], "single", "{json:#}");
}

#[test]
fn change_that_switches_the_tests_off_and_fails_with_them_comes_behind_one_that_fails() {
    let world = World::new();
    world.write("Makefile", ".PHONY: test\ntest:\n\tsh test.sh\n");
    let failure = "echo 'FAILED t.py::one - x'; echo '=== 1 failed, 2 passed in 0.10s ==='; exit 1";
    let pass = "echo '=== 3 passed in 0.10s ==='";
    world.write("test.sh", format!("if grep -q bad src/lib.txt; then {failure}; fi\n{pass}\n"));
    world.commit("base");
    let switched_off = "echo bad >> src/lib.txt; echo 'test: ; true' > Makefile";
    world.attempts(&[switched_off, "echo bad >> src/lib.txt"]);
    let answer = world.frites(["judge"]).expect(1);
    assert_eq!(
        sentence(&answer.out()),
        "near-miss: none of 2 passed; c2 came closest: it failed test (exit 2; 1 of 3 tests), with 1 line in 1 file; of \
         its failing tests 1 does not fail on the base: t.py::one"
    );
    world.attempts(&[switched_off]);
    assert_eq!(
        sentence(&world.frites(["judge"]).expect(1).out()),
        "near-miss: c1 is the one usable candidate, and it failed test (exit 0, but no report says that tests ran; 3 tests \
         ran on the base), with 5 lines in 2 files; the base passes; with the base's Makefile it failed test (exit 2; 1 of \
         3 tests): t.py::one; check c1: it changes Makefile (which can decide what is run)"
    );
    world.assert_clean();
}

#[test]
fn report_with_fewer_tests_than_the_base_leaves_the_place_to_another_candidate() {
    let world = World::new();
    world.attempts(&["echo fewer >> src/lib.txt", LARGE]);
    for more in [&[][..], &["-j", "2", "--no-cache"], &["--until-pass"]] {
        let args = [&["judge", "--explain", "--test", TEST], more].concat();
        let answer = world.frites(&args).expect(0);
        let step = "c2 before c1: it passed, the other failed test (exit 0, but by its report only 2 of \
                    the base's 3 tests ran)";
        assert!(answer.stderr.contains(step), "{more:?}: {}", answer.stderr);
    }
    world.assert_clean();
}

#[test]
fn tests_that_do_not_count_are_told_apart_from_those_that_ran() {
    let world = World::new();
    world.attempts(&["echo other >> src/lib.txt", "echo fewer >> src/lib.txt"]);
    let test = "name() { echo \"test $1 ... ok\"; }; name a; if grep -q other src/lib.txt; then name c; else name b; fi; \
                n=2; if grep -q fewer src/lib.txt; then n=1; fi; echo \"test result: ok. $n passed; 0 failed\"";
    let answer = world.frites(["judge", "--test", test]).expect(3);
    for (candidate, ends) in [
        (
            "1/c1",
            "; its report has 2 tests: skipped ones, doctests and names that the base lacks do not count",
        ),
        ("1/c2", ")"),
    ] {
        let starts = format!(
            "{candidate}: test exit 0, but by its report only 1 of the base's 2 tests ran ("
        );
        let mut lines = answer.stderr.lines().filter(|line| line.starts_with(&starts));
        let line = lines.next().unwrap_or_else(|| panic!("{candidate}: {}", answer.stderr));
        assert!(line.ends_with(ends), "{line}");
    }
    world.assert_clean();
}

#[test]
fn parts_are_compared_where_the_verdict_is_decided() {
    let world = World::new();
    world.attempts(&["echo fewer >> src/lib.txt"]);
    world.frites(["shard", "open", "--test", TEST]).expect(0);
    world.frites(["shard", "judge", "1/c1"]).expect(0);
    // Until the base has an outcome, nothing can be compared.
    let open = world.frites(["judge", "--replay"]).expect(3);
    let reason = "undecided: so far, 1 of 1 passed; c1 is ahead, with 1 line in 1 file; the base has no outcome \
                  yet, and each pass must be compared with it";
    assert_eq!(sentence(&open.out()), reason);
    assert!(open.stderr.contains("`git frites shard judge 1 1/1`"), "{}", open.stderr);
    world.frites(["apply"]).refuses(1, "the base has no outcome");
    world.frites(["shard", "judge", "1/@base"]).expect(0);
    let json = world.frites(["judge", "--replay", "--json"]).expect(3).json();
    assert_eq!(json["decision"], "missing-tests");
    // A candidate by itself brings the base along, and is compared with it.
    let run = world.attempts(&["echo fewer >> src/lib.txt"]);
    world.frites(["judge", "--test", TEST, "--candidate", "c1", &run]).expect(3);
    let json = world.frites(["judge", "--replay", "--json", "--test", TEST, &run]).expect(3).json();
    assert_eq!(json["decision"], "missing-tests");
    world.assert_clean();
}

/// A project whose test runner counts the files of tests, unless its source ends it before that.
fn with_test_files() -> World {
    let world = World::unborn();
    world.write("src/a.py", "");
    for name in ["a", "b"] {
        world.write(format!("tests/test_{name}.py"), "");
    }
    // What stops early does so in one test.
    let test = "if grep -q stop src/a.py && test -e tests/test_b.py; then exit 0; fi; \
                echo \"=== $(ls tests/test_*.py | wc -l) passed in 0.10s ===\"";
    world.write(".frites.toml", format!("[oracle]\ntest = '''{test}'''\n"));
    world.commit("base");
    world
}

#[test]
fn run_that_continues_an_attempt_is_compared_with_the_base_of_the_first_run() {
    let world = World::new();
    world.attempts(&["echo fewer >> src/lib.txt"]);
    world.frites(["judge", "-q", "--test", TEST]).expect(3);
    world.spawn(["-n", "1", "--from", "1/c1", "--", "sh", "-c", "echo more >> src/lib.txt"]);
    let answer = world.frites(["judge", "--test", TEST]).expect(3);
    assert!(answer.out().contains("missing-tests: c1"), "{}", answer.out());
    world.frites(["apply"]).refuses(1, "nothing verified to land");
    world.assert_clean();
}

#[test]
fn data_that_switches_tests_off_is_not_excused_by_the_second_judging() {
    let world = World::unborn();
    world.write("src/a.py", "");
    world.write("tests/test_a.py", "");
    world.write("a.data", "on");
    let test = "n=2; if grep -q off a.data; then n=1; fi; echo \"=== $n passed in 0.10s ===\"";
    world.write(".frites.toml", format!("[oracle]\ntest = '''{test}'''\n"));
    world.commit("base");
    world.attempts(&["echo off > a.data"]);
    let json = world.frites(["judge", "--json"]).expect(3).json();
    assert_eq!(json["decision"], "missing-tests", "{json}");
    world.assert_clean();
}

#[test]
fn recipe_that_leaves_a_suite_out_is_not_excused_by_the_second_judging() {
    let world = World::new();
    let suite = "\techo '=== 1 passed in 0.10s ==='\n";
    world.write("Makefile", format!(".PHONY: test\ntest:\n{suite}{suite}"));
    world.commit("base");
    world.attempts(&["sed -i '$d' Makefile"]);
    let answer = world.frites(["judge"]).expect(3);
    let why = "it failed test (exit 0, but by its report only 1 of the base's 2 tests ran)";
    assert!(answer.out().contains(why), "{}", answer.out());
    world.assert_clean();
}

#[test]
fn tests_that_the_target_got_later_must_run_on_the_merged_tree() {
    // A test in a file of its own, a test that data make, and a test beside a change that both
    // sides make.
    for (new, edits) in [("tests/test_c.py", ""), ("cases/c.json", ""), ("tests/test_c.py", "x")] {
        let world = with_test_files();
        world.attempts(&[&format!("echo stop > src/b.py; printf '{edits}' > tests/test_a.py")]);
        let test = "n=$(ls tests/test_*.py cases/* 2>/dev/null | wc -l); if test -e src/b.py; then n=2; fi; \
                    echo \"=== $n passed in 0.10s ===\"";
        world.frites(["judge", "-q", "--test", test]).expect(0);
        world.write(new, "");
        world.write("tests/test_a.py", edits);
        world.commit("a new test");
        let why = "merged with HEAD, it failed test (exit 0, but by its report only 2 of the base's 3 tests ran)";
        world.frites(["apply", "-m", "land"]).refuses(1, why);
        world.assert_clean();
    }
}

#[test]
fn candidate_that_deletes_tests_is_compared_by_those_of_the_base() {
    let world = with_test_files();
    world.attempts(&[
        "echo x = 1 > src/a.py; git rm -q tests/test_b.py",
        "echo stop > src/a.py; git rm -q tests/test_b.py",
    ]);
    let json = world.frites(["judge", "--json"]).expect(0).json();
    assert_eq!(json["recommended"], "c1", "{json}");
    assert_eq!(json["own_tests"], json!(["c2"]), "{json}");
    world.spawn(["-n", "1", "--", "sh", "-c", "echo stop > src/a.py; git rm -q tests/test_b.py"]);
    let answer = world.frites(["judge"]).expect(3);
    assert_eq!(
        sentence(&answer.out()),
        "own-tests: c1 passes only with its own tests or commands, with 2 lines in 2 files: with the \
         base's tests/test_b.py it failed test (exit 0, but no report says that tests ran; 2 tests ran on the base); check c1: it \
         deletes tests in tests/test_b.py and runs only 1 of the base's 2 tests"
    );
    world.assert_clean();
}

#[test]
fn base_that_fails_asks_for_all_tests_that_ran_and_for_no_hook() {
    let world = World::new();
    world.write(".gitignore", "r.xml\n");
    world.write(".frites.toml", "[oracle]\njunit = 'r.xml'\ntest = 'sh check.sh'\n");
    let hook = "<testcase name=\"&quot;after all&quot; hook for a\"><failure/></testcase>";
    let passing = "<testcase name=\"a\"/><testcase name=\"b\"/>";
    let write = |cases: &str| format!("echo '<testsuite>{cases}</testsuite>' > r.xml\n");
    world.write(
        "check.sh",
        format!(
            "case \"$(cat src/lib.txt)\" in *fixed) {} ;; *fewer) {} ;; *) {} exit 1 ;; esac\n",
            write(passing),
            write("<testcase name=\"a\"/>"),
            write(&format!("{hook}{passing}")),
        ),
    );
    world.commit("tests");
    world.attempts(&["echo fewer >> src/lib.txt", "echo; echo fixed >> src/lib.txt"]);
    let json = world.frites(["judge", "--json"]).expect(0).json();
    assert_eq!(json["passed"], json!(["c2"]), "{json}");
    world.assert_clean();
}

#[test]
fn own_tests_whose_base_tests_do_not_compile_are_told_with_the_first_error() {
    let world = World::unborn();
    world.write("src/a.py", "");
    world.write("tests/test_a.py", "old\n");
    let test = "if grep -q new src/a.py && grep -q old tests/test_a.py; then \
                echo 'test_a.c:3:5: error: no old() any more'; echo stop; exit 2; fi";
    world.write(".frites.toml", format!("[oracle]\ntest = \"\"\"{test}\"\"\"\n"));
    world.commit("base");
    world.attempts(&["echo new > src/a.py; echo new > tests/test_a.py"]);
    let answer = world.frites(["judge"]).expect(3);
    let told = "with the base's tests/test_a.py it failed test (exit 2): test_a.c:3:5: error: no old() any more";
    assert!(sentence(&answer.out()).contains(told), "{}", answer.out());
    world.assert_clean();
}

#[test]
fn second_judging_does_not_make_up_for_a_report_that_is_gone() {
    let world = World::new();
    world.write("app.sh", "echo hello\n");
    world.write("Makefile", "test:\n\tsh t.sh\n");
    world.write(
        "t.sh",
        "test \"$(sh app.sh)\" = hello; failed=$?
        echo \"<testsuite tests='1'><testcase name='a'>$(test $failed = 0 || echo '<failure/>')</testcase></testsuite>\" > report.xml
        sh app.sh\n",
    );
    world.commit("a product that its test runs");
    world.git(["config", "frites.oracle.junit", "report.xml"]);
    // What the test runs decides, so that the base's is put back.
    let run = world.attempts(&["echo 'rm -f report.xml; echo broken' > app.sh"]);
    let json = world.frites(["judge", "--json", &run]).expect(3).json();
    assert_eq!(json["decision"], "missing-tests", "{json:#}");
    let run = world.attempts(&["echo 'echo hello # as before' > app.sh"]);
    world.frites(["judge", &run]).expect(0);
}
