//! Real coding agents, as far as they get without an account: where they keep their state, and what
//! is said when they cannot go on. CI has none of them: they are more than a gigabyte.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{World, files_below};
use crate::tool::{AGENTS, CLAUDE, CODEX, GEMINI, OPENCODE, trials};

trials! {
    claude_keeps_its_state_in_the_attempt_and_says_why_it_cannot_go_on: [CLAUDE];
    codex_keeps_its_state_in_the_attempt_and_does_not_wait_for_ever: [CODEX];
    gemini_keeps_its_state_in_the_attempt_and_asks_for_a_login: [GEMINI];
    opencode_keeps_its_state_in_the_attempt: [OPENCODE];
}

/// A world with the agents on PATH, and without anything by which they could log in.
fn world() -> World {
    let mut world = World::new();
    let bin = Path::new(AGENTS).join(".bin");
    let old = world.env("PATH");
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&old)));
    world.set_env("PATH", path.unwrap());
    for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY", "GEMINI_API_KEY"] {
        world.unset_env(name);
    }
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "IS_SANDBOX"] {
        world.unset_env(name);
    }
    world
}

/// The files below HOME that are not the repository's.
fn of_home(world: &World) -> BTreeSet<PathBuf> {
    let files = files_below(&world.home()).into_iter();
    files.filter(|file| !file.starts_with(&world.repo)).collect()
}

/// Runs two attempts of an agent, one after the other. Gives what was said, and the fault of each.
fn attempts(world: &World, agent: &str, limit: [&str; 2]) -> (String, Vec<String>) {
    let before = of_home(world);
    let twice = format!("{agent}=2");
    let words = ["spawn", "-j", "1", "--agent", &twice, "-p", "say hi", limit[0], limit[1]];
    let said = world.frites(words).expect(4).stderr;
    assert_eq!(of_home(world), before, "HOME is as it was");
    let status = world.frites(["status", "--json", "1"]).expect(0).json();
    let candidates = status["runs"][0]["candidates"].as_array().unwrap();
    let fault = |c: &serde_json::Value| c["fault"].as_str().unwrap_or_default().to_owned();
    (said, candidates.iter().map(fault).collect())
}

/// True if an agent has written to its state directory.
fn has_state(world: &World, agent: &str, file: &str) -> bool {
    let state = world.repo.join(format!(".frites/runs/1/{agent}-1/agent"));
    state.join(file).exists()
}

fn claude_keeps_its_state_in_the_attempt_and_says_why_it_cannot_go_on() {
    let (said, faults) = attempts(&world(), "claude", ["--timeout", "2m"]);
    let fault = if rustix::process::getuid().is_root() { "refuses-root" } else { "not-logged-in" };
    assert_eq!(faults, [fault; 2], "{said}");
    let mut world = world();
    world.set_env("IS_SANDBOX", "1");
    let (said, faults) = attempts(&world, "claude", ["--timeout", "2m"]);
    assert_eq!(faults, ["not-logged-in"; 2], "{said}");
    assert!(
        said.contains("1/claude-2: not started: the agent 'claude' is not logged in"),
        "{said}"
    );
    assert!(has_state(&world, "claude", "CLAUDE_CONFIG_DIR/.claude.json"));
    // A person finds the conversation again.
    let list = ["exec", "1/claude-1", "--", "sh", "-c", "ls $CLAUDE_CONFIG_DIR/projects/*/*.jsonl"];
    world.frites(list).expect(0);
}

fn codex_keeps_its_state_in_the_attempt_and_does_not_wait_for_ever() {
    let world = world();
    let (said, faults) = attempts(&world, "codex", ["--idle-timeout", "20s"]);
    let is_known = ["no-network", "not-logged-in"].contains(&faults[0].as_str());
    assert!(is_known && faults[0] == faults[1], "{faults:?}: {said}");
    assert!(has_state(&world, "codex", "CODEX_HOME/sessions"));
}

fn gemini_keeps_its_state_in_the_attempt_and_asks_for_a_login() {
    let world = world();
    let (said, faults) = attempts(&world, "gemini", ["--timeout", "2m"]);
    assert_eq!(faults, ["not-logged-in"; 2], "{said}");
    assert!(has_state(&world, "gemini", "GEMINI_CLI_HOME/.gemini/projects.json"));
}

fn opencode_keeps_its_state_in_the_attempt() {
    let mut world = world();
    // It calls npm, whose cache is the user's.
    let cache = world.home().with_file_name("npm");
    world.set_env("npm_config_cache", &cache);
    // It says nothing while it has no network.
    attempts(&world, "opencode", ["--timeout", "20s"]);
    assert!(has_state(&world, "opencode", "XDG_DATA_HOME/opencode"));
    assert!(has_state(&world, "opencode", "XDG_CONFIG_HOME/opencode"));
}
