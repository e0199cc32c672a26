//! Judges the tests of each candidate that passed: on the other candidates and on the base, or only
//! on the base, where they should fail (red to green).
mod matrix;
mod overlay;

use std::collections::BTreeMap;

use crate::config::keys;
use crate::config::value::ProofMode;
use crate::ecosystems::base_project::BaseProject;
use crate::ecosystems::put_back::decides_by_being_there;
use crate::error::Result;
use crate::git::diff::Change;
use crate::model::cross::{Cell, CrossResult, CrossTest, Proof, edited_tests};
use crate::model::cross_score::set_scores;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::outcome::Results;
use crate::model::rationale::base_passes_too;
use crate::model::test_report::TestReport;
use crate::model::verdict::{Baseline, Entry, Verdict};
use crate::ops::judge::base_tests;
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::record;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::judge::runner::cross::matrix::{Author, CrossTree, TestRow};
use crate::ops::judge::runner::cross::overlay::{TestFiles, lay_over};
use crate::ops::judge::schedule::Work;
use crate::ops::kept_commits::KeptCommits;
use crate::ops::session::Session;
use crate::oracle::ledger::Memory;
use crate::oracle::sealed::Warmth;

/// Stands for the author's name if a tree has the test files of several authors.
pub(super) const EVERYBODY: &str = "@all";

/// At most this many tests of one author are compared.
const MOST_TESTS: usize = 1000;

/// A judging of candidates' tests on the other candidates and on the base.
struct Crossing<'r, 'a> {
    runner: &'r OracleRunner<'a>,
    /// The number of trees that are judged at the same time.
    jobs: usize,
    base_tree: Oid,
    /// The candidates that passed, one for each distinct tree.
    candidates: Vec<CrossCandidate>,
}

/// A candidate whose tests are judged on the others.
struct CrossCandidate {
    name: Name,
    /// The candidate's judged tree.
    tree: Oid,
    /// The candidate's tree, but with the base's tests, and with the base's version of each file
    /// that decides which commands run. With its own versions, a candidate could pass any test.
    source: Oid,
    tests: TestFiles,
}

impl OracleRunner<'_> {
    /// Takes the tests of each candidate that passed, and judges them on the base and on all other
    /// candidates that passed. Sets the cross results and the score of each candidate.
    pub(super) fn weigh(
        &self,
        entries: &mut [Entry],
        baseline: &Baseline,
        jobs: usize,
    ) -> Result<()> {
        let (repo, base) = (&self.session.repo, self.run.root());
        let mut candidates: Vec<CrossCandidate> = Vec::new();
        for entry in entries.iter().filter(|entry| entry.passed()) {
            let (Some(capture), Some(tree)) = (&entry.tree, entry.judged()) else { continue };
            if candidates.iter().all(|other| other.tree != *tree) {
                candidates.push(CrossCandidate {
                    name: entry.candidate.clone(),
                    tree: *tree,
                    source: base_tests::without_tests(repo, self.run.root(), tree, &self.terms)?,
                    tests: TestFiles::of(repo, base, capture)?,
                });
            }
        }
        let crossing = Crossing { runner: self, jobs, base_tree: self.base_tree()?, candidates };
        let rows = crossing.rows(baseline)?;
        crossing.set_results(rows, entries);
        Ok(())
    }

    /// The results of a passing candidate's tests on the base. `None` if no test can be moved to
    /// the base, or if the commands do not tell how the tests ended.
    pub(super) fn proof_of(&self, entry: &Entry, baseline: &Baseline) -> Result<Option<Proof>> {
        let Some(capture) = &entry.tree else { return Ok(None) };
        let repo = &self.session.repo;
        let tests = TestFiles::of(repo, self.run.root(), capture)?;
        if tests.files.is_empty() {
            return Ok(None);
        }
        let files: Vec<&Change> = tests.files.iter().collect();
        let laid = lay_over(repo, &self.base_tree()?, &files)?;
        let work = Work::of_cross(None, entry.candidate.as_str(), laid);
        let there = self.judge_laid_over(&[work], 1, self.warmth())?.remove(0);
        let nothing = TestReport::default();
        let before = baseline.results.report().unwrap_or(&nothing);
        let own = entry.results.report();
        let mut names = own.map(|own| own.passing_beyond(before)).unwrap_or_default();
        names.extend(edited_tests(&there, before));
        if !names.is_empty() {
            let cells = names.iter().map(|name| (name.as_str(), Cell::of(&there, name)));
            return Ok(Proof::of(cells));
        }
        // No reported test is new, and none ends differently on the base, so only the exit code can
        // tell.
        let cell = if there.passed() {
            Cell::Pass
        } else if before.passing.is_empty() && baseline.results.passed() {
            Cell::of_exit(&there, own.is_some())
        } else {
            return Ok(None);
        };
        Ok(Proof::of([(tests.in_words().as_str(), cell)]))
    }
}

