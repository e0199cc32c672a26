//! The stages of oracle commands, and the ways in which a command can end.
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use crate::model::count::count;
use crate::model::error_line::tells_of_lack;
use crate::model::layout::{log_name, log_of_try};
use crate::model::size::size;
use crate::model::test_report::TestReport;

/// The stages in which commands run on a tree, in this order. `setup` prepares the tree; the other
/// three are the oracle.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, IntoStaticStr)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Stage {
    /// `spawn.setup`, or the command that installs what the project's lock file lists.
    #[default]
    Setup,
    /// Does the tree build?
    Build,
    /// Does the tree satisfy the linter?
    Lint,
    /// Do the tests pass?
    Test,
}

impl Stage {
    /// The word used in records, output and log file names.
    pub fn as_str(self) -> &'static str {
        self.into_str()
    }
}

/// How one command ended on one tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// Exit code 0.
    Passed,
    /// Exit code 0, after at least one failure.
    Flaky {
        /// True if `oracle.flaky = "fail"` turns this into a failure.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        refused: bool,
    },
    /// Another exit code.
    Failed {
        /// The exit code.
        code: i32,
    },
    /// Exit code 0, although the tests' report file, or the last summary that the runner printed,
    /// says that tests failed. The exit code was lost, for example in a pipe.
    ReportedFailures {
        /// The number of tests that failed.
        failed: u64,
    },
    /// Exit code 0, although the tests' report shows fewer tests than ran on the base, or is
    /// missing although the base has one. It is not known whether the other tests pass.
    MissingTests {
        /// The number of the base's tests that ran, by the report; 0 if there is no report.
        reported: u64,
        /// The number of tests that ran on the base.
        expected: u64,
    },
    /// Killed at the time limit.
    TimedOut,
    /// Killed by a signal.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// Killed because it took too much disk space.
    WroteTooMuch {
        /// The limit in bytes, or the space that the command took when the disk was full.
        bytes: u64,
        /// The number of files that it made when the disk could hold no more of them.
        files: Option<u64>,
    },
    /// Could not be started on this tree.
    CouldNotStart {
        /// The reason that the system or git-frites gives.
        reason: String,
    },
    /// Exit code 125: the command itself says that it cannot tell, as in `git bisect run`. Or it
    /// failed because something was missing that is not part of the tree. This is neither a pass
    /// nor a failure.
    CannotTell,
    /// Not run, because an earlier command did not pass.
    #[default]
    Skipped,
}

/// The exit code by which an oracle command says that it cannot tell.
pub const CANNOT_TELL: i32 = 125;

impl Outcome {
    /// True if the next command may run. Every exit code other than 0 stops the oracle. So does an
    /// exit code 0 that the tests' report contradicts. A partial result is never a pass.
    pub fn passed(&self) -> bool {
        matches!(self, Outcome::Passed | Outcome::Flaky { refused: false })
    }

    /// True if a program could not be started: the command itself or, as the exit code of a shell
    /// says, the last program that the shell ran. Then the tree need not be the cause.
    pub fn could_not_start(&self) -> bool {
        self.why_not_started().is_some()
    }

    /// The reason why a program could not be started; `None` if it was started.
    pub fn why_not_started(&self) -> Option<String> {
        match self {
            Outcome::CouldNotStart { reason } => Some(reason.clone()),
            Outcome::Failed { code: 126 | 127 } => Some(self.to_string()),
            _ => None,
        }
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
            Outcome::ReportedFailures { failed } => {
                write!(f, "exit 0 although {} failed", count(*failed, "test"))
            }
            Outcome::MissingTests { reported: 0, expected } => write!(
                f,
                "exit 0, but no report says that tests ran; {} ran on the base",
                count(*expected, "test")
            ),
            Outcome::MissingTests { reported, expected } => write!(
                f,
                "exit 0, but by its report only {reported} of the base's {} ran",
                count(*expected, "test")
            ),
            Outcome::TimedOut => write!(f, "timed out"),
            Outcome::Signalled { signal } => write!(f, "signal {signal}"),
            Outcome::WroteTooMuch { bytes, files: None } => {
                write!(f, "wrote more than {}", size(*bytes))
            }
            Outcome::WroteTooMuch { files: Some(files), .. } => {
                write!(f, "made more than {}", count(*files, "file"))
            }
            Outcome::CouldNotStart { reason } => write!(f, "could not start: {reason}"),
            Outcome::CannotTell => write!(f, "skipped: cannot tell"),
            Outcome::Skipped => write!(f, "skipped"),
        }
    }
}

