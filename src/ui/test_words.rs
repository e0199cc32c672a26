//! Single tests in words: which fail, which of them fail on the base, too, and how many are skipped.
use crate::model::count::count;
use crate::model::test_comparison::{Comparison, MoreSkipped};
use crate::model::test_report::{TestReport, shortened, some_tests};
use crate::model::verdict::{Baseline, Entry};
use crate::ui::table;

/// The most tests that a table names of one candidate.
const NAMED: usize = 4;

/// A report at the end of a line about its command.
pub fn summary(report: &TestReport) -> String {
    let TestReport { total, problem, failing, .. } = report;
    match problem {
        Some(problem) => problem.clone(),
        None if failing.is_empty() => count(*total, "test"),
        None => format!("{}: {}", report.failures(), some_tests(failing)),
    }
}

/// Remarks on a candidate's tests in a table. The list of failing tests comes last: what follows it
/// would read as one of them.
pub fn of_entry(entry: &Entry, base: Option<&Baseline>) -> Vec<String> {
    let failing = entry.results.failing_tests().unwrap_or_default();
    let report = entry.results.report();
    let more_skipped = base.and_then(|base| MoreSkipped::of(base, entry));
    let mut words: Vec<String> = more_skipped.map(|more| more.in_words()).into_iter().collect();
    if let Some(report) = report
        && !failing.is_empty()
    {
        let named = match base.and_then(|base| Comparison::of(base, entry)) {
            Some(comparison) => named_by_kind(&comparison),
            None => failing.iter().map(|name| short(name)).collect(),
        };
        words.extend(told(report, &named));
    }
    words
}

/// Remarks on the base's tests in a table.
pub fn of_base(base: &Baseline) -> Vec<String> {
    let report = base.results.report();
    let failing = report.filter(|report| report.problem.is_none() && !report.failing.is_empty());
    failing.map_or_else(Vec::new, |report| {
        told(report, &report.failing.iter().map(|name| short(name)).collect::<Vec<_>>())
    })
}

/// The number of failing tests and the first names, in parts between which a line can end.
fn told(report: &TestReport, named: &[String]) -> Vec<String> {
    let mut words: Vec<String> = named.iter().take(NAMED).cloned().collect();
    if let Some(first) = words.first_mut() {
        *first = format!("{}: {first}", report.failures());
    }
    if named.len() > NAMED {
        words.push(format!("and {} more", named.len() - NAMED));
    }
    words
}

fn named_by_kind(comparison: &Comparison) -> Vec<String> {
    let kinds = comparison.kinds().into_iter();
    kinds
        .flat_map(|(what, tests)| tests.iter().map(move |name| format!("{} ({what})", short(name))))
        .collect()
}

fn short(name: &str) -> String {
    table::printable(&shortened(name))
}