impl Crossing<'_, '_> {
    /// Judges trees without the base's outputs, because the ranking depends on the results.
    fn judge(&self, works: &[Work]) -> Result<Vec<Results>> {
        self.runner.judge_laid_over(works, self.jobs, Warmth::Cold)
    }

    /// For each candidate, the rows of its tests.
    fn rows(&self, baseline: &Baseline) -> Result<Vec<Vec<TestRow>>> {
        let report = baseline.results.report().cloned().unwrap_or_default();
        let mut authors = Vec::new();
        for at in 0..self.candidates.len() {
            if !self.candidates[at].tests.files.is_empty() {
                authors.push(self.author(at, &report)?);
            }
        }
        self.set_apart(&mut authors)?;
        let whose: Vec<usize> = authors.iter().map(|author| author.candidate).collect();
        let count = self.candidates.len();
        let found = matrix::fill(count, &authors, &report, |trees| {
            let works = trees.iter().map(|tree| self.laid_over(tree, &whose));
            self.judge(&works.collect::<Result<Vec<Work>>>()?)
        })?;
        let mut all = vec![Vec::new(); self.candidates.len()];
        for (author, mut rows) in authors.iter().zip(found) {
            if author.together.is_some() && !baseline.results.passed() {
                // The base fails even without these tests, so its failure with them says nothing
                // about the tests.
                rows.iter_mut().for_each(|row| row.base = Cell::Unknown);
            }
            all[author.candidate] = rows;
        }
        Ok(all)
    }

    /// The author for the candidate at position `at`, which has test files. The author's tests are
    /// the tests that the candidate passes and that the base's report does not have. If failed
    /// commands are retried (so tests may be flaky), the candidate has to pass these tests a second
    /// time.
    fn author(&self, at: usize, base: &TestReport) -> Result<Author> {
        let candidate = &self.candidates[at];
        let name = &candidate.name;
        let own = Work::of_cross(Some(name), name.as_str(), candidate.tree);
        let results = match self.runner.ledger.recall(&candidate.tree, Warmth::Warm) {
            Some(known) => known.results,
            None => self.judge(std::slice::from_ref(&own))?.remove(0),
        };
        let report = results.report();
        let mut adds = report.map(|own| own.passing_beyond(base)).unwrap_or_default();
        if self.runner.terms.settings.commands.retries > 0 {
            let again = self.runner.judge_again(&own)?;
            adds.retain(|name| Cell::of(&again, name) == Cell::Pass);
        }
        adds.truncate(MOST_TESTS);
        let names_passing = report.is_some_and(|report| !report.passing.is_empty());
        let tests = &candidate.tests;
        Ok(Author {
            candidate: at,
            adds,
            together: (!names_passing).then(|| tests.in_words()),
            edits: tests.has_edited(),
            is_apart: false,
            own: results,
        })
    }

    /// Marks the authors whose files cannot be combined with those of others:
    /// * another author has a different file with the same path, or a test with the same name;
    /// * both change test files of the base;
    /// * a file decides how all tests run.
    fn set_apart(&self, authors: &mut [Author]) -> Result<()> {
        let OracleRunner { session, run, terms, .. } = self.runner;
        let source = &terms.settings.source;
        let project = BaseProject::of(&session.repo, run.root(), &terms.oracle, source)?;
        let all = authors.to_vec();
        for author in authors {
            let tests = &self.candidates[author.candidate].tests;
            let mut others = all.iter().filter(|other| other.candidate != author.candidate);
            let collides = others.any(|other| {
                tests.collides(&self.candidates[other.candidate].tests)
                    || (author.edits && other.edits)
                    || author.adds.iter().any(|name| other.adds.contains(name))
            });
            let decides = tests.files.iter().any(|file| {
                let content = session.repo.blob(&file.new).unwrap_or_default();
                decides_by_being_there(&file.path.lossy(), &content, &project.scripts)
            });
            author.is_apart = collides || decides;
        }
        Ok(())
    }

