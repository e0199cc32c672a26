//! A candidate: one attempt, with its state and its captures.
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

use crate::model::agent_stop::AgentFault;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::separation::AttemptAccess;
use crate::model::usage::RoundUsage;

/// The state of an attempt (DESIGN.md §1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum State {
    /// A person works in the worktree; there is no command.
    #[default]
    Open,
    /// The candidate's command runs.
    Running,
    /// The candidate's command exited 0 and changed something.
    Succeeded,
    /// The candidate's command exited 0 and changed nothing.
    Empty,
    /// The candidate's command did not exit 0.
    Failed,
    /// The candidate's command took too long.
    TimedOut,
    /// The candidate's command was ended from outside.
    Cancelled,
    /// The candidate's agent could not go on, or was not started, because its account has reached a
    /// limit, or because its environment has a fault.
    Limited,
}

impl State {
    /// The state of a candidate whose capture differs from the base in `files` files. Only this
    /// number distinguishes `empty` from `succeeded`.
    #[must_use]
    pub fn with_files(self, files: u64) -> Self {
        match self {
            State::Succeeded if files == 0 => State::Empty,
            State::Empty if files > 0 => State::Succeeded,
            other => other,
        }
    }

    /// True if a candidate in this state that changes `files` paths can be judged.
    pub fn usable(self, files: u64) -> bool {
        matches!(self, State::Open | State::Succeeded) && files > 0
    }
}

/// The end of a candidate's command, as far as it explains the candidate's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CommandEnd {
    /// The exit code, if the command ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// The time at which the agent's limit ends, as the agent told it.
    pub resets: Option<String>,
    /// The fault of the environment that stopped the agent.
    pub fault: Option<AgentFault>,
}

impl CommandEnd {
    /// The cause of the state that this end led to, in words: `exit 3`.
    pub fn cause(&self, state: State) -> Option<String> {
        let CommandEnd { exit_code, signal, resets, fault } = self;
        match state {
            State::Failed => exit_code
                .map(|code| format!("exit {code}"))
                .or_else(|| signal.map(|signal| format!("signal {signal}"))),
            State::Limited => fault
                .map(|fault| format!("the agent {fault}"))
                .or_else(|| resets.as_ref().map(|time| format!("resets {time}"))),
            _ => None,
        }
    }
}

/// The landing state of a candidate (DESIGN.md §1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Landing {
    /// Not landed.
    #[default]
    Pending,
    /// On a fresh branch.
    Landed,
    /// Merged.
    Merged,
    /// Landed, and then reverted or rolled back.
    Undone,
    /// Cleaned without landing.
    Discarded,
}

impl Landing {
    /// The state for people. A discarded candidate is called `not landed`, because it can still
    /// land from its captures.
    pub fn in_words(self) -> String {
        match self {
            Landing::Discarded => "not landed".into(),
            other => other.to_string(),
        }
    }
}

/// The reason in the record of a candidate that `shard open --attempts` made and whose first
/// capture has not arrived. The state in the record is `cancelled`, so that `run --resume` starts
/// the candidate.
pub const FOR_LATER: &str = "not started yet";

/// The reason in the record of a candidate whose command was ended, or not started, because enough
/// other candidates had passed.
pub const ENOUGH_PASSED: &str = "enough passed";

/// `candidate.toml`: the record of one attempt, without its captures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Candidate {
    /// The record's format.
    pub version: u32,
    /// The candidate's run.
    pub run: Name,
    /// The candidate's name, unique in the run.
    pub candidate: Name,
    /// The candidate's place in spawn order, from 1.
    pub index: u32,
    /// The candidate's state.
    pub state: State,
    /// The candidate's landing state.
    #[serde(default)]
    pub landing: Landing,
    /// The time of its landing, or of the undo.
    pub landing_time: Option<jiff::Timestamp>,
    /// True if the worktree never expires, because a person wants to review it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// The first of the ten ports that are reserved for the command.
    pub port: Option<u16>,
    /// The commit that landed the candidate or undid the landing; `None` if the change was only
    /// staged.
    pub landing_commit: Option<Oid>,
    /// The branch of `landing_commit`.
    pub landing_branch: Option<RefName>,
    #[serde(flatten)]
    pub end: CommandEnd,
    /// The reason why the command could not start, or a description of `state`.
    pub reason: Option<String>,
    /// True if the command left processes behind, which were ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaky: bool,
    /// True if the command is from a further round (`retry`): then `--resume` must not
    /// start the run's own command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// The agent or the command of the last further round that changed files.
    pub maker: Option<String>,
    /// The access that the attempt's commands had outside of its worktree. `None` if there was no
    /// command, or if the access is not known, as for attempts on other machines.
    pub access: Option<AttemptAccess>,
    /// True while the worktree is made again after an interruption. It may be missing or
    /// incomplete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remaking: bool,
    /// The time at which the command started.
    pub started: Option<jiff::Timestamp>,
    /// The time at which the command ended.
    pub ended: Option<jiff::Timestamp>,
    /// The usage of the agent in each command of the candidate, in order; empty if the format of
    /// the agent's report is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<RoundUsage>,
    /// True if the worktree was removed, by `clean` or because the attempt changed nothing.
    #[serde(default)]
    pub cleaned: bool,
    /// The size of the worktree on disk, in bytes, when it was last measured.
    #[serde(default)]
    pub bytes: u64,
}

