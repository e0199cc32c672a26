//! The messages between git-frites and a supervisor. git-frites sends the limits and orders, and
//! the supervisor sends its report.
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::outcome::Outcome;
use crate::process::processor_share::ProcessorShare;
use crate::process::world_spec::WorldMessage;

/// The hidden first argument that makes git-frites a supervisor.
pub const VERB: &str = "__supervise";

/// The limits of a command. A time of `None` means no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The longest time that the command may run.
    pub hard: Option<Duration>,
    /// The longest time without output.
    pub idle: Option<Duration>,
    /// The command's share of the processor.
    pub share: ProcessorShare,
}

/// The bytes that git-frites writes to the supervisor's standard input, a pipe.
pub mod order {
    /// End the command and its descendants politely: send SIGTERM, and SIGKILL after the grace
    /// period.
    pub const TERMINATE: u8 = b't';
    /// End the command and its descendants now: send SIGKILL.
    pub const KILL: u8 = b'k';
    /// Stop the command, its descendants, and the clocks of the time limits.
    pub const STOP: u8 = b's';
    /// Continue the command, its descendants, and the clocks.
    pub const CONTINUE: u8 = b'c';
}

/// The report that the supervisor writes to its standard output.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SupervisorReport {
    /// The command's exit code.
    pub code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// The reason why the command could not be started.
    pub reason: Option<String>,
    /// The reason why the supervisor itself or the confinement failed. Then nothing is known about
    /// the command.
    pub error: Option<String>,
    /// The signal that ended the command, if the supervisor has received the same signal. Then
    /// somebody else has sent it: neither git-frites nor the command.
    pub ended_from_outside: Option<i32>,
    /// True if the command exceeded a time limit.
    pub timed_out: bool,
    /// The size that the command exceeded, if it took too much of the disk.
    #[serde(default)]
    pub wrote_more_than: Option<TooMuch>,
    /// The reason why a part of the command's output is not in its log.
    #[serde(default)]
    pub lost_output: Option<String>,
    /// True if git-frites ordered the supervisor to end the command.
    pub cancelled: bool,
    /// True if the command ended by itself and left processes behind.
    pub leaky: bool,
}

/// This many bytes of the disk are reserved for other programs. If fewer bytes are free, a command
/// that has taken more bytes than this is ended, whatever its limit is.
pub const RESERVED_SPACE: u64 = 256 << 20;

/// The disk limit that a command exceeded, or what the command had taken when the disk was nearly
/// full.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TooMuch {
    /// The space in bytes.
    pub bytes: u64,
    /// The number of files, if their number was the reason.
    pub files: Option<u64>,
}

impl SupervisorReport {
    /// Notes how the command ended, or why it was not run.
    pub fn take(&mut self, message: WorldMessage) {
        match message {
            WorldMessage::Exited { code, signal } => (self.code, self.signal) = (code, signal),
            WorldMessage::NotStarted { reason } => self.reason = Some(reason),
            WorldMessage::Refused { reason } => self.error = Some(reason),
        }
    }

    /// The reason why the command was not run; `None` if it runs or has run.
    pub fn why_not_run(&self) -> Option<&String> {
        self.reason.as_ref().or(self.error.as_ref())
    }

    /// How the command ended.
    pub fn outcome(&self) -> Outcome {
        match self {
            SupervisorReport { reason: Some(reason), .. } => {
                Outcome::CouldNotStart { reason: reason.clone() }
            }
            SupervisorReport { timed_out: true, .. } => Outcome::TimedOut,
            SupervisorReport { wrote_more_than: Some(TooMuch { bytes, files }), .. } => {
                Outcome::WroteTooMuch { bytes: *bytes, files: *files }
            }
            SupervisorReport { code: Some(0), .. } => Outcome::Passed,
            SupervisorReport { code: Some(code), .. } => Outcome::Failed { code: *code },
            SupervisorReport { signal, .. } => {
                Outcome::Signalled { signal: signal.unwrap_or_default() }
            }
        }
    }
}
