//! Exit code 125 of an oracle command: it cannot tell, as in `git bisect run`.
use std::fs;

use serde_json::json;

use crate::common::edits::{LARGE, MIDDLE, SMALL};
use crate::common::{World, sentence};

/// A test that fails on the base, and ends with `code` on a tree in which `src/lib.txt` has `word`.
fn ends(cases: &[(&str, i32)]) -> String {
    let arms: String = cases
        .iter()
        .map(|(word, code)| format!("grep -q '{word}' src/lib.txt && exit {code}; "))
        .collect();
    format!("echo ran >> \"$HOME/ran\"; {arms}exit 1")
}

fn runs(world: &World) -> usize {
    fs::read_to_string(world.home().join("ran")).unwrap_or_default().lines().count()
}

#[test]
fn what_a_command_cannot_tell_is_neither_a_pass_nor_a_failure() {
    let world = World::new();
    world.attempts(&["echo fine >> src/lib.txt", "echo unclear >> src/lib.txt", SMALL]);
    let test = ends(&[("unclear", 125), ("fine", 0)]);
    let answer = world.frites(["judge", "--retries", "2", "--test", &test]).expect(0);
    assert_eq!(
        sentence(&answer.out()),
        "tests: only c1 of 3 passed test: 1 line in 1 file; c2 was skipped by test (exit 125: cannot \
         tell), c3 failed test (exit 1)"
    );
    assert!(answer.out().contains("test cannot tell"), "{}", answer.out());
    assert!(answer.stderr.contains("c2: test skipped: cannot tell ("), "{}", answer.stderr);
    // One run for the pass, one for what cannot be told, three for each of the failures.
    assert_eq!(runs(&world), 1 + 1 + 3 + 3);
    let json = world.frites(["judge", "--json", "--test", &test]).expect(0).json();
    assert_eq!(
        (&json["passed"], &json["failed"], &json["skipped"]),
        (&json!(["c1"]), &json!(["c3"]), &json!(["c2"]))
    );
    let of_c2 = &json["candidates"][1];
    assert_eq!(of_c2["results"][0]["outcome"], "cannot-tell");
    assert_eq!((&of_c2["passed"], &of_c2["verified"]), (&false.into(), &false.into()));
    assert_eq!(json["ranking"], json!(["c1", "c2", "c3"]));
    world
        .frites(["apply", "1/c2"])
        .refuses(1, "nothing verified to land: 1/c2 was skipped by test (exit 125: cannot tell)");
    world.frites(["judge", "--candidate", "c2", "--test", &test]).expect(3);
    let json = world.frites(["judge", "--candidate", "c2", "--json", "--test", &test]).expect(3);
    assert_eq!(json.json()["skipped"], json!(["c2"]));
    let event = world.events().pop().unwrap();
    assert_eq!((&event["passed"], &event["skipped"]), (&false.into(), &true.into()));
    world.assert_clean();
}

#[test]
fn run_in_which_nothing_else_decides_is_unverified() {
    let world = World::new();
    world.attempts(&[LARGE, MIDDLE, "echo unclear >> src/lib.txt"]);
    let test = ends(&[("unclear", 125)]);
    let before = world.belongings();
    let answer = world.frites(["judge", "--build", "true", "--test", &test]).expect(3);
    assert_eq!(
        sentence(&answer.out()),
        "undecided: none of 3 passed, and c3 was skipped by test (exit 125: cannot tell), so nothing \
         is verified; c3 changes 1 line in 1 file"
    );
    assert!(
        answer.stderr.contains("git frites apply --allow-unverified 1/c3"),
        "{}",
        answer.stderr
    );
    world.frites(["judge", "-q", "--build", "true", "--test", &test]).expect(3);
    world.frites(["apply"]).refuses(1, "nothing verified to land: none of 3 passed");
    assert_eq!(world.belongings(), before);
    world.frites(["judge", "--replay"]).expect(3);
    // Later commands are not run.
    let json = world.frites(["judge", "--json", "--build", "exit 125", "--test", "true"]).expect(3);
    let json = json.json();
    assert_eq!(json["skipped"], json!(["c1", "c2", "c3"]));
    assert_eq!(json["candidates"][0]["results"][1]["outcome"], "skipped");
    world.assert_clean();
}