    /// Makes a tree with test files laid over it. `whose` has the position of each author among the
    /// candidates.
    fn laid_over(&self, tree: &CrossTree, whose: &[usize]) -> Result<Work> {
        let authors: Vec<&CrossCandidate> =
            tree.authors.iter().map(|author| &self.candidates[whose[*author]]).collect();
        let files: Vec<&Change> = authors.iter().flat_map(|author| &author.tests.files).collect();
        let of = tree.of.map(|at| &self.candidates[at]);
        let own = of.map_or(&self.base_tree, |candidate| &candidate.source);
        let name = match authors.as_slice() {
            [one] => one.name.as_str(),
            _ => EVERYBODY,
        };
        let laid = lay_over(&self.runner.session.repo, own, &files)?;
        Ok(Work::of_cross(of.map(|candidate| &candidate.name), name, laid))
    }

    /// Sets the cross results of each candidate. Other candidates with the same tree only get its
    /// score.
    fn set_results(&self, rows: Vec<Vec<TestRow>>, entries: &mut [Entry]) {
        let names = |cells: &[Cell], wanted: Cell| -> Vec<Name> {
            let all = self.candidates.iter().zip(cells);
            all.filter(|(_, cell)| **cell == wanted).map(|(of, _)| of.name.clone()).collect()
        };
        for (candidate, rows) in self.candidates.iter().zip(rows) {
            let mut all = entries.iter_mut();
            let Some(entry) = all.find(|entry| entry.candidate == candidate.name) else { continue };
            entry.proof = Proof::of(rows.iter().map(|row| (row.name.as_str(), row.base)));
            let inseparable = candidate.tests.inseparable.clone();
            let mut cross = CrossResult { inseparable, ..CrossResult::default() };
            for TestRow { name, base, cells } in rows {
                let [passes, fails] = [Cell::Pass, Cell::Fail].map(|end| names(&cells, end));
                cross.tests.push(CrossTest { name, base, passes, fails });
            }
            entry.cross = Some(cross);
        }
        set_scores(entries);
        let scores: BTreeMap<Oid, Option<f64>> = entries
            .iter()
            .filter_map(|entry| Some((*entry.judged()?, entry.cross.as_ref()?.score)))
            .collect();
        for entry in entries.iter_mut().filter(|entry| entry.passed() && entry.cross.is_none()) {
            let score = entry.judged().and_then(|tree| scores.get(tree)).copied().flatten();
            entry.cross = Some(CrossResult { score, ..CrossResult::default() });
        }
    }
}

/// Judges the tests of a verified winner on the base, after the verdict, and records the result.
/// Returns the result as a sentence; `None` if there is nothing to judge, or if the result was
/// already known.
pub fn prove(
    session: &Session,
    options: &JudgeOptions,
    verdict: &mut Verdict,
) -> Result<Option<String>> {
    let is_wanted = session.config.get(keys::ORACLE_PROOF) == ProofMode::Auto;
    let winner = verdict.winner().and_then(|name| verdict.entry(name)).cloned();
    let (Some(entry), Some(base)) = (winner, verdict.baseline.clone()) else { return Ok(None) };
    let Some(capture) = &entry.tree else { return Ok(None) };
    if !is_wanted || entry.proof.is_some() {
        return Ok(None);
    }
    let Some(run) = session.store.run(&verdict.run)? else { return Ok(None) };
    if TestFiles::of(&session.repo, run.root(), capture)?.files.is_empty() {
        return Ok(None);
    }
    let (_lock, run) = &session.store.lock_and_read(&verdict.run)?;
    if session.store.verdict(&run.run)?.is_none_or(|now| now.judged != verdict.judged) {
        return Ok(None);
    }
    let _kept = KeptCommits { session, run };
    session.ui.note(format!(
        "run {}: the tests of {} are judged on the base, where they should fail",
        run.run, entry.candidate
    ));
    let memory = Memory::default();
    let runner = OracleRunner::new(session, run, verdict.terms.clone(), options, &memory)?;
    let proof = runner.proof_of(&entry, &base);
    let (proof, doubts) = runner.end(proof)?;
    if doubts.tainted {
        return Ok(None);
    }
    let Some(proof) = proof else {
        let name = &entry.candidate;
        return Ok(Some(format!(
            "the tests of {name} ran on the base, but the output does not tell how they ended: they show nothing"
        )));
    };
    let sentence = format!("{} {}", entry.candidate, proof.in_words());
    let open = base_passes_too(&base, &entry);
    for own in verdict.candidates.iter_mut().filter(|own| own.candidate == entry.candidate) {
        own.proof = Some(proof.clone());
        let rationale = &mut verdict.decision.rationale;
        *rationale = rationale.replace(open, base_passes_too(&base, own));
    }
    record::save_record(session, run, verdict)?;
    Ok(Some(sentence))
}
