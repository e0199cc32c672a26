//! What agents tell that they used: tokens and money, in tables, totals, records and `limits.cost`.
//! Stand-ins on PATH print what the real agents print.
use std::fs;

use serde_json::json;

use crate::common::{World, make_executable, write};

/// What `claude -p --output-format json` prints at its end.
const CLAUDE: &str = r#"{"type":"result","subtype":"success","is_error":false,"num_turns":3,"result":"Fixed it.","session_id":"6f","total_cost_usd":0.25,"usage":{"input_tokens":12,"cache_creation_input_tokens":5000,"cache_read_input_tokens":20000,"output_tokens":340}}"#;

/// What `codex exec --json` prints: it tells no cost.
const CODEX: &str = r#"{"type":"thread.started","thread_id":"0199"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"I looked at it."}}
{"type":"turn.completed","usage":{"input_tokens":900,"cached_input_tokens":100,"output_tokens":50}}"#;

/// Makes a program on PATH that says that it was started, does as `script` says, and prints
/// `output`.
fn agent(world: &mut World, name: &str, script: &str, output: &str) {
    let bin = world.home().join("bin");
    write(
        &bin.join(name),
        format!(
            "#!/bin/sh\necho {name} >>\"$HOME/started\"\n{script}\ncat <<'END'\n{output}\nEND\n"
        ),
    );
    make_executable(&bin.join(name));
    let old = world.env("PATH");
    if !std::env::split_paths(&old).any(|path| path == bin) {
        let paths = std::iter::once(bin).chain(std::env::split_paths(&old));
        world.set_env("PATH", std::env::join_paths(paths).unwrap());
    }
}

/// The number of commands that were started since the last call.
fn started(world: &World) -> usize {
    let file = world.home().join("started");
    let text = fs::read_to_string(&file).unwrap_or_default();
    let _ = fs::remove_file(file);
    text.lines().count()
}

const WORKS: &str = "echo \"$FRITES_CANDIDATE\" >>README";

#[test]
fn tokens_and_cost_are_columns_and_totals_and_what_is_missing_is_unknown() {
    let mut world = World::new();
    agent(&mut world, "claude", WORKS, CLAUDE);
    agent(&mut world, "codex", WORKS, CODEX);
    // Its report is broken off.
    agent(&mut world, "opencode", WORKS, "{\"type\":\"step_finish\",\"part\":{\"cost\":0.1,");
    let run = ["run", "--agent", "claude", "--agent", "codex", "--agent", "opencode", "-p", "x"];
    let judging = ["--test", "true", "--synthesis", "off"];
    let answer = world.frites(run.into_iter().chain(judging).collect::<Vec<_>>()).expect(0);
    let row = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let table = answer.out();
    assert_eq!(
        &row(&table, "candidate")[..7],
        ["candidate", "outcome", "time", "lines", "files", "tokens", "cost"]
    );
    let cells = |text: &str, name: &str, from: usize| row(text, name)[from..from + 2].to_vec();
    let row_of = |name: &str| {
        let cells = row(&table, name);
        let at = cells.iter().position(|cell| cell == "passed").unwrap();
        cells[at + 4..at + 6].to_vec()
    };
    assert_eq!(row_of("1/claude-1"), ["25.0k/340", "$0.25"]);
    assert_eq!(row_of("1/codex-1"), ["900/50", "unknown"]);
    assert_eq!(row_of("1/opencode-1"), ["unknown", "unknown"]);
    assert_eq!(cells(&table, "@base", 5), ["-", "-"]);
    let total = "the agents used ≥25.9k tokens in, ≥390 out, ≥$0.25";
    assert!(answer.stderr.contains(total), "{}", answer.stderr);

    let status = world.frites(["status", "1"]).expect(0).out();
    assert_eq!(status.matches(total).count(), 1, "{status}");
    assert_eq!(status.matches("25.0k/340").count(), 2, "states and verdict: {status}");
    let json = world.frites(["status", "--json", "1"]).expect(0).json();
    let [run, claude] = [&json["runs"][0], &json["runs"][0]["candidates"][0]];
    let known = json!({
        "tokens_in": 25_912, "tokens_out": 390, "cost": 0.25, "unknown_tokens": 1, "unknown_cost": 2,
    });
    assert_eq!(run["usage"], known);
    assert_eq!(
        claude["usage"]["rounds"],
        json!([{"iteration": 1, "tokens_in": 25_012, "tokens_out": 340, "cost": 0.25}])
    );
    assert_eq!(run["verdict"]["candidates"][1]["usage"]["tokens_in"], 900);
    let broken = json!({"unknown_tokens": 1, "unknown_cost": 1, "rounds": [{"iteration": 1}]});
    assert_eq!(run["candidates"][2]["usage"], broken);

    let markdown = world.frites(["report", "--markdown"]).expect(0).out();
    assert!(markdown.contains("| files | tokens | cost | flags |"), "{markdown}");
    assert!(markdown.contains(" | 25\\.0k\\/340 | \\$0\\.25 | "), "{markdown}");
    let html = world.frites(["report", "-o", "-"]).expect(0).out();
    assert!(
        html.contains("25.0k/340") && html.contains(">tokens<") && html.contains(total),
        "{html}"
    );
    world.assert_clean();
}