/// A fault that may have made a command fail. It is a fault of the place where the command ran, and
/// not of the tree. It is found in the command's output or by comparing files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Obstacle {
    /// Something could not be renamed: an overlay refuses to rename directories of the base.
    Rename,
    /// The command was refused a write to a file to which the user can write.
    Write {
        /// The directory of the file.
        directory: String,
    },
    /// The command did not find a file that the user has, but that commands cannot see.
    Hidden {
        /// The file's path.
        file: String,
    },
    /// The dependencies of the tree could not be downloaded.
    Download,
    /// The disk to which the command writes was full.
    FullDisk,
    /// A command rewrote a test of the base, or a file that decides which commands run. It did not
    /// do so on the base.
    Rewritten {
        /// The file's path.
        file: String,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Rename => write!(f, "a rename was refused"),
            Obstacle::Write { directory } => write!(f, "a write to '{directory}' was refused"),
            Obstacle::Hidden { file } => write!(f, "'{file}' is hidden from the commands"),
            Obstacle::Download => write!(f, "its dependencies could not be downloaded"),
            Obstacle::FullDisk => write!(f, "the disk was full"),
            Obstacle::Rewritten { file } => {
                write!(f, "a command rewrote '{file}', so its pass does not count")
            }
        }
    }
}

/// The result of one command on one tree, with all its attempts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StageResult {
    /// The command's stage.
    pub stage: Stage,
    /// Wall-clock time in seconds of the last attempt at the command; 0 when skipped.
    pub seconds: f64,
    /// True if the command left processes behind, which were killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaky: bool,
    /// True if the result comes from the cache: an earlier judging ran the command on the same tree
    /// under the same conditions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// True if the command ran over layers that the base's commands had written, and could end
    /// differently without these layers: they contain build outputs, or the command failed. Such a
    /// result is a claim: no candidate is recommended because of a claim alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm: bool,
    /// How the last attempt at the command ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// A reason other than the tree why the command may have failed.
    pub obstacle: Option<Obstacle>,
    /// The tracked files that the command changed in its checkout. These changes do not land.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The results of the command's single tests, if its output or the files that it wrote contain
    /// them.
    pub tests: Option<TestReport>,
    /// The first line of the command's output that looks like an error. If no line does, the last
    /// line that is about this command itself, not about another command that failed. It is set
    /// only if the command failed, and no report has both a failing and a passing test.
    pub error: Option<String>,
    /// The attempts at the command before the last one, oldest first; only with retries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Attempt>,
}

/// An attempt at a command that was then retried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Wall-clock time in seconds.
    pub seconds: f64,
    /// The end of this attempt.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl StageResult {
    /// True if two commands failed alike: in the same stage, with the same end and the same error
    /// line, and without a test that passed.
    pub fn fails_like(&self, other: &StageResult) -> bool {
        let none_passed = |r: &StageResult| r.tests.as_ref().is_none_or(TestReport::none_passed);
        (self.stage, &self.outcome, &self.error) == (other.stage, &other.outcome, &other.error)
            && none_passed(self)
            && none_passed(other)
    }

    /// A result of which only the outcome and the time are known.
    pub fn new(stage: Stage, seconds: f64, outcome: Outcome) -> Self {
        StageResult { stage, seconds, outcome, ..StageResult::default() }
    }

    /// True if a command that ends like this on the base can judge no tree. This is so if it could
    /// not start, if it was refused a write, or if the disk was full. It is also so if it is a
    /// setup that failed for another reason than a download.
    pub fn is_unjudgeable(&self) -> bool {
        let is_refused = matches!(self.obstacle, Some(Obstacle::Write { .. } | Obstacle::FullDisk));
        let by_the_place = is_refused && self.outcome == Outcome::CannotTell;
        // If a setup only failed to download, the base is judged all the same.
        let is_download = self.obstacle == Some(Obstacle::Download);
        let is_setup = self.stage == Stage::Setup && !self.outcome.passed() && !is_download;
        is_setup || by_the_place || self.outcome.could_not_start()
    }

    /// The number of tests in the report of a failed command, if no test failed. Then another part
    /// of the command failed, such as a check after the tests.
    pub fn tests_without_failure(&self) -> Option<u64> {
        let report = self.tests.as_ref()?;
        let has_failed = matches!(self.outcome, Outcome::Failed { .. });
        let no_test_failed = report.problem.is_none() && report.failing.is_empty();
        (has_failed && no_test_failed && report.total > 0).then_some(report.total)
    }

    /// The reason why the result is not a pass, in a few words.
    pub fn why_not_passed(&self) -> String {
        match &self.obstacle {
            Some(obstacle) if self.outcome == Outcome::CannotTell => obstacle.to_string(),
            _ => self.outcome.to_string(),
        }
    }

    /// As [`Self::why_not_passed`], with the error if it names something that is missing.
    pub fn why_and_lack(&self) -> String {
        let why = self.why_not_passed();
        match &self.error {
            Some(error) if self.obstacle.is_none() && tells_of_lack(error) => {
                format!("{why}: {error}")
            }
            _ => why,
        }
    }

    /// The names of the command's logs: first the logs of the earlier tries, then the log of the
    /// last try.
    pub fn log_names(&self) -> Vec<String> {
        let stage = self.stage;
        let earlier = (1..=self.earlier.len()).map(|n| log_of_try(stage.as_str(), n));
        let last = (self.outcome != Outcome::Skipped).then(|| log_name(stage.as_str()));
        earlier.chain(last).collect()
    }

    /// The number of times that the command was started.
    pub fn runs(&self) -> usize {
        if self.outcome == Outcome::Skipped { 0 } else { 1 + self.earlier.len() }
    }
}

