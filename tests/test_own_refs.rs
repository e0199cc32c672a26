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

#[test]
fn verdict_written_by_others_is_named_and_verifies_nothing() {
    for forge in [FORGE, "git frites judge -q --test true 1"] {
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
            .refuses(1, "nothing verified to land: the one usable candidate did not pass");
        world.frites(["judge", "--test", "test -e README", "1"]).expect(0);
        world.frites(["apply", "1", "-m", "land"]).expect(0);
    }
}

#[test]
fn captures_deleted_by_others_are_named_with_their_commit() {
    for remove in ["git update-ref -d refs/frites/1/c1", "git frites clean -q --discard --forget 1"]
    {
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
