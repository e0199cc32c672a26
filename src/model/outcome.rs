//! How oracle commands end: one arm for every way, and which stage a tree reached.
use std::fmt;

use serde::{Deserialize, Serialize};

/// The commands run on a tree, in this order. `setup` prepares; the other three are the oracle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// `spawn.setup`, or what the project's lock file asks for.
    Setup,
    /// Does it build?
    Build,
    /// Does it satisfy the linter?
    Lint,
    /// Do its tests pass?
    Test,
}

impl Stage {
    /// The word used in records, output and log file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Setup => "setup",
            Stage::Build => "build",
            Stage::Lint => "lint",
            Stage::Test => "test",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How one command ended on one tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// It exited 0.
    Passed,
    /// It exited 0 after it had failed.
    Flaky,
    /// It exited with another code.
    Failed {
        /// The exit code.
        code: i32,
    },
    /// It took longer than it may.
    TimedOut,
    /// A signal ended it.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// It could not be started on this tree.
    CouldNotStart {
        /// The system's reason.
        reason: String,
    },
    /// An earlier command had decided already.
    Skipped,
}

impl Outcome {
    /// Whether the next command may run. Everything but an exit of 0 is a no: a partial result is
    /// never a pass.
    pub fn passed(&self) -> bool {
        matches!(self, Outcome::Passed | Outcome::Flaky)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Passed => write!(f, "passed"),
            Outcome::Flaky => write!(f, "flaky"),
            Outcome::Failed { code: 126 } => write!(f, "exit 126: not executable"),
            Outcome::Failed { code: 127 } => write!(f, "exit 127: command not found"),
            Outcome::Failed { code } => write!(f, "exit {code}"),
            Outcome::TimedOut => write!(f, "timed out"),
            Outcome::Signalled { signal } => write!(f, "signal {signal}"),
            Outcome::CouldNotStart { reason } => write!(f, "could not start: {reason}"),
            Outcome::Skipped => write!(f, "skipped"),
        }
    }
}

/// One command's end on one tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageResult {
    /// Which command.
    pub stage: Stage,
    /// Wall-clock time in seconds; 0 when skipped.
    pub seconds: f64,
    /// Whether it left processes behind, which were ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaky: bool,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
}
