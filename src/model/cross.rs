//! The record of the results of each candidate's tests on the other candidates and on the base.
use serde::{Deserialize, Serialize};

use crate::model::count::some_of;
use crate::model::name::Name;
use crate::model::outcome::{Outcome, Results, Stage};
use crate::model::test_report::TestReport;

/// How one test ended on one tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// The test passed.
    Pass,
    /// The test failed.
    Fail,
    /// The test was not run, because it did not build on the tree, or the runner did not collect
    /// it. This is not a failure.
    #[default]
    Unknown,
}

impl Cell {
    /// How a test ended, according to the report in these results.
    pub fn of(results: &Results, test: &str) -> Cell {
        let has = |names: &[String]| names.binary_search_by(|name| name.as_str().cmp(test)).is_ok();
        match results.report() {
            Some(report) if has(&report.failing) => Cell::Fail,
            Some(report) if has(&report.passing) => Cell::Pass,
            _ => Cell::Unknown,
        }
    }

    /// How a test stage ended, counted as one test, because its tests are not reported by name.
    /// `has_report` is true if the runner is known to name failing tests. If such a runner fails
    /// without naming a test, no test was run.
    pub fn of_exit(results: &Results, has_report: bool) -> Cell {
        let Some(stopped) = results.stopped_at() else {
            return if results.passed() { Cell::Pass } else { Cell::Unknown };
        };
        let named = results.report().map_or(!has_report, |report| !report.failing.is_empty());
        match stopped.outcome {
            Outcome::Failed { .. } | Outcome::ReportedFailures { .. }
                if stopped.stage == Stage::Test && !stopped.outcome.could_not_start() && named =>
            {
                Cell::Fail
            }
            _ => Cell::Unknown,
        }
    }
}

/// A test that a candidate added or changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CrossTest {
    /// The name of the test. For tests that are not reported by name, this is the names of their
    /// files.
    pub name: String,
    /// How the test ended on the base. A test that fails there is a proof. A test that passes there
    /// is a pin. A test that does not build there is a weak proof.
    pub base: Cell,
    /// The candidates that pass it.
    pub passes: Vec<Name>,
    /// The candidates that fail it. For all other candidates the result is unknown.
    pub fails: Vec<Name>,
}

impl CrossTest {
    /// True if no candidate but the test's author passes it, and at least one candidate fails it.
    pub fn is_lonely(&self, author: &Name) -> bool {
        !self.fails.is_empty() && self.passes.iter().all(|name| name == author)
    }

    /// True if the test counts for the other candidates: its author passes it, and the test is not
    /// lonely ([`CrossTest::is_lonely`]).
    pub fn counts(&self, author: &Name) -> bool {
        self.passes.contains(author) && !self.is_lonely(author)
    }

    /// How the test ended on a candidate.
    pub fn cell(&self, candidate: &Name) -> Cell {
        match () {
            () if self.fails.contains(candidate) => Cell::Fail,
            () if self.passes.contains(candidate) => Cell::Pass,
            () => Cell::Unknown,
        }
    }
}

/// The results of the other candidates' tests on a candidate, and the results of its tests on the
/// other candidates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CrossResult {
    /// The mean of the candidate's shares, from 0 to 1. There is one share for each other author:
    /// the part of the author's tests that the candidate passes. `None` if no test that counts has
    /// a known result on the candidate.
    pub score: Option<f64>,
    /// The candidate's own tests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<CrossTest>,
    /// The source files that contain tests of the candidate. These tests cannot be moved to other
    /// candidates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inseparable: Vec<String>,
}

/// The results of a candidate's tests on the base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Proof {
    /// The conclusion from the results.
    pub shows: ProofKind,
    /// The tests that fail on the base and pass on the candidate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
}

/// The conclusion from a candidate's own tests on the base; the candidate itself passes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofKind {
    /// Some of the tests fail on the base: they show that the change works.
    Change,
    /// The tests do not run on the base: they do not build, or the runner does not collect them.
    Weak,
    /// The tests pass on the base, too: they show nothing about the change.
    Nothing,
}

impl Proof {
    /// The proof by these tests, each with its result on the base; `None` if there are no tests.
    pub fn of<'t>(tests: impl IntoIterator<Item = (&'t str, Cell)>) -> Option<Proof> {
        let (failing, others): (Vec<_>, Vec<_>) =
            tests.into_iter().partition(|(_, cell)| *cell == Cell::Fail);
        let shows = match others.as_slice() {
            _ if !failing.is_empty() => ProofKind::Change,
            [] => return None,
            others if others.iter().any(|(_, cell)| *cell == Cell::Unknown) => ProofKind::Weak,
            _ => ProofKind::Nothing,
        };
        Some(Proof { shows, tests: failing.into_iter().map(|(name, _)| name.to_owned()).collect() })
    }

    /// The conclusion, as a clause without its subject.
    pub fn in_words(&self) -> String {
        match self.shows {
            // Without a report of single tests, a name is a list of files, so names are not counted.
            ProofKind::Change => {
                let names = some_of(&self.tests);
                format!("proves itself: its own tests fail on the base and pass here: {names}")
            }
            ProofKind::Weak => {
                "proves itself weakly: its tests do not run on the base".to_owned()
            }
            ProofKind::Nothing => {
                "changes tests, but they pass on the base, too, so they do not show that the change works"
                    .to_owned()
            }
        }
    }

    /// The conclusion, as a label in a table.
    pub fn label(&self) -> &'static str {
        match self.shows {
            ProofKind::Change => "proves itself",
            ProofKind::Weak => "its tests do not run on the base",
            ProofKind::Nothing => "its tests pass on the base",
        }
    }
}

/// The base's tests that pass on the base, but fail there with a candidate's test files: the
/// candidate has changed these tests.
pub fn edited_tests(with_files: &Results, base: &TestReport) -> Vec<String> {
    let failing = with_files.report().map_or(&[] as &[String], |report| &report.failing);
    failing.iter().filter(|name| base.passing.binary_search(name).is_ok()).cloned().collect()
}
