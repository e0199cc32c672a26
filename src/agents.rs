//! Command-line coding agents: built in or configured.
use crate::config::Config;
use crate::config::keys;
use crate::config::value::{AgentInput, Argv};
use crate::error::{Error, Result};
use crate::model::agent_output::UsageFormat;
use crate::model::name::Name;
use crate::model::nearest::nearest;
use crate::model::run::{Assignment, PROMPT, PROMPT_FILE};

/// The built-in agents with the options that run them non-interactively, from `--help` of the
/// versions named here; `git config frites.agents.NAME.command` replaces them.
const BUILT_IN: [(&str, &[&str]); 5] = [
    // Claude Code 2.1.197. As root it also wants IS_SANDBOX=1 in its environment.
    (
        "claude",
        &["claude", "-p", "--permission-mode", "bypassPermissions", "--output-format", "json"],
    ),
    // Codex 0.169.0: `-` reads the prompt from standard input.
    ("codex", &["codex", "exec", "--json", "--skip-git-repo-check", "-s", "workspace-write", "-"]),
    // Gemini CLI 0.61.0: an empty `-p` makes it read standard input and exit when it is done.
    (
        "gemini",
        &[
            "gemini",
            "--output-format",
            "stream-json",
            "--approval-mode",
            "yolo",
            "--skip-trust",
            "-p",
            "",
        ],
    ),
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
    ("opencode", &["opencode", "run", "--format", "json", "--auto"]),
];

/// What the built-in agents print when their account may do no more for a while, as reported in their
/// issue trackers up to September 2026.
const LIMITS: [(&str, &[&str]); 5] = [
    // anthropics/claude-code 9046, 54698, 74079, 80062.
    ("claude", &["usage limit reached", "you've hit your*limit", "credit balance is too low"]),
    // openai/codex 3124, 3899, 26668; its JSON says usage_limit_reached.
    ("codex", &["you've hit your usage limit", "usage_limit_reached", "insufficient_quota"]),
    // google-gemini/gemini-cli 1088, 6962, 15576, 18050.
    (
        "gemini",
        &["you have exhausted your", "you exceeded your current quota", "resource_exhausted"],
    ),
    // Aider-AI/aider 1263, 1686; it tries again by itself before it gives up.
    ("aider", &["litellm.ratelimiterror", "you exceeded your current quota", "insufficient_quota"]),
    // anomalyco/opencode 13005, 42452, 47239, 47747.
    ("opencode", &["usage limit has been reached", "rate limit exceeded", "freeusagelimiterror"]),
];

/// The built-in agents whose command line above prints JSON that tells their usage. Aider prints none.
const USAGE: [(&str, &[&str]); 4] = [
    ("claude", &["claude"]),
    ("codex", &["codex"]),
    ("gemini", &["gemini"]),
    ("opencode", &["opencode"]),
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

/// The patterns by which an agent's output tells that it is at its limit: those configured, else those of
/// the built-in agent of this name.
pub fn limit_patterns(config: &Config, name: &Name) -> Vec<String> {
    config.get_for(keys::AGENT_LIMIT, name.as_str()).unwrap_or_else(|| {
        let built_in = LIMITS.iter().find(|(built_in, _)| *built_in == name.as_str());
        built_in.map_or(&[][..], |(_, words)| words).iter().map(|&word| word.to_owned()).collect()
    })
}

/// Where an agent's output tells what it used: as configured, else as the built-in agent of this name
/// does; none if nobody knows.
pub fn usage_format(config: &Config, name: &Name) -> Option<UsageFormat> {
    let format = config.get_for(keys::AGENT_USAGE, name.as_str()).or_else(|| {
        let (_, words) = USAGE.iter().find(|(built_in, _)| *built_in == name.as_str())?;
        UsageFormat::parse(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    });
    format.filter(|format| *format != UsageFormat::Off)
}

/// The value that a key has by itself for a built-in agent: `agents.claude.command`.
pub fn built_in_value(key: &str) -> Option<Vec<String>> {
    let (name, key) = key.strip_prefix("agents.")?.split_once('.')?;
    let of: &[(&str, &[&str])] = match key {
        "command" => &BUILT_IN,
        "limit" => &LIMITS,
        "usage" => &USAGE,
        _ => return None,
    };
    let (_, words) = of.iter().find(|(built_in, _)| *built_in == name)?;
    Some(words.iter().map(|&word| word.to_owned()).collect())
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
