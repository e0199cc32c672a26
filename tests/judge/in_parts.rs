//! A run that is judged in parts, by several processes or in several clones, and decided by
//! `judge --replay`.
use std::fs;
use std::path::{Path, PathBuf};
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
    let json = world.frites(["judge", "--replay", "--json", "--test", "true"]).expect(0).json();
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
    // That clone has no commands of its own, so none can be the same.
    let refused = world.frites_in(&clone, ["judge", "--replay"]);
    refused.refuses(
        128,
        "1/c1 was judged on other terms than those given here: its test command is `",
    );
    let replay = ["judge", "--json", "--replay", "--test", test];
    let there = world.frites_in(&clone, replay).expect(0).json();
    for key in ["decision", "recommended", "rationale", "ranking", "passed", "failed", "oracle"] {
        assert_eq!(there[key], whole[key], "{key}");
    }
    assert_eq!(there["candidates"][0]["agreement"], whole["candidates"][0]["agreement"]);
    world.frites_in(&clone, ["apply", "--no-switch", "-m", "land"]).expect(0);
    // A part by another oracle does not fit.
    world.frites(["judge", "--candidate", "c2", "--test", "true"]).expect(0);
    world.frites(["judge", "--replay"]).refuses(
        128,
        "1/c2 was judged on other terms than those given here: its test command is `true`",
    );
    world.frites(["judge", "--candidate", "c9"]).refuses(128, "c9");
    world.frites(["clean", "--forget", "--discard", "1"]).expect(0);
    assert_eq!(world.git(["for-each-ref", "refs/frites"]), "");
    world.assert_clean();
}

/// A clone of the world's repository, with all runs.
fn cloned(world: &World) -> PathBuf {
    world.frites(["diff", "1"]).expect(0);
    let clone = world.home().join("clone");
    world.git(["clone", "-q", ".", clone.to_str().unwrap()]);
    fetch(world, &clone);
    clone
}

fn fetch(world: &World, clone: &Path) {
    world.git_in(clone, ["fetch", "-q", "origin", "+refs/frites/*:refs/frites/*"]);
}

/// Brings the outcomes of single candidates from a clone.
fn push_results(world: &World, clone: &Path) {
    world.git_in(
        clone,
        ["push", "-q", "origin", "+refs/frites/1/@results/*:refs/frites/1/@results/*"],
    );
}

/// The side that decides has its own idea of what has to pass: outcomes that agree with each other
/// do not count if they were found in another way.
#[test]
fn outcomes_are_compared_with_the_terms_of_the_side_that_decides() {
    let world = three_sizes("grep -qx 5 new");
    let clone = cloned(&world);
    world.git_in(&clone, ["config", "frites.oracle.test", "true"]);
    for name in ["c1", "c2", "c3"] {
        world.frites_in(&clone, ["judge", "-q", "--candidate", name]).expect(0);
    }
    push_results(&world, &clone);
    let refused = world.frites(["judge", "--replay"]).expect(128);
    for words in [
        "fatal: 1/c1 was judged on other terms than those given here: its test command is `true`, and here `grep -qx 5 new`\n",
        "hint: judge it here: `git frites judge 1 --candidate c1`\n",
        "hint: or decide on its terms: `git frites judge --replay 1 --test 'true'`\n",
    ] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    world.frites(["apply"]).refuses(1, "run 1 was not judged");
    // The command that judged one candidate says how to decide.
    let part = ["judge", "--candidate", "c1", "--test", "echo 'x'", "--protect", "a b"];
    let part = world.frites_in(&clone, part).expect(0);
    let hint = r"`git frites judge 1 --replay --test 'echo '\''x'\''' --protect 'a b'`";
    assert!(part.stderr.contains(hint), "{}", part.stderr);
    // Options are this side's terms, too.
    let json = world.frites(["judge", "--replay", "--json", "--test", "true"]).expect(0).json();
    assert_eq!(
        (&json["recommended"], &json["oracle"][0]["source"]),
        (&"c2".into(), &"--test".into())
    );
    for (option, words) in [
        (["--retries", "2"], "its oracle.retries is 0, and here 2"),
        (["--protect", "tests"], "its oracle.protect is [], and here [\"tests\"]"),
        (["--lint", "true"], "it has no lint command, and here it is `true`"),
    ] {
        let words = format!("run 1 was judged on other terms than those given here: {words}");
        let options = ["judge", "--replay", "--test", "true"].into_iter().chain(option);
        world.frites(options).refuses(128, &words);
    }
    // The verdict that was just recorded here is this side's now; in the clone it is not.
    world.frites(["judge", "--replay"]).expect(0);
    world.git_in(&clone, ["config", "frites.oracle.test", "false"]);
    fetch(&world, &clone);
    world.frites_in(&clone, ["judge", "--replay"]).refuses(
        128,
        "run 1 was judged on other terms than those given here: its test command is `true`",
    );
    world.assert_clean();
}

