//! Commands that change the refs of git-frites itself: captures and records of other runs. A
//! command that moves them, by itself or by calling git-frites, is named, and a verdict made this
//! way verifies nothing.
use std::process::Stdio;

use crate::common::{Answer, World, poll};

/// A run that was judged, and failed.
fn world() -> World {
    let world = World::new();
    world.attempts(&["echo bad >>README"]);
    world.frites(["judge", "--test", "false"]).expect(1);
    world
}

fn attempt(world: &World, script: &str) -> Answer {
    world
        .frites(["spawn", "-n", "1", "--", "sh", "-euc", &format!("echo x >>README; {script}")])
        .expect(0)
}

const FORGE: &str = "r=refs/frites/1/@record
    git show $r:verdict.toml | sed 's/^decision = .*/decision = \"single\"/; s/\"failed\"/\"passed\"/; s/^code = .*//' >v
    b=$(git hash-object -w v); rm v
    t=$( (git ls-tree $r | grep -v verdict; printf '100644 blob %s\\tverdict.toml\\n' $b) | git mktree)
    git update-ref $r $(git commit-tree $t -p $r^1 -p $r^2 -m forged)";

/// The caller takes its own variables away, and leaves its session.
const HIDDEN_JUDGE: &str =
    "env -i HOME=\"$HOME\" PATH=\"$PATH\" setsid -w git frites judge -q --test true 1";
const HIDDEN_FORGET: &str =
    "env -i HOME=\"$HOME\" PATH=\"$PATH\" git frites clean -q --discard --forget 1";

#[test]
fn verdict_written_by_others_is_named_and_verifies_nothing() {
    crate::common::in_the_open_world();
    for forge in [FORGE, "git frites judge -q --test true 1", HIDDEN_JUDGE] {
        let world = world();
        let name = "refs/frites/1/@record";
        let before = world.git(["rev-parse", name]);
        let answer = attempt(&world, forge);
        let after = world.git(["rev-parse", name]);
        let words = format!("ref '{name}' moved from {} to {}", &before[..10], &after[..10]);
        assert_eq!(answer.changes_warned_of(), [words.clone()].into(), "{}", answer.stderr);
        let why = format!(
            "its record is not what its last judging wrote; while run 2's commands ran, {words}"
        );
        world.frites(["apply", "1"]).refuses(1, &why);
        world.frites(["judge", "--replay", "1"]).refuses(1, &why);
        world.frites(["judge", "--test", "false", "--no-cache", "1"]).expect(1);
        world
            .frites(["apply", "1"])
            .refuses(1, "nothing verified to land: c1 is the one usable candidate");
        world.frites(["judge", "--test", "test -e README", "1"]).expect(0);
        world.frites(["apply", "1", "-m", "land"]).expect(0);
    }
}

#[test]
fn captures_deleted_by_others_are_named_with_their_commit() {
    crate::common::in_the_open_world();
    for remove in [
        "git update-ref -d refs/frites/1/c1",
        "git frites clean -q --discard --forget 1",
        HIDDEN_FORGET,
    ] {
        let world = world();
        let tip = world.git(["rev-parse", "refs/frites/1/c1"]);
        let answer = attempt(&world, remove);
        let words = format!("ref 'refs/frites/1/c1' was deleted; it was at {tip}");
        assert!(answer.changes_warned_of().contains(&words), "{}", answer.stderr);
        assert_eq!(
            answer.changes_warned_of().len(),
            if remove.contains("forget") { 2 } else { 1 },
            "{}",
            answer.stderr
        );
        assert_eq!(world.git(["cat-file", "-t", &tip]), "commit");
    }
}

