//! Checkpoints: every capture is an iteration that can be listed, compared and landed.
use serde_json::{Value, json};

use crate::common::World;
use crate::common::transcript::{assert_shown, shown};

/// `1/c1`, captured three times.
fn captured() -> World {
    let world = World::new();
    world.spawn(["-n", "1"]);
    for script in [
        "echo new > new; echo more >> README",
        "echo again >> new; rm src/lib.txt",
        "echo last > last; rm new",
    ] {
        world.sh(&world.worktree("1/c1"), script).expect(0);
        world.frites(["diff", "1/c1"]).expect(0);
    }
    world
}

#[test]
fn diff_names_the_iteration_it_captured() {
    let world = World::new();
    world.attempts(&["echo one > one"]);
    let first = world.frites(["diff", "1/c1", "--name-only"]).expect(0);
    assert_eq!((first.out().as_str(), first.stderr.as_str()), ("one\n", "captured 1/c1@1\n"));
    assert_eq!(
        world.frites(["diff", "1/c1", "--name-only"]).expect(0).stderr,
        "",
        "nothing new, nothing to say"
    );
    world.sh(&world.worktree("1/c1"), "echo two > two").expect(0);
    assert_eq!(world.frites(["diff", "1"]).expect(0).stderr, "captured 1/c1@2\n");
    world.assert_clean();
}

#[test]
fn status_lists_the_iterations_of_a_candidate() {
    let world = captured();
    assert_shown("status_with_iterations", shown(&world, &["status", "1/c1"]));
    assert!(
        !world.frites(["status", "1"]).expect(0).out().contains("1/c1@"),
        "a run is told of in short"
    );
    let json = world.frites(["status", "1/c1", "--json"]).expect(0).json();
    let all = json["runs"][0]["candidates"][0]["iterations"].as_array().unwrap().clone();
    assert_eq!(all.len(), 3);
    let paths = |at: usize, key: &str| -> Vec<String> {
        all[at][key]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        (paths(0, "created"), paths(0, "modified")),
        (vec!["new".into()], vec!["README".into()])
    );
    assert_eq!(
        (paths(1, "modified"), paths(1, "deleted")),
        (vec!["new".into()], vec!["src/lib.txt".into()])
    );
    assert_eq!(
        (paths(2, "created"), paths(2, "deleted")),
        (vec!["last".into()], vec!["new".into()])
    );
    assert_eq!(all[2]["commit"], world.git(["rev-parse", "refs/frites/1/c1"]));
    assert_eq!(all[1]["tree"], world.tree("refs/frites/1/c1~1"));
    world.assert_clean();
}

#[test]
fn iterations_are_compared_as_a_range() {
    let world = captured();
    let show = |address: &str| world.frites(["diff", address, "--name-status"]).expect(0).out();
    assert_eq!(show("1/c1@1..@3"), "A\tlast\nD\tnew\nD\tsrc/lib.txt\n");
    assert_eq!(show("1/c1@3..@1"), "D\tlast\nA\tnew\nA\tsrc/lib.txt\n");
    assert_eq!(show("1/c1@2..1/c1@3"), "A\tlast\nD\tnew\n");
    assert_eq!(show("c1@1..@2"), "M\tnew\nD\tsrc/lib.txt\n");
    world.sh(&world.worktree("1/c1"), "echo now > now").expect(0);
    assert_eq!(show("1/c1@3.."), "A\tnow\n", "how it is now");
    let json = world.frites(["diff", "--json", "1/c1@1..@2"]).expect(0).json();
    assert_eq!(json["diffs"][0]["address"], "1/c1@1..1/c1@2");
    world.frites(["diff", "1/c1@1..@9"]).refuses(128, "1/c1 has no iteration 9");
    world.frites(["diff", "1/c1@1..@x"]).refuses(2, "does not end in an iteration");
    world.frites(["diff", "1/c1@1..@2", "c1"]).refuses(2, "is a range already");
    world.frites(["diff", "1..@2"]).refuses(2, "'1' is a run");
    world.assert_clean();
}

