//! The results of single tests, as a test runner reported them.
//!
//! The code under test may have written such a report. So a report never makes a tree pass, its
//! size is limited, and its names are cleaned.
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::count::{NAMES, count, some_of};
use crate::model::{is_default, plain};

/// The maximum number of names in each list of a report.
pub const MOST_NAMES: usize = 20_000;

/// The maximum length of a test's name, in characters.
pub const LONGEST_NAME: usize = 300;

/// How a single test ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TestEnd {
    /// The test passed.
    #[default]
    Passed,
    /// The test failed.
    Failed,
    /// The test was not run. Or it failed, and a mark (`xfail`) or the code under test had declared
    /// that it would.
    Skipped,
}

/// The results of single tests, as a test runner reported them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// The number of tests, including skipped ones; 0 if the report does not say.
    pub total: u64,
    /// The names of the test runners that printed this report; `None` if it comes from JUnit files.
    pub printed_by: Option<String>,
    /// The reason why the report is missing or incomplete.
    pub problem: Option<String>,
    /// The number of tests that did not run, or whose failure was declared as expected.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skipped: u64,
    /// The names of the skipped tests, as far as the report has them, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipping: Vec<String>,
    /// The number of doctests that ran. These are tests in source, so a change of the source may
    /// drop them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub doctests: u64,
    /// The names of the tests that failed, sorted.
    #[serde(default)]
    pub failing: Vec<String>,
    /// The names of the tests that passed, sorted. A candidate's record keeps only those that did
    /// not run on the base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passing: Vec<String>,
    /// The names in `failing` that also passed, sorted. Such a test ran again, or several tests
    /// have this name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_passing: Vec<String>,
}

/// True for a doctest. pytest reports it with the full name of the documented object, and with the
/// object's module as the class. A very long name does not count as a doctest, because each dot in
/// it costs a comparison.
pub fn is_doctest(class: &str, name: &str) -> bool {
    if class.len().max(name.len()) > 4 * LONGEST_NAME {
        return false;
    }
    let parents = name.match_indices('.').map(|(at, _)| &name[..at]);
    let whole = name.contains('.').then_some(name);
    let is_class = |path: &str| {
        class == path || class.strip_suffix(path).is_some_and(|rest| rest.ends_with('.'))
    };
    parents.chain(whole).any(is_class)
}

impl TestReport {
    /// Counts one test.
    pub fn count(&mut self, name: &str, end: TestEnd) {
        self.total += 1;
        match end {
            TestEnd::Passed => self.name_passing(name),
            TestEnd::Failed => self.name_failing(name),
            TestEnd::Skipped => {
                self.skipped += 1;
                self.name_skipped(name);
            }
        }
    }

    /// Names a test that failed, without counting it.
    pub fn name_failing(&mut self, name: &str) {
        push(&mut self.failing, name);
    }

    /// Names a test that passed, without counting it.
    pub fn name_passing(&mut self, name: &str) {
        push(&mut self.passing, name);
    }

    /// Names a test that was skipped, without counting it.
    pub fn name_skipped(&mut self, name: &str) {
        push(&mut self.skipping, name);
    }

    /// True if several runners printed this report.
    pub fn is_of_several_runners(&self) -> bool {
        self.printed_by.as_ref().is_some_and(|names| names.contains(", "))
    }

    /// Adds the report of another runner.
    pub fn add(&mut self, other: TestReport) {
        self.total += other.total;
        self.skipped += other.skipped;
        self.doctests += other.doctests;
        self.problem = self.problem.take().or(other.problem);
        self.failing.extend(other.failing);
        self.passing.extend(other.passing);
        self.skipping.extend(other.skipping);
        self.printed_by = match (self.printed_by.take(), other.printed_by) {
            (Some(one), Some(other)) => Some(format!("{one}, {other}")),
            (one, other) => one.or(other),
        };
    }

    /// Removes a text from all names.
    pub fn cut_from_names(&mut self, text: &str) {
        let ran = self.failing.iter_mut().chain(&mut self.passing);
        for name in ran.chain(&mut self.skipping) {
            if name.contains(text) {
                *name = name.replace(text, "");
            }
        }
        self.finish();
    }

    /// True if a test of this name ran.
    pub fn ran(&self, name: &String) -> bool {
        [&self.failing, &self.passing].iter().any(|names| names.binary_search(name).is_ok())
    }

    /// The number of tests that ran and are not doctests.
    pub fn ran_in_files(&self) -> u64 {
        self.total.saturating_sub(self.skipped + self.doctests)
    }

    /// The names of the tests that this report skips and that ran on the base. A name is left out
    /// if the base has several tests of that name, of which some were skipped.
    pub fn skipping_of(&self, base: &TestReport) -> Vec<String> {
        let names = self.skipping.iter().filter(|name| base.ran(name));
        names.filter(|name| base.skipping.binary_search(name).is_err()).cloned().collect()
    }

    /// True if it is certain that no test passed: none ran, or each failed or was skipped.
    pub fn none_passed(&self) -> bool {
        let not_passed = self.failing.len() as u64 + self.skipped;
        if self.total == 0 { not_passed == 0 } else { not_passed >= self.total }
    }

