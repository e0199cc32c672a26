//! A run: one round of competing attempts from one base.
use serde::{Deserialize, Serialize};

use super::name::Name;
use super::oid::Oid;

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
    /// `spawn.worktree-root` as it stood, if it was configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_root: Option<String>,
}

impl Run {
    /// The candidate's place in spawn order, from 1; `None` if it is not of this run.
    pub fn index_of(&self, candidate: &Name) -> Option<u32> {
        let at = self.candidates.iter().position(|c| c == candidate)?;
        u32::try_from(at + 1).ok()
    }
}