#[test]
fn status_shows_a_runs_disk_usage() {
    let world = World::new();
    world.attempts(&["head -c 300000 /dev/urandom > big"]);
    world.frites(["diff", "1"]).expect(0);
    let show = |world: &World, args: &[&str]| {
        let words = ["status", "1", "--json"].iter().chain(args);
        world.frites(words).expect(0).json()["runs"][0]["disk"].clone()
    };
    let disk = |world: &World| show(world, &["--disk"]);
    let before = show(&world, &[]);
    assert!((300_000..400_000).contains(&before["worktrees"].as_u64().unwrap()), "{before:#}");
    assert_eq!((&before["objects"], &before["measured"]), (&json!(0), &Value::Null));
    let full = disk(&world);
    assert_eq!(show(&world, &[]), full, "the last measurement is shown");
    for key in ["worktrees", "objects"] {
        assert!((300_000..400_000).contains(&full[key].as_u64().unwrap()), "{full:#}");
    }
    assert!(
        full["records"].as_u64().unwrap() > 0
            && world.frites(["status"]).expect(0).out().contains(" ago\n")
            && full["measured"].is_string()
    );
    // Objects that another ref holds, too, are not the run's own.
    world.git(["tag", "held", "refs/frites/1/c1"]);
    assert!(disk(&world)["objects"].as_u64().unwrap() < 10_000);
    world.frites(["clean", "-q", "1"]).expect(0);
    assert_eq!(disk(&world)["worktrees"], 0);
    world.assert_clean();
}

