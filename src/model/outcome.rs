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
    Flaky {
        /// Whether `oracle.flaky = "fail"` made that a no.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        refused: bool,
    },
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
        matches!(self, Outcome::Passed | Outcome::Flaky { refused: false })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Passed => write!(f, "passed"),
            Outcome::Flaky { refused: false } => write!(f, "flaky"),
            Outcome::Flaky { refused: true } => write!(f, "flaky, which is refused"),
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
#[serde(rename_all = "kebab-case")]
pub struct StageResult {
    /// Which command.
    pub stage: Stage,
    /// Wall-clock time in seconds of the attempt that counts; 0 when skipped.
    pub seconds: f64,
    /// Whether it left processes behind, which were ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaky: bool,
    /// Whether an earlier judging ran it, on the same tree under the same conditions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The tracked files that it changed in its checkout; what lands is as it was captured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// What its JUnit file told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestReport>,
    /// The attempts before the one that counts, oldest first; only with retries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Attempt>,
}

/// An attempt at a command that was then retried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Wall-clock time in seconds.
    pub seconds: f64,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What a test runner told of single tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// How many tests there were, those that were left out included.
    pub total: u64,
    /// Why it tells nothing, or not everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How many were left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// The names of those that failed, sorted.
    #[serde(default)]
    pub failing: Vec<String>,
    /// The names of those that passed, sorted; kept for the base alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passing: Vec<String>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl StageResult {
    /// An end with nothing else to tell.
    pub fn new(stage: Stage, seconds: f64, outcome: Outcome) -> Self {
        StageResult {
            stage,
            seconds,
            leaky: false,
            cached: false,
            outcome,
            changed: Vec::new(),
            tests: None,
            earlier: Vec::new(),
        }
    }

    /// How often the command was started for this.
    pub fn runs(&self) -> usize {
        if self.outcome == Outcome::Skipped { 0 } else { 1 + self.earlier.len() }
    }
}
