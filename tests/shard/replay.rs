//! The decision over a run whose parts others judged: in the repository that opened it, or in any
//! clone.
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::spread::{on_node, open, replay, three_sizes, with_remote};
use crate::common::{World, answer, poll, write};

#[test]
fn hints_of_an_undecided_replay_can_be_typed() {
    let (world, _) = three_sizes("! grep -qx 9 new");
    open(&world);
    world.frites(["shard", "judge", "--remote", "origin", "1/c1"]).expect(0);
    let undecided = replay(&world, &[]).expect(3);
    let judging = "git frites shard judge --remote origin 1 1/1";
    let deciding = "git frites shard collect --remote origin 1";
    let hint = format!("hint: judge what is missing: `{judging}`; then decide: `{deciding}`");
    assert!(undecided.stderr.contains(&hint), "{}", undecided.stderr);
    world.sh(&world.repo, judging).expect(0);
    world.sh(&world.repo, deciding).expect(0);
}

/// The base is a part, and a twin is none: it is judged under another's name.
#[test]
fn hint_of_an_undecided_replay_names_the_parts_of_an_opened_run() {
    let world = World::new();
    world.attempts(&["seq 3 > new", "seq 3 > new", "seq 5 > new"]);
    world.frites(["shard", "open", "--test", "true", "1"]).expect(0);
    let undecided = world.frites(["judge", "--replay", "1"]).expect(3);
    let judging = "git frites shard judge 1 1/1";
    let deciding = "git frites shard collect 1";
    let hint = format!("hint: judge what is missing: `{judging}`; then decide: `{deciding}`");
    assert!(undecided.stderr.contains(&hint), "{}", undecided.stderr);
    world.sh(&world.repo, judging).expect(0);
    world.sh(&world.repo, deciding).expect(0);
}

#[test]
fn replay_waits_for_outcomes_and_stops_early_if_no_other_could_change_it() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    let waiting = |words: &[&str]| {
        let all = ["shard", "collect", "--remote", "origin", "--wait", "60s", "1"];
        let all = all.into_iter().chain(words.iter().copied());
        let mut command = world.command(&world.repo, "git-frites", all);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let [early, all] = [&["--until-pass"][..], &[]].map(waiting);
    on_node(&world, &url, &["judge", "1/c2"]).expect(0);
    on_node(&world, &url, &["judge", "1/@base"]).expect(0);
    let early = answer(&early.wait_with_output().unwrap()).expect(0);
    assert!(early.stderr.contains("need not be judged any more: 1/c1 1/c3\n"), "{}", early.stderr);
    on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
    let all = answer(&all.wait_with_output().unwrap()).expect(0);
    assert!(all.out().contains("3 of 3 passed"), "{}", all.out());
    world.frites(["judge", "--replay", "--until-pass"]).refuses(2, "cannot be used with");
    world.frites(["shard", "collect", "--until-pass", "1"]).refuses(2, "needs --wait");
    let last = world.frites(["shard", "collect", "--remote", "origin", "--wait", "1s", "1"]);
    let stderr = last.expect(0).stderr;
    assert!(!stderr.contains("judged any more") && !stderr.contains("missing"), "{stderr}");
}

/// A clone with all objects of the remote, and without any ref of a run.
fn clone_of(world: &World, url: &str, name: &str) -> PathBuf {
    let clone = world.home().join(name);
    world.git(["clone", "-q", url, clone.to_str().unwrap()]);
    clone
}