#[test]
fn running_candidates_are_captured_at_intervals_unnoticed() {
    let world = World::new();
    // It goes on when its first file is captured, and again when the second is, or after ten
    // seconds.
    let script = "saved() { i=0; until git cat-file -e refs/frites/1/c1:$1 2>/dev/null || test $i = 1000; do i=$((i+1)); sleep 0.01; done; }; \
        echo one > one; git add one; saved one; git status --porcelain > \"$HOME/status\"; echo two > two; echo x >> one; saved two; rm one; git commit -qm x";
    let args =
        ["spawn", "-n", "1", "--json", "--auto-checkpoint", "30ms", "--", "sh", "-c", script];
    let answer = world.frites(args).expect(0);
    let checkpoints = answer.json()["candidates"][0]["checkpoints"].as_array().unwrap().clone();
    assert!(checkpoints.len() >= 3, "{checkpoints:#?}");
    let paths = |step: &Value, key: &str| -> Vec<String> {
        step[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(paths(&checkpoints[0], "created"), ["one"]);
    // A later one may be of the same tree: its commit has the command's own as a parent.
    assert!(checkpoints.iter().any(|step| paths(step, "deleted") == ["one"]), "{checkpoints:#?}");
    assert!(checkpoints.iter().any(|step| paths(step, "created") == ["two"]));
    assert!(answer.stderr.contains("1/c1@1: checkpoint, 1 line in 1 file"), "{}", answer.stderr);
    // The command's own index was left alone.
    assert_eq!(std::fs::read_to_string(world.home().join("status")).unwrap(), "A  one\n");
    assert_eq!(world.git(["ls-tree", "--name-only", "refs/frites/1/c1"]), "README\nsrc\ntwo");
    assert_eq!(world.frites(["diff", "1/c1@1", "--name-only"]).expect(0).out(), "one\n");
    world.frites(["apply", "-q", "--allow-unverified", "1/c1@1"]).expect(0);
    assert_eq!(world.git(["diff", "--cached", "--name-only"]), "one");
    world.assert_clean();
}

#[test]
fn capture_says_which_iteration_holds_each_candidate() {
    let world = World::new();
    world.attempts(&["echo one > one", "true"]);
    let answer = world.frites(["capture"]).expect(0);
    assert_eq!(answer.out(), "1/c1@1\tcaptured: 1 line in 1 file\n1/c2\tnothing to capture\n");
    assert_eq!(answer.stderr, "");
    let answer = world.frites(["checkpoint", "c1"]).expect(0);
    assert_eq!(answer.out(), "1/c1@1\tunchanged: 1 line in 1 file\n");
    world.sh(&world.worktree("1/c1"), "echo two > two").expect(0);
    assert_eq!(world.frites(["capture", "-q", "1/c1"]).expect(0).out(), "1/c1@2\n");
    let help = world.frites(["-h"]).expect(0).out();
    assert!(help.contains("  capture ") && !help.contains("checkpoint"), "{help}");
    // What cannot be captured is said, and the others are captured.
    world.git(["config", "filter.broken.clean", "false"]);
    world.git(["config", "filter.broken.required", "true"]);
    let script = "echo 'README filter=broken' > .gitattributes; echo x > README";
    world.sh(&world.worktree("1/c1"), script).expect(0);
    world.sh(&world.worktree("1/c2"), "echo x > x").expect(0);
    let answer = world.frites(["capture"]).expect(1);
    assert_eq!(
        answer.out(),
        "1/c1@2\tnot captured; before that: 2 lines in 2 files\n1/c2@1\tcaptured: 1 line in 1 file\n"
    );
    assert!(answer.stderr.contains("1/c1 could not be captured"), "{}", answer.stderr);
    world.assert_clean();
}

#[test]
fn message_of_a_checkpoint_is_kept_and_changes_no_verdict() {
    let world = World::new();
    world.attempts(&["echo one > one; git add one; git commit -qm own", "true"]);
    world.frites(["judge", "--test", "test -e one"]).expect(0);
    let worktree = world.worktree("1/c1");
    let before = world.git_in(&worktree, ["log", "--format=%H %s", "-2"]);
    // In the worktree, the candidate need not be named. The state was captured before.
    let said = world.frites_in(&worktree, ["capture", "-m", "It works", "-m", "a: b\nc"]).expect(0);
    assert_eq!(said.out(), "1/c1@2\tcaptured: 1 line in 1 file\n");
    assert_eq!(world.git_in(&worktree, ["log", "--format=%H %s", "-2"]), before);
    assert_eq!(world.git_in(&worktree, ["status", "--porcelain"]), "");
    let out = world.frites(["status", "1/c1"]).expect(0).out();
    let line = out.lines().find(|line| line.starts_with("1/c1@2")).unwrap();
    assert!(line.ends_with("  It works"), "{out}");
    let json = world.first_candidate("1/c1");
    assert_eq!(json["iterations"][1]["message"], "It works\n\na: b\nc");
    assert!(json["iterations"][0]["message"].is_null());
    let log = world.frites(["log", "1"]).expect(0).out();
    assert!(log.contains("message='It works\\n\\na: b\\nc'"), "{log}");
    // Another iteration of the same tree is as verified as the first.
    world.frites(["apply", "-m", "x"]).expect(0);
    assert_eq!(world.git(["show", "HEAD:one"]), "one");
    // What changed nothing has no state to describe, nor has a worktree that is gone.
    let answer = world.frites(["capture", "1/c2", "-m", "x"]).expect(0);
    assert_eq!(answer.out(), "1/c2\tnothing to capture\n");
    assert!(
        answer.stderr.contains("the message is not stored: there is nothing"),
        "{}",
        answer.stderr
    );
    world.frites(["clean", "1/c1"]).expect(0);
    let answer = world.frites(["capture", "1/c1", "-m", "x"]).expect(0);
    assert!(answer.stderr.contains("not stored: its worktree is gone"), "{}", answer.stderr);
    for bad in ["", "Frites-Head: 0000"] {
        let _ = world.frites(["capture", "1/c1", "-m", bad]).refuses(2, "message");
    }
    world.assert_clean();
}

#[test]
fn checkpoints_at_an_interval_can_be_configured() {
    let world = World::new();
    world.git(["config", "frites.spawn.auto-checkpoint", "30ms"]);
    // It goes on when it was captured, or after ten seconds.
    let script = "echo one > one; i=0; until git rev-parse -q --verify refs/frites/1/c1; do \
                  test $i = 1000 && exit 1; i=$((i+1)); sleep 0.01; done";
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", script]).expect(0);
    assert_eq!(world.git(["ls-tree", "--name-only", "refs/frites/1/c1"]), "README\none\nsrc");
    world.assert_clean();
}

#[test]
fn failed_attempt_whose_files_are_right_as_they_are_can_be_accepted() {
    let world = World::new();
    let fixes_some = "echo good > work; exit 1";
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", fixes_some]).expect(4);
    let judge = ["judge", "--test", "grep -q good work"];
    let accept = "if its files are right as they are, `git frites retry 1/c1 -- true` accepts them";
    for answer in [
        world.frites(judge).expect(4),
        world.frites(["capture", "1/c1"]).expect(0),
        world.frites(["apply", "1/c1"]).expect(1),
    ] {
        assert_eq!(answer.stderr.matches(accept).count(), 1, "{}", answer.stderr);
    }
    // Its author said that it failed, and nobody has changed it.
    assert_eq!(world.first_candidate("1")["state"], "failed");
    assert!(!world.frites(["capture"]).expect(0).stderr.contains(accept));
    world.frites(["retry", "-q", "1/c1", "--", "true"]).expect(0);
    world.frites(judge).expect(0);
    world.frites(["apply", "1"]).expect(0);
    world.assert_clean();
}

#[test]
fn failed_attempt_that_somebody_corrects_is_judged_once_it_is_captured_by_name() {
    let world = World::new();
    let fails = "echo bad > work; exit 3";
    world.frites(["spawn", "-n", "2", "--", "sh", "-c", fails]).expect(4);
    let judge = |code| world.frites(["judge", "--test", "grep -q good work"]).expect(code);
    let correct = "hint: correct it in its worktree: `cd \"$(git frites path 1/c1)\"`; after `git frites capture 1/c1`, `git frites judge 1 --test 'grep -q good work'` judges it";
    let lines = |answer: &crate::common::Answer, line: &str| {
        answer.stderr.lines().filter(|one| *one == line).count()
    };
    assert_eq!(lines(&judge(4), correct), 1);
    let refused = world.frites(["apply", "1/c1"]).refuses(1, "nothing verified to land");
    assert!(
        refused.stderr.contains("hint: its command did not succeed, so it is not judged: correct it, and then `git frites capture 1/c1`"),
        "{}",
        refused.stderr
    );
    // What the attempt left is as its author said.
    world.frites(["capture", "1/c1"]).expect(0);
    assert_eq!(world.first_candidate("1")["state"], "failed");
    world.sh(&world.worktree("1/c1"), "echo good > work").expect(0);
    let hint = "hint: 1/c1 has changed since its command ended: after `git frites capture 1/c1`, `git frites judge 1 --test 'grep -q good work'` judges it";
    assert_eq!(lines(&judge(4), hint), 1);
    for words in [&["status"][..], &["status", "1/c1"], &["output", "1/c1"]] {
        let answer = world.frites(words).expect(0);
        assert_eq!(lines(&answer, hint), 1, "{words:?}: {}", answer.stderr);
    }
    assert_eq!(lines(&world.frites(["status", "1/c2"]).expect(0), hint), 0);
    // All candidates are captured by many commands, which says nothing of one.
    world.frites(["capture"]).expect(0);
    assert_eq!(world.first_candidate("1")["state"], "failed");
    let captured = world.frites(["capture", "1/c1"]).expect(0);
    let open = "1/c1 is open now: its files have changed since its command ended";
    assert_eq!(lines(&captured, open), 1, "{}", captured.stderr);
    let answer = judge(0);
    assert_eq!(lines(&answer, hint), 0);
    assert_eq!(world.first_candidate("1")["state"], "open");
    assert_eq!(
        world.frites(["judge", "-q", "--test", "grep -q good work"]).expect(0).out(),
        "1/c1\n"
    );
    // An attempt cannot open another one.
    world.sh(&world.worktree("1/c2"), "echo good > work").expect(0);
    let opens = "git frites capture 1/c2 && echo x > x";
    world.frites(["spawn", "--", "sh", "-c", opens]).expect(0);
    let second = world.frites(["status", "1", "--json"]).expect(0).json();
    assert_eq!(second["runs"][0]["candidates"][1]["state"], "failed");
    // Another clone knows it, too.
    let message = world.git(["log", "-1", "--format=%B", "refs/frites/1/c1"]);
    assert!(message.contains("Frites-State: open"), "{message}");
    world.frites(["apply", "1", "-m", "Corrected"]).expect(0);
    assert_eq!(world.git(["show", "HEAD:work"]), "good");
    world.assert_clean();
}
