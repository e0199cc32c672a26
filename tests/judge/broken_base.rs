//! A base that nobody can judge: it is told before attempts start or at once, and no candidate is
//! blamed for it.
use crate::common::edits::{LARGE, SMALL};
use crate::common::{World, sentence};

/// A world whose setup fails until somebody makes `$HOME/service`.
fn without_service() -> World {
    let world = World::new();
    world.git(["config", "frites.oracle.setup", "echo no service here; test -e ~/service"]);
    world.git(["config", "frites.oracle.test", "grep -q TWO src/lib.txt"]);
    world
}

#[test]
fn base_and_candidates_that_fail_in_one_command_before_the_test_are_a_broken_base() {
    let world = World::new();
    world.attempts(&[SMALL, LARGE]);
    for stage in ["--build", "--lint"] {
        let command = "echo \"x.c:3: error: no y\"; exit 4";
        let answer = world.frites(["judge", stage, command, "--test", "true"]).expect(3);
        let name = &stage[2..];
        let reason = format!(
            "broken-base: {name} does not pass on the base (exit 4), nor on any of 2 candidates: \
             nothing can be judged before it passes; c1 comes first, with 2 lines in 1 file"
        );
        assert_eq!(sentence(&answer.out()), reason);
        assert!(answer.out().contains("\n~  1/c1"), "{}", answer.out());
        for hint in [
            format!("hint: see why: `git frites output 1/@base {name}`"),
            format!("leave it out: `git frites judge 1 --{name} '' --test 'true'`"),
        ] {
            assert!(answer.stderr.contains(&hint), "{hint}\n{}", answer.stderr);
        }
        let told = format!("run 1: {name} fails on the base (exit 4), so a candidate has to");
        assert!(answer.stderr.contains(&told), "{}", answer.stderr);
        assert!(!answer.stderr.contains("--repair"), "{}", answer.stderr);
    }
    assert_eq!(world.frites(["status", "1", "--json"]).expect(0).json()["version"], 1);
    let lint = "echo 'make: no-linter: No such file or directory'; exit 2";
    let answer = world.frites(["judge", "--lint", lint, "--test", "true"]).expect(3);
    let why = "(exit 2: make: no-linter: No such file or directory)";
    assert!(sentence(&answer.out()).contains(why), "{}", answer.out());
    assert!(
        answer.stderr.contains(&format!("lint fails on the base {why}, so")),
        "{}",
        answer.stderr
    );
    // A candidate that gets further was not kept from it by the base.
    let reads = "grep -q TWO src/lib.txt";
    world.attempts(&[SMALL, "echo x >> README"]);
    world.frites(["judge", "--build", reads, "--test", "false"]).expect(1);
    world.frites(["judge", "--build", reads, "--test", "true"]).expect(0);
    // So it is with a test that fails everywhere: that is what the attempts are for.
    world.frites(["judge", "--test", "false"]).expect(1);
    world.assert_clean();
}

