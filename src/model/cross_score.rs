//! The score that a candidate gets from the other candidates' tests.
//!
//! A candidate's own tests say little about it: an author that has misread the task has misread it
//! in its tests, too. The other candidates' tests are independent of the candidate, but they can be
//! wrong, too. So a test counts only if its author passes it, and if another candidate passes it or
//! none fails it. All authors have the same weight, however many tests they wrote.
use std::collections::BTreeSet;

use crate::model::agreement::{mean, rounded};
use crate::model::count::{and_more, count, some_of};
use crate::model::cross::{Cell, CrossTest};
use crate::model::name::Name;
use crate::model::verdict::{Entry, Verdict};

/// Sets the score of every entry that has results of tests across candidates (`Entry::cross`). The
/// score depends only on tests of other candidates, and unknown results are left out.
pub fn set_scores(entries: &mut [Entry]) {
    let scores: Vec<Option<f64>> = entries.iter().map(|entry| score(entry, entries)).collect();
    for (entry, score) in entries.iter_mut().zip(scores) {
        if let Some(cross) = &mut entry.cross {
            cross.score = score;
        }
    }
}

fn score(of: &Entry, entries: &[Entry]) -> Option<f64> {
    let others = entries.iter().filter(|author| !is_same(author, of));
    mean(others.filter_map(|author| share(of, author)).collect()).map(rounded)
}

/// The share of an author's tests that a candidate passes. Tests that do not count, and tests whose
/// result on the candidate is unknown, are left out. `None` if no test is left.
fn share(of: &Entry, author: &Entry) -> Option<f64> {
    let tests = counting_tests(author);
    let cells: Vec<Cell> = tests.map(|test| test.cell(&of.candidate)).collect();
    let known = cells.iter().filter(|cell| **cell != Cell::Unknown).count();
    let passed = cells.iter().filter(|cell| **cell == Cell::Pass).count();
    (known > 0).then(|| passed as f64 / known as f64)
}

/// True if two entries are the same candidate, or have the same tree.
fn is_same(one: &Entry, other: &Entry) -> bool {
    one.candidate == other.candidate || one.judged().is_some() && one.judged() == other.judged()
}

/// The name under which a candidate is listed in the results of tests. If several candidates that
/// passed have the same tree, tests run only on the first of them, and only its name is listed.
fn listed_name<'e>(of: &'e Entry, entries: &'e [Entry]) -> &'e Name {
    let first = entries.iter().find(|entry| entry.passed() && is_same(entry, of));
    &first.unwrap_or(of).candidate
}

/// The tests that a candidate added or changed.
fn tests_of(author: &Entry) -> impl Iterator<Item = &CrossTest> {
    author.cross.iter().flat_map(|cross| &cross.tests)
}

/// The tests of an author that count for the other candidates.
fn counting_tests(author: &Entry) -> impl Iterator<Item = &CrossTest> {
    tests_of(author).filter(|test| test.counts(&author.candidate))
}

/// The number of candidates whose tests count.
pub fn valid_authors(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| counting_tests(entry).next().is_some()).count()
}

/// The score that is used in place of an unknown one: the mean of the known scores. `None` if no
/// score is known. It does not depend on the results of the candidate's own commands, because these
/// may be claims, which a later judging can refute.
pub fn neutral_score(entries: &[Entry]) -> Option<f64> {
    mean(entries.iter().filter_map(|entry| entry.cross.as_ref()?.score).collect())
}

/// Every test with its author, in the spawn order of the authors.
pub fn all_tests(entries: &[Entry]) -> impl Iterator<Item = (&Name, &CrossTest)> {
    entries.iter().flat_map(|entry| tests_of(entry).map(|test| (&entry.candidate, test)))
}