#[test]
fn any_clone_decides_as_the_opener_does() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    world.frites(["shard", "judge", "--remote", "origin", "1", "2/2"]).expect(0);
    let clone = clone_of(&world, &url, "clone");
    world.frites_in(&clone, ["shard", "judge", "--remote", "origin", "1", "1/2"]).expect(0);
    let words = ["shard", "collect", "--json", "--remote", "origin", "1"];
    let [here, there] =
        [&world.repo, &clone].map(|dir| world.frites_in(dir, words).expect(0).json());
    assert_eq!(here["recommended"], "c2");
    for key in ["decision", "recommended", "rationale", "ranking", "passed", "failed"] {
        assert_eq!(there[key], here[key], "{key}");
    }
    // Of a state that is new there, the clone takes the capture again.
    world.sh(&world.worktree("1/c3"), "seq 2 > new").expect(0);
    open(&world);
    on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
    world.git_in(&clone, ["fetch", "-q", "origin", "refs/frites/1/*:refs/elsewhere/*"]);
    assert_eq!(world.frites_in(&clone, words).expect(0).json()["recommended"], "c3");
}

/// Each clone numbers its own runs.
#[test]
fn run_of_another_clone_is_not_taken_for_the_one_of_that_name() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    let clone = clone_of(&world, &url, "clone");
    world.frites_in(&clone, ["spawn", "-q", "-n", "3", "--", "true"]).expect(4);
    world.frites_in(&clone, ["clean", "-q", "1"]).expect(0);
    let of_remote = || world.git_in(Path::new(&url), ["for-each-ref"]);
    let before = (of_remote(), world.git_in(&clone, ["for-each-ref"]));
    for words in [
        &["open", "--test", "true", "1"][..],
        &["list", "1"],
        &["judge", "1", "1/1"],
        &["collect", "1"],
        &["run", "1/c1"],
    ] {
        let words = ["shard"].iter().chain(words).chain(&["--remote", "origin"]);
        world.frites_in(&clone, words).refuses(128, "is not the run of that name here");
        assert_eq!((of_remote(), world.git_in(&clone, ["for-each-ref"])), before);
    }
}

#[test]
fn clone_that_lacks_captures_decides_nothing_and_opens_nothing() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
    let clone = clone_of(&world, &url, "clone");
    world.git_in(&clone, ["fetch", "-q", "origin", "refs/frites/1/@*:refs/frites/1/@*"]);
    world.git_in(&clone, ["fetch", "-q", "origin", "refs/frites/1/c1:refs/frites/1/c1"]);
    let of_remote = || world.git_in(Path::new(&url), ["for-each-ref", "refs/frites/"]);
    let before = (of_remote(), world.git_in(&clone, ["for-each-ref"]));
    let words = "captures are not here: 1/c2, 1/c3";
    for command in [
        &["judge", "--replay", "1"][..],
        &["judge", "--trust-config", "1"],
        &["shard", "open", "1"],
    ] {
        world.frites_in(&clone, command).refuses(128, words);
    }
    assert_eq!((of_remote(), world.git_in(&clone, ["for-each-ref"])), before);
    world.git_in(&clone, ["fetch", "-q", "origin", "refs/frites/1/*:refs/frites/1/*"]);
    assert_eq!(world.frites_in(&clone, ["judge", "--replay", "-q", "1"]).expect(0).out(), "1/c2\n");
    // What the remote itself does not have, nobody can fetch.
    let other = clone_of(&world, &url, "other");
    world.git_in(Path::new(&url), ["update-ref", "-d", "refs/frites/1/c2"]);
    world
        .frites_in(&other, ["shard", "collect", "--remote", "origin", "1"])
        .refuses(128, "captures are not here: 1/c2");
}

