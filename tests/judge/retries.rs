//! `judge` more than once: retries, flakiness, the base, per-test results.
use std::fs;

use serde_json::{Value, json};

use crate::common::edits::{LARGE, SMALL};
use crate::common::{World, sentence};

/// A test that fails for the first `n` times on a tree whose second line is small, and always on
/// the base.
fn fails_first(n: u32) -> String {
    format!(
        "! grep -q two src/lib.txt || exit 1; grep -q ONE src/lib.txt || {{ echo x >> \"$HOME/tries\"; test \"$(wc -l < \"$HOME/tries\")\" -gt {n}; }}"
    )
}

/// The line that is printed when a candidate's command ends, without the time.
fn said(stderr: &str, address: &str) -> String {
    let line = stderr.lines().find(|l| l.starts_with(address)).unwrap_or_default();
    let (before, after) = line.split_once('(').unwrap_or((line, ")"));
    format!("{before}({}", after.trim_start_matches(|c| c != ')'))
}

#[test]
fn pass_after_a_failure_is_flaky_and_ranks_behind_a_clean_one() {
    let world = World::new();
    world.attempts(&[SMALL, LARGE]);
    let test = fails_first(2);
    let answer = world.frites(["judge", "--retries", "2", "--test", &test]).expect(0);
    assert_eq!(
        sentence(&answer.out()),
        "judge: 2 of 2 passed; c2 is the smallest that passed at once, with 4 lines in 1 file; c1 needed a retry"
    );
    assert_eq!(said(&answer.stderr, "1/c1"), "1/c1: test flaky (), before that exit 1, exit 1");
    let json = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    let result = &json["candidates"][0]["results"][0];
    assert_eq!(result["outcome"], "flaky");
    let earlier: Vec<&Value> =
        result["earlier"].as_array().unwrap().iter().map(|a| &a["outcome"]).collect();
    assert_eq!(earlier, ["failed", "failed"]);
    for log in ["test.log", "test.try-1.log", "test.try-2.log"] {
        assert!(world.repo.join(".frites/runs/1/c1").join(log).exists(), "{log}");
    }
    // One retry fewer is not enough.
    fs::remove_file(world.home().join("tries")).unwrap();
    let out = world.frites(["judge", "--retries", "1", "--test", &test]).expect(0).out();
    assert!(sentence(&out).starts_with("tests: only c2 of 2 passed"), "{out}");
    assert!(
        !world.repo.join(".frites/runs/1/c1/test.try-2.log").exists(),
        "logs are those of the last judging"
    );
    world.assert_clean();
}

#[test]
fn flaky_pass_can_be_counted_as_failure() {
    let world = World::new();
    world.attempts(&[SMALL]);
    world.git(["config", "frites.oracle.flaky", "fail"]);
    world.git(["config", "frites.oracle.retries", "1"]);
    let answer = world.frites(["judge", "--test", &fails_first(1), "--build", "true"]).expect(1);
    assert!(
        sentence(&answer.out())
            .contains("passed build and then failed test (flaky, which is refused)"),
        "{}",
        answer.out()
    );
    world.frites(["apply", "1/c1"]).refuses(1, "failed test (flaky, which is refused)");
    world.git(["config", "frites.oracle.flaky", "sometimes"]);
    world.frites(["judge"]).refuses(128, "'oracle.flaky' takes one of pass, fail");
    world.assert_clean();
}

#[test]
fn pass_after_a_timeout_is_flaky_and_never_cached() {
    let world = World::new();
    world.attempts(&[SMALL]);
    let test = "! grep -q two src/lib.txt || exit 1; test -e \"$HOME/second\" || { touch \"$HOME/second\"; sleep 60; }";
    let words = ["judge", "--json", "--retries", "1", "--timeout", "300ms", "--test", test];
    let json = world.frites(words).expect(0).json();
    assert_eq!(json["candidates"][0]["results"][0]["earlier"][0]["outcome"], "timed-out");
    assert_eq!(
        world.frites(words).expect(0).json()["candidates"][0]["results"][0]["cached"],
        Value::Null
    );
    world.assert_clean();
}

