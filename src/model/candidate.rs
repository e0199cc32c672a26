//! A candidate: one attempt, its state, and what was captured from it.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// Where an attempt stands (DESIGN.md §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No command: a person works there.
    Open,
    /// Its command runs.
    Running,
    /// Its command exited 0 and changed something.
    Succeeded,
    /// Its command exited 0 and changed nothing.
    Empty,
    /// Its command did not exit 0.
    Failed,
    /// Its command took too long.
    TimedOut,
    /// Its command was ended from outside.
    Cancelled,
}

impl State {
    /// The word used in records, output and trailers.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Open => "open",
            State::Running => "running",
            State::Succeeded => "succeeded",
            State::Empty => "empty",
            State::Failed => "failed",
            State::TimedOut => "timed-out",
            State::Cancelled => "cancelled",
        }
    }

    /// The state of that word.
    pub fn parse(word: &str) -> Option<Self> {
        use State::*;
        [Open, Running, Succeeded, Empty, Failed, TimedOut, Cancelled]
            .into_iter()
            .find(|s| s.as_str() == word)
    }

    /// The state once a capture has shown how many files differ from the base: `empty` and
    /// `succeeded` are two answers to that one question.
    #[must_use]
    pub fn with_files(self, files: u64) -> Self {
        match self {
            State::Succeeded if files == 0 => State::Empty,
            State::Empty if files > 0 => State::Succeeded,
            other => other,
        }
    }

    /// Whether a candidate in this state that touches `files` paths may be judged.
    pub fn usable(self, files: u64) -> bool {
        matches!(self, State::Open | State::Succeeded) && files > 0
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What became of a candidate after the verdict (DESIGN.md §1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Landing {
    /// Not landed.
    #[default]
    Pending,
    /// On a fresh branch.
    Landed,
    /// Merged.
    Merged,
    /// Landed once, and taken back.
    Undone,
    /// Cleaned without landing.
    Discarded,
}

impl fmt::Display for Landing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Landing::Pending => "pending",
            Landing::Landed => "landed",
            Landing::Merged => "merged",
            Landing::Undone => "undone",
            Landing::Discarded => "discarded",
        })
    }
}

/// `candidate.toml`: what is known of one attempt beyond its captures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Candidate {
    /// The record's format.
    pub version: u32,
    /// Its run.
    pub run: Name,
    /// Its name, unique in the run.
    pub candidate: Name,
    /// Its place in spawn order, from 1.
    pub index: u32,
    /// How far it got.
    pub state: State,
    /// What became of it.
    #[serde(default)]
    pub landing: Landing,
    /// When it landed, or was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing_time: Option<jiff::Timestamp>,
    /// Whether it is kept for review: it never expires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// The first of the ten ports that are its command's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The commit that put it on a branch, or that took it off again; none if it was only staged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing_commit: Option<Oid>,
    /// That branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing_branch: Option<RefName>,
    /// The command's exit code, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why the command could not start, or other words for `state`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the command left processes behind, which were ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaky: bool,
    /// Whether its command is of another round (`spawn --again`): then the run's own command is not what to go on
    /// with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// When the command started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<jiff::Timestamp>,
    /// When the command ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<jiff::Timestamp>,
    /// Whether `clean` (or an empty result) has taken the worktree away.
    #[serde(default)]
    pub cleaned: bool,
}

impl Candidate {
    /// A fresh record.
    pub fn new(run: &Name, candidate: &Name, index: u32, state: State) -> Self {
        Candidate {
            version: crate::model::FORMAT,
            run: run.clone(),
            candidate: candidate.clone(),
            index,
            state,
            landing: Landing::Pending,
            port: None,
            landing_commit: None,
            landing_branch: None,
            landing_time: None,
            kept: false,
            exit_code: None,
            signal: None,
            reason: None,
            leaky: false,
            again: false,
            started: None,
            ended: None,
            cleaned: false,
        }
    }

    /// `RUN/CAND`.
    pub fn address(&self) -> String {
        format!("{}/{}", self.run, self.candidate)
    }

    /// How long its command took, if it has ended.
    pub fn worked(&self) -> Option<std::time::Duration> {
        self.ended?.duration_since(self.started?).try_into().ok()
    }

    /// The state with its cause, for people: `failed (exit 3)`.
    pub fn state_in_words(&self) -> String {
        match (self.state, self.exit_code, self.signal, &self.reason) {
            (State::Failed, Some(code), _, _) => format!("failed (exit {code})"),
            (State::Failed, _, Some(signal), _) => format!("failed (signal {signal})"),
            (State::Failed | State::Cancelled, _, _, Some(reason)) => {
                format!("{} ({reason})", self.state)
            }
            _ => self.state.to_string(),
        }
    }
}

/// One stored tree of a candidate, chained to the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The commit under `refs/frites/RUN/CAND`.
    pub commit: Oid,
    /// The worktree's files.
    pub tree: Oid,
    /// Counts from 1.
    pub iteration: u32,
}
