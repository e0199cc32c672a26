//! Command-line coding agents: built in or configured.
use crate::config::Config;
use crate::config::keys;
use crate::config::value::{AgentInput, Argv};
use crate::error::{Error, Result};
use crate::model::name::Name;
use crate::model::nearest::nearest;
use crate::model::run::{Assignment, PROMPT, PROMPT_FILE};

/// The built-in agents with the options that run them non-interactively, from `--help` of the
/// versions named here; `git config frites.agents.NAME.command` replaces them.
const BUILT_IN: [(&str, &[&str]); 5] = [
    // Claude Code 2.1.197. As root it also wants IS_SANDBOX=1 in its environment.
    ("claude", &["claude", "-p", "--permission-mode", "bypassPermissions"]),
    // Codex 0.169.0: `-` reads the prompt from standard input.
    ("codex", &["codex", "exec", "--skip-git-repo-check", "-s", "workspace-write", "-"]),
    // Gemini CLI 0.61.0: an empty `-p` makes it read standard input and exit when it is done.
    ("gemini", &["gemini", "--approval-mode", "yolo", "--skip-trust", "-p", ""]),
    // Aider 0.86.2 does not read a prompt from standard input, and commits by default.
    (
        "aider",
        &[
            "aider",
            "--message-file",
            "{prompt_file}",
            "--yes-always",
            "--no-auto-commits",
            "--no-dirty-commits",
            "--no-gitignore",
            "--no-pretty",
            "--no-detect-urls",
            "--no-check-update",
        ],
    ),
    // OpenCode 1.18.33.
    ("opencode", &["opencode", "run", "--auto"]),
];

/// The names of all agents, built in or configured, each once, sorted.
pub fn names(config: &Config) -> Vec<String> {
    let mut names: Vec<String> = config.names_of(keys::AGENT_COMMAND).map(str::to_owned).collect();
    names.extend(BUILT_IN.iter().map(|(name, _)| (*name).to_owned()));
    names.sort();
    names.dedup();
    names
}

/// The assignment for the `number`-th candidate (from 1) of the agent `name`. Fails if there is no
/// such agent.
pub fn assign(config: &Config, name: &Name, number: usize) -> Result<Assignment> {
    let command = match config.get_for(keys::AGENT_COMMAND, name.as_str()) {
        Some(Argv(words)) => words,
        None => match BUILT_IN.iter().find(|(built_in, _)| *built_in == name.as_str()) {
            Some((_, words)) => words.iter().map(|word| (*word).to_owned()).collect(),
            None => return Err(unknown(config, name)),
        },
    };
    let takes_prompt =
        command.iter().any(|arg| [PROMPT, PROMPT_FILE].iter().any(|key| arg.contains(*key)));
    let stdin = match config.get_for(keys::AGENT_STDIN, name.as_str()) {
        Some(input) => input == AgentInput::Prompt,
        None => !takes_prompt,
    };
    let framings = config.get_for(keys::AGENT_FRAMING, name.as_str());
    let framing = (!framings.is_empty()).then(|| framings[(number - 1) % framings.len()].clone());
    Ok(Assignment {
        agent: Some(name.clone()),
        command,
        stdin,
        framing: framing.filter(|words| !words.trim().is_empty()),
    })
}

fn unknown(config: &Config, name: &Name) -> Error {
    let names = names(config);
    let error =
        Error::usage(format!("there is no agent '{name}'; the agents are {}", names.join(", ")));
    let error = match nearest(names.iter().map(String::as_str), name.as_str()) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error,
    };
    error.hint(format!(
        "or configure its command: `git config frites.agents.{name}.command 'PROGRAM ARGUMENTS'`"
    ))
}