#[test]
fn failure_that_the_base_shares_is_not_blamed_on_candidates() {
    let world = World::new();
    world.attempts(&[SMALL, LARGE]);
    for (test, words) in [
        (
            "exit 3",
            "failed test (exit 3), with 2 lines in 1 file; test fails on the base, too (exit 3)",
        ),
        (
            "grep -q two src/lib.txt",
            "failed test (exit 1), with 2 lines in 1 file; the base passes",
        ),
    ] {
        let out = world.frites(["judge", "--test", test]).expect(1).out();
        assert!(sentence(&out).ends_with(words), "{out}");
    }
    assert!(world.repo.join(".frites/runs/1/@base/test.log").exists());
    // A report tells whether other tests fail than on the base.
    for (fails, is_hinted) in [("t::a", true), ("t::$(cksum < src/lib.txt | cut -c1-6)", false)] {
        let test = format!("echo \"FAILED {fails} - x\"; echo '=== 1 failed in 0.10s ==='; exit 1");
        let stderr = world.frites(["judge", "--test", &test]).expect(1).stderr;
        let hint = "hint: if these tests have nothing to do with the change, leave them out of the test command";
        assert_eq!(stderr.contains(hint), is_hinted, "{stderr}");
    }
    // Somebody passed: the base tells how little that may mean.
    let out = world.frites(["judge", "--test", "true"]).expect(0).out();
    assert!(
        sentence(&out)
            .ends_with("; the base passes, too: this alone shows only that nothing broke"),
        "{out}"
    );
    let json =
        world.frites(["judge", "--json", "--test", "grep -q TWO src/lib.txt"]).expect(0).json();
    assert_eq!(json["baseline"]["results"][0]["outcome"], "failed");
    assert!(!json["rationale"].as_str().unwrap().contains("the base"));
    world.assert_clean();
}

#[test]
fn tests_behind_the_one_that_ended_the_bases_are_not_called_new_or_newly_skipped() {
    let world = World::new();
    let cargo = |binary: &str, tests: &[(&str, &str)]| {
        let lines = tests.iter().map(|(name, end)| format!("test {name} ... {end}\n"));
        let count = |wanted: &str| tests.iter().filter(|(_, end)| *end == wanted).count();
        let (ok, bad, ignored) = (count("ok"), count("FAILED"), count("ignored"));
        let failed = tests.iter().filter(|(_, end)| *end == "FAILED");
        let named: String = failed.map(|(name, _)| format!("    {name}\n")).collect();
        let named = if bad > 0 { format!("failures:\n{named}\n") } else { named };
        format!(
            "     Running tests/{binary}.rs (target/{binary}-0)\n{}{named}test result: {ok} passed; {bad} failed; \
             {ignored} ignored; 0 measured\n",
            lines.collect::<String>()
        )
    };
    let first = cargo("first", &[("a", "ok"), ("b", "FAILED")]);
    let more = |c: &str| {
        cargo("first", &[("a", "ok"), ("b", "ok")])
            + &cargo("second", &[("c", c), ("d", "ignored")])
    };
    let cheat = cargo("first", &[("a", "ignored"), ("b", "ok")]) + &cargo("second", &[("c", "ok")]);
    for (name, said, code) in [
        ("base", first, 101),
        ("fix", more("ok"), 0),
        ("near", more("FAILED"), 101),
        ("cheat", cheat, 0),
    ] {
        world.write(format!("{name}.txt"), said);
        world.write(format!("{name}.code"), code.to_string());
    }
    world.commit("what the tests print");
    let test = "name=$(cat which 2>/dev/null || echo base); cat $name.txt; exit $(cat $name.code)";
    world.attempts(&["echo fix > which", "echo near > which", "echo cheat > which"]);
    world.git(["config", "frites.oracle.base-tests", "never"]);
    let answer = world.frites(["judge", "--explain", "--json", "--test", test]).expect(0);
    let verdict = answer.json();
    let [fix, near, cheat] = [0, 1, 2].map(|at| &verdict["candidates"][at]);
    assert_eq!(fix["more_skipped"], json!(null), "{fix}");
    assert_eq!(
        near["failing_tests"],
        json!({"broken": [], "before": [], "new": [], "not_run": ["second::c"]})
    );
    assert_eq!(cheat["more_skipped"], json!({"base": 0, "candidate": 1, "tests": ["first::a"]}));
    let told = "c3 skips 1 test that the base runs: first::a";
    assert!(answer.stderr.lines().any(|line| line == told), "{}", answer.stderr);
    world.assert_clean();
}

