//! The outcome of one candidate: cached, shared with another candidate of the same tree, or found by
//! running the commands.
use crate::error::Result;
use crate::model::base_tests::BaseTestsResult;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::outcome::{Outcome, Results, StageResult};
use crate::model::verdict::{Effort, Entry};
use crate::ops::judge::entry_outcome::EntryOutcome;
use crate::ops::judge::judged_once::{JudgedOnce, TreeOutcome};
use crate::ops::judge::runner::{OracleRunner, ReportTo};
use crate::ops::judge::schedule::Judge;
use crate::ops::judge::{keep, shown};
use crate::ops::progress::Board;
use crate::oracle::cache::JudgedTree;
use crate::oracle::run::OracleEnd;
use crate::oracle::sealed::{SealedCheckout, Warmth};
use crate::process::interrupt::Cancel;
use crate::ui::comparison;

/// Judges candidates by really running the oracle.
pub(super) struct EntryJudge<'r, 'a> {
    runner: &'r OracleRunner<'a>,
    /// True if no other candidate is judged at the same time: then changes outside the checkout are
    /// this one's.
    alone: bool,
    /// The share of the base's outputs to judge over.
    warmth: Warmth,
    round: Round,
    /// The place that is told how each candidate stands.
    board: &'r Board,
}

impl<'r, 'a> EntryJudge<'r, 'a> {
    pub(super) fn new(
        runner: &'r OracleRunner<'a>,
        workers: usize,
        warmth: Warmth,
        round: Round,
        board: &'r Board,
    ) -> EntryJudge<'r, 'a> {
        EntryJudge { runner, alone: workers == 1, warmth, round, board }
    }

    fn run_oracle(
        &self,
        entry: &Entry,
        prepared: Option<SealedCheckout>,
        cancel: &Cancel,
    ) -> Result<Option<EntryOutcome>> {
        let runner = self.runner;
        let name = &entry.candidate;
        let report = runner.report_to(entry)?;
        let suspect = self.alone.then_some(name);
        let how = |prepared| HowToJudge { cancel, warmth: self.warmth, prepared };
        if runner.terms.settings.in_place {
            runner.tamper.begin()?;
            let end = runner.run_in_worktree(name, &report, cancel)?;
            runner.tamper.check(suspect, || Ok(None))?;
            return Ok(entry_outcome(end));
        }
        let Some(tree) = entry.judged() else {
            return Ok(entry_outcome(runner.not_started(&report, "nothing was captured")));
        };
        let Some((results, mut effort)) =
            runner.outcome_of(tree, &report, suspect, how(prepared))?
        else {
            return Ok(None);
        };
        let mut base_tests = Results::default();
        let second = report.with_base_tests();
        for tree in self.round.second_trees(entry, &results) {
            let Some((results, more)) = runner.outcome_of(tree, &second, suspect, how(None))?
            else {
                return Ok(None);
            };
            base_tests.extend(results);
            effort.add(more);
            if !base_tests.passed() {
                break;
            }
        }
        Ok(Some(EntryOutcome { results, base_tests, effort }))
    }
}

impl Judge for EntryJudge<'_, '_> {
    type Prepared = Option<SealedCheckout>;

    fn prepare(&self, entry: &Entry) -> Result<Option<SealedCheckout>> {
        entry.judged().map_or(Ok(None), |tree| self.runner.prepare(tree, self.warmth))
    }

    fn judge(
        &self,
        entry: &Entry,
        prepared: Option<SealedCheckout>,
        cancel: &Cancel,
    ) -> Result<Option<EntryOutcome>> {
        self.board.began(&entry.candidate);
        let judged = self.run_oracle(entry, prepared, cancel)?;
        self.board.ended(&entry.candidate, shown::ending(judged.as_ref()));
        Ok(judged)
    }
}

/// The way in which a tree is judged.
struct HowToJudge<'c> {
    cancel: &'c Cancel,
    warmth: Warmth,
    /// The tree's checkout, if there is one yet.
    prepared: Option<SealedCheckout>,
}

/// The outcome of an entry that is judged once.
fn entry_outcome(end: OracleEnd) -> Option<EntryOutcome> {
    let OracleEnd::Finished(results) = end else { return None };
    let effort = Effort { ran: results.commands_run(), ..Effort::default() };
    Some(EntryOutcome { results, base_tests: Results::default(), effort })
}

/// The rounds in which candidates are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// Nobody knows yet which of them would be recommended.
    First,
    /// Of those that the recommendation depends on, everything counts.
    Confirming,
}

impl Round {
    /// The trees of the second judging that are to be judged in this round after these results on the
    /// entry's own, in order.
    fn second_trees<'e>(self, entry: &'e Entry, results: &Results) -> Vec<&'e Oid> {
        let is_due = |second: &&BaseTestsResult| self == Round::Confirming || !second.if_first;
        let second = entry.base_tests.as_ref().filter(|_| results.passed());
        second.filter(is_due).iter().flat_map(|second| second.trees()).collect()
    }
}