/// The results of all commands on one tree, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Results(pub Vec<StageResult>);

impl Results {
    /// True if every command ran and exited 0.
    pub fn passed(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|r| r.outcome.passed())
    }

    /// The first result that is not a pass.
    pub fn stopped_at(&self) -> Option<&StageResult> {
        self.0.iter().find(|r| !r.outcome.passed())
    }

    /// True if the first command that did not pass exited 0, and its tests' report contradicts
    /// that.
    pub fn is_contradicted(&self) -> bool {
        let outcome = self.stopped_at().map(|result| &result.outcome);
        matches!(outcome, Some(Outcome::ReportedFailures { .. } | Outcome::MissingTests { .. }))
    }

    /// True if the test commands passed, and each of them reported that no test ran.
    pub fn ran_no_test(&self) -> bool {
        let mut tests = self.0.iter().filter(|result| result.stage == Stage::Test).peekable();
        let is_empty = |result: &StageResult| {
            result.outcome.passed() && result.tests.as_ref().is_some_and(|tests| tests.total == 0)
        };
        tests.peek().is_some() && tests.all(is_empty)
    }

    /// True if the first command that did not pass says that it cannot tell.
    pub fn cannot_tell(&self) -> bool {
        self.stopped_at().is_some_and(|r| r.outcome == Outcome::CannotTell)
    }

    /// True if any result is a claim ([`StageResult::warm`]): without the layers of the base's
    /// commands, the result could be different.
    pub fn is_claim(&self) -> bool {
        self.0.iter().any(|r| r.warm)
    }

    /// The number of commands that were started for these results.
    pub fn commands_run(&self) -> u64 {
        let started = self.0.iter().filter(|r| !matches!(r.outcome, Outcome::CouldNotStart { .. }));
        started.map(|r| r.runs() as u64).sum()
    }

    /// The time that the commands took.
    pub fn time(&self) -> Duration {
        let seconds: f64 = self.0.iter().map(|result| result.seconds).sum();
        // Records from other machines may contain any number.
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// The names of the tests that failed, if a report names them. `None` if a command failed and
    /// its report names no failing test: then it failed for another reason.
    pub fn failing_tests(&self) -> Option<&[String]> {
        let (result, report) = self.0.iter().find_map(|r| Some((r, r.tests.as_ref()?)))?;
        let is_complete =
            report.problem.is_none() && (result.outcome.passed() || !report.failing.is_empty());
        is_complete.then_some(report.failing.as_slice())
    }

    /// The report of the tests, if there is one.
    pub fn report(&self) -> Option<&TestReport> {
        self.0.iter().find_map(|result| result.tests.as_ref())
    }

    /// The number of tests in the report; 0 without a report.
    pub fn reported_tests(&self) -> u64 {
        self.report().map_or(0, |report| report.total)
    }

    /// Drops the names of passing tests that the base also has. The base's report still has them,
    /// and they are needed only there, to find the tests that a candidate broke. If the base has no
    /// report of the same kind, drops all names.
    pub fn forget_passing_tests(&mut self, base: Option<&TestReport>) {
        for report in self.0.iter_mut().filter_map(|r| r.tests.as_mut()) {
            let base = base.filter(|base| base.printed_by == report.printed_by);
            report.passing = base.map(|base| report.passing_beyond(base)).unwrap_or_default();
        }
    }

    /// True for a pass without any retry.
    pub fn is_clean_pass(&self) -> bool {
        self.passed() && self.0.iter().all(|result| result.earlier.is_empty())
    }

    /// True for a pass that depended only on the tree, so that a later judging may use it. The
    /// machine may have been the cause of an earlier failed try: a program was missing, or the
    /// command was killed or exceeded a time limit. Then the pass is not used later.
    pub fn is_lasting_pass(&self) -> bool {
        let mut earlier = self.0.iter().flat_map(|r| &r.earlier).map(|attempt| &attempt.outcome);
        self.0.iter().all(|r| r.outcome.passed())
            && earlier.all(|end| matches!(end, Outcome::Failed { .. }) && !end.could_not_start())
    }
}

impl Deref for Results {
    type Target = Vec<StageResult>;

    fn deref(&self) -> &Vec<StageResult> {
        &self.0
    }
}
