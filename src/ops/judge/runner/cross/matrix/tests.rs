use proptest::prelude::*;

use super::*;
use crate::model::outcome::{Outcome, Stage, StageResult};

/// Candidates and their tests. Test `N` of candidate `A` is called `A:N`.
#[derive(Clone, Debug)]
struct TestWorld {
    /// For each candidate, and for each author: true for each test of the author that passes on the
    /// candidate. `None` if the author's files end the stage on the candidate.
    on: Vec<Vec<Option<Vec<bool>>>>,
    /// For each author: true for each test of the author that passes on the base. `None` if the
    /// author's files end the stage on the base.
    base: Vec<Option<Vec<bool>>>,
    /// True if tests are reported by name.
    names: bool,
}

fn author(candidate: usize, tests: usize, names: bool) -> Author {
    Author {
        candidate,
        adds: (0..tests).filter(|_| names).map(|n| format!("{candidate}:{n}")).collect(),
        together: (!names).then(|| format!("{candidate}.sh")),
        edits: false,
        is_apart: false,
        own: passing(&[&format!("{candidate}:0"), "old"], names),
    }
}

/// Results of a test stage that passed. If `names` is true, the stage has a report in which `tests`
/// passed.
fn passing(tests: &[&str], names: bool) -> Results {
    let mut report = TestReport::default();
    report.passing.extend(tests.iter().map(|test| (*test).to_owned()));
    report.finish();
    let result = StageResult::new(Stage::Test, 0.0, Outcome::Passed);
    Results(vec![StageResult { tests: names.then_some(report), ..result }])
}

impl TestWorld {
    fn judge(&self, tree: &CrossTree) -> Results {
        let ends = tree.of.map_or(&self.base, |at| &self.on[at]);
        let mut report = TestReport { passing: vec!["old".into()], ..TestReport::default() };
        let mut ends_stage = false;
        for author in &tree.authors {
            match &ends[*author] {
                None => ends_stage = true,
                Some(ends) => {
                    for (n, passed) in ends.iter().enumerate() {
                        let list = if *passed { &mut report.passing } else { &mut report.failing };
                        list.push(format!("{author}:{n}"));
                    }
                }
            }
        }
        report.finish();
        let failed = ends_stage || !report.failing.is_empty();
        let outcome = if failed { Outcome::Failed { code: 1 } } else { Outcome::Passed };
        let tests = self.names.then_some(report).filter(|_| !ends_stage);
        Results(vec![StageResult { tests, ..StageResult::new(Stage::Test, 0.0, outcome) }])
    }

    /// The results of a candidate's tree with its own tests.
    fn own(&self, at: usize) -> Results {
        self.judge(&CrossTree { of: Some(at), authors: vec![at] })
    }

    /// The number of pairs of a candidate and an author in which a test of the author fails on the
    /// candidate. Another author's files could have caused each such failure.
    fn doubtful(&self) -> usize {
        let fails = |ends: &&Option<Vec<bool>>| ends.iter().flatten().any(|passed| !passed);
        self.on.iter().flatten().filter(fails).count()
    }

    /// The rows of all authors, and the number of judged trees.
    fn rows(&self, is_apart: bool) -> (Vec<Vec<TestRow>>, usize) {
        let count = self.on.len();
        let tests = |at: usize| self.on[at][at].as_ref().map_or(0, Vec::len);
        let authors: Vec<Author> = (0..count)
            .map(|at| Author { is_apart, own: self.own(at), ..author(at, tests(at), self.names) })
            .collect();
        let base = TestReport { passing: vec!["old".into()], ..TestReport::default() };
        let mut trees = 0;
        let rows = fill(count, &authors, &base, |wanted| {
            trees += wanted.len();
            Ok(wanted.iter().map(|tree| self.judge(tree)).collect())
        });
        (rows.expect("no judge fails"), trees)
    }
}

fn worlds() -> impl Strategy<Value = TestWorld> {
    let sizes = prop::collection::vec(1usize..4, 2..6);
    (sizes, any::<bool>()).prop_flat_map(|(sizes, names)| {
        let ends = |size: usize| {
            let known = prop::collection::vec(any::<bool>(), size).prop_map(Some);
            prop_oneof![4 => known, 1 => Just(None)]
        };
        let row = sizes.iter().map(|size| ends(*size)).collect::<Vec<_>>();
        let on = prop::collection::vec(row.clone(), sizes.len());
        (on, row, Just(sizes)).prop_map(move |(mut on, base, sizes)| {
            // Each author passes its own tests.
            for (at, size) in sizes.iter().enumerate() {
                on[at][at] = Some(vec![true; *size]);
            }
            TestWorld { on, base, names }
        })
    })
}

