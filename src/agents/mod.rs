//! Command-line coding agents: built in or configured.
pub mod built_in;

use crate::agents::built_in::{BUILT_IN, BuiltInAgent, FaultWording, StateDirectory};
use crate::config::Config;
use crate::config::keys;
use crate::config::value::{AgentInput, Argv, StateVariables};
use crate::error::{Error, Result};
use crate::model::agent_output::UsageFormat;
use crate::model::agent_stop::{AgentFault, StopPatterns};
use crate::model::name::Name;
use crate::model::nearest::nearest;
use crate::model::run::{Assignment, PROMPT, PROMPT_FILE};

/// The value of `agents.X.state` that leaves an agent's state where it is.
const OFF: &str = "off";

/// A variable that names a directory for an agent's state.
pub struct StateVariable {
    pub name: String,
    /// The built-in description of the directory; `None` if the user configured the variable.
    pub known: Option<&'static StateDirectory>,
}

/// The names of all agents, built in or configured, each once, sorted.
pub fn names(config: &Config) -> Vec<String> {
    let mut names: Vec<String> = config.names_of(keys::AGENT_COMMAND).map(str::to_owned).collect();
    names.extend(BUILT_IN.iter().map(|agent| agent.name.to_owned()));
    names.sort();
    names.dedup();
    names
}

/// The assignment for the `number`-th candidate (from 1) of the agent `name`. Fails if there is no
/// such agent.
pub fn assign(config: &Config, name: &Name, number: usize) -> Result<Assignment> {
    let command = match config.get_for(keys::AGENT_COMMAND, name.as_str()) {
        Some(Argv(words)) => words,
        None => match built_in(name.as_str()) {
            Some(agent) => owned(agent.command),
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

/// The patterns by which an agent's output shows that the agent cannot go on. If patterns for
/// limits are configured, these are used; otherwise the patterns of the built-in agent of this
/// name. The patterns for faults always come from the built-in agent.
pub fn stop_patterns(config: &Config, name: &Name) -> StopPatterns {
    let agent = built_in(name.as_str());
    let limits = config
        .get_for(keys::AGENT_LIMIT, name.as_str())
        .unwrap_or_else(|| owned(agent.map_or(&[], |agent| agent.limit)));
    let faults = agent.map_or(&[][..], |agent| agent.faults);
    let faults = faults.iter().map(|known| (known.fault, owned(known.words))).collect();
    StopPatterns { limits, faults }
}

/// The remedy for a fault of an agent's environment; `None` if none is known.
pub fn remedy(name: &Name, fault: AgentFault) -> Option<&'static str> {
    built_in(name.as_str())?.remedy(fault)
}

impl BuiltInAgent {
    pub fn remedy(&self, fault: AgentFault) -> Option<&'static str> {
        let known = |known: &&FaultWording| known.fault == fault;
        Some(self.faults.iter().find(known)?.remedy)
    }
}

/// Where an agent's output reports its usage: as configured, or else as for the built-in agent of
/// this name. `None` if that is unknown or switched off.
pub fn usage_format(config: &Config, name: &Name) -> Option<UsageFormat> {
    let format = config
        .get_for(keys::AGENT_USAGE, name.as_str())
        .or_else(|| UsageFormat::parse(&[built_in(name.as_str())?.usage?.to_owned()]));
    format.filter(|format| *format != UsageFormat::Off)
}

/// The variables that name the directories of an agent's state. The configuration lists them, or
/// names a built-in agent, whose variables are then used. Without configuration, the variables of
/// the built-in agent called `name` are used; other agents have none.
pub fn state(config: &Config, name: &Name) -> Vec<StateVariable> {
    let known = |agent: Option<&'static BuiltInAgent>| {
        let directories = agent.map_or(&[][..], |agent| agent.state).iter();
        directories
            .map(|known| StateVariable { name: known.variable.to_owned(), known: Some(known) })
            .collect()
    };
    let Some(StateVariables(words)) = config.get_for(keys::AGENT_STATE, name.as_str()) else {
        return known(built_in(name.as_str()));
    };
    match words.as_slice() {
        [word] if word == OFF => Vec::new(),
        [word] if built_in(word).is_some() => known(built_in(word)),
        _ => words.into_iter().map(|name| StateVariable { name, known: None }).collect(),
    }
}

/// The JSON keys of the tokens in a login, and the state directory that contains the login.
/// `variable` names that directory, and `path` is the path of the login in it. `None` if no agent
/// refreshes tokens in this file.
pub fn tokens(
    variable: &str,
    path: &str,
) -> Option<(&'static StateDirectory, &'static [&'static str])> {
    let mut all = BUILT_IN.iter().flat_map(|agent| agent.state);
    let state = all.find(|state| state.variable == variable)?;
    let (_, tokens) = *state.logins.iter().find(|(login, _)| *login == path)?;
    (!tokens.is_empty()).then_some((state, tokens))
}

/// The value that a key of a built-in agent (`agents.claude.command`) has if nothing sets it.
pub fn built_in_value(key: &str) -> Option<Vec<String>> {
    let (name, key) = key.strip_prefix("agents.")?.split_once('.')?;
    let agent = built_in(name)?;
    match key {
        "command" => Some(owned(agent.command)),
        "limit" => Some(owned(agent.limit)),
        "usage" => agent.usage.map(|format| vec![format.to_owned()]),
        "state" if agent.state.is_empty() => None,
        "state" => Some(agent.state.iter().map(|known| known.variable.to_owned()).collect()),
        _ => None,
    }
}

pub fn built_in(name: &str) -> Option<&'static BuiltInAgent> {
    BUILT_IN.iter().find(|agent| agent.name == name)
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
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
