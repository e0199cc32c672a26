//! A run that is judged in parts, by several processes or in several clones, and decided by
//! `judge --replay`.
use std::fs;
use std::process::Stdio;

use serde_json::json;

use crate::common::edits::{LARGE, SMALL};
use crate::common::{World, answer, poll};

/// The number of times that each of the parallel judges judges. FRITES_TEST_ROUNDS=50 is the long
/// proof.
fn rounds() -> usize {
    std::env::var("FRITES_TEST_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(6)
}

#[test]
fn eight_judges_at_once_never_fail_and_leave_nothing() {
    let world = World::new();
    let scripts: Vec<String> = (1..=8).map(|size| format!("seq {size} > new")).collect();
    world.attempts(&scripts.iter().map(String::as_str).collect::<Vec<_>>());
    // One judge begins while another ends: nobody waits for a round to be over.
    std::thread::scope(|scope| {
        for judge in 0..8 {
            let world = &world;
            scope.spawn(move || {
                for round in 0..rounds() {
                    // A candidate of its own, or the same one as another judge.
                    let name = format!("c{}", if round % 2 == 0 { judge } else { judge / 2 } + 1);
                    let words = ["judge", "-q", "--no-cache", "--test", "true", "--candidate"];
                    let answer = world.frites(words.into_iter().chain([name.as_str()])).expect(0);
                    assert_eq!(
                        (answer.out(), answer.stderr),
                        (format!("1/{name}\n"), String::new())
                    );
                }
            });
        }
    });
    assert_eq!(fs::read_dir(world.repo.join(".frites/watches")).unwrap().count(), 0);
    let json = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    assert_eq!(json["recommended"], "c1");
    world.assert_clean();
}

#[test]
fn judge_can_be_sharded_and_combined_by_replay() {
    let world = World::new();
    world.attempts(&[LARGE, SMALL, "echo x > README"]);
    let test = "test -e \"$HOME/go\" || { touch \"$HOME/begun-$(cat src/lib.txt README | cksum | cut -c1-4)\"; \
        i=0; until test -e \"$HOME/go\" || test $i = 2000; do i=$((i+1)); sleep 0.01; done; }; grep -q TWO src/lib.txt";
    let words = |name| ["judge", "-q", "--test", test, "--candidate", name];
    let judges: Vec<_> = ["c1", "c2", "c3"]
        .into_iter()
        .map(|name| {
            world
                .command(&world.repo, "git-frites", words(name))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    // All of them are at work at once.
    let begun = || {
        fs::read_dir(world.home())
            .unwrap()
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().starts_with("begun"))
            .count()
    };
    poll(|| begun() == 3);
    world.frites(["judge", "--replay"]).refuses(128, "run 1 is still at work in another process");
    crate::common::write(&world.home().join("go"), "");
    let answers: Vec<_> =
        judges.into_iter().map(|j| answer(&j.wait_with_output().unwrap())).collect();
    assert_eq!(
        answers.iter().map(|a| (a.code, a.out())).collect::<Vec<_>>(),
        [(0, "1/c1\n".into()), (0, "1/c2\n".into()), (1, String::new())]
    );
    world.frites(["apply"]).refuses(1, "run 1 was not judged");
    // Carried to another clone, and decided there.
    let clone = world.home().join("clone");
    world.git(["clone", "-q", ".", clone.to_str().unwrap()]);
    world.git_in(&clone, ["fetch", "-q", "origin", "refs/frites/*:refs/frites/*"]);
    let whole = world.frites(["judge", "--json", "--no-cache", "--test", test]).expect(0).json();
    let there = world.frites_in(&clone, ["judge", "--json", "--replay"]).expect(0).json();
    for key in ["decision", "recommended", "rationale", "ranking", "passed", "failed", "oracle"] {
        assert_eq!(there[key], whole[key], "{key}");
    }
    assert_eq!(there["candidates"][0]["agreement"], whole["candidates"][0]["agreement"]);
    world.frites_in(&clone, ["apply", "--no-switch", "-m", "land"]).expect(0);
    // A part by another oracle does not fit.
    world.frites(["judge", "--candidate", "c2", "--test", "true"]).expect(0);
    world
        .frites(["judge", "--replay"])
        .refuses(128, "1/c2 was judged by other commands, or with other settings");
    world.frites(["judge", "--candidate", "c9"]).refuses(128, "c9");
    world.frites(["clean", "--forget", "--discard", "1"]).expect(0);
    assert_eq!(world.git(["for-each-ref", "refs/frites"]), "");
    world.assert_clean();
}

/// A run whose attempts change 9, 3 and 5 lines, and a configured test.
fn three_sizes(test: &str) -> World {
    let world = World::new();
    world.attempts(&["seq 9 > new", "seq 3 > new", "seq 5 > new"]);
    world.git(["config", "frites.oracle.test", test]);
    world
}

#[test]
fn missing_outcome_that_could_win_leaves_a_replay_undecided() {
    let world = three_sizes("test -e new");
    let judge = |names: &[&str]| {
        let options = names.iter().flat_map(|name| ["--candidate", *name]);
        world.frites(["judge", "-q"].into_iter().chain(options)).expect(0);
    };
    judge(&["c1", "c3"]);
    let answer = world.frites(["judge", "--replay"]).expect(3);
    let reason = "2 of 2 that ran passed; c3 is ahead, with 5 lines in 1 file; c2 has no outcome yet \
                  and could still win";
    assert_eq!(answer.out().lines().last().unwrap(), format!("undecided: {reason}"));
    assert!(
        answer.stderr.contains(
            "hint: judge what is missing: `git frites judge 1 --candidate c2`; then decide: \
             `git frites judge --replay 1`\n"
        ),
        "{}",
        answer.stderr
    );
    let json = world.frites(["judge", "--replay", "--json"]).expect(3).json();
    assert_eq!((&json["decision"], &json["verified"]), (&"undecided".into(), &false.into()));
    assert_eq!((&json["undecided"], &json["not_run"]), (&json["not_run"], &json!(["c2"])));
    assert_eq!(world.frites(["judge", "--replay", "-q"]).expect(3).out(), "");
    world.frites(["apply"]).refuses(1, "c2 has no outcome yet");
    judge(&["c2"]);
    assert_eq!(world.frites(["judge", "--replay", "-q"]).expect(0).out(), "1/c2\n");
    world.frites(["apply"]).expect(0);
}

#[test]
fn missing_outcomes_that_cannot_win_are_not_needed() {
    let world = three_sizes("test -e new");
    world.frites(["judge", "-q", "--candidate", "c2"]).expect(0);
    let out = world.frites(["judge", "--replay"]).expect(0).out();
    assert_eq!(
        out.lines().last().unwrap(),
        "judge: c2 passed test: 3 lines in 1 file; 2 were not run, because none of them could be \
         recommended instead"
    );
    world.assert_clean();
    // As long as nothing passed, anything can win.
    let world = three_sizes("! grep -qx 3 new || grep -qx 9 new");
    world.frites(["judge", "-q", "--candidate", "c2"]).expect(1);
    let json = world.frites(["judge", "--replay", "--json"]).expect(3).json();
    assert_eq!(json["undecided"], json!(["c3", "c1"]));
    world.assert_clean();
}

/// A candidate that was made since the run was judged has no outcome either.
#[test]
fn candidate_of_a_judged_run_without_an_outcome_counts_as_missing() {
    let world = three_sizes("test -e new");
    world.frites(["judge", "-q"]).expect(0);
    world
        .frites(["spawn", "--synthesize", "--run", "1", "--", "sh", "-c", "seq 4 > new"])
        .expect(0);
    let json = world.frites(["judge", "--replay", "--json"]).expect(3).json();
    assert_eq!(json["undecided"], json!(["synthesis-1"]));
    world.frites(["judge", "-q", "--candidate", "synthesis-1"]).expect(0);
    let json = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    assert_eq!(json["recommended"], "synthesis-1");
    world.assert_clean();
}
