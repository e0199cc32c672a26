//! Compares two test reports: that of a candidate whose test command exited 0, and that of the
//! base. The exit code can be wrong for two reasons:
//! * Tests of the base may be missing: something skipped them, ended the run early, or kept them
//!   from being found.
//! * The report names failing tests that do not fail on the base: the command lost the exit code of
//!   one of its suites.
//!
//! A test that failed has run, too. So if the base fails, the tests that the change is to fix must
//! also run on the candidate.
//!
//! The numbers of tests are compared, because not every report names all tests. If the base's
//! report names all its tests, a candidate's test with another name does not count: it could take
//! the place of a missing test. Parts of names that may differ from run to run are left out, such
//! as a path, a time or a random id.
use std::collections::BTreeSet;

use crate::model::outcome::{Outcome, Results, Stage, StageResult};
use crate::model::terms::JudgeSettings;
use crate::model::test_report::{MOST_NAMES, TestReport, is_doctest};
use crate::model::verdict::{Baseline, Entry};

/// Calls [`contradict_tree`] for the trees of each entry. Returns true if a pass was changed.
pub fn contradict(entries: &mut [Entry], base: &Baseline, settings: &JudgeSettings) -> bool {
    let mut found = false;
    for entry in entries {
        let second = entry.base_tests.as_ref();
        let changes_tests = second.is_some_and(|second| second.may_drop_tests(&entry.flags));
        found |= contradict_tree(&mut entry.results, base, settings, changes_tests);
        if let Some(second) = &mut entry.base_tests {
            found |= contradict_tree(&mut second.results, base, settings, false);
        }
    }
    found
}

/// Changes passes that the report contradicts. If the report lacks tests of the base, the pass
/// becomes [`Outcome::MissingTests`]. If it has failures that the base does not have, the pass
/// becomes [`Outcome::ReportedFailures`]. Returns true if a pass was changed.
///
/// If `changes_tests` is true, the tree may drop some tests, but not all. So only a missing report,
/// or a report without tests, counts as missing tests. The tree is judged once more with the base's
/// tests, and then its report is always compared.
pub fn contradict_tree(
    results: &mut Results,
    base: &Baseline,
    settings: &JudgeSettings,
    changes_tests: bool,
) -> bool {
    let mut found = false;
    for result in results.0.iter_mut() {
        let is_gone = result.tests.as_ref().is_none_or(|report| report.total == 0);
        match contradicted(base, result, settings) {
            Some(Outcome::MissingTests { .. }) if changes_tests && !is_gone => {}
            Some(outcome) => {
                result.outcome = outcome;
                found = true;
            }
            None => {}
        }
    }
    found
}

/// Compares the report of a pass of the test command with the report of the base. Returns the
/// outcome that replaces the pass; `None` if the report does not contradict it.
pub fn contradicted(
    base: &Baseline,
    result: &StageResult,
    settings: &JudgeSettings,
) -> Option<Outcome> {
    if !are_compared(settings) || result.stage != Stage::Test || !result.outcome.passed() {
        return None;
    }
    contradiction(base, result.tests.as_ref())
}

/// The outcome of a command that exited 0 with this report. `None` if the report does not
/// contradict the exit code: enough tests ran, and each test that fails also fails on the base.
fn contradiction(base: &Baseline, own: Option<&TestReport>) -> Option<Outcome> {
    match own.map_or(0, |own| new_failures(own, base)) {
        0 => Expected::of(base)?.missing(own),
        failed => Some(Outcome::ReportedFailures { failed }),
    }
}

/// The numbers of tests that ran on a candidate and on the base. `None` unless the reports show
/// that fewer ran on the candidate. `own` is the candidate's report, if it has one.
/// `oracle.trust-exit` makes no difference here.
pub fn fewer(base: &Baseline, own: Option<&TestReport>) -> Option<(u64, u64)> {
    match contradiction(base, own) {
        Some(Outcome::MissingTests { reported, expected }) => Some((reported, expected)),
        _ => None,
    }
}

/// True if it counts against a candidate that its report lacks tests.
pub fn are_compared(settings: &JudgeSettings) -> bool {
    settings.needs_base() && !settings.commands.trust_exit
}