#[test]
fn outcomes_with_other_seeds_do_not_count() {
    let world = World::new();
    world.write(".gitignore", ".env\n");
    world.write(".frites.toml", "[seed]\ncopy = ['.env']\n[oracle]\ntest = 'grep -q here .env'\n");
    world.commit("seeded");
    world.write(".env", "here\n");
    world.attempts(&["seq 9 > new"]);
    let clone = cloned(&world);
    crate::common::write(&clone.join(".env"), "there, not here\n");
    world.frites_in(&clone, ["judge", "-q", "--candidate", "c1"]).expect(0);
    push_results(&world, &clone);
    world
        .frites(["judge", "--replay"])
        .refuses(128, "1/c1 was judged on other terms than those given here: its seeds differ");
    crate::common::write(&clone.join(".env"), "here\n");
    world.frites_in(&clone, ["judge", "-q", "--candidate", "c1"]).expect(0);
    push_results(&world, &clone);
    world.frites(["judge", "--replay"]).expect(0);
    world.assert_clean();
}

/// A round is counted, so it does not matter that the clocks of two machines differ.
#[test]
fn outcome_of_an_earlier_round_is_named_and_not_used() {
    let world = three_sizes("! test -e \"$HOME/broken\"");
    let clone = cloned(&world);
    let broken = world.home().join("broken");
    crate::common::write(&broken, "");
    let part = ["judge", "--json", "--candidate", "c2"];
    let part = world.frites_in(&clone, part).expect(1).json();
    assert_eq!(part["candidates"][0]["round"], 0);
    fs::remove_file(&broken).unwrap();
    let whole = world.frites(["judge", "--json"]).expect(0).json();
    assert_eq!((&whole["round"], &whole["recommended"]), (&1.into(), &"c2".into()));
    push_results(&world, &clone);
    let answer = world.frites(["judge", "--replay", "--json"]).expect(0);
    let words = "1/c2: the outcome of judging it alone is not used: it belongs to round 0 of \
                 judging, and the run is in round 1";
    assert!(answer.stderr.contains(words), "{}", answer.stderr);
    assert_eq!(answer.json()["recommended"], "c2");
    // One that was found since then counts.
    crate::common::write(&broken, "");
    world.frites(["judge", "-q", "--no-cache", "--candidate", "c2"]).expect(1);
    let answer = world.frites(["judge", "--replay", "--json"]).expect(0);
    assert_eq!((answer.json()["recommended"].clone(), answer.stderr), ("c3".into(), String::new()));
    assert_eq!(world.frites(["judge", "--json"]).expect(0).json()["round"], 2);
    world.assert_clean();
}

#[test]
fn outcome_of_another_state_or_candidate_is_named_and_not_used() {
    let world = three_sizes("test -e new");
    for name in ["c1", "c2", "c3"] {
        world.frites(["judge", "-q", "--candidate", name]).expect(0);
    }
    world.sh(&world.worktree("1/c2"), "seq 4 > new").expect(0);
    let answer = world.frites(["judge", "--replay", "--json"]).expect(3);
    let words = "1/c2: the outcome of judging it alone is not used: it is of another state, \
                 iteration @1; the current one is @2";
    assert!(answer.stderr.contains(words), "{}", answer.stderr);
    assert_eq!(answer.json()["undecided"], json!(["c2"]));
    // An outcome under another candidate's name.
    world.git(["update-ref", "refs/frites/1/@results/c2", "refs/frites/1/@results/c3"]);
    let answer = world.frites(["judge", "--replay", "--json"]).expect(3);
    assert!(
        answer.stderr.contains("1/c2: the outcome of judging it alone is not used: it is of 1/c3"),
        "{}",
        answer.stderr
    );
    world.frites(["judge", "-q", "--candidate", "c2"]).expect(0);
    assert_eq!(world.frites(["judge", "--replay", "-q"]).expect(0).out(), "1/c2\n");
    world.assert_clean();
}