proptest! {
    #[test]
    fn union_and_pairs_give_one_matrix(world in worlds()) {
        prop_assert_eq!(world.rows(false).0, world.rows(true).0);
    }

    #[test]
    fn union_without_a_file_that_ends_the_stage_takes_one_tree_each_and_one_for_each_failure(world in worlds()) {
        let all = world.on.iter().chain([&world.base]);
        if world.names && all.flatten().all(Option::is_some) {
            prop_assert_eq!(world.rows(false).1, world.on.len() + 1 + world.doubtful());
        }
    }
}

#[test]
fn only_results_that_the_union_does_not_give_are_judged_in_pairs() {
    let fine = || Some(vec![true]);
    // The second author's tests do not build on the first candidate. No author's tests build on the
    // base. The first author's test fails on the third candidate.
    let on =
        vec![vec![fine(), None, fine()], vec![fine(); 3], vec![Some(vec![false]), fine(), fine()]];
    let world = TestWorld { on, base: vec![None, None, None], names: true };
    let (rows, trees) = world.rows(false);
    // The judged trees, in this order:
    // * four trees with the files of all other authors;
    // * three trees with each author's files on the base;
    // * two trees with the second and third author's files on the first candidate;
    // * one tree for the failure on the third candidate.
    assert_eq!(trees, 4 + 3 + 2 + 1);
    assert_eq!(rows[0][0].cells, [Cell::Pass, Cell::Pass, Cell::Fail]);
    assert_eq!(rows[1][0].cells, [Cell::Unknown, Cell::Pass, Cell::Pass]);
    assert!(rows.iter().flatten().all(|row| row.base == Cell::Unknown));
}

#[test]
fn author_cannot_make_the_tests_of_others_fail() {
    let world = TestWorld {
        on: vec![vec![Some(vec![true]); 3]; 3],
        base: vec![Some(vec![false]); 3],
        names: true,
    };
    let authors = [author(0, 1, true), author(1, 1, true), author(2, 1, true)];
    let base = TestReport { passing: vec!["old".into()], ..TestReport::default() };
    let rows = fill(3, &authors, &base, |wanted| {
        let disturbed = |tree: &CrossTree| {
            let mut results = world.judge(tree);
            // The third author's files make the test of the first author fail.
            if tree.authors.contains(&0) && tree.authors.contains(&2) {
                let report = results.0[0].tests.as_mut().expect("a report");
                report.passing.retain(|name| name != "0:0");
                report.failing = vec!["0:0".into()];
            }
            results
        };
        Ok(wanted.iter().map(disturbed).collect())
    });
    let rows = rows.expect("no judge fails");
    assert_eq!((rows[0][0].base, &rows[0][0].cells), (Cell::Fail, &vec![Cell::Pass; 3]));
    assert_eq!(rows[1][0].cells, [Cell::Pass; 3]);
}

#[test]
fn changed_test_is_known_by_its_end_on_the_base() {
    let edits = [Author { edits: true, ..author(0, 0, true) }, author(1, 1, true)];
    let base = TestReport { passing: vec!["old".into()], ..TestReport::default() };
    let rows = fill(2, &edits, &base, |wanted| {
        let of = |tree: &CrossTree| {
            let passes = tree.of == Some(0) || !tree.authors.contains(&0);
            let mut report = TestReport { passing: vec!["1:0".into()], ..TestReport::default() };
            let list = if passes { &mut report.passing } else { &mut report.failing };
            list.push("old".into());
            report.finish();
            let result = StageResult::new(Stage::Test, 0.0, Outcome::Passed);
            Results(vec![StageResult { tests: Some(report), ..result }])
        };
        Ok(wanted.iter().map(of).collect())
    });
    let rows = rows.expect("no judge fails");
    assert_eq!((rows[0][0].name.as_str(), rows[0][0].base), ("old", Cell::Fail));
    assert_eq!(rows[0][0].cells, [Cell::Pass, Cell::Fail]);
}
