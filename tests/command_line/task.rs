//! Tasks: what runs and candidates are bound to, and addresses that name them.
use std::fs;

use serde_json::{Value, json};

use crate::common::World;
use crate::common::edits::{LARGE, SMALL};

/// The task that each event of these kinds carries.
fn tasks_of_events(world: &World, kinds: &[&str]) -> Vec<Value> {
    let events = world.events().into_iter();
    let of_kind = events.filter(|e| kinds.contains(&e["event"].as_str().unwrap()));
    of_kind.map(|e| e["task"].clone()).collect()
}

#[test]
fn names_of_candidates_are_no_keys_to_rename() {
    let world = World::new();
    world.frites(["spawn", "-c", "fix-a", "-c", "fix_a"]).expect(0);
    world.frites(["task", "1/fix-a", "GH-1"]).expect(0);
    let both = world.frites(["task", "1/fix_a", "GH-2", "--json"]).expect(0).json();
    assert_eq!(both["candidates"], json!({ "fix_a": "GH-2" }));
    let both = world.frites(["task", "1", "--json"]).expect(0).json();
    assert_eq!(both["candidates"], json!({ "fix-a": "GH-1", "fix_a": "GH-2" }));
}

#[test]
fn task_is_bound_rebound_shown_and_cleared() {
    let world = World::new();
    world.attempts(&[SMALL, LARGE]);
    let before = world.belongings();
    let task = |args: &[&str]| world.frites(["task"].iter().chain(args)).expect(0).out();
    let answer = world.frites(["task", "1"]).expect(0);
    assert_eq!(
        (answer.out().as_str(), answer.stderr.as_str()),
        ("", "run 1 is bound to no task\n")
    );
    assert_eq!(task(&["1", "GH-17"]), "1\tGH-17\n");
    assert_eq!(task(&["1/c2"]), "1\tGH-17\n", "that of the run");
    assert_eq!(task(&["1/c2", "a b/c@d"]), "1/c2\ta b/c@d\n");
    assert_eq!(task(&["1"]), "1\tGH-17\n1/c2\ta b/c@d\n");
    assert_eq!(task(&["1", "GH-18"]), "1\tGH-18\n1/c2\ta b/c@d\n");
    let json: Value = serde_json::from_str(&task(&["1", "--json"])).unwrap();
    assert_eq!((&json["task"], &json["candidates"]), (&json!("GH-18"), &json!({"c2": "a b/c@d"})));
    let out = world.frites(["status", "1"]).expect(0).out();
    assert!(out.contains("for GH-18") && out.contains("pending, for a b/c@d"), "{out}");
    let json = world.frites(["status", "--json", "1"]).expect(0).json()["runs"][0].take();
    let of_candidates = [&json["candidates"][0]["task"], &json["candidates"][1]["task"]];
    assert_eq!(
        (&json["task"], of_candidates),
        (&json!("GH-18"), [&json!("GH-18"), &json!("a b/c@d")])
    );
    assert_eq!(task(&["1/c2", "--clear"]), "1\tGH-18\n");
    assert_eq!(task(&["1", "--clear"]), "");
    let bound: Vec<_> = world.events().into_iter().filter(|e| e["event"] == "bound").collect();
    let moves: Vec<_> = bound.iter().map(|e| (&e["candidate"], &e["before"], &e["task"])).collect();
    let null = &Value::Null;
    assert_eq!(
        moves,
        [
            (null, null, &json!("GH-17")),
            (&json!("c2"), null, &json!("a b/c@d")),
            (null, &json!("GH-17"), &json!("GH-18")),
            (&json!("c2"), &json!("a b/c@d"), null),
            (null, &json!("GH-18"), null),
        ]
    );
    assert_eq!(world.belongings(), before);
    world.frites(["task", "1", "x", "--clear"]).expect(2);
    world.frites(["task", "1", " "]).refuses(2, "1 to 200 printable characters");
    world.frites(["task", "1/c3", "x"]).refuses(128, "run 1 has no candidate 'c3'");
    world.assert_clean();
}