#[test]
fn nothing_is_shown_of_attempts_whose_agents_tell_nothing() {
    let mut world = World::new();
    agent(&mut world, "claude", WORKS, "Fixed it.");
    let answer = world.frites(["run", "--agent", "claude", "-p", "x", "--test", "true"]).expect(0);
    assert!(
        !answer.out().contains("tokens") && !answer.stderr.contains("used"),
        "{}",
        answer.stderr
    );
    let status = world.frites(["status", "1"]).expect(0).out();
    assert!(!status.contains("tokens") && !status.contains("cost"), "{status}");
    assert_eq!(world.frites(["diff", "1/claude-1", "--numstat"]).expect(0).out(), "1\t0\tREADME\n");
}

#[test]
fn rounds_of_repair_and_by_hand_add_up() {
    let mut world = World::new();
    let repairs = "if [ -e tried ]; then echo right >README; else touch tried; fi";
    agent(&mut world, "claude", repairs, CLAUDE);
    let words =
        ["run", "--agent", "claude", "-p", "x", "--rounds", "2", "--test", "grep -q right README"];
    world.frites(words).expect(0);
    let usage = |world: &World| {
        let json = world.frites(["status", "--json", "1"]).expect(0).json();
        json["runs"][0]["candidates"][0]["usage"].clone()
    };
    assert_eq!(usage(&world)["cost"], 0.5);
    assert_eq!(usage(&world)["rounds"].as_array().unwrap().len(), 2);
    assert_eq!(usage(&world)["rounds"][1]["iteration"], 2);
    world.frites(["retry", "1/claude-1", "--yes"]).expect(0);
    assert_eq!(usage(&world)["cost"], 0.75);
    // The command of a person is no agent's.
    world.frites(["retry", "1/claude-1", "--", "sh", "-c", "echo >> README"]).expect(0);
    assert_eq!(usage(&world)["rounds"].as_array().unwrap().len(), 3);
}

#[test]
fn a_configured_agent_names_the_format_or_pointers() {
    let mut world = World::new();
    agent(&mut world, "mine", WORKS, CLAUDE);
    agent(&mut world, "own", WORKS, "bye\n{\"n\":{\"in\":7,\"out\":8},\"usd\":2}");
    world.git(["config", "frites.agents.mine.command", "mine"]);
    world.git(["config", "frites.agents.mine.usage", "claude"]);
    world.git(["config", "frites.agents.own.command", "own"]);
    world.git(["config", "frites.agents.own.usage", "in=/n/in,out=/n/out,cost=/usd"]);
    world.frites(["spawn", "--agent", "mine", "--agent", "own", "-p", "x"]).expect(0);
    let status = world.frites(["status"]).expect(0).out();
    for words in
        ["25.0k/340  $0.25", "7/8  $2.00", "the agents used 25.0k tokens in, 348 out, $2.25"]
    {
        assert!(status.contains(words), "{words}: {status}");
    }
    world.git(["config", "frites.agents.own.usage", "tokens"]);
    world.frites(["status"]).expect(0);
    let wrong = world.frites(["spawn", "--agent", "own", "-p", "x"]);
    wrong.refuses(
        128,
        "'agents.own.usage' takes claude, codex, gemini, opencode, off, or JSON pointers",
    );
}

