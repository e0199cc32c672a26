//! Fills a matrix that tells for each test of each author how it ends on each candidate and on the
//! base. An author is a candidate with test files. As few trees as possible are judged.
//!
//! First, every candidate is judged with the test files of all other authors whose files can be
//! combined. A candidate is never judged together with its own test files, which could make any
//! test pass. But the files of one author can also make the tests of another author fail, or end
//! the stage. So these results count for an author only if all tests of this author pass. Otherwise
//! the candidate is judged once more, with the files of this author alone. This code uses neither
//! git nor processes, so that unit tests can replace the judging.
use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::cross::{Cell, edited_tests};
use crate::model::outcome::Results;
use crate::model::test_report::TestReport;

/// Whose tree is judged: the candidate at this position; `None` for the base.
pub type CrossSubject = Option<usize>;

/// A tree with test files of some authors laid over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossTree {
    /// The tree that the files are laid over.
    pub of: CrossSubject,
    /// The authors whose files are laid over it, by their positions among the authors.
    pub authors: Vec<usize>,
}

/// A candidate that has test files.
#[derive(Clone, Debug)]
pub struct Author {
    /// The author's position among the candidates.
    pub candidate: usize,
    /// The names of the tests that the author adds and passes.
    pub adds: Vec<String>,
    /// If tests are not reported by name, the name that stands for all tests of the author
    /// together.
    pub together: Option<String>,
    /// True if the author changes test files of the base.
    pub edits: bool,
    /// True if the author's files are never combined with those of other authors.
    pub is_apart: bool,
    /// The results of the author's own tree, which passed.
    pub own: Results,
}

/// A test, and its result on the base and on each candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRow {
    /// The test's name.
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

    /// True if results with the files of several authors are valid for all tests of this author in
    /// `names`. On a candidate, only passes are valid, because another author's files may have
    /// caused a failure. On the base, failures are valid as well, because results on the base
    /// decide nothing.
    fn are_valid(&self, of: CrossSubject, names: &[String], results: &Results) -> bool {
        let ran = results.report().is_some_and(|report| !report.passing.is_empty());
        let cells = self.cells(names, results);
        match of {
            None if self.edits => false,
            None if self.together.is_none() => ran && !cells.contains(&Cell::Unknown),
            _ => (ran || results.passed()) && cells.iter().all(|cell| *cell == Cell::Pass),
        }
    }
}

/// Returns the rows of each author, in the order of the authors. `base` is the report of the base
/// itself. `judge` judges several trees and returns their results.
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

/// The rows of one author. `known` has the results with the files of several authors, this one
/// among them; it is empty if the author's files are never combined.
fn rows(
    at: usize,
    author: &Author,
    subjects: &[CrossSubject],
    known: &BTreeMap<CrossSubject, Results>,
    base: &TestReport,
    judge: &mut impl FnMut(&[CrossTree]) -> Result<Vec<Results>>,
) -> Result<Vec<TestRow>> {
    let mut names = author.adds.clone();
    let valid = |of: &CrossSubject, names: &[String]| {
        if *of == Some(author.candidate) {
            return Some(author.own.clone());
        }
        known.get(of).filter(|results| author.are_valid(*of, names, results)).cloned()
    };
    let alone = |of: CrossSubject| CrossTree { of, authors: vec![at] };
    let on_base = match valid(&None, &names) {
        Some(results) => results,
        None => judge(&[alone(None)])?.remove(0),
    };
    if author.edits && author.together.is_none() {
        names.extend(edited_tests(&on_base, base));
    }
    let mut cells = vec![author.cells(&names, &on_base)];
    let found: Vec<Option<Results>> = subjects[1..].iter().map(|of| valid(of, &names)).collect();
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