/// The tests that must have run because they ran on the base.
struct Expected<'b> {
    report: &'b TestReport,
    /// The number of tests that ran on the base, without doctests.
    ran: u64,
    /// The number of these tests that are certainly distinct.
    at_least: u64,
}

impl Expected<'_> {
    /// The tests that ran on the base; `None` if the base's report shows no test that ran. A base
    /// that fails with a report has at least one test, even if it failed before, in the setup of
    /// all tests.
    fn of(base: &Baseline) -> Option<Expected<'_>> {
        let report = base.results.report()?;
        // If all tests pass, `go test` prints no number of tests without `-v`.
        let prints_numbers = report.printed_by.as_ref().is_none_or(|by| !by.contains("go test"));
        let has_failed = prints_numbers && !base.results.passed();
        let ran = report.ran_in_files().max(u64::from(has_failed));
        let named = (report.passing.len() + report.failing.len()) as u64;
        let at_least = match report.problem {
            Some(_) => 0,
            // Not every runner names its passing tests.
            None if report.passing.is_empty() || report.is_of_several_runners() => ran,
            // A failed test may be run again, and is then counted twice under one name. If no test
            // has failed, tests of one name are different tests.
            None if report.failing.is_empty() && base.results.passed() => ran,
            None => ran.min(named.saturating_sub(report.doctests)),
        };
        let no_tests = report.failing.iter().filter(|name| is_no_test(name)).count() as u64;
        let at_least = at_least.saturating_sub(no_tests).max(1);
        (ran > 0).then_some(Expected { report, ran, at_least })
    }

    /// [`Outcome::MissingTests`] if, according to this report, fewer tests ran.
    fn missing(&self, own: Option<&TestReport>) -> Option<Outcome> {
        let Expected { report: base, ran, at_least } = *self;
        if base.ran_in_files() == 0 && own.is_some() {
            return None;
        }
        let is_file = |report: &TestReport| report.printed_by.is_none();
        let own = own.filter(|own| !is_file(base) || is_file(own));
        // A log that lacks a part does not show the number of tests.
        let is_cut = own.is_some_and(|own| !is_file(own) && own.problem.is_some());
        let own_ran = own.map_or(0, |own| {
            let others = files_without_tests(own, base).max(tests_of_other_names(own, base));
            own.ran_in_files().saturating_sub(others)
        });
        let skipped = own.map_or(0, |own| own.skipping_of(base).len() as u64);
        let modules = own.map_or(0, |own| modules_that_failed(base, own));
        let missing = at_least.saturating_sub(modules).saturating_sub(own_ran).max(skipped);
        (missing > 0 && !is_cut).then(|| Outcome::MissingTests {
            reported: own_ran.min(ran.saturating_sub(missing)),
            expected: ran,
        })
    }
}

/// The number of modules that fail on the base and have tests on the candidate: `tests.test_a`, if
/// the candidate has `tests.test_a::test_b`. If a module cannot be loaded on the base, the base's
/// report names the module in place of its tests. This happens if a test imports something that
/// only the candidate has.
fn modules_that_failed(base: &TestReport, own: &TestReport) -> u64 {
    let tests = own.passing.iter().chain(&own.failing);
    let modules: BTreeSet<&str> =
        tests.filter_map(|test| test.rsplit_once("::")).map(|(module, _)| module).collect();
    base.failing.iter().filter(|name| modules.contains(name.as_str())).count() as u64
}

/// The number of tests that fail according to a report, and do not fail on the base. A command that
/// runs several suites can lose the failure of an earlier suite. Names that also fail on the base
/// do not count: a test runner's own tests print failures that are not real. The failures in a
/// report file do not count here either, because they count where the file is read.
///
/// Tests that also pass do not count, because they may have been run again. There is one exception:
/// if several tests of the base share a name, the pass may be that of another test, even in a
/// report file. Then the number of tests that do not count is limited: it is the number of repeats
/// that the candidate has more than the base.
fn new_failures(own: &TestReport, base: &Baseline) -> u64 {
    let of_base = base.results.report();
    if of_base.is_none() && !base.results.passed() {
        return 0;
    }
    let has = |names: &[String], name: &String| names.binary_search(name).is_ok();
    let names =
        own.failing.iter().filter(|name| !of_base.is_some_and(|base| has(&base.failing, name)));
    let (again, once): (Vec<_>, Vec<_>) = names.partition(|name| has(&own.also_passing, name));
    let once = if own.printed_by.is_some() { once.len() as u64 } else { 0 };
    let namesakes =
        of_base.map_or(0, |base| repeats(base).saturating_sub(base.also_passing.len() as u64));
    if namesakes == 0 {
        return once;
    }
    once + (again.len() as u64).saturating_sub(repeats(own).saturating_sub(namesakes))
}