/// The side that decides can show why a candidate failed elsewhere.
#[test]
fn outcome_carries_where_it_was_found_and_the_ends_of_its_logs() {
    let world = three_sizes("cat long 2>/dev/null; echo the last line; exit 3");
    world.sh(&world.worktree("1/c1"), "seq 40000 > long").expect(0);
    let clone = cloned(&world);
    let words = ["judge", "--json", "--candidate", "c1", "--candidate", "c2", "--candidate", "c3"];
    let document = world.frites_in(&clone, words).expect(1).json();
    let machine = &document["candidates"][0]["machine"];
    assert_eq!(machine["git_frites"], env!("CARGO_PKG_VERSION"));
    let version = world.git(["--version"]);
    assert_eq!(format!("git version {}", machine["git"].as_str().unwrap()), version);
    assert!(!machine["host"].as_str().unwrap().is_empty());
    assert!(document["candidates"][0]["seeds"].is_string());
    push_results(&world, &clone);
    let json = world.frites(["judge", "--replay", "--json"]).expect(1).json();
    // Nothing ran, neither now nor for an earlier verdict.
    assert_eq!(json["effort"]["ran"], 0);
    let log = |root: &Path, name: &str| {
        fs::read(root.join(format!(".frites/runs/1/{name}/test.log"))).unwrap()
    };
    assert_eq!(log(&world.repo, "c2"), b"the last line\n");
    let (whole, end) = (log(&clone, "c1"), log(&world.repo, "c1"));
    assert_eq!(end.len(), 64 << 10);
    assert!(whole.len() > end.len() && whole.ends_with(&end));
    // A log that is here already stays whole.
    fetch(&world, &clone);
    world.frites_in(&clone, ["judge", "--replay", "-q"]).expect(1);
    assert_eq!(log(&clone, "c1"), whole);
    world.assert_clean();
}

/// A run whose attempts change 9, 3 and 5 lines, and a configured test.
fn three_sizes(test: &str) -> World {
    let world = World::new();
    world.write(".frites.toml", format!("[oracle]\ntest = '{test}'\n"));
    world.commit("configured");
    world.attempts(&["seq 9 > new", "seq 3 > new", "seq 5 > new"]);
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
    let reason = "so far, 2 of 2 passed; c3 is ahead, with 5 lines in 1 file; c2 has no outcome yet \
                  and could still win";
    assert_eq!(answer.out().lines().last().unwrap(), format!("undecided: {reason}"));
    assert!(
        answer.stderr.contains(
            "hint: judge what is missing: `git frites judge 1 --candidate c2`; then decide: \
             `git frites judge 1 --replay`\n"
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
    world.frites(["add", "--synthesize", "1", "--", "sh", "-c", "seq 4 > new"]).expect(0);
    let json = world.frites(["judge", "--replay", "--json"]).expect(3).json();
    assert_eq!(json["undecided"], json!(["synthesis-1"]));
    world.frites(["judge", "-q", "--candidate", "synthesis-1"]).expect(0);
    let json = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    assert_eq!(json["recommended"], "synthesis-1");
    world.assert_clean();
}

#[test]
fn a_command_about_one_candidate_reads_no_other_worktree() {
    let world = World::new();
    let test = "grep -q TWO src/lib.txt";
    world.judged(test, &[SMALL, LARGE]);
    // Whoever captures the other one says so.
    world.sh(&world.worktree("1/c2"), "mkfifo .gitignore").expect(0);
    let words: [&[&str]; 6] = [
        &["judge", "--candidate", "c1", "--test", test],
        &["judge", "--replay"],
        &["diff", "1/c1"],
        &["capture", "1/c1"],
        &["output", "1/c1", "test"],
        &["apply", "-m", "x", "1/c1"],
    ];
    for words in words {
        let answer = world.frites(words.iter().copied()).expect(0);
        assert!(!answer.stderr.contains("1/c2"), "{words:?}: {}", answer.stderr);
    }
    let all = world.frites(["diff", "1"]).expect(0);
    assert!(all.stderr.contains("1/c2 could not be captured"), "{}", all.stderr);
    world.assert_clean();
}