/// The tests that one of two candidates passes and the other fails. Each item has the name of the
/// test, its author (`None` for the base), and a flag: true if the candidate `one` passes the test.
pub fn differing_tests<'v>(
    verdict: &'v Verdict,
    one: &Name,
    other: &Name,
) -> Vec<(&'v str, Option<&'v Name>, bool)> {
    let base = verdict.baseline.as_ref().and_then(|base| base.results.report());
    let of_base = base.into_iter().flat_map(|report| report.passing.iter().chain(&report.failing));
    // A candidate's record names the base's tests that fail on it, but not those that pass.
    let results = [one, other].map(|name| {
        let entry = verdict.entry(name);
        (entry.and_then(|e| e.results.failing_tests()), entry.is_some_and(Entry::passed))
    });
    let passes = |test: &String, (failing, passed): (Option<&[String]>, bool)| match failing {
        Some(failing) if failing.contains(test) => Some(false),
        Some(_) => Some(true),
        None => passed.then_some(true),
    };
    let of_base = of_base.filter_map(|test| {
        let [one, other] = results.map(|results| passes(test, results));
        (one? != other?).then_some((test.as_str(), None, one?))
    });
    let names = [one, other].map(|name| {
        verdict.entry(name).map_or(name, |entry| listed_name(entry, &verdict.candidates))
    });
    let of_authors = all_tests(&verdict.candidates).filter_map(|(author, test)| {
        let cells = names.map(|name| test.cell(name));
        let passes = match cells {
            [Cell::Pass, Cell::Fail] => true,
            [Cell::Fail, Cell::Pass] => false,
            _ => return None,
        };
        Some((test.name.as_str(), Some(author), passes))
    });
    of_base.chain(of_authors).collect()
}

/// The findings about the tests of a candidate. Each finding is one line.
pub fn findings(of: &Entry, entries: &[Entry]) -> Vec<String> {
    let judged = entries.iter().filter(|entry| entry.cross.is_some());
    let judged: BTreeSet<&Name> = judged.map(|entry| listed_name(entry, entries)).collect();
    let author = &of.candidate;
    let Some(cross) = &of.cross else { return Vec::new() };
    let names = |names: &[Name]| names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
    let line = |(test, of_these): (&CrossTest, Vec<String>)| {
        let (base, bases) = match test.base {
            Cell::Fail => ("a proof: it fails", "proofs: they fail"),
            Cell::Unknown => ("a weak proof: it does not run", "weak proofs: they do not run"),
            Cell::Pass => ("a pin: it passes", "pins: they pass"),
        };
        let mut text = match of_these.as_slice() {
            [one] => format!("{author}'s test {one} is {base} on the base"),
            all => format!(
                "{author}'s {} {} are {bases} on the base",
                count(all.len(), "test"),
                some_of(all)
            ),
        };
        let [passes, fails, it] = match of_these.len() {
            1 => ["passes on", "fails on", "it"],
            _ => ["pass on", "fail on", "them"],
        };
        let unknown = judged.iter().filter(|name| test.cell(name) == Cell::Unknown);
        let unknown: Vec<Name> = unknown.map(|name| (*name).clone()).collect();
        let results = [(passes, &test.passes), (fails, &test.fails), ("not run on", &unknown)];
        for (word, list) in results.into_iter().filter(|(_, list)| !list.is_empty()) {
            text.push_str(&format!("; {word} {}", names(list)));
        }
        if !test.passes.contains(author) {
            text.push_str(&format!("; not counted: {author} fails {it}"));
        } else if test.is_lonely(author) {
            text.push_str(&format!("; not counted: only {author} passes {it}"));
        }
        text
    };
    let inner = cross.inseparable.iter();
    let inner = inner.map(|path| format!("{author}'s tests in {path} run on no other candidate"));
    inner.chain(with_equal_results(&cross.tests).into_iter().map(line)).collect()
}

/// Groups the tests that have the same result on every candidate and on the base. Returns the first
/// test of each group, and the names of all tests in the group.
fn with_equal_results(tests: &[CrossTest]) -> Vec<(&CrossTest, Vec<String>)> {
    let mut groups: Vec<(&CrossTest, Vec<String>)> = Vec::new();
    for test in tests {
        let nameless = |test: &CrossTest| CrossTest { name: String::new(), ..test.clone() };
        match groups.iter_mut().find(|(first, _)| nameless(first) == nameless(test)) {
            Some((_, names)) => names.push(test.name.clone()),
            None => groups.push((test, vec![test.name.clone()])),
        }
    }
    groups
}

