//! The base: it is always judged, once, and the verdict says what it does; a command that cannot
//! start on it is told at once.
use std::fs;

use crate::common::World;
use crate::common::edits::{LARGE, SMALL};

/// The test of these worlds passes where an attempt wrote `TWO`.
const TEST: &str = "grep -q TWO src/lib.txt";

/// The same, and each time it writes the second line of the file to `$HOME/runs`.
const NOTED: &str = "sed -n 2p src/lib.txt >> \"$HOME/runs\"; grep -q TWO src/lib.txt";

fn runs(world: &World) -> Vec<String> {
    let text = fs::read_to_string(world.home().join("runs")).unwrap_or_default();
    let _ = fs::remove_file(world.home().join("runs"));
    text.lines().map(str::to_owned).collect()
}

/// Asserts the number of commands that the recorded verdict of run 1 took.
#[track_caller]
fn assert_effort(world: &World, candidates: u64, base: u64) {
    let record = world.repo.join(".frites/runs/1/verdict.toml");
    let verdict: toml::Table = fs::read_to_string(record).unwrap().parse().unwrap();
    let number = |key: &str| verdict["effort"][key].as_integer().unwrap() as u64;
    assert_eq!((number("ran"), number("ran-base")), (candidates, base));
}

#[test]
fn the_base_is_judged_first_and_the_verdict_says_how_it_ends() {
    let world = World::new();
    world.attempts(&[SMALL, LARGE]);
    for options in [&["-j", "1"][..], &["-j", "1", "--until-pass"], &["-j", "3"]] {
        let judge = ["judge", "--no-cache", "--test", NOTED];
        let answer = world.frites(judge.iter().chain(options)).expect(0);
        let row =
            answer.out().lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(row.starts_with("1/@base test exit 1 "), "{}", answer.out());
        assert!(answer.stderr.contains("1/@base: test exit 1 ("), "{}", answer.stderr);
        let ran = runs(&world);
        assert_eq!(ran.iter().filter(|line| *line == "two").count(), 1, "{ran:?}");
        assert!(options.contains(&"3") || ran[0] == "two", "{ran:?}");
        let candidates = if options.contains(&"--until-pass") { 1 } else { 2 };
        assert_effort(&world, candidates, 1);
        let json = world.frites(["judge", "--replay", "--json"]).expect(0).json();
        assert_eq!(json["baseline"]["results"][0]["outcome"], "failed");
    }
    world.assert_clean();
}

#[test]
fn a_base_that_passes_makes_the_verdict_say_that_a_pass_proves_less() {
    let world = World::new();
    world.attempts(&[SMALL]);
    let out = world.frites(["judge", "--test", "true"]).expect(0).out();
    assert!(out.lines().nth(1).unwrap().contains("1/@base    passed"), "{out}");
    assert!(
        out.contains("the base passes, too: this alone shows only that nothing broke"),
        "{out}"
    );
    // Its outcome is cached, as a candidate's is.
    let again = world.frites(["judge", "--json", "--test", "true"]).expect(0).json();
    assert_eq!(
        (&again["effort"]["ran_base"], &again["baseline"]["results"][0]["cached"]),
        (&0.into(), &true.into())
    );
    world.assert_clean();
}

#[test]
fn judging_in_place_leaves_the_base_out() {
    let mut world = World::new();
    world.set_env("FRITES_SANDBOX_MODE", "auto");
    world.attempts(&[SMALL]);
    let json = world.frites(["judge", "--in-place", "--json", "--test", TEST]).expect(3).json();
    assert!(json["baseline"].is_null(), "{json}");
    world.assert_clean();
}

/// An attempt that ends only when the base was judged, and fails if it never is.
const AFTER_THE_BASE: &str = "i=0; until test -s \"$HOME/runs\" || test $i = 3000; do i=$((i+1)); sleep 0.01; done; \
     test -s \"$HOME/runs\"; printf 'one\\nTWO\\nthree\\n' > src/lib.txt";

#[test]
fn run_judges_the_base_once_while_the_attempts_work() {
    let world = World::new();
    let answer = world
        .frites(["run", "-n", "1", "--test", NOTED, "--", "sh", "-ec", AFTER_THE_BASE])
        .expect(0);
    assert_eq!(runs(&world), ["two", "TWO"]);
    let at = |words: &str| {
        answer.stderr.find(words).unwrap_or_else(|| panic!("{words}: {}", answer.stderr))
    };
    assert!(at("1/@base: test exit 1 (") < at("1/c1: test passed ("), "{}", answer.stderr);
    assert!(answer.out().contains("1/@base    test exit 1"), "{}", answer.out());
    assert_effort(&world, 1, 1);
    assert_eq!(answer.warnings().len(), 0, "{}", answer.stderr);
    world.assert_clean();
}

