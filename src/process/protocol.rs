//! The protocol between git-frites and its supervisors: limits, orders and the report.
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::outcome::Outcome;
use crate::process::processor_share::ProcessorShare;

/// The hidden first argument that makes git-frites a supervisor.
pub const VERB: &str = "__supervise";

/// The limits of a command; a time of `None` is no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The limit from the command's start to its end.
    pub hard: Option<Duration>,
    /// The limit from one byte of output to the next.
    pub idle: Option<Duration>,
    /// The share of the processor.
    pub share: ProcessorShare,
}

/// The bytes that git-frites sends down the pipe.
pub mod order {
    /// End the tree politely: SIGTERM, and SIGKILL after the grace period.
    pub const TERMINATE: u8 = b't';
    /// End the tree now: SIGKILL.
    pub const KILL: u8 = b'k';
    /// Stop the tree and the clocks of its time limits.
    pub const STOP: u8 = b's';
    /// Let the tree and the clocks go on.
    pub const CONTINUE: u8 = b'c';
}

/// The supervisor's answer on its standard output.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SupervisorReport {
    /// The command's exit code.
    pub code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// The reason why the command could not be started.
    pub reason: Option<String>,
    /// The reason why the supervisor could not do its work: nothing is known about the command.
    pub error: Option<String>,
    /// The signal that ended the command, if the supervisor got it, too: neither git-frites nor the command
    /// has sent it.
    pub ended_from_outside: Option<i32>,
    /// True if the command exceeded a time limit.
    pub timed_out: bool,
    /// The number of bytes that the command exceeded, if it took too much disk space.
    #[serde(default)]
    pub wrote_more_than: Option<u64>,
    /// True if git-frites ordered the command's end.
    pub cancelled: bool,
    /// True if the command left processes behind when it ended by itself.
    pub leaky: bool,
}

impl SupervisorReport {
    /// How the command ended.
    pub fn outcome(&self) -> Outcome {
        match self {
            SupervisorReport { reason: Some(reason), .. } => {
                Outcome::CouldNotStart { reason: reason.clone() }
            }
            SupervisorReport { timed_out: true, .. } => Outcome::TimedOut,
            SupervisorReport { wrote_more_than: Some(bytes), .. } => {
                Outcome::WroteTooMuch { bytes: *bytes }
            }
            SupervisorReport { code: Some(0), .. } => Outcome::Passed,
            SupervisorReport { code: Some(code), .. } => Outcome::Failed { code: *code },
            SupervisorReport { signal, .. } => {
                Outcome::Signalled { signal: signal.unwrap_or_default() }
            }
        }
    }
}
