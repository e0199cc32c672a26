//! Several processes that judge at once: each tree is judged by one of them, and none waits for
//! another while it has a tree itself.
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};

use serde_json::json;

use crate::common::sealed::sealed;
use crate::common::{Answer, World, answer, kill, poll};
use crate::terminal::Terminal;
use crate::tool::{NAMESPACES, TERMINAL, trials};

trials! {
    two_judges_judge_each_tree_once_and_neither_waits_with_a_tree: [NAMESPACES];
    a_killed_judge_has_no_tree_and_a_failure_is_judged_again: [NAMESPACES];
    an_interrupted_judge_waits_for_no_other: [NAMESPACES];
    the_row_of_a_tree_says_which_process_judges_it: [NAMESPACES, TERMINAL];
}

/// Waits until `~/gate` lets it go on, and passes if the gate says so.
const TEST: &str =
    "echo begun; until grep -q go ~/gate; do sleep 0.01; done; ! grep -q fail ~/gate";

/// Two candidates, whose tests wait; no command can write outside of its world.
fn waiting() -> World {
    let mut world = sealed();
    world.unset_env("FRITES_SANDBOX_WRITE");
    gate(&world, "");
    world.attempts(&["echo 1 > README", "seq 2 > README"]);
    world
}

fn gate(world: &World, words: &str) {
    fs::write(world.home().join("gate"), words).unwrap();
}

fn start(world: &World, candidates: &[&str]) -> Child {
    let mut words = vec!["judge", "--json", "--test", TEST];
    words.extend(candidates.iter().flat_map(|name| ["--candidate", name]));
    let mut command = world.command(&world.repo, "git-frites", words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn await_begin(world: &World, candidate: &str) {
    let log = world.repo.join(format!(".frites/runs/1/{candidate}/test.log"));
    poll(|| fs::read_to_string(&log).is_ok_and(|text| text.contains("begun")));
}

fn ended(judge: Child, code: i32) -> Answer {
    answer(&judge.wait_with_output().unwrap()).expect(code)
}

/// For each candidate, whether its outcome was taken from another process.
fn cached(answer: &Answer) -> Vec<bool> {
    let found = answer.json()["candidates"].as_array().unwrap().clone();
    let results = found.iter().map(|part| part["candidate"]["results"][0]["cached"] == json!(true));
    results.collect()
}

fn two_judges_judge_each_tree_once_and_neither_waits_with_a_tree() {
    let world = waiting();
    let first = start(&world, &["c1"]);
    await_begin(&world, "c1");
    let second = start(&world, &["c1", "c2"]);
    // It would wait for ever with one tree at a time, if it waited for the first.
    await_begin(&world, "c2");
    // Each one needs the tree that the other has.
    let third = start(&world, &["c2", "c1"]);
    let told = format!("1/c1: judged by {}", first.id());
    gate(&world, "go");
    let [first, second, third] = [first, second, third].map(|judge| ended(judge, 0));
    assert!(second.stderr.contains(&told), "{}", second.stderr);
    assert_eq!(cached(&first), [false]);
    assert_eq!(cached(&second), [true, false], "{}", second.stderr);
    assert_eq!(cached(&third), [true, true], "{}", third.stderr);
    assert!(!second.stderr.contains("the cached outcome"), "{}", second.stderr);
    world.assert_clean();
}

fn a_killed_judge_has_no_tree_and_a_failure_is_judged_again() {
    let world = waiting();
    let mut first = start(&world, &["c1"]);
    await_begin(&world, "c1");
    let second = start(&world, &["c1", "c2"]);
    await_begin(&world, "c2");
    first.kill().unwrap();
    first.wait().unwrap();
    gate(&world, "go, and fail");
    let second = ended(second, 1);
    assert_eq!(cached(&second), [false, false], "{}", second.stderr);
    world.frites(["status"]).expect(0);
    gate(&world, "");
    let first = start(&world, &["c1"]);
    await_begin(&world, "c1");
    let second = start(&world, &["c1", "c2"]);
    await_begin(&world, "c2");
    gate(&world, "go, and fail");
    let [_, second] = [first, second].map(|judge| ended(judge, 1));
    assert_eq!(cached(&second), [false, false], "{}", second.stderr);
    world.assert_clean();
}

fn an_interrupted_judge_waits_for_no_other() {
    let world = waiting();
    let first = start(&world, &["c1"]);
    await_begin(&world, "c1");
    let mut second = start(&world, &["c1"]);
    let turn = format!("1/c1: judged by {}", first.id());
    let mut errors = std::io::BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(&turn) {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut errors, &mut line).unwrap(), 0);
    }
    assert!(kill(["-INT", &second.id().to_string()]));
    assert_eq!(second.wait().unwrap().signal(), Some(2));
    gate(&world, "go");
    ended(first, 0);
    world.assert_clean();
}

fn the_row_of_a_tree_says_which_process_judges_it() {
    let mut world = waiting();
    // Outcomes depend on the environment, and this is that of a terminal.
    world.set_env("SHELL", "/bin/sh");
    world.set_env("DUMP", world.home().join("dump"));
    let first = start(&world, &["c1"]);
    await_begin(&world, "c1");
    let line = format!(
        "stty rows 24 cols 80; TERM=xterm git-frites judge --candidate c1 --test '{TEST}'; echo \"exit $?\""
    );
    let shown = Terminal::start(&world, &line);
    let row = format!("judged by {}", first.id());
    let is_row = |line: &String| line.starts_with("· 1/c1") && line.contains(&row);
    shown.wait_for_lines((24, 80), |lines| lines.iter().any(is_row));
    gate(&world, "go");
    ended(first, 0);
    shown.wait_for("exit 0");
}