#[test]
fn command_that_cannot_start_on_the_base_is_told_while_attempts_still_run() {
    let world = World::new();
    let test = format!("echo looking; echo x >> \"$HOME/runs\"; {TEST} || no-such-program-here");
    let answer = world
        .frites(["run", "-n", "1", "--test", &test, "--", "sh", "-ec", AFTER_THE_BASE])
        .expect(0);
    let stderr = &answer.stderr;
    let at = |words: &str| stderr.find(words).unwrap_or_else(|| panic!("{words}: {stderr}"));
    let told = at(
        "warning: run 1: the test command cannot start on the base: exit 127: command not found",
    );
    assert!(at("\n  | looking\n") < at("no-such-program-here: not found"), "{stderr}");
    assert!(stderr.contains("where it ends like this, no candidate can be judged"), "{stderr}");
    assert!(told < at("1/c1: test passed ("), "{stderr}");
    world.assert_clean();
}

#[test]
fn command_that_starts_nowhere_is_fatal_and_decides_nothing() {
    let world = World::new();
    world.attempts(&[SMALL, LARGE]);
    for (test, code) in [("if true; then no-such-program-here; fi", 127), ("./README", 126)] {
        for jobs in ["1", "2"] {
            world.frites(["judge", "-j", jobs, "--build", "true", "--test", test]).refuses(
                128,
                &format!("the test command `{test}` does not work here: it could start neither on the base nor on any candidate (exit {code}"),
            );
        }
    }
    assert!(!world.repo.join(".frites/runs/1/verdict.toml").exists());
    world.frites(["judge", "--replay"]).refuses(128, "was never judged");
    // The work is there: another command judges it.
    world.frites(["judge", "--test", TEST]).expect(0);
    // A command of the base that starts, or a candidate on which it starts, makes it an outcome.
    world.attempts(&["echo no-such-program-here >> README", "echo also-missing >> README"]);
    let out = world.frites(["judge", "--test", "sh README"]).refuses(128, "does not work here");
    assert!(
        out.stderr.contains("hint: its output: `git frites output 2/@base test`"),
        "{}",
        out.stderr
    );
    world.attempts(&["echo 'exit 1' > README", LARGE]);
    world.frites(["judge", "--test", "sh README"]).expect(1);
    world.write("README", "exit 3\n");
    world.commit("a test that starts");
    world.attempts(&["echo no-such-program-here > README"]);
    world.frites(["judge", "--test", "sh README"]).expect(1);
    world.assert_clean();
}

#[test]
fn run_whose_test_starts_nowhere_is_fatal_and_keeps_the_work() {
    let world = World::new();
    let run = [
        "run",
        "-n",
        "2",
        "--test",
        "if true; then no-such-program-here; fi",
        "--",
        "sh",
        "-ec",
        SMALL,
    ];
    world.frites(run).refuses(128, "does not work here");
    world.frites(["judge", "-q", "--test", TEST]).expect(0);
    world.assert_clean();
}

#[test]
fn change_by_an_attempt_is_reported_once_and_the_base_is_judged_again() {
    crate::common::in_the_open_world();
    let world = World::new();
    let attempt = format!("{AFTER_THE_BASE}; git config core.abbrev 9");
    let answer =
        world.frites(["run", "-n", "1", "--test", NOTED, "--", "sh", "-ec", &attempt]).expect(0);
    assert_eq!(
        answer.warnings().into_iter().collect::<Vec<_>>(),
        ["run 1's commands ran: config 'core.abbrev' was set to '9'"],
        "{}",
        answer.stderr
    );
    assert_eq!(answer.stderr.matches("'core.abbrev' was set").count(), 1, "{}", answer.stderr);
    assert_eq!(runs(&world), ["two", "two", "TWO"]);
    world.assert_clean();
}

#[test]
fn interrupted_run_judges_the_base_again_when_it_is_resumed() {
    let world = World::new();
    world.write("dead", "");
    world.commit("dead");
    let kill = "test -e \"$HOME/again\" && printf 'one\\nTWO\\nthree\\n' > src/lib.txt && exit; touch \"$HOME/again\"; kill -INT $(cut -d' ' -f4 /proc/$PPID/stat); sleep 60";
    let run = ["run", "-n", "1", "--test", NOTED, "--", "sh", "-c", kill];
    assert_ne!(world.frites(run).code, 0);
    runs(&world);
    world.frites(["run", "--resume", "1"]).expect(0);
    assert_eq!(runs(&world), ["two", "TWO"]);
    world.assert_clean();
}

#[test]
fn near_miss_whose_command_does_not_start_says_what_to_install() {
    let command = "grep -q hello README || sh README";
    for (key, other) in [
        ("oracle.test", "judge with another command: `git frites judge 1 --test CMD`"),
        ("oracle.build", "leave it out: `git frites judge 1 --build ''`"),
        ("oracle.setup", "set `oracle.setup` to another command"),
    ] {
        let world = World::new();
        world.attempts(&["echo no-such-program-here > README"]);
        world.write("README", "true\n");
        world.git(["config", "frites.oracle.test", "true"]);
        world.git(["config", &format!("frites.{key}"), command]);
        let told = world.frites(["judge"]).expect(1).stderr;
        let stage = &key["oracle.".len()..];
        let hint = format!("hint: the {stage} command did not start on this candidate (exit 127");
        assert!(told.contains(&hint) && told.contains(&format!("or {other}\n")), "{told}");
    }
}