/// Each line of `results` is a test: `ok NAME` or `bad NAME`.
const JUNIT: &str = "{ echo '<testsuite name=\"s\">'; while read how name; do echo \"<testcase classname=\\\"t\\\" name=\\\"$name\\\">\"; \
    test $how = ok || echo '<failure>no</failure>'; echo '</testcase>'; done < results; echo '</testsuite>'; } > report.xml; ! grep -q bad results";

#[test]
fn junit_results_pick_the_closest_near_miss() {
    let world = World::unborn();
    world.write("results", "ok a\nbad b\nok c\n");
    world.write(".frites.toml", "[oracle]\njunit = 'report.xml'\n");
    world.commit("base");
    world.attempts(&[
        "printf 'bad a\\nbad b\\n' > results",
        "printf 'bad a\\nok b\\nok c\\nok d\\nok e\\n' > results",
        "printf 'ok a\\nbad b\\nok c\\nbad new\\n' > results",
    ]);
    let answer = world.frites(["judge", "--explain", "--test", JUNIT]).expect(1);
    let out = answer.out();
    assert_eq!(
        sentence(&out),
        "near-miss: none of 3 passed; c2 came closest: it failed test (exit 1; 1 of 5 tests), with 6 lines in 1 file; of its failing tests 1 passes on the base: t::a"
    );
    assert_eq!(said(&answer.stderr, "1/c1"), "1/c1: test exit 1 (); 2 of 2 tests fail: t::a, t::b");
    for line in [
        "c1: t::a fails; it passes on the base",
        "c1: t::b fails; it fails on the base, too",
        "c3: t::new fails; it did not run on the base",
        "c2 before c3: 1 test failing, not 2",
    ] {
        assert!(answer.stderr.lines().any(|l| l == line), "{line}:\n{}", answer.stderr);
    }
    let verdict = world.frites(["judge", "--replay", "--json"]).expect(1).json();
    assert_eq!(
        verdict["candidates"][0]["failing_tests"],
        json!({"broken": ["t::a"], "before": ["t::b"], "new": []})
    );
    assert_eq!(verdict["candidates"][1]["results"][0]["tests"]["failing"], json!(["t::a"]));
    let events = world.events();
    let judged = events.iter().rfind(|e| e["event"] == "judged").unwrap();
    assert_eq!(judged["failing_tests"]["c1"], json!(["t::a", "t::b"]));
    world.assert_clean();
}

#[test]
fn junit_report_committed_by_the_attempt_is_ignored() {
    let world = World::new();
    world.write(".frites.toml", "[oracle]\njunit = 'report.xml'\n");
    world.commit("configured");
    world.attempts(&["echo '<testsuite><testcase name=\"a\"/></testsuite>' > report.xml", SMALL]);
    let answer = world.frites(["judge", "--test", "false"]).expect(1);
    assert_eq!(
        said(&answer.stderr, "1/c1"),
        "1/c1: test exit 1 (); the tests wrote no 'report.xml'"
    );
    let json = world.frites(["judge", "--replay", "--json"]).expect(1).json();
    assert_eq!(json["candidates"][0]["results"][0]["tests"]["total"], 0);
    assert!(!answer.out().contains("no test report"), "{}", answer.out());
    // Code under test may end the tests with an exit of 0, on the base, too.
    let answer = world.frites(["judge", "--test", "exit 0"]).expect(3);
    assert_eq!(answer.out().matches("no test report").count(), 3, "{}", answer.out());
    let why = "the test command ran no test, so nothing is verified";
    assert!(answer.out().contains(why), "{}", answer.out());
    world.frites(["apply", "1/c1"]).refuses(1, "nothing tests the change");
    world.frites(["apply", "1/c2"]).refuses(1, "nothing tests the change");
    world.assert_clean();
}

