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
    // It goes on when its first file is captured, and again when the second is, or after ten seconds.
    let script = "saved() { i=0; until git cat-file -e refs/frites/1/c1:$1 2>/dev/null || test $i = 1000; do i=$((i+1)); sleep 0.01; done; }; \
        echo one > one; git add one; saved one; git status --porcelain > \"$HOME/status\"; echo two > two; echo x >> one; saved two; rm one; git commit -qm x";
    let args =
        ["spawn", "-n", "1", "--json", "--auto-checkpoint", "30ms", "--", "sh", "-c", script];
    let answer = world.frites(args).expect(0);
    let checkpoints = answer.json()["candidates"][0]["checkpoints"].as_array().unwrap().clone();
    assert!(checkpoints.len() >= 3, "{checkpoints:#?}");
    let last = checkpoints.last().unwrap();
    let paths = |step: &Value, key: &str| -> Vec<String> {
        step[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(paths(&checkpoints[0], "created"), ["one"]);
    assert_eq!(paths(last, "deleted"), ["one"]);
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
