//! `explain`: why the verdict is as it is, from what is recorded.
use std::time::{Duration, Instant};

use crate::common::World;

/// A test that writes a line to a file of the user's each time that it runs.
const COUNTED: &str = "echo ran >>\"$HOME/ran\"; test \"$(cat src/lib.txt)\" != broken";

fn judged() -> World {
    crate::common::in_the_open_world();
    let world = World::new();
    world.attempts(&["echo 1 > new", "seq 9 > new", "echo broken > src/lib.txt", "true"]);
    world.frites(["judge", "-q", "--test", COUNTED]).expect(0);
    world
}

#[test]
fn what_decided_comes_first_and_nothing_runs() {
    let world = judged();
    let log = || world.frites(["log"]).expect(0).out();
    let (before, ran) = (log(), std::fs::read_to_string(world.home().join("ran")).unwrap());
    let started = Instant::now();
    let answer = world.frites(["explain"]).expect(0);
    // It took as long as judging does when it judged again.
    assert!(started.elapsed() < Duration::from_secs(5));
    let out = answer.out();
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("judge: 2 of 3 passed; c1 changes the fewest lines"), "{out}");
    assert_eq!(lines[1], "c1 before c2: 1 changed line, not 9");
    for line in [
        &format!("test: `{COUNTED}`, from --test"),
        "c4 changed nothing: it cannot be recommended",
        "c2 before c3: it passed, the other failed test (exit 1)",
        "--rank agreement would recommend c1, too",
    ] {
        assert!(lines.contains(&line), "{line}:\n{out}");
    }
    assert!(
        answer.stderr.starts_with("hint: ") && answer.stderr.contains("git frites apply"),
        "{}",
        answer.stderr
    );
    assert_eq!(std::fs::read_to_string(world.home().join("ran")).unwrap(), ran);
    assert_eq!(log(), before);
    world.assert_clean();
}

#[test]
fn judge_prints_the_same_after_judging() {
    let world = judged();
    let judged = world.frites(["judge", "--explain", "--test", COUNTED]).expect(0);
    let explained = world.frites(["explain"]).expect(0).out();
    for line in explained.lines().filter(|line| !line.is_empty()) {
        let all = format!("{}{}", judged.out(), judged.stderr);
        assert!(all.lines().any(|shown| shown == line), "{line}:\n{all}");
    }
    world.assert_clean();
}

#[test]
fn one_candidate_is_compared_with_the_recommended_one() {
    let world = judged();
    let about = |name: &str| world.frites(["explain", name]).expect(0).out();
    assert!(about("1/c3").contains("\nc1 before c3: it passed, the other failed test (exit 1)\n"));
    assert!(about("c4").ends_with("\nc4 changed nothing: it cannot be recommended\n"));
    assert!(!about("c2").contains("c4"));
    world.frites(["explain", "c9"]).refuses(128, "no run 'c9'");
    world.assert_clean();
}

#[test]
fn run_that_was_not_judged_says_how_to_judge_it() {
    let world = World::new();
    world.frites(["explain"]).refuses(128, "there is no run yet");
    world.attempts(&["echo x > new"]);
    world.frites(["explain"]).refuses(128, "run 1 was never judged");
}

/// A test as `npm test` runs one with a `posttest`: its tests pass, and a command behind them
/// fails.
const FAILS_BEHIND: &str =
    "echo '=== 3 passed in 0.10s ==='; echo 'style: missing semicolon'; exit 2";

#[test]
fn failure_behind_the_tests_is_told_of_base_and_candidates() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.attempts(&["echo 1 > new"]);
    let judged = world.frites(["judge", "--test", FAILS_BEHIND]).expect(1);
    let out = judged.out();
    let reason = crate::common::sentence(&out);
    assert!(reason.contains("it failed test (exit 2; no failure in 3 tests)"), "{reason}");
    assert!(judged.stderr.contains("1/c1: test exit 2 ("), "{}", judged.stderr);
    assert!(judged.stderr.contains("; no failure in 3 tests\n"), "{}", judged.stderr);
    let rows: Vec<&str> =
        out.lines().filter(|row| row.contains("  no failure in 3 tests")).collect();
    assert_eq!(rows.len(), 2, "{out}");
    let explained = world.frites(["explain"]).expect(0).out();
    for name in ["@base", "c1"] {
        let line = format!(
            "{name}: no test fails in the report of test (3 tests), so another part of the command ended \
             with exit 2: `git frites output 1/{name} test`"
        );
        assert!(explained.lines().any(|shown| shown == line), "{line}:\n{explained}");
    }
    let about = world.frites(["explain", "c1"]).expect(0).out();
    assert!(about.contains("another part of the command"), "{about}");
    world.assert_clean();
}

#[test]
fn failure_behind_the_tests_of_the_base_alone_is_told() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.attempts(&[crate::common::edits::SMALL]);
    let test = "echo '=== 3 passed in 0.10s ==='; grep -q TWO src/lib.txt || exit 2";
    world.frites(["judge", "-q", "--test", test]).expect(0);
    let explained = world.frites(["explain"]).expect(0).out();
    assert!(explained.contains("\n@base: no test fails in the report of test"), "{explained}");
}

#[test]
fn many_failing_tests_are_told_in_one_line() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.attempts(&["echo broken > src/lib.txt"]);
    let test = "if grep -q broken src/lib.txt; then \
                  for t in a b c d; do echo \"FAILED t.py::$t - x\"; done; \
                  echo '=== 4 failed, 1 passed in 0.10s ==='; exit 1; \
                fi; echo '=== 5 passed in 0.10s ==='";
    world.frites(["judge", "-q", "--test", test]).expect(1);
    let explained = world.frites(["explain"]).expect(0).out();
    let about: Vec<&str> = explained.lines().filter(|line| line.starts_with("c1: ")).collect();
    let [line] = about[..] else { panic!("{explained}") };
    let start = "c1: 4 tests fail, each of which does not fail on the base: ";
    assert!(line.starts_with(start) && line.ends_with(" and 1 more"), "{line}");
}
