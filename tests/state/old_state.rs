//! The state that commit 8984490 wrote is read, healed and worked with (tests/fixtures/).
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{World, files_below};

/// The directory that all paths in the archive begin with.
const RECORDED_HOME: &str = "/tmp/frites-fixture";

/// The repository of `fixtures/state-8984490.sh`, with its paths rewritten to where it lies now.
fn old_state() -> World {
    let mut world = World::empty("repo");
    world.set_env("QUICK", "1");
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/state-8984490.tar.gz");
    world.run(&world.home(), "tar", ["-xzf".as_ref(), archive.as_os_str()]).expect(0);
    let home = world.home().into_os_string().into_string().unwrap();
    for file in files_below(&world.repo) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        if text.contains(RECORDED_HOME) {
            fs::write(&file, text.replace(RECORDED_HOME, &home)).unwrap();
        }
    }
    // A setting that the fixture's interrupted run did not see would count as changed meanwhile.
    let least_disk = "frites.limits.min-free-disk";
    let value = world.git(["config", "--global", least_disk]);
    world.git(["config", "--global", "--unset", least_disk]);
    world.set_env("FRITES_LIMITS_MIN_FREE_DISK", value);
    world
}

/// `RUN/CAND`, state and landing of each candidate in the document of `status --json`.
fn states(document: &Value) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for run in document["runs"].as_array().unwrap() {
        for candidate in run["candidates"].as_array().unwrap() {
            found.push((
                format!(
                    "{}/{}",
                    run["run"].as_str().unwrap(),
                    candidate["candidate"].as_str().unwrap()
                ),
                candidate["state"].as_str().unwrap().to_owned(),
                candidate["landing"].as_str().unwrap().to_owned(),
            ));
        }
    }
    found
}

#[test]
fn status_of_old_state_shows_every_candidate_as_it_was() {
    let world = old_state();
    let answer = world.frites(["status", "--json"]).expect(0);
    assert!(answer.stderr.contains("run 7 was interrupted"), "{}", answer.stderr);
    let expected = [
        ("1/c1", "open", "pending"),
        ("1/c2", "open", "pending"),
        ("2/c1", "succeeded", "pending"),
        ("2/c2", "failed", "pending"),
        ("2/c3", "timed-out", "pending"),
        ("2/c4", "succeeded", "pending"),
        ("3/c1", "succeeded", "landed"),
        ("3/c2", "succeeded", "pending"),
        ("4/c1", "succeeded", "merged"),
        ("5/c1", "succeeded", "pending"),
        ("5/c2", "succeeded", "pending"),
        ("6/c1", "cancelled", "discarded"),
        ("7/c1", "cancelled", "pending"),
    ];
    let expected =
        expected.map(|(address, state, landing)| (address.into(), state.into(), landing.into()));
    assert_eq!(states(&answer.json()), expected);
}

#[test]
fn log_of_old_state_lists_every_event() {
    let world = old_state();
    let log = world.frites(["log", "--json"]).expect(0).out();
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for name in ["spawned", "ended", "captured", "judged", "outcome", "landed", "merged", "cleaned"]
    {
        assert!(events.iter().any(|e| e["event"] == name), "no event '{name}':\n{log}");
    }
    assert!(world.frites(["log"]).expect(0).out().contains("merged"));
}

#[test]
fn judge_replay_of_old_state_decides_as_before() {
    crate::common::in_the_open_world();
    let world = old_state();
    let verdict = world.frites(["judge", "--replay", "2", "--json"]).expect(0).json();
    assert_eq!(verdict["recommended"], "c1");
    // This run was judged in parts, and no part was the base.
    let verdict = world.frites(["judge", "--replay", "5", "--json"]).expect(3).json();
    assert_eq!(verdict["recommended"], "c1");
    assert_eq!(verdict["decision"], "undecided");
}

#[test]
fn old_state_can_be_captured_landed_undone_and_removed() {
    let world = old_state();
    let diff = world.frites(["diff", "1", "--json"]).expect(0).json();
    assert_eq!(diff["diffs"][0]["files"][0]["path"], "list");
    world.frites(["apply", "--undo", "4"]).expect(0);
    world.frites(["apply", "--undo", "3"]).expect(0);
    world.frites(["apply", "--commit", "2"]).expect(0);
    assert_eq!(world.git(["show", "HEAD:list"]), "one\ntwo\nthree\nc1");
    world.frites(["clean", "--all", "--forget"]).expect(0);
    assert_eq!(world.git(["for-each-ref", "refs/frites", "refs/heads/frites/run"]), "");
}

#[test]
fn runs_that_old_state_left_interrupted_are_resumed() {
    let world = old_state();
    for run in ["7", "6"] {
        world.frites(["run", "--resume", run]).expect(0);
        let status = world.frites(["status", run, "--json"]).expect(0).json();
        assert_eq!(status["runs"][0]["candidates"][0]["state"], "succeeded");
    }
}
