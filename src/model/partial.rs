//! The outcomes of parts that were judged by themselves, in several processes or on several
//! machines.
use serde::{Deserialize, Serialize};

use crate::model::base_tests::BaseTestsResult;
use crate::model::machine::Machine;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::outcome::{Outcome, Results, Stage, StageResult};
use crate::model::part::Part;
use crate::model::terms::Terms;
use crate::model::verdict::Entry;

/// `outcome.toml`: the outcome of one part, with the time, place and terms of its judging.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PartOutcome {
    /// The record's format.
    pub version: u32,
    /// The run.
    pub run: Name,
    /// The run's base.
    pub base: Oid,
    /// The time of the judging.
    pub judged: jiff::Timestamp,
    /// The round of judging; see [`crate::model::verdict::Verdict::round`].
    #[serde(default)]
    pub round: u32,
    /// The machine that judged; none in old records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The terms of the judging.
    #[serde(flatten)]
    pub terms: Terms,
    /// The candidate that was judged; `None` if it was the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Entry>,
    /// The results of the commands on the base, in order.
    #[serde(default, rename = "results", skip_serializing_if = "Results::is_empty")]
    pub on_base: Results,
}

impl PartOutcome {
    /// The part.
    pub fn part(&self) -> Part {
        self.candidate.as_ref().map_or(Part::Base, |entry| Part::Candidate(entry.candidate.clone()))
    }

    /// The results of the commands, in order, without those of a second judging.
    pub fn results(&self) -> &Results {
        self.candidate.as_ref().map_or(&self.on_base, |entry| &entry.results)
    }

    /// The results of the commands, in order, then those of a second judging.
    pub fn all_results(&self) -> impl Iterator<Item = &StageResult> {
        let second = self.second().into_iter().flat_map(|second| &second.results);
        self.results().iter().chain(second)
    }

    /// The second judging of a candidate.
    fn second(&self) -> Option<&BaseTestsResult> {
        self.candidate.as_ref()?.base_tests.as_ref()
    }

    /// The end in a few words: `passed`, or the command that did not pass.
    pub fn words(&self) -> String {
        if let Some(problem) = self.candidate.as_ref().and_then(|entry| entry.problem.clone()) {
            return problem;
        }
        match self.results().stopped_at() {
            Some(failed) => format!("{}: {}", failed.stage, failed.outcome),
            None if self.results().is_empty() => "nothing was run".into(),
            None if self.second().is_some_and(|second| !second.passed()) => {
                "passed with its own tests only".into()
            }
            None => "passed".into(),
        }
    }

    /// True if both say the same of each command: not in every detail, but in what is decided by.
    pub fn agrees_with(&self, other: &PartOutcome) -> bool {
        self.ends() == other.ends()
    }

    fn ends(&self) -> Vec<(Stage, End)> {
        self.all_results().map(|result| (result.stage, End::of(&result.outcome))).collect()
    }
}

/// The part of a command's end that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Passed,
    Flaky,
    Failed,
    ReportedFailures,
    MissingTests,
    CannotTell,
    Skipped,
}

impl End {
    fn of(outcome: &Outcome) -> End {
        match outcome {
            Outcome::Passed => End::Passed,
            Outcome::Flaky { .. } => End::Flaky,
            Outcome::ReportedFailures { .. } => End::ReportedFailures,
            Outcome::MissingTests { .. } => End::MissingTests,
            Outcome::CannotTell => End::CannotTell,
            Outcome::Skipped => End::Skipped,
            _ => End::Failed,
        }
    }
}