#[test]
fn what_cannot_be_told_is_not_cached_and_leaves_a_cached_pass() {
    let world = World::new();
    let unclear = world.home().join("unclear");
    world.attempts(&[SMALL]);
    let test = format!("echo ran >> \"$HOME/ran\"; ! test -e '{}' || exit 125", unclear.display());
    let judge = |options: &[&str], code| {
        let before = runs(&world);
        let all = ["judge", "--candidate", "c1", "--test", &test];
        world.frites(all.iter().chain(options)).expect(code);
        runs(&world) - before
    };
    fs::write(&unclear, "").unwrap();
    assert_eq!([judge(&[], 3), judge(&[], 3)], [1, 1]);
    fs::remove_file(&unclear).unwrap();
    // With a pass, the base is judged, too.
    assert_eq!([judge(&[], 0), judge(&[], 0)], [2, 0]);
    fs::write(&unclear, "").unwrap();
    assert_eq!([judge(&["--no-cache"], 3), judge(&[], 0)], [1, 0]);
    world.assert_clean();
}

#[test]
fn merged_tree_of_which_the_test_cannot_tell_lands_only_as_unverified() {
    let world = World::new();
    let test = "test ! -e moved || exit 125";
    world.judged(test, &[SMALL]);
    world.write("moved", "x\n");
    world.commit("moved");
    let before = world.belongings();
    world.frites(["apply", "-m", "x"]).refuses(
        1,
        "1/c1: merged with HEAD, it was skipped by test (exit 125: cannot tell); nothing was changed",
    );
    assert_eq!(world.belongings(), before);
    world.frites(["apply", "-m", "x", "--allow-unverified"]).expect(0);
    let message = world.git(["log", "-1", "--format=%B"]);
    assert!(message.contains("Frites-Oracle: unverified"), "{message}");
    world.assert_clean();
}

#[test]
fn one_of_which_the_bases_tests_cannot_tell_is_skipped() {
    let world = World::new();
    world.write("check.sh", "grep -q TWO src/lib.txt || exit 1; test -e tool || exit 125\n");
    world.write(".frites.toml", "[oracle]\ntest = 'sh check.sh'\n");
    world.commit("a check that needs a tool");
    world.attempts(&[&format!("{SMALL}; echo true > check.sh"), "echo wrong >> README"]);
    let answer = world.frites(["judge"]).expect(3);
    assert_eq!(
        sentence(&answer.out()),
        "undecided: none of 2 passed, and c1 was skipped by test (exit 125: cannot tell) with the base's \
         check.sh, so nothing is verified; c1 changes 4 lines in 2 files; check c1: it changes check.sh \
         (which can decide what is run)"
    );
    assert!(answer.out().contains("base's tests cannot tell"), "{}", answer.out());
    assert!(!answer.out().contains("own tests"), "{}", answer.out());
    let json = world.frites(["judge", "--replay", "--json"]).expect(3).json();
    assert_eq!(
        [&json["passed"], &json["own_tests"], &json["failed"], &json["skipped"]],
        [&json!([]), &json!([]), &json!(["c2"]), &json!(["c1"])]
    );
    assert_eq!(json["candidates"][0]["base_tests"]["results"][0]["outcome"], "cannot-tell");
    world.frites(["apply", "1/c1"]).refuses(1, "with the base's check.sh, so nothing is verified");
    // Nothing tells the attempt what to repair.
    let retried = world.frites(["retry", "1/c1", "-p", "Repair it", "--", "cat"]).expect(0);
    let why = "1/c1: the new prompt names no failure: no command failed on the candidate";
    assert!(retried.stderr.contains(why), "{}", retried.stderr);
    world.frites(["judge", "--candidate", "c1"]).expect(3);
    world.assert_clean();
}

#[test]
fn tree_that_git_cannot_check_out_fails_nobody_elses_judging() {
    for name in [300, 6000].map(|length| "x".repeat(length)) {
        let world = World::new();
        let entry = if name.len() > 4096 {
            format!("120000,$(printf {name} | git hash-object -w --stdin),link")
        } else {
            format!("100644,$(git hash-object -w --stdin < /dev/null),{name}")
        };
        let last = entry.rsplit(',').next().expect("a name");
        world.attempts(&[
            &format!(
                "git update-index --add --cacheinfo {entry} && git update-index --skip-worktree {last}"
            ),
            "seq 9 > README",
        ]);
        let json = world.frites(["judge", "--json", "--test", "true"]).expect(0).json();
        assert_eq!(json["recommended"], "c2", "{json:#}");
        let why = &json["candidates"][0]["results"][0]["reason"];
        assert!(why.to_string().contains("too long"), "{json:#}");
        world.assert_clean();
    }
}