#[test]
fn concurrent_commands_of_the_user_are_not_reported() {
    crate::common::in_the_open_world();
    let world = world();
    world.git(["config", "frites.limits.nesting", "2"]);
    world.attempts(&["echo bad >>README"]);
    let script = "git frites spawn -q -n 1 --run within -- sh -c 'echo 1 >new'
        touch \"$HOME/ready\"; until test -e \"$HOME/go\"; do sleep 0.02; done; echo x >>README";
    let mut command =
        world.command(&world.repo, "git-frites", ["spawn", "-n", "1", "--", "sh", "-euc", script]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    poll(|| world.home().join("ready").exists());
    world.sh(&world.worktree("1/c1"), "echo more >>README").expect(0);
    world.frites(["judge", "-q", "--test", "true", "1"]).expect(0);
    world.frites(["judge", "-q", "--test", "true", "--candidate", "c1", "1"]).expect(0);
    world.frites(["judge", "-q", "--test", "true", "--no-cache", "1"]).expect(0);
    world.frites(["apply", "--no-switch", "-m", "land", "1"]).expect(0);
    world.frites(["clean", "--discard", "--forget", "2"]).expect(0);
    world.frites(["spawn", "-q", "-n", "1"]).expect(0);
    world.sh(&world.home(), "touch go").expect(0);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("warning"), "{said}");
}

/// Code under test in the first candidate does this to the refs of the run that is being judged.
#[test]
fn refs_of_the_judged_run_that_code_under_test_removes_are_named_and_put_back() {
    crate::common::in_the_open_world();
    const RECORD: &str = "refs/frites/1/@record";
    const SIBLING: &str = "refs/frites/1/c2";
    let cases = [
        (format!("git update-ref -d {SIBLING}"), SIBLING, "was deleted"),
        (format!("git update-ref -d {RECORD}"), RECORD, "was deleted"),
        (format!("git symbolic-ref {RECORD} refs/heads/main"), RECORD, "to branch 'main'"),
        (format!("git symbolic-ref {SIBLING} refs/nowhere"), SIBLING, "was deleted"),
        (format!("echo garbage >$g/{SIBLING}; : >$g/logs/{SIBLING}"), SIBLING, "was deleted"),
        (format!("git update-ref {SIBLING} $(git rev-parse main)"), SIBLING, "moved from"),
        (
            format!(
                "git update-ref -d {SIBLING}; git update-ref {SIBLING}/x $(git rev-parse main)"
            ),
            SIBLING,
            "was deleted",
        ),
    ];
    for (script, name, words) in cases {
        let world = World::new();
        world.attempts(&["echo 1 >bad", "echo 2 >>README; echo 3 >>README"]);
        world.frites(["diff", "1"]).expect(0);
        world.sh(&world.worktree("1/c2"), "echo 4 >>README").expect(0);
        world.frites(["diff", "1"]).expect(0);
        let value = world.git(["rev-parse", name]);
        let log = world.repo.join(".git/logs").join(name);
        let log_before = std::fs::read_to_string(&log).unwrap();
        let test =
            format!("g=$(git rev-parse --git-common-dir); if test -e bad; then {script}; fi");
        let answer = world.frites(["judge", "--test", &test]).expect(0);
        let warnings = answer.warnings();
        let start = format!("1/c1 was judged: ref '{name}' ");
        let warning = warnings.iter().find(|w| w.starts_with(&start)).unwrap_or_else(|| {
            panic!("{script}: {}", answer.stderr);
        });
        assert!(warning.contains(words), "{script}: {warning}");
        assert!(warning.ends_with("; it was put back"), "{script}: {warning}");
        assert!(answer.stderr.contains("an attempt or you did that; nothing else was reverted"));
        if name == SIBLING {
            assert_eq!(world.git(["rev-parse", name]), value, "{script}");
        }
        let log_after = std::fs::read_to_string(&log).unwrap();
        if script.contains("-d") {
            assert!(log_after.starts_with(&log_before), "{script}: {log_after}");
        }
        assert!(!world.git(["for-each-ref", "refs/frites"]).contains("/x"));
        world.frites(["status", "1"]).expect(0);
        world.frites(["apply", "1/c2", "-m", "land"]).expect(0);
        world.assert_clean();
    }
}