/// The number of tests that ran, minus the number of their distinct names; 0 if the report does not
/// name every test.
fn repeats(report: &TestReport) -> u64 {
    let named = report.passing.len() + report.failing.len();
    if report.passing.is_empty() || named >= MOST_NAMES || report.is_of_several_runners() {
        return 0;
    }
    report.total.saturating_sub(report.skipped).saturating_sub(named as u64)
}

/// The number of passing tests that are JavaScript files and that the base does not have. Node's
/// runner reports a file as a passing test if the file's process ended before it named a test.
fn files_without_tests(own: &TestReport, base: &TestReport) -> u64 {
    const ENDINGS: [&str; 6] = [".js", ".cjs", ".mjs", ".ts", ".cts", ".mts"];
    // Only the last part of a path is compared, because the base's checkout may have been at
    // another path.
    let of_base: BTreeSet<Option<&str>> =
        base.passing.iter().chain(&base.failing).map(|name| name.rsplit('/').next()).collect();
    let files = own.passing.iter().filter(|name| {
        ENDINGS.iter().any(|ending| name.ends_with(ending))
            && !of_base.contains(&name.rsplit('/').next())
    });
    own.ran_in_files().min(files.count() as u64)
}

/// The number of passing tests, without doctests, whose names do not occur on the base; 0 if the
/// base's report does not name all its tests.
fn tests_of_other_names(own: &TestReport, base: &TestReport) -> u64 {
    let named: BTreeSet<_> = base.passing.iter().chain(&base.failing).collect();
    let names_all = named.len() as u64 >= base.total.saturating_sub(base.skipped);
    if base.problem.is_some() || !names_all || own.printed_by != base.printed_by {
        return 0;
    }
    let of_base: BTreeSet<_> =
        named.into_iter().chain(&base.skipping).map(|n| lasting(n)).collect();
    let others = own.passing.iter().filter(|name| {
        let (class, own_name) = name.rsplit_once("::").unwrap_or(("", name));
        !of_base.contains(&lasting(name))
            && !name.contains(" (line ")
            && !is_doctest(class, own_name)
    });
    others.count() as u64
}

/// The first and the last part of a test's name, without directories, parameters, and words with
/// digits. These two parts stay the same if a module of tests is moved.
fn lasting(name: &str) -> [String; 2] {
    let name = name.split(['[', '(']).next().unwrap_or(name);
    let name = name.rsplit('/').next().unwrap_or(name);
    let is_word = |c: char| c.is_alphanumeric();
    let part = |text: &str| {
        let words = text.split(|c| !is_word(c));
        words.filter(|word| !word.contains(|c: char| c.is_ascii_digit())).collect::<String>()
    };
    let mut parts = name.split([':', '.']).filter(|part| part.contains(is_word));
    let first = parts.next().unwrap_or_default();
    [part(first), part(parts.next_back().unwrap_or(first))]
}