#[test]
fn a_run_that_has_cost_as_much_as_it_may_starts_nothing_more_until_the_limit_is_higher() {
    let mut world = World::new();
    agent(&mut world, "claude", WORKS, CLAUDE);
    world.git(["config", "frites.limits.cost", "0.5"]);
    let words =
        ["run", "-j", "1", "--agent", "claude=4", "-p", "x", "--rounds", "1", "--test", "false"];
    let answer = world.frites(words).expect(1);
    assert_eq!(started(&world), 2);
    let reached = "run 1: it has cost $0.50, and limits.cost is $0.50";
    assert_eq!(
        answer.stderr.matches(&format!("{reached}, so nothing more is started")).count(),
        1,
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains(&format!("{reached}, so no round of repair")),
        "{}",
        answer.stderr
    );
    let go_on = "`git -c frites.limits.cost=1.00 frites run --resume 1`";
    assert!(answer.stderr.contains(go_on), "{}", answer.stderr);
    let status = world.frites(["status", "1"]).expect(0).out();
    assert_eq!(status.matches("cancelled (not started: limits.cost)").count(), 2, "{status}");
    world.frites(["retry", "1/claude-1", "--yes"]).refuses(1, reached);
    assert_eq!(started(&world), 0);
    // No synthesis either.
    let passing = world.frites(["run", "--resume", "1", "--test", "true", "-j", "1"]).expect(0);
    assert!(passing.stderr.contains("no synthesis: it has cost $0.50"), "{}", passing.stderr);
    assert_eq!(started(&world), 0);
    let shell = "git -c frites.limits.cost=1.00 frites run --resume 1 -j 1 --synthesis off";
    world.sh(&world.repo, shell).expect(1);
    assert_eq!(started(&world), 2);
    world.assert_clean();
}

#[test]
fn synthesis_counts_for_the_limit_of_cost() {
    let mut world = World::new();
    agent(&mut world, "claude", WORKS, CLAUDE);
    world.git(["config", "frites.limits.cost", "0.75"]);
    let words = ["run", "--agent", "claude=2", "-p", "x", "--test", "true"];
    let told = world.frites(words).expect(0).stderr;
    assert_eq!(started(&world), 3, "two attempts and a synthesis: {told}");
    let reached = "run 1: it has cost $0.75, and limits.cost is $0.75";
    world.frites(["retry", "1/claude-1", "--yes"]).refuses(1, reached);
    assert_eq!(started(&world), 0);
    world.assert_clean();
}

#[test]
fn round_that_the_limit_of_cost_refuses_is_not_said_to_have_changed_nothing() {
    let mut world = World::new();
    agent(&mut world, "claude", WORKS, CLAUDE);
    world.git(["config", "frites.limits.cost", "0.75"]);
    let words = ["run", "-j", "1", "--agent", "claude=2", "-p", "x", "--rounds", "1"];
    let answer = world.frites([&words[..], &["--test", "false", "--json"]].concat()).expect(1);
    assert_eq!(started(&world), 3, "the second round of claude-2 is refused");
    let text = &answer.stderr;
    assert!(text.contains("1/claude-2: round 1 was not started\n"), "{text}");
    assert_eq!(answer.json()["repairs"][1]["end"], "not-started");
}

#[test]
fn under_a_failed_attempt_stand_its_words_and_not_its_json() {
    let mut world = World::new();
    let error = r#"{"type":"turn.failed","error":{"message":"stream disconnected \u001b[31mbefore completion"}}"#;
    agent(&mut world, "codex", "trap 'exit 1' EXIT", &format!("{CODEX}\n{error}"));
    let answer = world.frites(["spawn", "--agent", "codex", "-p", "x"]).expect(4);
    assert!(answer.stderr.contains("I looked at it.\n"), "{}", answer.stderr);
    assert!(answer.stderr.contains("stream disconnected before completion\n"), "{}", answer.stderr);
    assert!(
        !answer.stderr.contains("turn.failed") && !answer.stderr.contains('\u{1b}'),
        "{}",
        answer.stderr
    );
    let log = world.frites(["output", "1/codex-1", "agent"]).expect(0).out();
    assert!(log.contains("turn.failed"), "the log is as it was: {log}");
}