#[test]
fn failing_tests_whose_names_differ_in_the_middle_alone_are_shown_apart() {
    let world = World::new();
    // The table breaks names that are wider than it.
    let name = |class: &str| {
        let parameters = "x".repeat(40);
        format!("tests/unit/parsers/test_parser.py::{class}::test_roundtrip[{parameters}]")
    };
    let case = |class: &str| format!("<testcase name=\"{}\"><failure/></testcase>", name(class));
    world.write("report", format!("<testsuite>{}{}</testsuite>", case("One"), case("Two")));
    world.write(".frites.toml", "[oracle]\njunit = 'report.xml'\n");
    world.commit("configured");
    world.attempts(&[SMALL]);
    let answer = world.frites(["judge", "--test", "cp report report.xml; false"]).expect(1);
    let out = answer.out();
    let (table, sentence) = out.split_once("near-miss: ").unwrap();
    let told = ["1/c1", "1/@base"].map(|tree| said(&answer.stderr, tree));
    for text in [table, sentence, &told[0], &told[1]] {
        let text = text.replace("\n     ", "");
        for class in ["One", "Two"] {
            assert!(text.contains(&name(class)), "{class}: {text}");
        }
    }
    world.assert_clean();
}

/// A stand-in for Maven's wrapper, which reports as surefire does. Each line of `results` is a
/// test.
const MVNW: &str = "mkdir -p part/target/surefire-reports; \
    { echo '<testsuite name=\"s\">'; while read how name; do echo \"<testcase classname=\\\"T\\\" name=\\\"$name\\\">\"; \
    test $how = ok || echo '<failure/>'; test $how != skip || echo '<skipped/>'; echo '</testcase>'; done < results; echo '</testsuite>'; \
    } > part/target/surefire-reports/TEST-T.xml; ! grep -q bad results\n";

#[test]
fn reports_that_maven_writes_by_itself_are_read() {
    let world = World::unborn();
    world.write("results", "ok a\nbad b\n");
    world.write("mvnw", MVNW);
    world.write("pom.xml", "<project/>\n");
    world.write("part/pom.xml", "<project/>\n");
    world.commit("base");
    world.git(["config", "frites.oracle.source", "results"]);
    world.attempts(&["printf 'bad a\\nbad c\\n' > results", "printf 'ok a\\nok b\\n' > results"]);
    let answer = world.frites(["judge", "--test", "sh ./mvnw test"]).expect(0);
    let out = answer.out();
    let words: Vec<&str> = out.split_whitespace().collect();
    let told = "2 of 2 tests fail: T::a (passes on the base), T::c (did not run on the base)";
    assert!(words.join(" ").contains(told), "{out}");
    // Nothing follows the list of tests that could be taken for one of them.
    let writes = "echo >> pom.xml; sh ./mvnw test";
    let out = world.frites(["judge", "--test", writes]).expect(0).out();
    let words: Vec<&str> = out.split_whitespace().collect();
    assert!(words.join(" ").contains(&format!("oracle wrote, {told}")), "{out}");
    world.assert_clean();
}

#[test]
fn what_tests_print_makes_nothing_pass_and_controls_no_terminal() {
    let world = World::new();
    let bad = "=== short ===\\nFAILED t.py::\\033[31mx\\033]0;title\\007\\342\\200\\256y - no\\n== 1 failed, 2 passed in 0.10s ==\\n";
    let good = "== 3 passed in 0.10s ==\\n";
    world.attempts(&[
        &format!("printf '{bad}' > said; echo 0 > code"),
        &format!("printf '{good}' > said; echo 1 > code"),
    ]);
    let answer = world.frites(["judge", "--json", "--test", "cat said; exit $(cat code)"]);
    let verdict = answer.expect(3).json();
    assert_eq!(verdict["failed"], json!(["c1", "c2"]));
    assert_eq!(verdict["candidates"][0]["results"][0]["tests"]["failing"], json!(["t.py::xy"]));
    let out = world.frites(["status", "1"]).expect(0).out();
    assert!(out.contains("1 of 3 tests fails: t.py::xy"), "{out}");
    assert!(!out.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{out:?}");
    world.assert_clean();
}