#[test]
fn a_test_that_ends_in_one_way_everywhere_is_said_before_any_candidate() {
    let world = World::new();
    world.attempts(&[SMALL, LARGE]);
    let lead = "near-miss: none of 2 passed, and test fails on the base in the same way";
    let closest = "the base or this machine may lack something; c1 came closest: it failed test";
    for (test, why) in [
        // No list of words knows these lines.
        (
            "echo 'cc: ok'; echo /bin/python3: No module named suite; exit 1",
            "exit 1: /bin/python3: No module named suite",
        ),
        ("suite-that-is-not-there --all || exit 9", "exit 9: "),
        (
            "echo 'tool: no such engine'; echo 'make: *** [test] Error 2'; exit 2",
            "exit 2: tool: no such engine",
        ),
    ] {
        let answer = world.frites(["judge", "--test", test]).expect(1);
        let out = answer.out();
        let said = sentence(&out);
        assert!(said.starts_with(&format!("{lead} ({why}")), "{said}");
        assert!(said.contains(closest), "{said}");
        for hint in [
            "hint: see why: `git frites output 1/@base test`",
            "hint: install what it needs, fix it in a commit and start the run from that commit, or judge with another",
        ] {
            assert!(answer.stderr.contains(hint), "{hint}\n{}", answer.stderr);
        }
    }
    // Their lines differ, a test has passed or nothing is missing: the attempts are at fault.
    for test in [
        "echo 'assertion failed: 1 == 2'; exit 1",
        "echo '--- FAIL: TestGreets (0.00s)'; exit 1",
        "sum=$(cksum src/lib.txt); echo \"error: $sum\"; exit 1",
        "echo 'test a ... ok'; echo 'test b ... FAILED'; echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'; exit 101",
    ] {
        let out = world.frites(["judge", "--test", test]).expect(1).out();
        let said = sentence(&out);
        assert!(said.starts_with("near-miss: none of 2 passed; c1 came closest"), "{said}");
    }
    world.assert_clean();
}

#[test]
fn no_round_repairs_what_the_base_breaks() {
    let world = World::new();
    let run = ["run", "-n", "1", "--rounds", "2", "--build", "false", "--test", "true"];
    let answer = world.frites(run.iter().chain(&["--", "sh", "-c", SMALL])).expect(3);
    let why = "run 1: no round of repair for c1: the base fails, too";
    assert!(answer.stderr.contains(why), "{}", answer.stderr);
    assert!(!world.repo.join(".frites/runs/1/c1/rounds/1").exists());
    world.assert_clean();
}

#[test]
fn attempts_do_not_start_where_the_setup_fails_on_the_base() {
    let world = without_service();
    let run = ["run", "-n", "2", "--", "sh", "-c", "echo x >> ~/started; printf TWO > src/lib.txt"];
    let refused = world
        .frites(run)
        .refuses(128, "run 1: setup does not pass on the base (exit 1), so no attempt was started");
    for words in [
        "warning: run 1: the setup command does not pass on the base: exit 1; ",
        "hint: see why: `git frites output 1/@base setup`",
        "set `oracle.setup` to another command",
        "git frites run --resume 1",
        "\n  | no service here\n",
    ] {
        assert!(refused.stderr.contains(words), "{words}\n{}", refused.stderr);
    }
    assert!(!world.home().join("started").exists());
    world.write(world.home().join("service"), "");
    world.frites(["run", "--resume", "1"]).expect(0);
    world.assert_clean();
}

#[test]
fn base_that_does_not_build_is_told_in_one_line_and_the_attempts_go_on() {
    let world = World::new();
    let run = ["run", "-n", "1", "--build", "grep -q TWO src/lib.txt", "--test", "true"];
    let answer = world.frites(run.iter().chain(&["--", "sh", "-ec", SMALL])).expect(0);
    let told = "run 1: build fails on the base (exit 1), so a candidate has to repair it";
    assert!(answer.stderr.contains(told), "{}", answer.stderr);
    let hint = "hint: if that is not the task, leave build out: `git frites judge 1 --build '' --test 'true'`, or for every run \
                `git config frites.oracle.build ''`\n";
    assert!(answer.stderr.contains(hint), "{}", answer.stderr);
    assert_eq!(answer.warnings().len(), 0, "{}", answer.stderr);
    world.assert_clean();
}

#[test]
fn cache_directory_that_cannot_be_made_is_told_with_its_variable() {
    let mut world = World::new();
    world.attempts(&[SMALL]);
    world.write(world.home().join("file"), "");
    world.set_env("XDG_CACHE_HOME", world.home().join("file"));
    let refused = world.frites(["judge", "--test", "true"]).refuses(128, "could not make '");
    let hint = "hint: set XDG_CACHE_HOME to a directory that you can write to\n";
    assert!(refused.stderr.contains(hint), "{}", refused.stderr);
}