impl Candidate {
    /// The record of a new candidate in this state.
    pub fn new(run: &Name, candidate: &Name, index: u32, state: State) -> Self {
        Candidate {
            version: crate::model::FORMAT,
            run: run.clone(),
            candidate: candidate.clone(),
            index,
            state,
            ..Candidate::default()
        }
    }

    /// Notes that the candidate's old worktree is gone, and that a new one is being made.
    pub fn begin_remaking(&mut self) {
        self.remaking = true;
        self.reason = Some("its worktree is being made again".into());
    }

    /// Notes the access that the candidate's command will have. A `judge` that runs at the same
    /// time needs this to know which outcomes the command could have forged.
    pub fn begin_access(&mut self, access: &AttemptAccess) {
        if self.started.is_none() && self.access.is_none() {
            self.access = Some(access.clone());
        }
    }

    /// True if the candidate's command was ended, or not started, because enough other candidates
    /// had passed.
    pub fn is_stopped(&self) -> bool {
        self.state == State::Cancelled
            && self.reason.as_ref().is_some_and(|reason| reason.ends_with(ENOUGH_PASSED))
    }

    /// True if the candidate's command was never started in this repository, but may still be
    /// started.
    pub fn was_never_started(&self) -> bool {
        self.state == State::Cancelled
            && self.started.is_none()
            && !(self.again || self.remaking || self.is_stopped())
    }

    /// The size of the worktree on disk when it was last measured; 0 without a worktree.
    pub fn bytes_now(&self) -> u64 {
        if self.cleaned { 0 } else { self.bytes }
    }

    /// `RUN/CAND`.
    pub fn address(&self) -> String {
        format!("{}/{}", self.run, self.candidate)
    }

    /// The time that the candidate's command took; `None` if the command has not ended.
    pub fn run_time(&self) -> Option<std::time::Duration> {
        self.ended?.duration_since(self.started?).try_into().ok()
    }

    /// The reason why the agent of this name could not go on, if the candidate is `limited`.
    pub fn why_limited(&self, agent: &Name) -> String {
        match self.end.fault {
            Some(fault) => format!("the agent '{agent}' {fault}"),
            None => format!("the agent '{agent}' is at its limit"),
        }
    }

    /// The state with its cause, for people: `failed (exit 3)`. A candidate whose command has not
    /// started is `waiting`; it is `not started` if a person must start it.
    pub fn state_in_words(&self) -> String {
        let cause = self.end.cause(self.state);
        let has_reason = matches!(self.state, State::Failed | State::TimedOut | State::Cancelled);
        let reason = if has_reason { self.reason.clone() } else { None };
        match cause.or(reason) {
            _ if self.state == State::Running && self.started.is_none() => "waiting".to_owned(),
            Some(cause) if cause == FOR_LATER => "not started".to_owned(),
            Some(cause) if cause == ENOUGH_PASSED => format!("stopped: {cause}"),
            Some(cause) => format!("{} ({cause})", self.state),
            None => self.state.to_string(),
        }
    }
}

/// One stored tree of a candidate. Its commit has the previous capture as its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The commit under `refs/frites/RUN/CAND`.
    pub commit: Oid,
    /// The tree of the worktree's files.
    pub tree: Oid,
    /// The number of the iteration, from 1.
    pub iteration: u32,
}