/// True for a name that is reported like a failing test, but is not a test: a hook of mocha, a
/// class of Gradle, a package of gotestsum. It is reported only if it fails.
fn is_no_test(name: &str) -> bool {
    let own_name = name.rsplit("::").next().unwrap_or(name);
    name.contains("\" hook") || ["", "TestMain", "executionError"].contains(&own_name)
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
        Baseline { results: Results(vec![result]), inherited: false }
    }

    /// The fewest tests that a candidate's report of this kind must have with this base.
    fn needs(base: &Baseline, printed_by: Option<&str>) -> Option<u64> {
        let expected = Expected::of(base)?;
        (0..100).find(|total| expected.missing(Some(&report(*total, &[], printed_by))).is_none())
    }

    #[test]
    fn base_asks_for_the_tests_that_surely_ran() {
        let (file, pytest) = (None, Some("pytest"));
        let ran_again = || report(4, &["a", "b", "c"], file);
        let doctests = |of: TestReport| TestReport { doctests: 1, ..of };
        let skipped = |of: TestReport| TestReport { skipped: 1, ..of };
        let failed = || Outcome::Failed { code: 1 };
        let failing = |name: &str, of: TestReport| TestReport { failing: vec![name.into()], ..of };
        let cut = TestReport { problem: Some("cut".into()), ..report(4, &[], pytest) };
        let cases = [
            (Outcome::Passed, report(4, &[], pytest), pytest, Some(4)),
            (Outcome::Passed, report(4, &["a", "b", "c", "d"], file), file, Some(4)),
            // No test failed, so none was run again: two tests have one name.
            (Outcome::Passed, ran_again(), file, Some(4)),
            (Outcome::Passed, doctests(ran_again()), file, Some(3)),
            (Outcome::Passed, failing("c", report(4, &["a", "b"], file)), file, Some(3)),
            (Outcome::Passed, skipped(report(4, &[], pytest)), pytest, Some(3)),
            // The base's report is a file, so a printed report of the candidate is not enough.
            (Outcome::Passed, ran_again(), pytest, None),
            (Outcome::Passed, cut, pytest, Some(1)),
            // unittest names no test that passed.
            (Outcome::Passed, report(5, &["a"], Some("unittest, TAP")), Some("TAP"), Some(5)),
            (failed(), ran_again(), file, Some(3)),
            (failed(), report(4, &[], file), file, Some(4)),
            (failed(), failing("d", report(4, &["a", "b", "c"], file)), file, Some(4)),
            (failed(), failing("s \"after all\" hook for \"d\"", ran_again()), file, Some(3)),
            (failed(), failing("a/b::TestMain", report(1, &[], file)), file, Some(1)),
            (failed(), failing("d", report(4, &[], pytest)), pytest, Some(4)),
            (Outcome::Passed, doctests(report(1, &[], pytest)), pytest, None),
        ];
        for (outcome, tests, printed_by, expected) in cases {
            let base = base(outcome, tests);
            assert_eq!(needs(&base, printed_by), expected, "{base:?}");
        }
        assert!(Expected::of(&base(Outcome::Passed, report(0, &[], pytest))).is_none());
    }

    #[test]
    fn skipped_tests_are_missing_if_they_ran_on_the_base() {
        let failing = TestReport { failing: vec!["b".into()], ..report(2, &["a"], None) };
        let base = base(Outcome::Failed { code: 1 }, failing);
        let expected = Expected::of(&base).expect("tests ran");
        let skips = |name: &str, passing: &[&str]| {
            let total = passing.len() as u64 + 1;
            let skipping = vec![name.to_owned()];
            TestReport { skipped: 1, skipping, ..report(total, passing, None) }
        };
        let missing = |own| expected.missing(Some(&own));
        assert_eq!(
            missing(skips("b", &["a"])),
            Some(Outcome::MissingTests { reported: 1, expected: 2 })
        );
        // The same number of tests ran, but not this one.
        assert!(missing(skips("b", &["a", "c"])).is_some());
        assert_eq!(missing(skips("c", &["a", "b"])), None);
    }

    #[test]
    fn module_that_the_base_could_not_load_is_no_missing_test() {
        let failing = |passing: &[&str]| TestReport {
            failing: vec!["tests.a".to_owned()],
            ..report(passing.len() as u64 + 1, passing, None)
        };
        let missing = |base_tests: &[&str], own: &[&str]| {
            let base = base(Outcome::Failed { code: 2 }, failing(base_tests));
            let expected = Expected::of(&base).expect("an entry");
            expected.missing(Some(&report(own.len() as u64, own, None))).is_some()
        };
        assert!(!missing(&[], &["tests.a::new"]));
        assert!(!missing(&["tests.b::old"], &["tests.a::new", "tests.b::old"]));
        assert!(missing(&["tests.b::old"], &["tests.a::new"]));
        assert!(missing(&[], &["tests.c::new"]), "the tests of the module are missing");
    }

    #[test]
    fn printed_failure_counts_if_it_is_new_and_did_not_pass_again() {
        let printed = Some("pytest");
        let failing = |name: &str, printed_by| TestReport {
            failing: vec![name.to_owned()],
            ..report(2, &["a"], printed_by)
        };
        let base = base(Outcome::Passed, failing("inner", printed));
        let outcome = |own: TestReport| contradiction(&base, Some(&own));
        let counts = Some(Outcome::ReportedFailures { failed: 1 });
        assert_eq!(outcome(failing("b", printed)), counts);
        assert_eq!(outcome(failing("inner", printed)), None);
        assert_eq!(outcome(failing("b", None)), None, "a file counts as a whole elsewhere");
        let again = TestReport { also_passing: vec!["b".to_owned()], ..failing("b", printed) };
        assert_eq!(outcome(again.clone()), None);
        // Two tests of the base have one name, so the one that passes need not be the one that
        // fails.
        let namesakes = self::base(Outcome::Passed, report(3, &["a", "b"], printed));
        let again = |total| TestReport { total, ..again.clone() };
        assert_eq!(contradiction(&namesakes, Some(&again(3))), counts);
        let in_file = TestReport { printed_by: None, ..again(3) };
        let of_file = self::base(Outcome::Passed, report(3, &["a", "b"], None));
        assert_eq!(contradiction(&of_file, Some(&in_file)), counts);
        // One more test ran than on the base, so a test was run again.
        assert_eq!(contradiction(&namesakes, Some(&again(4))), None);
        // `go test` names only the tests that fail, so the base has no report.
        let silent = Baseline {
            results: Results(vec![StageResult::new(Stage::Test, 0.0, Outcome::Passed)]),
            inherited: false,
        };
        assert_eq!(contradiction(&silent, Some(&failing("b", printed))), counts);
        let unbuilt = Outcome::Failed { code: 2 };
        let unbuilt = Baseline {
            results: Results(vec![StageResult::new(Stage::Build, 0.0, unbuilt)]),
            inherited: false,
        };
        assert_eq!(contradiction(&unbuilt, Some(&failing("b", printed))), None);
    }

    #[test]
    fn file_that_ended_before_its_tests_is_none() {
        let base = base(Outcome::Passed, report(2, &["adds", "/base/b.test.js"], Some("TAP")));
        let expected = Expected::of(&base).expect("tests ran");
        let missing = |passing: &[&str]| expected.missing(Some(&report(2, passing, Some("TAP"))));
        assert_eq!(missing(&["adds", "/own/b.test.js"]), None);
        assert!(missing(&["adds, too", "/own/b.test.js"]).is_some());
        assert!(missing(&["/own/a.test.js", "/own/b.test.js"]).is_some());
    }

    #[test]
    fn test_of_another_name_does_not_fill_up_the_number() {
        let base = |passing: &[&str], total| base(Outcome::Passed, report(total, passing, None));
        let names =
            ["calc::a::adds", "calc::src/a.rs - adds (line 3)", "mul::muls[1-x]", "/b7/t_9.c"];
        let missing = |base: &Baseline, passing: &[&str], doctests| {
            let expected = Expected::of(base).expect("tests ran");
            let own = TestReport { doctests, ..report(passing.len() as u64, passing, None) };
            expected.missing(Some(&own)).is_some()
        };
        for (passing, doctests, expected) in [
            (&names[..], 1, false),
            (
                &["calc::b::adds", "calc::src/b.rs - f (line 9)", "mul::muls[y]", "/c1/t_8.c"],
                1,
                false,
            ),
            (&["calc::a::adds", "calc::more", "mul::muls[1-x]", "/b7/t_9.c"], 0, false),
            (&["calc::a::adds", "calc::muls", "/b7/t_9.c", "calc::more"], 0, true),
            (&["calc::a::adds", "calc::muls", "/b7/t_9.c", "calc.a::calc.a.f"], 1, true),
        ] {
            let mut base = base(&names, 4);
            for result in base.results.0.iter_mut() {
                result.tests.as_mut().expect("a report").doctests = 1;
            }
            assert_eq!(missing(&base, passing, doctests), expected, "{passing:?}");
        }
        // The base's report does not name all tests.
        assert!(!missing(&base(&["a"], 2), &["a", "b"], 0));
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
