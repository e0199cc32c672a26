//! A run: one round of competing attempts from one base.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::name::Name;
use crate::model::oid::Oid;

/// `run.toml`: what was asked for, written once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Run {
    /// The record's format.
    pub version: u32,
    /// The run's id: a number, or the name that the user gave.
    pub run: Name,
    /// The commit that every candidate starts from.
    pub base: Oid,
    /// When, to the nanosecond: orders the runs.
    pub created: jiff::Timestamp,
    /// The candidates in spawn order; the first has index 1.
    pub candidates: Vec<Name>,
    /// The command run in each worktree; empty when people work there. Bytes that are not UTF-8 are
    /// replaced: this is for reading, not for running again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// What commands are asked to do: a blob that the record's tree holds as `prompt.md`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Oid>,
    /// The user's name for what this run is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// `spawn.worktree-root` as it stood, if it was configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_root: Option<String>,
    /// Whose state the base is, if the run was spawned from a candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// What works in the worktrees of these candidates instead of `command`: agents, mostly.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<Name, Assignment>,
    /// The candidates that were to integrate others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub synthesis: BTreeMap<Name, Synthesis>,
    /// What `git frites run` was typed with, for going on after an interruption.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
}

/// The candidate that a run inherits from: the run's base is a capture of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Parent {
    /// The parent's run.
    pub run: Name,
    /// The parent.
    pub candidate: Name,
    /// Which capture of it; none if it had changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The base of the first run of this line, which is nobody's capture.
    pub root: Oid,
    /// How many generations lie between that run and this one: 1 for a child of it.
    pub depth: u32,
}

/// Placeholders of a command's arguments: the prompt itself, and the file that holds it.
pub const PROMPT: &str = "{prompt}";
/// See [`PROMPT`].
pub const PROMPT_FILE: &str = "{prompt_file}";

/// What one candidate was to integrate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Synthesis {
    /// The candidates that had passed, the recommended one first.
    pub drew_on: Vec<Name>,
    /// The recommended one's tree: what its worktree begins with.
    pub seed: Oid,
    /// What it was asked: a blob that the record's tree holds.
    pub prompt: Oid,
}

/// A command that is one candidate's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Assignment {
    /// The agent that it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
    /// Program and arguments, with their placeholders.
    pub command: Vec<String>,
    /// Whether it reads the prompt as its standard input.
    pub stdin: bool,
    /// Words before the prompt that are this candidate's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<String>,
}

impl Run {
    /// Whether commands run in the worktrees, or people work there.
    pub fn has_commands(&self) -> bool {
        !self.command.is_empty() || !self.agents.is_empty()
    }

    /// The commit that the whole line of parents starts from: what landing lands on.
    pub fn root(&self) -> &Oid {
        self.parent.as_ref().map_or(&self.base, |parent| &parent.root)
    }

    /// How many generations of parents it has.
    pub fn depth(&self) -> u32 {
        self.parent.as_ref().map_or(0, |parent| parent.depth)
    }

    /// The candidate's place in spawn order, from 1; `None` if it is not of this run.
    pub fn index_of(&self, candidate: &Name) -> Option<u32> {
        let at = self.candidates.iter().position(|c| c == candidate)?;
        u32::try_from(at + 1).ok()
    }
}
