//! A run: one round of competing attempts from one base.
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::is_default;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// `run.toml`: the user's request for the run. It is written when the run is spawned, and again
/// when a candidate is added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Run {
    /// The record's format.
    pub version: u32,
    /// The run's id: a number, or the name that the user gave.
    pub run: Name,
    /// The commit that every candidate starts from.
    pub base: Oid,
    /// The time of creation, to the nanosecond: it orders the runs.
    pub created: jiff::Timestamp,
    /// The candidates in spawn order; the first has index 1.
    pub candidates: Vec<Name>,
    /// The command that runs in each worktree; empty if people work there. Bytes that are not UTF-8
    /// are replaced: the field is for display, not for execution.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The prompt of the commands: a blob, which the record's tree holds as `prompt.md`.
    pub prompt: Option<Oid>,
    /// The task to which the run is bound.
    pub task: Option<String>,
    /// `spawn.worktree-root` at the time of the spawn, if it was configured.
    pub worktree_root: Option<String>,
    /// The candidate from which the run was spawned, if any: the base is a capture of it.
    pub parent: Option<Parent>,
    /// The commands, mostly agents, that run in the worktrees of these candidates instead of
    /// `command`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<Name, Assignment>,
    /// The candidates that are syntheses of other candidates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub synthesis: BTreeMap<Name, Synthesis>,
    /// The candidates that joined the run later.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added: BTreeMap<Name, Addition>,
    /// The tasks to which single candidates are bound.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<Name, String>,
    /// The time limits that were given for the commands. They also apply to further rounds and to
    /// `--resume`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: GivenLimits,
    /// The arguments of `git frites run`, for `--resume`; empty if another command made the run.
    /// Bytes that are not UTF-8 are replaced. If there are any, `--resume` does not use the
    /// arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The branch that `git frites run` merges a verified winner into: the one that was checked out
    /// when the run began.
    pub merge_into: Option<RefName>,
}

/// The time limits of commands that were given as options, in seconds; `None` if the configuration
/// decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GivenLimits {
    /// `--timeout`.
    pub timeout: Option<u64>,
    /// `--idle-timeout`.
    pub idle_timeout: Option<u64>,
}

/// The candidate from which a run inherits: the run's base is a capture of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Parent {
    /// The parent's run.
    pub run: Name,
    /// The parent's name in that run.
    pub candidate: Name,
    /// The capture from which the run started; `None` if the parent had changed nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The base of the first run in this chain, which is not a capture.
    pub root: Oid,
    /// The number of generations since the first run in the chain: 1 for its child.
    pub depth: u32,
}

/// The placeholder for the prompt in a command's arguments.
pub const PROMPT: &str = "{prompt}";
/// The placeholder for the file that holds the prompt.
pub const PROMPT_FILE: &str = "{prompt_file}";

/// The placeholder that stands for the mode of Codex's own sandbox in an argument. That sandbox
/// keeps Codex from committing, and is not needed if the attempt is guarded.
pub const CODEX_SANDBOX: &str = "{codex-sandbox}";

/// The request to synthesise one candidate from other candidates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Synthesis {
    /// The candidates that had passed, the recommended one first.
    pub drew_on: Vec<Name>,
    /// The recommended candidate's tree, with which the worktree begins.
    pub seed: Oid,
    /// The prompt: a blob, which the record's tree holds.
    pub prompt: Oid,
}

/// A candidate that was added to an existing run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Addition {
    /// The tree with which the worktree begins; `None` for the tree of the base.
    pub seed: Option<Oid>,
    /// The prompt, if it is not the run's: a blob, which the record's tree holds.
    pub prompt: Option<Oid>,
    /// The time limits that were given for its command.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: GivenLimits,
}

/// The command of a single candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Assignment {
    /// The agent's name, if the command is an agent.
    pub agent: Option<Name>,
    /// Program and arguments, with their placeholders.
    pub command: Vec<String>,
    /// True if the command reads the prompt from its standard input.
    pub stdin: bool,
    /// Text that is put before the prompt, for this candidate only.
    pub framing: Option<String>,
}

/// A run is displayed as its name.
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.run.fmt(f)
    }
}

impl Run {
    /// True if commands run in worktrees; false if people work in all of them.
    pub fn has_commands(&self) -> bool {
        self.candidates.iter().any(|name| self.has_command(name))
    }

    /// True if a command runs in the candidate's worktree; false if a person works there. The run's
    /// own command is only for the candidates that the run began with.
    pub fn has_command(&self, candidate: &Name) -> bool {
        let is_shared = !self.command.is_empty() && !self.added.contains_key(candidate);
        is_shared || self.agents.contains_key(candidate)
    }

    /// The agent or the command that makes the candidate's first attempt; `None` if a person works
    /// in the worktree.
    pub fn maker(&self, candidate: &Name) -> Option<String> {
        let assigned = self.agents.get(candidate);
        let command = || assigned.map_or(&self.command, |assigned| &assigned.command).join(" ");
        let agent = assigned.and_then(|assigned| assigned.agent.as_ref());
        self.has_command(candidate).then(|| agent.map_or_else(command, Name::to_string))
    }

    /// The candidate's own task, or else the run's.
    pub fn task_of(&self, candidate: &Name) -> Option<&str> {
        self.tasks.get(candidate).or(self.task.as_ref()).map(String::as_str)
    }

    /// The tree with which the candidate's worktree begins, if it is not the base's tree.
    pub fn seed(&self, candidate: &Name) -> Option<&Oid> {
        let synthesised = self.synthesis.get(candidate).map(|s| &s.seed);
        synthesised.or_else(|| self.added.get(candidate)?.seed.as_ref())
    }

    /// The prompt of the candidate's command: a blob.
    pub fn prompt(&self, candidate: &Name) -> Option<&Oid> {
        let own = self.own_prompts().find(|(name, _)| *name == candidate);
        own.map(|(_, blob)| blob).or(self.prompt.as_ref())
    }

    /// The prompts of the candidates that have a prompt of their own.
    pub fn own_prompts(&self) -> impl Iterator<Item = (&Name, &Oid)> {
        let synthesised = self.synthesis.iter().map(|(name, s)| (name, &s.prompt));
        let added = self.added.iter().filter_map(|(name, a)| Some((name, a.prompt.as_ref()?)));
        synthesised.chain(added)
    }

    /// The time limits that were given for the candidate's first command.
    pub fn given_limits(&self, candidate: &Name) -> GivenLimits {
        self.added.get(candidate).map_or(self.limits, |added| added.limits)
    }

    /// The commit from which the chain of parents starts, and on which a candidate lands. The tests
    /// and commands of this commit judge the run: a chain of attempts is trusted no more than one
    /// attempt that makes all changes of the chain.
    pub fn root(&self) -> &Oid {
        self.parent.as_ref().map_or(&self.base, |parent| &parent.root)
    }

    /// The number of generations above the run.
    pub fn depth(&self) -> u32 {
        self.parent.as_ref().map_or(0, |parent| parent.depth)
    }

    /// The candidate's place in spawn order, from 1; `None` if the run does not have it.
    pub fn index_of(&self, candidate: &Name) -> Option<u32> {
        let at = self.candidates.iter().position(|c| c == candidate)?;
        u32::try_from(at + 1).ok()
    }
}
