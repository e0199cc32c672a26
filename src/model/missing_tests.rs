//! Tests that the base's report has and that of a candidate lacks, whose command all the same exited
//! 0: something ended the tests before they were done, or kept them from being found.
//!
//! Numbers are compared and not names: some names hold a path, a time or a random id, and tests that
//! were renamed are still there.
use crate::model::base_tests::BaseTests;
use crate::model::outcome::{Outcome, Results, Stage, StageResult};
use crate::model::terms::JudgeSettings;
use crate::model::test_report::TestReport;
use crate::model::verdict::{Baseline, Entry};

/// Lets no pass stand whose report lacks tests of the base; gives true if there was one.
///
/// A candidate that changes tests itself may drop some, but not all. Of such a candidate the second
/// judging counts, with the base's tests; a report that is missing in the first one is missed there.
pub fn contradict(
    entries: &mut [Entry],
    baseline: Option<&Baseline>,
    settings: &JudgeSettings,
) -> bool {
    let is_off = settings.commands.trust_exit
        || settings.in_place
        || settings.base_tests == BaseTests::Never;
    let Some(base) = baseline.filter(|_| !is_off).and_then(Expected::of) else { return false };
    let mut found = false;
    for entry in entries {
        found |= match &mut entry.base_tests {
            Some(second) => {
                let is_gone = |result: &StageResult| {
                    result.tests.as_ref().is_none_or(|report| report.total == 0)
                };
                base.contradicts(&mut entry.results, is_gone)
                    | base.contradicts(&mut second.results, |_| true)
            }
            None => base.contradicts(&mut entry.results, |_| true),
        };
    }
    found
}

/// The tests that a report must have because the base's has them.
struct Expected {
    /// The number of tests in the base's report, without doctests.
    shown: u64,
    /// The number of those that are surely tests of their own.
    at_least: u64,
    /// True if the base's report is a file.
    is_file: bool,
}

impl Expected {
    /// `None` if the base has no report of any test.
    fn of(base: &Baseline) -> Option<Expected> {
        let report = base.results.report()?;
        let shown = report.total.saturating_sub(report.doctests);
        let is_file = report.printed_by.is_none();
        let named = (report.passing.len() + report.failing.len()) as u64 + report.skipped;
        let at_least = match (base.results.passed(), is_file) {
            _ if report.problem.is_some() => 0,
            // A test that ran again may be counted twice, but has one name.
            (true, _) if !report.passing.is_empty() => named.min(report.total),
            (true, _) => report.total,
            // What failed may be no test (a hook, a file that could not be loaded).
            (false, true) => report.passing.len() as u64 + report.skipped,
            // The output of a test that failed may hold the summary of another runner.
            (false, false) => 0,
        };
        let at_least = at_least.saturating_sub(report.doctests).max(1);
        (shown > 0).then_some(Expected { shown, at_least, is_file })
    }

    /// Lets no pass of the test stand that is meant and lacks tests; gives true if there was one.
    fn contradicts(&self, results: &mut Results, is_meant: impl Fn(&StageResult) -> bool) -> bool {
        let mut found = false;
        let passes = results.iter_mut().filter(|r| r.stage == Stage::Test && r.outcome.passed());
        for result in passes.filter(|result| is_meant(result)) {
            if let Some(outcome) = self.missing(result.tests.as_ref()) {
                result.outcome = outcome;
                found = true;
            }
        }
        found
    }

    /// The outcome of a command that exited 0 and left this report; `None` if that has enough
    /// tests.
    fn missing(&self, own: Option<&TestReport>) -> Option<Outcome> {
        let Expected { shown, at_least, is_file } = *self;
        let own = own.filter(|own| !is_file || own.printed_by.is_none());
        // A log that was not kept whole shows no number.
        let is_cut = own.is_some_and(|own| own.printed_by.is_some() && own.problem.is_some());
        let reported = own.map_or(0, |own| own.total.saturating_sub(own.doctests));
        (reported < at_least && !is_cut)
            .then_some(Outcome::MissingTests { reported, expected: shown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(total: u64, passing: &[&str], printed_by: Option<&str>) -> TestReport {
        TestReport {
            total,
            passing: passing.iter().map(|name| (*name).to_owned()).collect(),
            printed_by: printed_by.map(str::to_owned),
            ..TestReport::default()
        }
    }

    fn base(outcome: Outcome, tests: TestReport) -> Baseline {
        let result =
            StageResult { tests: Some(tests), ..StageResult::new(Stage::Test, 0.0, outcome) };
        Baseline { results: vec![result].into(), inherited: false }
    }

    /// The fewest tests of this kind of report that a candidate needs beside this base.
    fn needs(base: &Baseline, printed_by: Option<&str>) -> Option<u64> {
        let expected = Expected::of(base)?;
        (0..100).find(|total| expected.missing(Some(&report(*total, &[], printed_by))).is_none())
    }

    #[test]
    fn base_asks_for_the_tests_that_are_surely_there() {
        let (file, pytest) = (None, Some("pytest"));
        let ran_again = || report(4, &["a", "b", "c"], file);
        let doctests = |of: TestReport| TestReport { doctests: 1, ..of };
        let failed = || Outcome::Failed { code: 1 };
        let cut = TestReport { problem: Some("cut".into()), ..report(4, &[], pytest) };
        let cases = [
            (Outcome::Passed, report(4, &[], pytest), pytest, Some(4)),
            (Outcome::Passed, report(4, &["a", "b", "c", "d"], file), file, Some(4)),
            (Outcome::Passed, ran_again(), file, Some(3)),
            (Outcome::Passed, doctests(ran_again()), file, Some(2)),
            // The file is missing.
            (Outcome::Passed, ran_again(), pytest, None),
            (Outcome::Passed, cut, pytest, Some(1)),
            (failed(), ran_again(), file, Some(3)),
            (failed(), report(4, &[], file), file, Some(1)),
            (failed(), report(4, &["a", "b", "c"], pytest), pytest, Some(1)),
            (Outcome::Passed, doctests(report(1, &[], pytest)), pytest, None),
        ];
        for (outcome, tests, printed_by, expected) in cases {
            let base = base(outcome, tests);
            assert_eq!(needs(&base, printed_by), expected, "{base:?}");
        }
        assert!(Expected::of(&base(Outcome::Passed, report(0, &[], pytest))).is_none());
    }

    #[test]
    fn log_that_was_not_kept_whole_shows_no_number() {
        let base = base(Outcome::Passed, report(4, &[], Some("pytest")));
        let expected = Expected::of(&base).expect("it has tests");
        let cut = TestReport { problem: Some("cut".into()), ..report(1, &[], Some("pytest")) };
        assert_eq!(expected.missing(Some(&cut)), None);
        assert!(expected.missing(None).is_some());
    }
}