/// Remarks on a candidate for a table. With more than two authors, they name two kinds of tests:
///
/// * the other candidates' tests that count and that the candidate fails;
/// * the candidate's own tests that do not count, because no other candidate passes them.
///
/// With fewer authors, they name all the other candidates' tests that the candidate fails.
pub fn remarks(of: &Entry, entries: &[Entry]) -> Vec<String> {
    let authors = entries.iter().filter(|author| tests_of(author).next().is_some());
    // If there are only two authors, and each fails the other's test, nobody knows which one is
    // right.
    let shows_lonely = authors.count() > 2;
    let mut words = Vec::new();
    for author in entries.iter().filter(|author| !is_same(author, of)) {
        let failed: Vec<&CrossTest> = tests_of(author)
            .filter(|test| test.fails.contains(listed_name(of, entries)))
            .filter(|test| test.counts(&author.candidate) || !shows_lonely)
            .collect();
        let failed = first_in_words(&failed);
        words.extend(failed.map(|tests| format!("fails {}'s test {tests}", author.candidate)));
    }
    let lonely: Vec<&CrossTest> =
        tests_of(of).filter(|test| shows_lonely && test.is_lonely(&of.candidate)).collect();
    words.extend(first_in_words(&lonely).map(|tests| format!("only its author passes {tests}")));
    words
}

/// Looks at the other candidates that passed, and at their tests: does a test pass on its author,
/// but fail on the base and on the candidate `of`? Returns the first author of such tests, and the
/// names of the tests. They may show that `of` leaves out a part of the change, even if no third
/// candidate passes them.
pub fn failed_proofs<'e>(of: &Entry, entries: &'e [Entry]) -> Option<(&'e Name, Vec<String>)> {
    let name = listed_name(of, entries);
    let authors = entries.iter().filter(|author| author.passed() && !is_same(author, of));
    let mut proofs = authors.map(|author| {
        let tests = tests_of(author).filter(|test| {
            let cells = [&author.candidate, name].map(|candidate| test.cell(candidate));
            test.base == Cell::Fail && cells == [Cell::Pass, Cell::Fail]
        });
        (&author.candidate, tests.map(|test| test.name.clone()).collect::<Vec<_>>())
    });
    proofs.find(|(_, tests)| !tests.is_empty())
}