    /// Sorts the names. A test that both passed and failed has failed.
    pub fn finish(&mut self) {
        for names in [&mut self.failing, &mut self.passing, &mut self.skipping] {
            names.sort();
            names.dedup();
            names.truncate(MOST_NAMES);
        }
        let TestReport { failing, passing, also_passing, .. } = self;
        let both = passing.extract_if(.., |name| failing.binary_search(name).is_ok());
        also_passing.extend(both);
        also_passing.sort();
    }

    /// The tests that passed in this report and did not run in another report.
    pub fn passing_beyond(&self, other: &TestReport) -> Vec<String> {
        self.passing.iter().filter(|name| !other.ran(name)).cloned().collect()
    }

    /// The failing tests in words: `2 of 297 tests fail`.
    pub fn failures(&self) -> String {
        let failing = self.failing.len();
        let total = self.total;
        let verb = if failing == 1 { "fails" } else { "fail" };
        match total {
            0 => format!("{} {verb}", count(failing, "test")),
            _ => format!("{failing} of {} {verb}", count(total, "test")),
        }
    }
}

/// Adds a name on one line, without characters that could turn or hide the text beside it. A name
/// that is too long ends in a digest, so that two names that begin alike stay different.
fn push(names: &mut Vec<String>, name: &str) {
    if names.len() > 4 * MOST_NAMES {
        return;
    }
    let visible = name.chars().filter(|c| !plain::is_hidden(*c)).take(LONGEST_NAME + 1);
    let mut shown: String = visible.map(|c| if c.is_control() { ' ' } else { c }).collect();
    if let Some((at, _)) = shown.char_indices().nth(LONGEST_NAME) {
        let digest = Sha256::digest(name);
        shown.truncate(at);
        shown.push_str(&format!("…{}", HEXLOWER.encode(&digest[..3])));
    }
    names.push(shown);
}

/// The maximum length of a test's name in a sentence or a table, in characters.
const SHOWN: usize = 60;

/// A test's name for a sentence or a table. `all` are the names of all tests that the text is
/// about. The names of tests in one file begin alike, and parameters are at the end. So the middle
/// of a long name is left out, unless another name would then look the same.
pub fn shortened(name: &str, all: &[String]) -> String {
    let cut = without_middle(name);
    let is_taken = all.iter().any(|other| other != name && without_middle(other) == cut);
    if is_taken { name.to_owned() } else { cut }
}

fn without_middle(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let half = SHOWN / 2;
    if letters.len() <= SHOWN {
        return name.to_owned();
    }
    let head = &letters[..half - 1];
    let tail = &letters[letters.len() - half..];
    format!("{}…{}", String::from_iter(head), String::from_iter(tail))
}

/// The first few of some tests, and how many more there are. `all` are the names of all tests that
/// the text is about.
pub fn some_tests(names: &[String], all: &[String]) -> String {
    let first = names.iter().take(NAMES).map(|name| shortened(name, all));
    some_of(&first.chain(names.iter().skip(NAMES).cloned()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_few_and_on_one_line() {
        let mut report = TestReport::default();
        report.count("a\n\u{1b}[31m\u{202e}b", TestEnd::Failed);
        report.count(&"x".repeat(10_000), TestEnd::Failed);
        for n in 0..200_000 {
            report.count(&format!("test {n}"), TestEnd::Passed);
        }
        report.finish();
        assert_eq!((report.total, report.passing.len()), (200_002, MOST_NAMES));
        assert_eq!(report.failing[0], "a  [31mb");
        assert_eq!(report.failing[1].chars().count(), LONGEST_NAME + 7);
    }

    #[test]
    fn names_that_differ_still_differ_when_they_are_cut() {
        let mut report = TestReport::default();
        let long = |end: &str| format!("module::{}{end}", "x".repeat(LONGEST_NAME));
        report.count(&long("a"), TestEnd::Failed);
        report.count(&long("b"), TestEnd::Passed);
        report.finish();
        assert_eq!((report.failing.len(), report.passing.len()), (1, 1));
        let alone = |name: &str| shortened(name, &[]);
        assert_ne!(alone(&report.failing[0]), alone(&report.passing[0]));
        let parameters = |n| alone(&format!("tests/test_a.py::test_{}[{n}]", "y".repeat(80)));
        assert_ne!(parameters(1), parameters(2));
        assert_eq!(parameters(1).chars().count(), SHOWN);
        assert_eq!(alone("short"), "short");
    }

    #[test]
    fn tests_whose_names_differ_in_the_middle_alone_differ_in_every_list() {
        let of =
            |class: &str| format!("tests/unit/test_parser.py::{class}::test_{}", "x".repeat(40));
        let one = of("TestOne");
        let two = of("TestTwo");
        let short = "tests/a.py::b".to_owned();
        let all = [one.clone(), two.clone(), short.clone()];
        assert_eq!(shortened(&one, &[one.clone(), short.clone()]).chars().count(), SHOWN);
        assert_eq!(some_tests(&all, &all), format!("{one}, {two}, {short}"));
        // The two names may be in different lists of one sentence.
        assert_eq!(some_tests(&all[..1], &all), one);
    }

    #[test]
    fn a_test_that_passed_once_and_failed_once_has_failed() {
        let mut report = TestReport::default();
        for (name, end) in [("a", TestEnd::Passed), ("b", TestEnd::Passed), ("a", TestEnd::Failed)]
        {
            report.count(name, end);
        }
        report.finish();
        assert_eq!((report.failing, report.passing), (vec!["a".into()], vec!["b".into()]));
    }
}
