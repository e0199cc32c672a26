//! The matrix of tests and candidates, from as few judged trees as may be.
//!
//! First every candidate is judged with the test files of all authors that can stand together. Where the
//! results of that do not tell of an author's tests, because another one's files end the stage, the
//! candidate is judged with this author's files alone. Nothing here uses git or processes, so that unit tests
//! can give it worlds of their own.
use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::cross::{Cell, edited_tests};
use crate::model::outcome::Results;
use crate::model::test_report::TestReport;

/// Whose tree it is: that of the candidate at this place, or the base's.
pub type CrossSubject = Option<usize>;

/// A tree with test files laid over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossTree {
    /// The tree.
    pub of: CrossSubject,
    /// The authors of the files.
    pub authors: Vec<usize>,
}

/// A candidate that has test files.
#[derive(Clone, Debug)]
pub struct Author {
    /// Its place among the candidates.
    pub candidate: usize,
    /// The tests that it adds, by name, and passes.
    pub adds: Vec<String>,
    /// The name of all its tests together, if they are not reported by name.
    pub together: Option<String>,
    /// True if its runner names those that fail.
    pub has_report: bool,
    /// True if it changes test files of the base.
    pub edits: bool,
    /// True if it is judged apart from the others.
    pub is_apart: bool,
}

/// A test with its end on the base and on each candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRow {
    /// Its name.
    pub name: String,
    /// Its end on the base.
    pub base: Cell,
    /// Its end on each candidate.
    pub cells: Vec<Cell>,
}

impl Author {
    fn cells(&self, names: &[String], results: &Results) -> Vec<Cell> {
        match &self.together {
            Some(_) => vec![Cell::of_exit(results, self.has_report)],
            None => names.iter().map(|name| Cell::of(results, name)).collect(),
        }
    }

    /// True if results with the files of several authors tell of all these tests of one.
    fn is_told(&self, names: &[String], results: &Results) -> bool {
        match &self.together {
            Some(_) => results.passed(),
            None => {
                let ran = results.report().is_some_and(|report| !report.passing.is_empty());
                ran && names.iter().all(|name| Cell::of(results, name) != Cell::Unknown)
            }
        }
    }
}

/// Fills the rows of each author, in the order of the authors. `base` is the report of the base itself,
/// and `judge` gives the results of each of several trees.
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
        let tree = |of: &CrossSubject| CrossTree { of: *of, authors: together.clone() };
        let results = judge(&subjects.iter().map(tree).collect::<Vec<_>>())?;
        union.extend(subjects.iter().copied().zip(results));
    }
    let apart = BTreeMap::new();
    let mut all = Vec::new();
    for (at, author) in authors.iter().enumerate() {
        let known = if together.contains(&at) { &union } else { &apart };
        let rows = rows(at, author, &subjects, known, base, &mut judge)?;
        // The files of another author disturb its tests, which pass without them.
        let disturbed = rows.iter().any(|row| row.cells[author.candidate] != Cell::Pass);
        all.push(match disturbed && !known.is_empty() {
            true => self::rows(at, author, &subjects, &apart, base, &mut judge)?,
            false => rows,
        });
    }
    Ok(all)
}

/// The rows of one author. `known` are results with its files among others, if there are any.
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
        known.get(of).filter(|results| author.is_told(names, results)).cloned()
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