#[test]
fn task_is_an_address_of_every_command() {
    let world = World::new();
    world.attempts(&[SMALL, LARGE]);
    world.frites(["task", "1", "GH-17"]).expect(0);
    world.frites(["task", "1/c2", "docs/2"]).expect(0);
    world.spawn(["-n", "1"]);
    let ok = |args: &[&str]| world.frites(args).expect(0).out();
    assert_eq!(ok(&["path", "task:docs/2"]), ok(&["path", "1/c2"]));
    assert_eq!(ok(&["diff", "task:GH-17", "--numstat"]), ok(&["diff", "1", "--numstat"]));
    assert_eq!(ok(&["diff", "task:docs/2@1"]), ok(&["diff", "1/c2@1"]));
    assert_eq!(ok(&["diff", "1/c1", "task:docs/2"]), ok(&["diff", "1/c1", "1/c2"]));
    assert_eq!(ok(&["capture", "-q", "task:docs/2"]), "1/c2@1\n");
    for task in ["task:GH-17", "task:docs/2"] {
        assert_eq!(ok(&["judge", "-q", "--test", "true", task]), "1/c1\n");
    }
    assert_eq!(ok(&["status", "--json", "task:docs/2"]), ok(&["status", "--json", "1/c2"]));
    ok(&["spawn", "-q", "-n", "1", "--from", "task:docs/2"]);
    ok(&["retry", "-q", "task:docs/2", "--", "sh", "-c", "echo x > x"]);
    ok(&["apply", "--no-switch", "-m", "x", "task:GH-17"]);
    world.sh(&world.worktree("3/c1"), "echo y > y").expect(0);
    ok(&["judge", "-q", "--test", "true", "3"]);
    ok(&["apply", "--merge", "--into", "task:docs/2", "3/c1"]);
    assert_eq!(fs::read_to_string(world.worktree("1/c2").join("y")).unwrap(), "y\n");
    ok(&["clean", "task:docs/2"]);
    assert!(!world.worktree("1/c2").exists() && world.worktree("1/c1").exists());
    for verb in ["diff", "judge", "apply", "clean", "path", "status", "capture"] {
        let answer = world.frites([verb, "task:absent"]);
        answer.refuses(128, "nothing is bound to the task 'absent'");
        world.frites([verb, "task:"]).refuses(2, "is no valid task");
    }
    world.assert_clean();
}

#[test]
fn task_of_several_runs_means_the_newest_except_where_something_is_removed() {
    let world = World::new();
    for _ in 0..2 {
        world.spawn(["-n", "2", "--task", "GH-17"]);
    }
    world.spawn(["-n", "2"]);
    let answer = world.frites(["task", "3/c1", "GH-17"]).expect(0);
    assert_eq!(answer.stderr, "run 2 is bound to this task, too\n");
    assert_eq!(
        world.frites(["path", "task:GH-17"]).expect(0).out(),
        format!("{}\n", world.worktree("3/c1").display())
    );
    let of_task = world.frites(["status", "--task", "GH-17", "--json"]).expect(0).json();
    let shown: Vec<_> = of_task["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["run"].clone(), run["candidates"].as_array().unwrap().len()))
        .collect();
    assert_eq!(shown, [(json!("1"), 2), (json!("2"), 2), (json!("3"), 1)]);
    assert_eq!(
        world.frites(["status", "--task", "absent"]).expect(0).stderr.lines().next(),
        Some("nothing is bound to the task 'absent'")
    );
    world
        .frites(["clean", "task:GH-17"])
        .refuses(128, "several runs or candidates are bound to the task 'GH-17': 1, 2, 3/c1");
    world.frites(["task", "3/c2", "GH-17"]).expect(0);
    world
        .frites(["path", "task:GH-17"])
        .refuses(128, "several runs or candidates are bound to the task 'GH-17': 1, 2, 3/c1, 3/c2");
    world.assert_clean();
}

#[test]
fn events_carry_the_task_and_a_verdict_survives_a_binding() {
    let world = World::new();
    world.spawn(["-n", "2", "--task", "GH-17"]);
    world.sh(&world.worktree("1/c1"), SMALL).expect(0);
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    world.frites(["task", "1/c2", "GH-18"]).expect(0);
    world.sh(&world.worktree("1/c2"), SMALL).expect(0);
    world.frites(["capture"]).expect(0);
    world.frites(["apply", "-m", "x", "1/c1"]).expect(0);
    world.frites(["clean", "--forget", "-q", "1"]).expect(0);
    assert_eq!(
        tasks_of_events(&world, &["spawned", "judged", "landed", "forgotten"]),
        ["GH-17", "GH-17", "GH-17", "GH-17"]
    );
    assert_eq!(tasks_of_events(&world, &["captured"]), ["GH-17", "GH-18"]);
    // The events are found by the task also when the run is forgotten.
    let of_task = world.frites(["log", "task:GH-18"]).expect(0).out();
    let kinds: Vec<_> =
        of_task.lines().map(|line| line.split_whitespace().nth(2).unwrap()).collect();
    assert_eq!(kinds, ["bound", "captured", "cleaned"]);
    world.spawn(["-n", "1"]);
    world.frites(["task", "2", "late"]).expect(0);
    let lines = world.frites(["log", "task:late"]).expect(0).out();
    assert_eq!(lines.lines().count(), 2, "what was before it was bound belongs to it: {lines}");
    world.assert_clean();
}

#[test]
fn run_at_work_is_not_bound_by_its_own_command() {
    let world = World::new();
    let script = "git frites task 1 mine; echo $? > code";
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", script]).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:code"]), "128");
    let answer = world.frites(["task", "1"]).expect(0);
    assert_eq!(answer.stderr, "run 1 is bound to no task\n");
    world.assert_clean();
}
