//! git's own housekeeping beside our commands: `gc`, `pack-refs`, `repack` and `prune` run by
//! themselves, and by hand (SCOREBOARD row 31).
use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::World;

/// The number of judgings. FRITES_TEST_ROUNDS=200 gives the scoreboard's number.
fn rounds() -> u32 {
    std::env::var("FRITES_TEST_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3)
}

/// Ends the loops, also when a test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn judging_beside_housekeeping_is_neither_fatal_nor_unverified() {
    const LOOPS: [&str; 4] = ["gc -q", "pack-refs --all", "repack -qad", "gc -q --prune=now"];
    let world = World::new();
    let run = world.spawn(["-n", "3"]);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for arguments in LOOPS {
            let (world, over) = (&world, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let _ = world.run(&world.repo, "git", arguments.split(' '));
                }
            });
        }
        let _stop = Stop(&over);
        for round in 0..rounds() {
            for candidate in 1..=3 {
                let text = format!("{candidate} in round {round}\n");
                fs::write(world.worktree(&format!("{run}/c{candidate}/README")), text).unwrap();
            }
            let judge = ["judge", "--no-cache", "--test", "test -s README", &run];
            // A protected path gives trees that no capture holds.
            let protect = ["--protect", "src"].iter().filter(|_| round % 2 == 1);
            if round % 2 == 1 {
                fs::write(world.worktree(&format!("{run}/c1/src/lib.txt")), format!("{round}\n"))
                    .unwrap();
            }
            let judged = world.frites(judge.iter().chain(protect)).expect(0);
            assert!(!judged.stderr.contains("warning: "), "round {round}:\n{}", judged.stderr);
            world.frites(["status"]).expect(0);
        }
    });
    for candidate in 1..=3 {
        let name = format!("refs/frites/{run}/c{candidate}");
        world.git(["-c", "core.commitGraph=false", "rev-list", "--objects", "--quiet", &name]);
        let last = format!("{candidate} in round {}", rounds() - 1);
        assert_eq!(world.git(["show", &format!("{name}:README")]), last);
    }
    assert_eq!(world.git(["for-each-ref", "refs/frites-judging"]), "");
    // One of the collections wrote a commit-graph with commits that another has pruned.
    world.git(["commit-graph", "write", "--reachable"]);
    world.assert_clean();
}

#[test]
fn refs_that_come_go_and_are_packed_hide_no_run() {
    let world = World::new();
    for _ in 0..3 {
        world.attempts(&["echo x > x"]);
    }
    world.frites(["diff", "1"]).expect(0);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (world, over) = (&world, &over);
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let _ = world.run(&world.repo, "git", ["pack-refs", "--all"]);
            }
        });
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                // A record that is written again is loose until it is packed.
                let script = "for run in 1 2 3; do name=refs/frites/$run/@record
                    git update-ref -m 'git-frites: record' $name $(git rev-parse $name) || :
                    git update-ref refs/heads/other HEAD || :
                    git update-ref -d refs/heads/other || :; done";
                let _ = world.sh(&world.repo, script);
            }
        });
        let _stop = Stop(over);
        for _ in 0..rounds() * 8 {
            let status = world.frites(["status", "--json"]).expect(0).json();
            assert_eq!(status["runs"].as_array().unwrap().len(), 3);
        }
    });
}

#[test]
fn temporary_files_of_gc_leave_a_verdict_verified() {
    crate::common::in_the_open_world();
    let world = World::new();
    let run = world.attempts(&["echo x > x", "echo y > y; echo y >> y"]);
    let common = world.repo.join(".git");
    let test =
        format!("cd '{}' && echo > info/refs_aB3dE6 && echo > info/exclude.lock", common.display());
    let judged = world.frites(["judge", &run, "--test", &test]).expect(0);
    assert!(!judged.stderr.contains("warning: "), "{}", judged.stderr);
    // Another file there is told of as before.
    let test = format!("echo >> '{}/info/attributes'", common.display());
    let judged = world.frites(["judge", &run, "--test", &test]).expect(3);
    assert!(judged.stderr.contains("info/attributes"), "{}", judged.stderr);
}