/// The name of the first of some tests, and how many more there are.
fn first_in_words(tests: &[&CrossTest]) -> Option<String> {
    let (first, rest) = tests.split_first()?;
    Some(format!("{}{}", first.name, and_more(rest.len())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::blast::Blast;
    use crate::model::cross::CrossResult;
    use crate::model::decision::decide;
    use crate::model::outcome::{Outcome, Results, Stage, StageResult};
    use crate::model::rank::Rank;
    use crate::model::ranking::Rules;

    /// Candidates that passed. Each item has the count of changed lines and the candidate's tests.
    /// A test is a string with one letter for each candidate: `p` if the candidate passes the test,
    /// `f` if it fails, `.` if the result is unknown.
    fn candidates(all: &[(u64, &[&str])]) -> Vec<Entry> {
        let name = |at: usize| -> Name { format!("c{}", at + 1).parse().expect("a valid name") };
        let those = |row: &str, wanted: char| {
            row.chars().enumerate().filter(|(_, c)| *c == wanted).map(|(at, _)| name(at)).collect()
        };
        let test = |cells: &&str| CrossTest {
            name: (*cells).to_owned(),
            base: Cell::Fail,
            passes: those(cells, 'p'),
            fails: those(cells, 'f'),
        };
        let entry = |(at, (lines, tests)): (usize, &(u64, &[&str]))| Entry {
            candidate: name(at),
            index: at as u32 + 1,
            blast: Blast { lines: *lines, files: 1 },
            results: Results(vec![StageResult::new(Stage::Test, 0.0, Outcome::Passed)]),
            cross: Some(CrossResult {
                tests: tests.iter().map(test).collect(),
                ..CrossResult::default()
            }),
            ..Entry::default()
        };
        let mut entries: Vec<Entry> = all.iter().enumerate().map(entry).collect();
        set_scores(&mut entries);
        entries
    }

    fn scores(entries: &[Entry]) -> Vec<Option<f64>> {
        entries.iter().map(|entry| entry.cross.as_ref().and_then(|cross| cross.score)).collect()
    }

    fn winner(entries: &[Entry], rank: Rank) -> String {
        let rules = Rules { rank, ..Rules::default() };
        decide(entries, None, rules).recommended.map(|name| name.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_definition_worked_out_by_hand() {
        let entries = candidates(&[(9, &["ppf", "ppp"]), (5, &["fpp"]), (1, &[])]);
        // c1 fails c2's only test. c2 passes both tests of c1. c3 passes one of c1's two tests, and
        // the test of c2: (1/2 + 1) / 2.
        assert_eq!(scores(&entries), [Some(0.0), Some(1.0), Some(0.75)]);
        assert_eq!((valid_authors(&entries), neutral_score(&entries)), (2, Some(1.75 / 3.0)));
        assert_eq!(winner(&entries, Rank::Cross), "c2");
        assert_eq!(winner(&entries, Rank::Auto), "c2");
        assert_eq!(winner(&entries, Rank::BlastRadius), "c3");
        assert_eq!(remarks(&entries[0], &entries), ["fails c2's test fpp"]);
        let thirds = candidates(&[(1, &["pp", "pp", "pp"]), (1, &["pp"])]);
        assert_eq!(scores(&thirds), [Some(1.0), Some(1.0)]);
        assert_eq!(winner(&thirds, Rank::Cross), "c1");
    }

    #[test]
    fn tests_with_equal_results_are_one_line() {
        let many = ["pf.", "pf.", "pf.", "pf.", "pp."];
        let entries = candidates(&[(1, &many), (1, &[]), (1, &[])]);
        assert_eq!(
            findings(&entries[0], &entries),
            [
                "c1's 4 tests pf., pf., pf. and 1 more are proofs: they fail on the base; pass on c1; \
                 fail on c2; not run on c3; not counted: only c1 passes them",
                "c1's test pp. is a proof: it fails on the base; passes on c1, c2; not run on c3",
            ]
        );
    }

    #[test]
    fn test_that_its_own_author_fails_does_not_count() {
        // c2 wrote a test that c2 fails itself. c1 loses no points for this test.
        let entries = candidates(&[(5, &["pp."]), (1, &["fff", "fpp"]), (1, &["ppp"])]);
        assert_eq!(scores(&entries)[0], Some(0.5), "one test of c2 counts, and the test of c3");
        let poisoned = candidates(&[(5, &[]), (6, &["ffp"]), (7, &[])]);
        assert_eq!(
            (scores(&poisoned), winner(&poisoned, Rank::Cross)),
            (vec![None; 3], "c1".into())
        );
    }

    #[test]
    fn test_that_only_its_author_passes_does_not_count() {
        // If c3's test counted, c3 would win by a test that only c3 passes.
        let entries = candidates(&[(1, &["ppp"]), (2, &["ppp"]), (9, &["ffp"])]);
        assert_eq!(scores(&entries), [Some(1.0); 3]);
        assert_eq!(winner(&entries, Rank::Cross), "c1");
        assert_eq!(remarks(&entries[2], &entries), ["only its author passes ffp"]);
        assert!(remarks(&entries[0], &entries).is_empty());
        // If two authors contradict each other, their tests do not affect the ranking, and both
        // results are shown.
        let two = candidates(&[(2, &["pf"]), (1, &["fp"])]);
        assert_eq!((scores(&two), winner(&two, Rank::Cross)), (vec![None; 2], "c2".into()));
        assert_eq!(remarks(&two[0], &two), ["fails c2's test fp"]);
        assert_eq!(remarks(&two[1], &two), ["fails c1's test pf"]);
    }

    #[test]
    fn test_that_was_not_run_is_no_failure() {
        // None of the other candidates' tests builds on c1. If that counted as a failure, c1 would
        // be last.
        let entries = candidates(&[(1, &[]), (2, &[".ppp"]), (3, &[]), (4, &[".pfp"])]);
        assert_eq!(scores(&entries), [None, Some(1.0), Some(0.5), Some(1.0)]);
        let decision = decide(&entries, None, Rules { rank: Rank::Cross, ..Rules::default() });
        let order: Vec<&str> = decision.ranking.iter().map(Name::as_str).collect();
        assert_eq!(order, ["c2", "c4", "c1", "c3"], "unknown counts as the known mean");
        // Missing results of commands do not change the neutral score. Otherwise an unconfirmed
        // claim could win.
        let mut open = entries.clone();
        open[1].results.0.clear();
        assert_eq!(neutral_score(&open), neutral_score(&entries));
        // c1 passes the only test whose result on c1 is known. If the unknown result counted as a
        // failure, c2 would win.
        let entries = candidates(&[(1, &[]), (2, &["ppp"]), (3, &[".pp"])]);
        assert_eq!(
            (scores(&entries), winner(&entries, Rank::Cross)),
            (vec![Some(1.0); 3], "c1".into())
        );
    }

    #[test]
    fn each_author_has_one_voice() {
        // c1 wrote ten tests that c2 fails and c3 passes. c3 and c4 each wrote one test that c2
        // passes.
        let many = ["pfp."; 10];
        let entries = candidates(&[(9, &many), (1, &[]), (9, &["fppp"]), (9, &["fppp"])]);
        // If all tests had the same weight, c2 would have the score 2/12.
        assert_eq!(scores(&entries)[1], Some(0.666666667));
        // Four candidates wrote good tests, which c1 and c6 fail. c6 wrote twenty wrong tests. If
        // all tests had the same weight, c1 would win with 20/24.
        let many = ["pffffp"; 20];
        let good = ["fppppf"];
        let entries =
            candidates(&[(1, &[]), (2, &good), (9, &good), (9, &good), (9, &good), (9, &many)]);
        assert_eq!(scores(&entries)[..2], [Some(0.2), Some(0.75)]);
        assert_eq!(winner(&entries, Rank::Cross), "c2");
    }

    proptest! {
        /// If no test counts, the tests do not affect the ranking.
        #[test]
        fn without_a_valid_test_the_smallest_wins(
            lines in prop::collection::vec(1u64..5, 3..6),
            cells in prop::collection::vec("[f.]{6}", 6),
        ) {
            let tests: Vec<[&str; 1]> = cells.iter().map(|cells| [&**cells]).collect();
            let all: Vec<(u64, &[&str])> =
                lines.iter().zip(&tests).map(|(lines, tests)| (*lines, &tests[..])).collect();
            let entries = candidates(&all);
            prop_assert_eq!(winner(&entries, Rank::Cross), winner(&entries, Rank::BlastRadius));
        }

        #[test]
        fn score_is_between_0_and_1_and_own_tests_never_count(
            cells in prop::collection::vec(prop::collection::vec("[pf.]{4}", 0..4), 4),
        ) {
            let tests: Vec<Vec<&str>> =
                cells.iter().map(|tests| tests.iter().map(|test| &**test).collect()).collect();
            let all: Vec<(u64, &[&str])> = tests.iter().map(|tests| (1, &tests[..])).collect();
            let entries = candidates(&all);
            for (at, score) in scores(&entries).into_iter().enumerate() {
                prop_assert!(score.is_none_or(|score| (0.0..=1.0).contains(&score)));
                let mut without: Vec<(u64, &[&str])> = all.clone();
                without[at].1 = &[];
                prop_assert_eq!(scores(&candidates(&without))[at], score);
            }
        }
    }
}