/// An attempt whose last state was captured while it ran, or before it was interrupted, counts by
/// its end: for another clone the captures are all that there is.
#[test]
fn end_of_an_attempt_that_changes_nothing_more_is_told_by_its_captures() {
    let world = World::new();
    let url = with_remote(&world);
    world.git(["config", "frites.spawn.auto-checkpoint", "30ms"]);
    // It goes on when it was captured.
    let checkpointed = "echo one > new; i=0; until git rev-parse -q --verify refs/frites/1/c1; do \
                        test $i = 1000 && exit 1; i=$((i+1)); sleep 0.01; done";
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", checkpointed]).expect(0);
    world.git(["config", "--unset", "frites.spawn.auto-checkpoint"]);
    let interrupted =
        "echo two > new; test -e \"$HOME/go\" || { touch \"$HOME/begun\"; sleep 600; }";
    let words = ["run", "-n", "1", "--test", "test -e new", "--", "sh", "-c", interrupted];
    let mut run = world.command(&world.repo, "git-frites", words);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    poll(|| world.home().join("begun").exists());
    world.sh(&world.repo, &format!("kill -INT {}", run.id())).expect(0);
    answer(&run.wait_with_output().unwrap()).expect(130);
    write(&world.home().join("go"), "");
    world.frites(["run", "--resume", "2"]).expect(0);
    let json = world.frites(["status", "--json"]).expect(0).json();
    for run in json["runs"].as_array().unwrap() {
        assert_eq!(run["candidates"][0]["state"], "succeeded");
        // It is the same state.
        assert_eq!(run["candidates"][0]["iteration"], 1);
    }
    let all = "refs/frites/*:refs/frites/*";
    world.git(["push", "-q", "origin", all]);
    let clone = clone_of(&world, &url, "clone");
    world.git_in(&clone, ["fetch", "-q", "origin", all]);
    for run in ["1", "2"] {
        let words = ["judge", "-q", "--trust-config", "--test", "test -e new", run];
        assert_eq!(world.frites_in(&clone, words).expect(0).out(), format!("{run}/c1\n"));
    }
    world.assert_clean();
}

#[test]
fn outcome_that_nobody_can_read_is_named_and_not_used() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
    let garbage = "git read-tree --empty; blob=$(echo 'no [toml' | git hash-object -w --stdin)
        git update-index --add --cacheinfo 100644,$blob,outcome.toml
        git update-ref refs/frites/1/@results/$1 $(git commit-tree -m x -p refs/frites/1/@results/$1 $(git write-tree))";
    let spoil = |part: &str| {
        world.sh(Path::new(&url), &format!("set -- {part}; {garbage}")).expect(0);
    };
    spoil("c3");
    let words = "1/c3: its outcome is not used: outcome.toml in refs/frites";
    let pending = on_node(&world, &url, &["list", "1"]).expect(0);
    assert_eq!(pending.out(), "1/c3\n");
    assert!(pending.stderr.contains(words), "{}", pending.stderr);
    let decided = replay(&world, &["-q"]).expect(0);
    assert_eq!(decided.out(), "1/c2\n");
    assert!(decided.stderr.contains(words), "{}", decided.stderr);
    spoil("@base");
    replay(&world, &["-q"]).expect(0);
    // Judged again, it takes the place of what nobody can read.
    on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
    assert_eq!(on_node(&world, &url, &["list", "1"]).expect(0).out(), "");
    assert!(!replay(&world, &["-q"]).expect(0).stderr.contains("not used"));
}

#[test]
fn run_that_the_remote_does_not_take_is_not_opened_here_either() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    let clone = clone_of(&world, &url, "clone");
    let fetch =
        || world.git_in(&clone, ["fetch", "-q", "origin", "refs/frites/1/*:refs/frites/1/*"]);
    fetch();
    world.frites(["shard", "open", "--remote", "origin", "--retries", "1", "1"]).expect(0);
    let of_clone = || world.git_in(&clone, ["for-each-ref", "refs/frites/"]);
    let before = of_clone();
    let words = ["shard", "open", "--remote", "origin", "--test", "test -e README", "1"];
    let refused = world.frites_in(&clone, words);
    refused.refuses(128, "'origin' did not take run 1: refs/frites/1/@terms");
    assert_eq!(of_clone(), before);
    // What the hint says works.
    fetch();
    world.frites_in(&clone, words).expect(0);
    assert_eq!(on_node(&world, &url, &["list", "1"]).expect(0).out().lines().count(), 4);
}