#[test]
fn capture_of_a_sibling_that_an_attempt_removes_is_named_and_put_back() {
    crate::common::in_the_open_world();
    let world = World::new();
    let script = "echo x >>README
        if test $FRITES_CANDIDATE = c2; then git rev-parse refs/frites/1/c1 >\"$HOME/was\"; git update-ref -d refs/frites/1/c1; fi";
    let answer =
        world.frites(["spawn", "-n", "2", "-j", "1", "--", "sh", "-euc", script]).expect(0);
    let was = std::fs::read_to_string(world.home().join("was")).unwrap();
    let words =
        format!("ref 'refs/frites/1/c1' was deleted; it was at {}; it was put back", was.trim());
    assert_eq!(answer.changes_warned_of(), [words].into(), "{}", answer.stderr);
    assert_eq!(world.git(["rev-parse", "refs/frites/1/c1"]), was.trim());
    world.assert_clean();
}

/// An oracle's command sees no variable of git-frites at all.
#[test]
fn code_under_test_that_rewrites_another_run_is_named() {
    crate::common::in_the_open_world();
    for (script, words) in [
        ("git frites judge -q --test true 1", "ref 'refs/frites/1/@record' moved"),
        (
            "git frites judge -q --test true --candidate c1 1",
            "ref 'refs/frites/1/@results/c1' was added",
        ),
        ("git frites clean -q --discard --forget 1", "ref 'refs/frites/1/@record' was deleted"),
    ] {
        let world = world();
        world.attempts(&["echo good >>README"]);
        // It runs on the base, too: then the second time it finds nothing to forget.
        let test = format!("{script} || true");
        let answer = world.frites(["judge", "2", "--test", &test]).expect(0);
        let named = answer.warnings().iter().any(|w| w.contains(words));
        assert!(named, "{script}: {}", answer.stderr);
        let _ = world
            .frites(["apply", "1"])
            .refuses(if words.ends_with("deleted") { 128 } else { 1 }, "");
    }
}

/// The outcome that code under test stores for a sibling by calling git-frites.
#[test]
fn outcome_of_a_sibling_that_code_under_test_stores_is_named_and_removed() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.attempts(&["echo 1 >bad", "echo 2 >>README; echo 3 >>README"]);
    let test = "test ! -e bad || git frites judge -q --test true --candidate c2 1";
    let words = ["judge", "--test", test, "--candidate", "c1", "1"];
    let answer = world.frites(words).expect(0);
    let named = "1/c1 was judged: ref 'refs/frites/1/@results/c2' was added";
    assert!(answer.warnings().iter().any(|w| w.starts_with(named)), "{}", answer.stderr);
    assert!(!world.git(["for-each-ref", "refs/frites"]).contains("@results/c2"));
}

/// Without its variables a command is as deep as its supervisors say.
#[test]
fn attempt_that_hides_its_depth_spawns_no_attempts() {
    crate::common::in_the_open_world();
    let world = World::new();
    let script = "echo x >>README; env -i HOME=\"$HOME\" PATH=\"$PATH\" git frites spawn -n 1 -- true || true";
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", script]).expect(0);
    let log = std::fs::read_to_string(world.repo.join(".frites/runs/1/c1/agent.log")).unwrap();
    assert!(log.contains("this runs inside a candidate's command (depth 1)"), "{log}");
    world.frites(["status", "2"]).refuses(128, "2");
}

#[test]
fn outcome_that_code_under_test_forges_for_another_candidate_is_removed() {
    crate::common::in_the_open_world();
    let world = World::new();
    let run = world.attempts(&["echo wrong > README", "echo forge > README"]);
    let forge = format!(
        "grep -q forge README || exit 1
        part=$(git rev-parse -q --verify refs/frites/{run}/@results/c2 || git rev-parse HEAD)
        git update-ref --create-reflog -m x refs/frites/{run}/@results/c1 $part"
    );
    let judge =
        |candidate| world.frites(["judge", "--candidate", candidate, &run, "--test", &forge]);
    let answer = judge("c2");
    assert!(answer.stderr.contains("@results/c1"), "{}", answer.stderr);
    assert!(answer.stderr.contains("it was removed"), "{}", answer.stderr);
    let outcome = || {
        world.git([
            "for-each-ref",
            "--format=%(objectname)",
            &format!("refs/frites/{run}/@results/c1"),
        ])
    };
    assert_eq!(outcome(), "");
    // An outcome that is there already is put back.
    judge("c1");
    let stored = outcome();
    assert_ne!(stored, "");
    judge("c2");
    assert_eq!(outcome(), stored);
}