#[test]
fn judged_commits_survive_a_collection_by_the_test_command() {
    let world = World::new();
    let run = world.attempts(&[
        "echo one > README; echo one > src/lib.txt",
        "echo two > README; echo two >> README; echo two > src/lib.txt",
    ]);
    let common = world.repo.join(".git");
    let test = format!(
        "unset $(git rev-parse --local-env-vars); cd '{}' && git repack -qad && git gc -q --prune=now",
        common.display()
    );
    let judge = ["judge", &run, "-j", "1", "--no-cache", "--protect", "src", "--test", &test];
    world.frites(judge).expect(0);
    assert_eq!(world.git(["for-each-ref", "refs/frites-judging"]), "");
    world.frites(["apply", "-m", "Land", &run]).expect(0);
    assert_eq!(world.git(["show", "HEAD:README"]), "one");
}

#[test]
fn notes_of_landings_beside_a_collection_are_not_fatal_and_lose_no_object() {
    let world = World::new();
    world.judged("true", &["echo one > README"]);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = world.run(&world.repo, "git", ["gc", "-q", "--prune=now"]);
            }
        });
        let _stop = Stop(&over);
        for _ in 0..rounds() {
            // Staged: git itself can lose a commit that it makes meanwhile (`git help gc`, NOTES).
            for _ in 0..4 {
                world.frites(["apply"]).expect(0);
                world.frites(["apply", "--undo"]).expect(0);
            }
            world.frites(["status"]).expect(0);
        }
    });
    for name in world.git(["for-each-ref", "--format=%(refname)"]).lines() {
        world.git(["-c", "core.commitGraph=false", "rev-list", "--objects", "--quiet", name]);
    }
}

#[test]
fn state_whose_commit_is_gone_heals() {
    let world = World::new();
    world.judged("true", &["echo one > README"]);
    let state = || world.git(["for-each-ref", "--format=%(objectname)", "refs/frites/1/@state"]);
    let lose = || {
        let state = state();
        let (directory, file) = state.split_at(2);
        let objects = world.repo.join(".git/objects");
        fs::remove_file(objects.join(directory).join(file)).unwrap();
    };
    // Read: nobody knows any more that it was discarded.
    world.frites(["clean", "1/c1"]).expect(0);
    lose();
    fs::remove_file(world.repo.join(".frites/runs/1/c1/candidate.toml")).unwrap();
    world.frites(["status"]).expect(0);
    assert_eq!(state(), "");
    world.assert_clean();
    // Written: the new one stands alone.
    world.frites(["apply"]).expect(0);
    lose();
    world.frites(["apply", "--undo"]).expect(0);
    assert_eq!(
        world.git(["log", "--format=%s", "refs/frites/1/@state/c1"]),
        "frites: 1/c1 is undone\nbase"
    );
    world.assert_clean();
}

#[test]
fn refs_of_a_killed_judge_are_removed() {
    let world = World::new();
    let run = world.attempts(&["echo one > README; echo one > src/lib.txt"]);
    let started = world.home().join("started");
    let test = format!("touch '{}'; sleep 100", started.display());
    let judge = ["frites", "judge", &run, "--protect", "src", "--test", &test];
    let mut command = world.command(&world.repo, "git-frites", &judge[1..]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !started.exists() {
        std::thread::yield_now();
    }
    let refs = || world.git(["for-each-ref", "--format=%(refname)", "refs/frites-judging"]);
    assert_eq!(refs(), format!("refs/frites-judging/{run}/{}", child.id()));
    world.frites(["status"]).expect(0);
    assert_ne!(refs(), "", "the judge is still at work");
    child.kill().unwrap();
    child.wait().unwrap();
    world.frites(["status"]).expect(0);
    assert_eq!(refs(), "");
    world.assert_clean();
}
