//! Compares the results of a candidate's single tests with the base's results.
use serde::Serialize;

use crate::model::count::{count, some_of};
use crate::model::missing_tests;
use crate::model::test_report::TestReport;
use crate::model::verdict::{Baseline, Entry};

/// A candidate's failing tests, by their result on the base.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Tests that pass on the base.
    pub broken: Vec<String>,
    /// Tests that also fail on the base.
    pub before: Vec<String>,
    /// Tests that the base does not have.
    pub new: Vec<String>,
    /// Tests that did not run on the base. The test command failed there, and may have ended before
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<String>,
    /// Tests that do not fail on the base. The base's report does not name passing tests, so no
    /// more is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only_here: Vec<String>,
}

impl Comparison {
    /// Sorts the failing tests of a candidate by their result on the base. `None` unless both have
    /// a report of the same kind, because the names would differ otherwise.
    pub fn of(base: &Baseline, entry: &Entry) -> Option<Comparison> {
        let is_whole = base.results.passed();
        let (base, _) = reports(base, entry)?;
        let all = base.failing.len() + base.passing.len();
        let names_all = base.skipped + all as u64 >= base.total && base.total > 0;
        let mut comparison = Comparison::default();
        for name in entry.results.failing_tests()? {
            let list = if base.failing.binary_search(name).is_ok() {
                &mut comparison.before
            } else if base.passing.binary_search(name).is_ok() {
                &mut comparison.broken
            } else if names_all && is_whole {
                &mut comparison.new
            } else if names_all {
                &mut comparison.not_run
            } else {
                &mut comparison.only_here
            };
            list.push(name.clone());
        }
        Some(comparison)
    }

    /// True if tests fail, and all of them fail on the base, too.
    pub fn fails_as_the_base(&self) -> bool {
        let [others @ .., (_, before)] = self.kinds();
        !before.is_empty() && others.iter().all(|(_, tests)| tests.is_empty())
    }

    /// The lists with words for each, the most important first.
    pub fn kinds(&self) -> [(&'static str, &[String]); 5] {
        [
            ("passes on the base", &self.broken),
            ("does not fail on the base", &self.only_here),
            ("is not in the base", &self.new),
            ("did not run on the base", &self.not_run),
            ("fails on the base, too", &self.before),
        ]
    }
}

/// The tests that a candidate skips and that run on the base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MoreSkipped {
    /// The number of skipped tests on the base.
    pub base: u64,
    /// The number of skipped tests on the candidate.
    pub candidate: u64,
    /// The names of the candidate's skipped tests that run on the base; empty if the reports do not
    /// name them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
}

impl MoreSkipped {
    /// The tests that a candidate skips in addition to those that the base skips; `None` if the
    /// reports show none. If the reports have no names, the numbers are compared, unless the base's
    /// run may have ended before all its tests ran.
    pub fn of(base: &Baseline, entry: &Entry) -> Option<MoreSkipped> {
        let passed = base.results.passed();
        let (base, own) = reports(base, entry)?;
        let tests = own.skipping_of(base);
        let are_named = !own.skipping.is_empty() && !base.passing.is_empty();
        let is_whole = passed || base.total >= own.total;
        let skips_more = match are_named {
            true => !tests.is_empty(),
            false => own.skipped > base.skipped && is_whole,
        };
        skips_more.then_some(MoreSkipped { base: base.skipped, candidate: own.skipped, tests })
    }

    fn in_words(&self) -> String {
        let MoreSkipped { base, candidate, tests } = self;
        match tests.len() as u64 {
            0 => format!("skips {}, where the base skips {base}", count(*candidate, "test")),
            n => format!("skips {} that the base runs: {}", count(n, "test"), some_of(tests)),
        }
    }
}

/// The tests of the base that did not run on a candidate that passes with its own tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FewerTests {
    /// The number of tests that ran on the base.
    pub base: u64,
    /// The number of these tests that ran on the candidate.
    pub candidate: u64,
}

impl FewerTests {
    /// Compares the numbers of tests. `None` unless the candidate passes, and the reports show that
    /// fewer tests ran on it than on the base.
    pub fn of(base: &Baseline, entry: &Entry) -> Option<FewerTests> {
        let own = entry.results.report();
        let is_of_other_kind = reports(base, entry).is_none() && own.is_some();
        let (candidate, base) = missing_tests::fewer(base, own)?;
        (entry.results.passed() && !is_of_other_kind).then_some(FewerTests { base, candidate })
    }
}

/// Clauses about the tests of the base that did not run on a candidate, or that it skips. The
/// subject of the clauses is left out.
pub fn left_out(base: &Baseline, entry: &Entry) -> Vec<String> {
    // Skipped tests are missing tests, too, but the words about them say more.
    if let Some(more) = MoreSkipped::of(base, entry) {
        return vec![more.in_words()];
    }
    let fewer = FewerTests::of(base, entry).map(|FewerTests { candidate, base }| match candidate {
        0 => format!("reports none of the base's {}", count(base, "test")),
        some => format!("runs only {some} of the base's {}", count(base, "test")),
    });
    fewer.into_iter().collect()
}

/// The reports of the base and of a candidate, if they are of the same kind.
fn reports<'a>(base: &'a Baseline, entry: &'a Entry) -> Option<(&'a TestReport, &'a TestReport)> {
    let base = base.results.report()?;
    let own = entry.results.report()?;
    (base.printed_by == own.printed_by).then_some((base, own))
}