impl OracleRunner<'_> {
    fn report_to(&self, entry: &Entry) -> Result<ReportTo> {
        let candidate = self.session.store.candidate(self.run, &entry.candidate);
        Ok(ReportTo { name: candidate.address(), logs: candidate.logs()?.judging(entry.iteration) })
    }

    /// A tree, with a commit of it on the run's base, which is kept until judging ends.
    pub(super) fn judged_tree(&self, tree: &Oid) -> Result<JudgedTree> {
        // Until a ref keeps the commit, a garbage collection may delete it.
        let keep = || keep::keep_tree(self.session, self.run, tree);
        let commit = self.session.repo.retry_during_gc(keep)?;
        Ok(JudgedTree { tree: *tree, commit })
    }

    /// The outcome of an entry, if all of it is cached.
    pub(super) fn find_cached_entry(&self, entry: &Entry) -> Result<Option<EntryOutcome>> {
        let Some(tree) = entry.judged() else { return Ok(None) };
        let report = self.report_to(entry)?;
        let Some(results) = self.look_up(tree, &report)? else { return Ok(None) };
        let second = report.with_base_tests();
        let mut base_tests = Results::default();
        for tree in self.round().second_trees(entry, &results) {
            // Only a pass is cached.
            let Some(results) = self.look_up(tree, &second)? else { return Ok(None) };
            base_tests.extend(results);
        }
        self.note_all(&report, &results);
        self.note_all(&second, &base_tests);
        let saved_cached = results.commands_run() + base_tests.commands_run();
        let effort = Effort { saved_cached, ..Effort::default() };
        Ok(Some(EntryOutcome { results, base_tests, effort }))
    }

    fn look_up(&self, tree: &Oid, report: &ReportTo) -> Result<Option<Results>> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let warm = self.may_be_warm;
        cache.find(&self.session.repo, &self.judged_tree(tree)?, &report.logs, warm)
    }

    pub(super) fn find_cached(
        &self,
        judged: &JudgedTree,
        report: &ReportTo,
        warmth: Warmth,
    ) -> Result<Option<Results>> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let warm = warmth == Warmth::Warm;
        let found = cache.find(&self.session.repo, judged, &report.logs, warm)?;
        self.note_all(report, found.as_ref().unwrap_or(&Results::default()));
        Ok(found)
    }

    /// Notes cached results, or those of another candidate with the same tree.
    pub(super) fn note_all(&self, report: &ReportTo, results: &Results) {
        for result in results.iter().filter(|r| r.outcome != Outcome::Skipped) {
            self.note(report, result);
        }
    }

    /// The results on a tree, from the cache, from another candidate or by running the oracle, and
    /// the commands that this took. None if it was cancelled. `suspect` is the only candidate whose
    /// commands run now.
    fn outcome_of(
        &self,
        tree: &Oid,
        report: &ReportTo,
        suspect: Option<&Name>,
        HowToJudge { cancel, warmth, prepared }: HowToJudge<'_>,
    ) -> Result<Option<(Results, Effort)>> {
        let mut effort = Effort::default();
        let found = self.once(warmth).get_or_judge(tree, || {
            if let Some(known) = self.found_without_layers(tree, warmth) {
                return Ok(Some(known));
            }
            let judged = self.judged_tree(tree)?;
            let logs = report.logs.directory();
            if let Some(results) = self.find_cached(&judged, report, warmth)? {
                effort.saved_cached = results.commands_run();
                return Ok(Some(TreeOutcome { results, logs }));
            }
            let end = match prepared {
                Some(checkout) => self.run_in_world(&checkout, &judged.commit, report, cancel)?,
                None => self.run_on_commit(&judged.commit, report, cancel, warmth)?,
            };
            let results = match end {
                OracleEnd::Finished(results) => Some(results),
                OracleEnd::Cancelled => None,
            };
            self.tamper.check(suspect, || {
                let Some(results) = &results else { return Ok(None) };
                self.keep_cached(&judged, results, report)?;
                Ok(Some(judged))
            })?;
            effort.ran = results.as_ref().map_or(0, Results::commands_run);
            Ok(results.map(|results| TreeOutcome { results, logs }))
        })?;
        let Some((known, was_known)) = found else { return Ok(None) };
        if was_known {
            effort.saved_equal = known.results.commands_run();
            report.logs.copy_from(&known.logs)?;
            self.note_all(report, &known.results);
        }
        Ok(Some((known.results, effort)))
    }

    /// The pass of a tree that is to be judged without the base's layers, if it was found so although
    /// it was judged with them.
    pub(super) fn found_without_layers(&self, tree: &Oid, warmth: Warmth) -> Option<TreeOutcome> {
        let known = if warmth == Warmth::Cold { self.once.get(tree)? } else { return None };
        let is_final = known.results.passed() && !known.results.is_claim();
        is_final.then_some(known)
    }

    /// The outcomes of this judging, with outputs of the base or without them.
    pub(super) fn once(&self, warmth: Warmth) -> &JudgedOnce {
        match warmth {
            Warmth::Warm => &self.once,
            Warmth::Cold => &self.confirmed_once,
        }
    }

    pub(super) fn keep_cached(
        &self,
        judged: &JudgedTree,
        results: &Results,
        report: &ReportTo,
    ) -> Result<()> {
        match &self.cache {
            Some(cache) => {
                cache.keep(&self.session.repo, judged, results, &report.logs.directory())
            }
            None => Ok(()),
        }
    }

    fn note(&self, report: &ReportTo, result: &StageResult) {
        self.session.ui.note(comparison::stage_line(&report.name, result));
    }
}
