//! Puts single tests into words: which tests fail, how the failing tests end on the base, and how
//! many tests are skipped.
use crate::model::count::count;
use crate::model::outcome::{Outcome, StageResult};
use crate::model::rationale::no_failure;
use crate::model::test_comparison::{Comparison, left_out};
use crate::model::test_report::{TestReport, shortened, some_tests};
use crate::model::verdict::{Baseline, Entry};
use crate::ui::table;

/// A table names at most this many tests of one candidate.
const NAMED: usize = 4;

/// A summary of the test report of a command, for the end of the line about the command; `None` if
/// there is no report.
pub fn summary(result: &StageResult) -> Option<String> {
    let report = result.tests.as_ref()?;
    let TestReport { total, problem, failing, .. } = report;
    if let Outcome::MissingTests { reported, .. } = result.outcome
        && problem.is_none()
        && failing.is_empty()
    {
        // The outcome says how many tests ran.
        let tests = count(*total, "test");
        let words = "skipped ones, doctests and names that the base lacks do not count";
        return (0 < reported && reported < *total)
            .then(|| format!("its report has {tests}: {words}"));
    }
    Some(match problem {
        Some(problem) => problem.clone(),
        None if failing.is_empty() => {
            without_failure(result).unwrap_or_else(|| count(*total, "test"))
        }
        None => format!("{}: {}", report.failures(), some_tests(failing, failing)),
    })
}

/// Remarks on a candidate's tests, for a table. The list of failing tests comes last, because a
/// remark after the list would read like one of the tests.
pub fn of_entry(entry: &Entry, base: Option<&Baseline>) -> Vec<String> {
    let mut words = base.map(|base| left_out(base, entry)).unwrap_or_default();
    words.extend(entry.results.stopped_at().and_then(without_failure));
    if let Some([_, ..]) = entry.results.failing_tests()
        && let Some(report) = entry.results.report()
    {
        let comparison = base.and_then(|base| Comparison::of(base, entry));
        words.extend(failing_tests(report, comparison.as_ref()));
    }
    words
}

/// Remarks on the base's tests, for a table.
pub fn of_base(base: &Baseline) -> Vec<String> {
    let report = base.results.report();
    let failing = report.filter(|report| report.problem.is_none() && !report.failing.is_empty());
    let mut words = failing.map_or_else(Vec::new, |report| failing_tests(report, None));
    words.extend(base.results.stopped_at().and_then(without_failure));
    words
}

fn without_failure(result: &StageResult) -> Option<String> {
    result.tests_without_failure().map(no_failure)
}

/// The number of failing tests and the names of the first ones, with how they end on the base. A
/// line can be broken between the returned parts.
fn failing_tests(report: &TestReport, comparison: Option<&Comparison>) -> Vec<String> {
    let failing = report.failing.as_slice();
    let kinds = comparison.map_or_else(|| vec![("", failing)], |c| c.kinds().to_vec());
    let tests = kinds.iter().flat_map(|(what, tests)| tests.iter().map(move |test| (test, what)));
    let in_words = |(test, what): (&String, &&str)| {
        let name = table::printable(&shortened(test, failing));
        if what.is_empty() { name } else { format!("{name} ({what})") }
    };
    let mut words: Vec<String> = tests.take(NAMED).map(in_words).collect();
    if let Some(first) = words.first_mut() {
        *first = format!("{}: {first}", report.failures());
    }
    if failing.len() > NAMED {
        words.push(format!("and {} more", failing.len() - NAMED));
    }
    words
}
