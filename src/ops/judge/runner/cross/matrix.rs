//! Fills the matrix of tests and candidates with as few judged trees as possible.
//!
//! First, every candidate is judged with the test files of all other authors whose files can be
//! combined. It is never judged with its own test files, which could make any test pass. One
//! author's files can also make the tests of another author fail, or end the stage. So for each
//! author, these results count only if all of the author's tests pass; otherwise the candidate is
//! judged with this author's files alone. This code uses neither git nor processes, so that unit
//! tests can replace the judging.
use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::cross::{Cell, edited_tests};
use crate::model::outcome::Results;
use crate::model::test_report::TestReport;

/// The owner of a tree: the candidate at this position; `None` for the base.
pub type CrossSubject = Option<usize>;

/// A tree with test files laid over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossTree {
    /// The tree below the files.
    pub of: CrossSubject,
    /// The authors of the files.
    pub authors: Vec<usize>,
}

/// A candidate that has test files.
#[derive(Clone, Debug)]
pub struct Author {
    /// The position among the candidates.
    pub candidate: usize,
    /// The names of the tests that it adds and passes.
    pub adds: Vec<String>,
    /// The name of all its tests together, if they are not reported by name.
    pub together: Option<String>,
    /// True if it changes test files of the base.
    pub edits: bool,
    /// True if its files are never combined with those of other authors.
    pub is_apart: bool,
    /// The results of its own tree, which passed.
    pub own: Results,
}

/// A test with its result on the base and on each candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRow {
    /// Its name.
    pub name: String,
    /// The result on the base.
    pub base: Cell,
    /// The result on each candidate.
    pub cells: Vec<Cell>,
}

impl Author {
    fn cells(&self, names: &[String], results: &Results) -> Vec<Cell> {
        match &self.together {
            Some(_) => vec![Cell::of_exit(results, self.own.report().is_some())],
            None => names.iter().map(|name| Cell::of(results, name)).collect(),
        }
    }

    /// True if results with the files of several authors are valid for all these tests of this
    /// author. On a candidate, only passes are valid, because another author's files may have
    /// caused a failure. On the base, failures are valid as well, because these results decide
    /// nothing.
    fn is_told(&self, of: CrossSubject, names: &[String], results: &Results) -> bool {
        let ran = results.report().is_some_and(|report| !report.passing.is_empty());
        let cells = self.cells(names, results);
        match of {
            None if self.edits => false,
            None if self.together.is_none() => ran && !cells.contains(&Cell::Unknown),
            _ => (ran || results.passed()) && cells.iter().all(|cell| *cell == Cell::Pass),
        }
    }
}

/// Gives the rows of each author, in the order of the authors. `base` is the report of the base
/// itself; `judge` gives the results of several trees.
pub fn fill(
    candidates: usize,
    authors: &[Author],
    base: &TestReport,
    mut judge: impl FnMut(&[CrossTree]) -> Result<Vec<Results>>,
) -> Result<Vec<Vec<TestRow>>> {
    let subjects: Vec<CrossSubject> = [None].into_iter().chain((0..candidates).map(Some)).collect();
    let together: Vec<usize> = (0..authors.len()).filter(|at| !authors[*at].is_apart).collect();
    let mut union = BTreeMap::new();
    if together.len() > 1 {
        let tree = |of: &CrossSubject| {
            let others = together.iter().filter(|at| *of != Some(authors[**at].candidate));
            CrossTree { of: *of, authors: others.copied().collect() }
        };
        let results = judge(&subjects.iter().map(tree).collect::<Vec<_>>())?;
        union.extend(subjects.iter().copied().zip(results));
    }
    let apart = BTreeMap::new();
    let mut all = Vec::new();
    for (at, author) in authors.iter().enumerate() {
        let known = if together.contains(&at) { &union } else { &apart };
        all.push(rows(at, author, &subjects, known, base, &mut judge)?);
    }
    Ok(all)
}

/// The rows of one author. `known` are the results with this author's files among others; empty if
/// the author is apart.
fn rows(
    at: usize,
    author: &Author,
    subjects: &[CrossSubject],
    known: &BTreeMap<CrossSubject, Results>,
    base: &TestReport,
    judge: &mut impl FnMut(&[CrossTree]) -> Result<Vec<Results>>,
) -> Result<Vec<TestRow>> {
    let mut names = author.adds.clone();
    let told = |of: &CrossSubject, names: &[String]| {
        if *of == Some(author.candidate) {
            return Some(author.own.clone());
        }
        known.get(of).filter(|results| author.is_told(*of, names, results)).cloned()
    };
    let alone = |of: CrossSubject| CrossTree { of, authors: vec![at] };
    let on_base = match told(&None, &names) {
        Some(results) => results,
        None => judge(&[alone(None)])?.remove(0),
    };
    if author.edits && author.together.is_none() {
        names.extend(edited_tests(&on_base, base));
    }
    let mut cells = vec![author.cells(&names, &on_base)];
    let found: Vec<Option<Results>> = subjects[1..].iter().map(|of| told(of, &names)).collect();
    let missing = subjects[1..].iter().zip(&found).filter(|(_, found)| found.is_none());
    let missing: Vec<CrossTree> = missing.map(|(of, _)| alone(*of)).collect();
    let mut judged = if missing.is_empty() { Vec::new() } else { judge(&missing)? }.into_iter();
    for results in found {
        let results = results.or_else(|| judged.next()).unwrap_or_default();
        cells.push(author.cells(&names, &results));
    }
    if let Some(together) = &author.together {
        names = vec![together.clone()];
    }
    let row = |(n, name): (usize, String)| TestRow {
        name,
        base: cells[0][n],
        cells: cells[1..].iter().map(|cells| cells[n]).collect(),
    };
    Ok(names.into_iter().enumerate().map(row).collect())
}

#[cfg(test)]
mod tests;
