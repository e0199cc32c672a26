//! Judges one tree: a candidate's own tree, a tree of its second judging, or the base's tree. Takes
//! the tree's outcome from the ledger, or else runs the commands.
use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::model::board::Standing;
use crate::model::name::{BASE, Name};
use crate::model::oid::Oid;
use crate::model::outcome::{Outcome, Results, Stage, StageResult};
use crate::model::verdict::{Effort, Entry};
use crate::model::world::WorldKind;
use crate::ops::board::{self, Board, Ending, WorkKind};
use crate::ops::judge::runner::cross::EVERYBODY;
use crate::ops::judge::runner::place::LaidTree;
use crate::ops::judge::runner::{OnEnd, OracleRunner, ReportTo};
use crate::ops::judge::schedule::{Judge, Subject, Work};
use crate::ops::kept_commits;
use crate::oracle::cache::{JudgedTree, Turn};
use crate::oracle::ledger::TreeOutcome;
use crate::oracle::run as oracle_run;
use crate::oracle::sealed::Warmth;
use crate::process;
use crate::process::interrupt::{self, Cancel};
use crate::process::processor_share::ProcessorShare;
use crate::store::logs::JudgingLogs;
use crate::ui::style::Tone;
use crate::ui::{comparison, next_steps};

/// Judges trees by running the oracle, unless the ledger has their outcomes.
pub(super) struct TreeJudge<'r, 'a> {
    runner: &'r OracleRunner<'a>,
    /// True if no other candidate is judged at the same time. Every change outside of the checkout
    /// is then the work of this candidate's commands.
    alone: bool,
    /// Whether candidates are judged with the base's outputs.
    warmth: Warmth,
    pub(super) base: BaseTerms,
    /// The board that shows the state of each candidate.
    board: &'r Board,
    /// The candidates on the board.
    shown: &'r [Name],
    /// Ends all commands once their results are not needed any more.
    pub(super) ended_by: Option<&'r Cancel>,
    /// The share of the processor that the commands get.
    pub(super) share: ProcessorShare,
    on_end: OnEnd<'r>,
}

/// A tree that is prepared, before its commands run.
#[derive(Default)]
pub(super) struct PreparedTree {
    /// The tree, if it was checked out in advance in a sealed world.
    laid: Option<LaidTree>,
    /// The lock that keeps other processes from judging the tree until its outcome is in the cache.
    _turn: Option<Turn>,
}

/// How the base is judged.
#[derive(Clone, Copy)]
pub(super) struct BaseTerms {
    /// True if no candidate is judged before the base has ended.
    pub is_first: bool,
    /// Whether the base is judged over layers, with outputs of an earlier judging if there are any.
    warmth: Warmth,
    /// True if outputs of the base existed before this judging.
    had_outputs: bool,
}

impl<'r, 'a> TreeJudge<'r, 'a> {
    pub(super) fn new(
        runner: &'r OracleRunner<'a>,
        workers: usize,
        warmth: Warmth,
        board: &'r Board,
        shown: &'r [Name],
    ) -> TreeJudge<'r, 'a> {
        let base = runner.base_terms(workers == 1);
        TreeJudge {
            runner,
            alone: workers == 1,
            warmth,
            base,
            board,
            shown,
            ended_by: None,
            share: ProcessorShare::Whole,
            on_end: &|_| (),
        }
    }

    fn warmth_of(&self, work: &Work) -> Result<Warmth> {
        match work.of {
            Subject::Base => Ok(self.base.warmth),
            _ if self.warmth == Warmth::Warm => self.runner.warmth_that_pays(self.share),
            _ => Ok(self.warmth),
        }
    }

    /// Shows in the row of a tree which other process judges the tree. Also prints a note, but only
    /// once.
    fn tell_who_judges(&self, work: &Work, process: &str) -> Result<()> {
        if interrupt::signal().is_some() {
            return Err(oracle_run::interrupted());
        }
        if self.ended_by.is_some_and(Cancel::is_cancelled) {
            return Err(nobody_waits());
        }
        let words = format!("judged by {process}");
        let name = self.runner.report_to(&work.of)?.name;
        if self.runner.printed.lock().insert(format!("{name} {words}")) {
            self.runner.session.ui.note(format!("{name}: {words}, another git-frites"));
        }
        if let Subject::Candidate { name, .. } = &work.of {
            self.board.waits(name, words);
        }
        Ok(())
    }

    fn tell_begin(&self, work: &Work) {
        match (&work.of, work.crossed()) {
            (Subject::Candidate { name, .. }, _) => self.board.began(name),
            (_, Some(name)) => self.board.began_with(name, "tests of others"),
            _ => {}
        }
    }

    /// Shows how the judging of a tree ended, and returns its results.
    fn tell_end(&self, work: &Work, judged: Option<Results>) -> Result<Option<Results>> {
        match (&work.of, &judged) {
            (Subject::Base, Some(results)) => self.board.expect(results.time()),
            (Subject::Candidate { name, .. }, None) => {
                self.board.ended(name, not_needed());
            }
            _ => {}
        }
        match judged {
            None if self.ended_by.is_some() => Err(nobody_waits()),
            judged => Ok(judged),
        }
    }

    /// Checks the tree out, unless it was checked out when it was prepared. That checkout may be
    /// over the base's outputs. If it has turned out since then that outputs save no time, checks
    /// the tree out again without them.
    fn lay(&self, work: &Work, commit: &Oid, prepared: Option<LaidTree>) -> Result<LaidTree> {
        let warmth = self.warmth_of(work)?;
        match prepared {
            Some(laid) if warmth == Warmth::Warm || !laid.has_outputs() => Ok(laid),
            _ => self.runner.lay(commit, warmth),
        }
    }

    /// Keeps results of commands for later, if they can be trusted. Results from a worktree cannot
    /// be trusted, because they depend on more than the tree.
    fn keep(
        &self,
        work: &Work,
        judged: Option<JudgedTree>,
        results: Option<Results>,
        logs: JudgingLogs,
    ) -> Result<()> {
        let runner = self.runner;
        let outcome = results.map(|results| TreeOutcome {
            inherited: work.of == Subject::Base && self.is_over_outputs(&results),
            ..TreeOutcome::new(results, logs)
        });
        // With a small share of the processor, commands may fail only because they are slow. So
        // only clean passes are kept.
        let is_short = self.share == ProcessorShare::Third;
        if is_short && outcome.as_ref().is_some_and(|o| !o.results.is_clean_pass()) {
            return Ok(());
        }
        let tree = judged.as_ref().map(|judged| judged.tree);
        let keep = || {
            let Some((judged, outcome)) = judged.zip(outcome.as_ref()) else { return Ok(None) };
            runner.ledger.keep(&judged, outcome)?;
            Ok(Some(judged))
        };
        let is_first_base = work.of == Subject::Base && self.base.is_first;
        let candidate = match &work.of {
            Subject::Candidate { name, .. } if self.alone => Some(name),
            _ => None,
        };
        runner.tamper.check(is_first_base, candidate, keep)?;
        let Some((tree, outcome)) = tree.zip(outcome) else { return Ok(()) };
        runner.ledger.remember(&tree, outcome.clone());
        if work.of == Subject::Base {
            warn_of_base(runner, &outcome.results);
        }
        Ok(())
    }

    /// True if outputs of an earlier judging could have led to these results of the base. A pass is
    /// a claim only if there were outputs. A failure can be a claim because of the overlay alone.
    fn is_over_outputs(&self, results: &Results) -> bool {
        let has_inherited = || self.runner.layers().is_some_and(|layers| layers.has_inherited());
        results.is_claim() && (results.passed() || self.base.had_outputs || has_inherited())
    }
}

impl Judge for TreeJudge<'_, '_> {
    type Prepared = PreparedTree;

    fn prepare(&self, work: &Work) -> Result<Option<PreparedTree>> {
        let runner = self.runner;
        let unprepared = Ok(Some(PreparedTree::default()));
        if runner.layered.is_none() || runner.ledger.recall(&work.tree, self.warmth).is_some() {
            return unprepared;
        }
        let judged = runner.judged(work)?;
        let warmth = self.warmth_of(work)?;
        // If the candidates in this process need the base's outputs, no lock is taken for the base.
        // Another process that judges the base would share its outputs only when that process ends.
        let needs_outputs = work.of == Subject::Base && warmth == Warmth::Warm;
        let turn = if needs_outputs { Ok(None) } else { runner.take_turn(&judged)? };
        let turn = match turn {
            Ok(turn) => turn,
            Err(process) => {
                self.tell_who_judges(work, &process)?;
                return Ok(None);
            }
        };
        let laid = match turn.as_ref().is_some_and(|turn| turn.is_answered) {
            true => None,
            false => Some(runner.lay(&judged.commit, warmth)?),
        };
        Ok(Some(PreparedTree { laid, _turn: turn }))
    }

    fn judge(
        &self,
        work: &Work,
        prepared: PreparedTree,
        cancel: &Cancel,
    ) -> Result<Option<Results>> {
        let runner = self.runner;
        self.tell_begin(work);
        if let Some(found) = runner.find(work, self.warmth)? {
            return self.tell_end(work, Some(found));
        }
        let PreparedTree { laid, _turn } = prepared;
        let report = ReportTo { on_end: self.on_end, ..runner.report_to(&work.of)? };
        let (laid, judged) = match &work.of {
            Subject::Candidate { name, .. } if runner.is_in_place() => {
                (runner.lay_in_place(name)?, None)
            }
            _ => {
                let judged = runner.judged(work)?;
                (self.lay(work, &judged.commit, laid)?, Some(judged))
            }
        };
        let cancel = self.ended_by.unwrap_or(cancel);
        let results = runner.run_on(&laid, &report, self.share, cancel)?;
        drop(laid);
        if let Some(results) = &results {
            runner.count(work, results);
        }
        self.keep(work, judged, results.clone(), report.logs)?;
        self.tell_end(work, results)
    }

    fn completed(&self, entry: &Entry) {
        if self.shown.contains(&entry.candidate) {
            self.board.ended(&entry.candidate, ending(entry));
        }
    }
}

impl OracleRunner<'_> {
    fn base_terms(&self, is_first: bool) -> BaseTerms {
        // The base's results may be claims: they are confirmed if the verdict depends on them. So
        // the base is judged over an overlay, which collects the outputs of its commands.
        let had_outputs = self.has_outputs();
        let is_sealed = self.world() == WorldKind::Sealed;
        let needs_outputs = self.warmth() == Warmth::Warm || is_sealed && !had_outputs;
        // If the base failed before, no outputs are used: a file that a failed test left could make
        // the test pass. For example, make could take the log of the failed test for the log of a
        // pass.
        let failed = self.layers().is_some_and(|layers| layers.has_failed());
        let warmth = if needs_outputs && !failed { Warmth::Warm } else { Warmth::Cold };
        BaseTerms { is_first, warmth, had_outputs }
    }

    pub(super) fn is_in_place(&self) -> bool {
        self.terms.settings.in_place
    }

    pub(super) fn report_to(&self, of: &Subject) -> Result<ReportTo<'static>> {
        let run = &self.run.run;
        let store = &self.session.store;
        let (name, logs) = match of {
            Subject::Candidate { name, iteration, second } => {
                let candidate = store.candidate(self.run, name);
                let name = candidate.address();
                let logs = candidate.logs().judging(*iteration);
                match second.as_deref() {
                    None => (name, logs),
                    Some("") => (format!("{name} with the base's tests"), logs.with_base_tests()),
                    Some(beside) => {
                        let name = format!("{name} with the base's tests, and with its {beside}");
                        (name, logs.with_base_tests())
                    }
                }
            }
            Subject::Base => (format!("{run}/@base"), store.base_logs(run).judging(None)),
            Subject::Cross { of, author } => {
                let logs = store.cross_logs(run, of.as_ref(), author).judging(None);
                let whose = if author == EVERYBODY { "all" } else { author };
                let of = of.as_ref().map_or(BASE, Name::as_str);
                (format!("{run}/{of} with the tests of {whose}"), logs)
            }
        };
        let failure_is_a_finding = matches!(of, Subject::Cross { .. });
        Ok(ReportTo { failure_is_a_finding, ..ReportTo::new(name, logs) })
    }

    /// The tree to judge, and a commit with this tree on the run's base. The commit is kept until
    /// judging ends.
    fn judged(&self, work: &Work) -> Result<JudgedTree> {
        let tree = work.tree;
        let commit = match work.of {
            Subject::Base => *self.run.root(),
            // As long as no ref reaches the commit, a garbage collection may delete it. Then it is
            // made again.
            _ => self
                .session
                .repo
                .retry_during_gc(|| kept_commits::keep_tree(self.session, self.run, &tree))?,
        };
        Ok(JudgedTree { tree, commit })
    }

    /// Counts the commands that have run on a tree.
    fn count(&self, work: &Work, results: &Results) {
        let commands = results.commands_run();
        self.ledger.count(match work.of {
            Subject::Base => Effort { ran_base: commands, ..Effort::default() },
            _ => Effort { ran: commands, ..Effort::default() },
        });
    }

    /// The results of a tree, if the ledger has them. With [`Warmth::Cold`], results that are
    /// claims are not used. Copies the logs to the subject's directory, and prints results that
    /// were not printed yet.
    pub(super) fn find(&self, work: &Work, warmth: Warmth) -> Result<Option<Results>> {
        if self.is_in_place() {
            return Ok(None);
        }
        let is_base = work.of == Subject::Base;
        let report = self.report_to(&work.of)?;
        if let Some(known) =
            self.ledger.recall(&work.tree, if is_base { Warmth::Warm } else { warmth })
        {
            if known.is_remembered && matches!(work.of, Subject::Candidate { second: None, .. }) {
                self.tamper.found_before(1);
            }
            self.take(&known, &report)?;
            return Ok(Some(known.results));
        }
        let found = self.ledger.find_kept(|| self.judged(work), &report.logs, warmth)?;
        let Some(TreeOutcome { results, .. }) = found else { return Ok(None) };
        self.note_all(&report, &results);
        if !is_base {
            let saved_cached = results.commands_run();
            self.ledger.count(Effort { saved_cached, ..Effort::default() });
        }
        Ok(Some(results))
    }

    /// Uses the known outcome of a tree: counts the commands that do not have to run, prints the
    /// results and copies the logs.
    fn take(&self, known: &TreeOutcome, report: &ReportTo<'_>) -> Result<()> {
        if !known.is_remembered {
            if known.logs.directory() == report.logs.directory() {
                return Ok(());
            }
            let saved_equal = known.results.commands_run();
            self.ledger.count(Effort { saved_equal, ..Effort::default() });
            self.note_all(report, &known.results);
        }
        known.logs.directory_now().map_or(Ok(()), |logs| report.logs.copy_from(&logs))
    }

    /// Prints results of commands that this judging has not run itself.
    fn note_all(&self, report: &ReportTo<'_>, results: &Results) {
        for result in results.iter().filter(|r| r.outcome != Outcome::Skipped) {
            self.session.ui.note(comparison::stage_line(&report.name, result));
        }
    }

    /// The tree of the base. A run that continues an attempt is compared with the base of the first
    /// run, as if one attempt had made all the changes.
    pub(super) fn base_tree(&self) -> Result<Oid> {
        Ok(self.session.repo.commit(self.run.root())?.tree)
    }

    /// Judges only the base. Returns `None` if `cancel` ended the judging.
    pub fn judge_base(&self, cancel: &Cancel, on_end: OnEnd<'_>) -> Result<Option<Results>> {
        let board = Board::new(WorkKind::Judging, 1);
        let judge = TreeJudge { on_end, ..TreeJudge::new(self, 1, self.warmth(), &board, &[]) };
        self.judge_one(&judge, &Work::of_base(self.base_tree()?), cancel)
    }

    fn judge_one(
        &self,
        judge: &TreeJudge<'_, '_>,
        work: &Work,
        cancel: &Cancel,
    ) -> Result<Option<Results>> {
        if let Some(found) = self.find(work, judge.warmth)? {
            return Ok(Some(found));
        }
        // If another process judges this tree, judge it all the same, because there is no other
        // tree to judge meanwhile.
        let prepared = judge.prepare(work)?.unwrap_or_default();
        judge.judge(work, prepared, cancel)
    }

    /// Judges trees with test files laid over them, up to `jobs` at a time. Returns the results of
    /// each.
    pub fn judge_laid_over(
        &self,
        works: &[Work],
        jobs: usize,
        warmth: Warmth,
    ) -> Result<Vec<Results>> {
        let mut distinct: BTreeMap<Oid, &Work> = BTreeMap::new();
        for work in works {
            distinct.entry(work.tree).or_insert(work);
        }
        let (trees, first): (Vec<Oid>, Vec<&Work>) = distinct.into_iter().unzip();
        let jobs = jobs.clamp(1, first.len().max(1));
        self.require_space(self.run.root(), jobs)?;
        let board = Board::new(WorkKind::Judging, jobs);
        let judge = TreeJudge::new(self, jobs, warmth, &board, &[]);
        let subjects: Vec<Name> = first.iter().filter_map(|work| work.crossed()).cloned().collect();
        let judged = board::live(self.session, self.run, &subjects, &board, || {
            process::in_parallel(jobs, &first, |work| {
                let Some(results) = self.judge_one(&judge, work, &Cancel::default())? else {
                    return Err(oracle_run::interrupted());
                };
                if let Some(name) = work.crossed() {
                    board.ended(name, ending_across(&results));
                }
                Ok(results)
            })
        })?;
        let of_tree: BTreeMap<Oid, Results> = trees.into_iter().zip(judged).collect();
        Ok(works.iter().filter_map(|work| of_tree.get(&work.tree).cloned()).collect())
    }

    /// Judges a tree again, without the base's layers, even if its outcome is known.
    pub fn judge_again(&self, work: &Work) -> Result<Results> {
        let report = self.report_to(&work.of)?;
        let results = self.finish_on_commit(&self.judged(work)?.commit, &report)?;
        self.count(work, &results);
        Ok(results)
    }
}

fn nobody_waits() -> Error {
    Error::no("judging was ended, because nobody waits for it any more")
}

/// Warns if a command ends on the base in a way that affects candidates:
/// * it would prevent judging them;
/// * it fails before the tests;
/// * it reports failed tests but exits with 0.
fn warn_of_base(runner: &OracleRunner<'_>, results: &Results) {
    let Some(result) = results.stopped_at() else { return };
    let StageResult { stage, outcome, .. } = result;
    let ui = &runner.session.ui;
    let run = &runner.run.run;
    let terms = &runner.terms;
    match outcome {
        Outcome::ReportedFailures { .. } => {
            ui.warn(format!("run {run}: the {stage} command ends on the base with {outcome}"));
            ui.hint(next_steps::KEEP_EXIT_CODE);
        }
        _ if result.is_unjudgeable() => {
            let verb = if outcome.could_not_start() { "cannot start" } else { "does not pass" };
            let why = result.why_not_passed();
            ui.warn(format!(
                "run {run}: the {stage} command {verb} on the base: {why}; where it ends like this, no \
                 candidate can be judged"
            ));
            next_steps::broken_base_hints(terms, run, *stage)
                .into_iter()
                .for_each(|hint| ui.hint(hint));
        }
        _ if *stage != Stage::Test => {
            ui.note(format!(
                "run {run}: {stage} fails on the base ({}), so a candidate has to repair it",
                result.why_and_lack()
            ));
            if matches!(stage, Stage::Build | Stage::Lint) {
                let without = format!(" --{stage} ''");
                ui.hint(format!(
                    "if that is not the task, leave {stage} out: `{}`, or for every run `git config frites.oracle.{stage} ''`",
                    terms.judge_command(run, &without)
                ));
            }
        }
        _ => {}
    }
}

/// The row of a candidate whose commands were ended because the verdict does not depend on them any
/// more.
fn not_needed() -> Ending {
    let words = "not needed".to_owned();
    Ending { standing: Standing::Waiting, words, elapsed: None }
}

/// The row of a candidate that was judged.
pub(super) fn ending(entry: &Entry) -> Ending {
    let nothing = Results::default();
    let (results, second) = (&entry.results, entry.base_tests.as_ref());
    let base_tests = second.map_or(&nothing, |second| &second.results);
    let (standing, words) = match results.stopped_at().map(comparison::stop) {
        Some((words, Tone::Caution)) => (Standing::Caution, words),
        Some((words, _)) => (Standing::Bad, words),
        None if base_tests.cannot_tell() => {
            (Standing::Caution, "base's tests cannot tell".to_owned())
        }
        None if !base_tests.is_empty() && !base_tests.passed() => {
            (Standing::Caution, "passed only its own tests".to_owned())
        }
        None if results.iter().any(|r| matches!(r.outcome, Outcome::Flaky { .. })) => {
            (Standing::Caution, "flaky".to_owned())
        }
        None => (Standing::Good, "passed".to_owned()),
    };
    let elapsed = results.time() + base_tests.time();
    Ending { standing, words, elapsed: Some(elapsed) }
}

/// The row of a candidate that was judged with test files of others laid over its tree. If commands
/// fail, the tests may be at fault, so a failure is not shown as bad.
fn ending_across(results: &Results) -> Ending {
    let failure = results.stopped_at().map(|result| comparison::stop(result).0);
    let standing = if failure.is_some() { Standing::Caution } else { Standing::Good };
    let words = failure.unwrap_or_else(|| "passed".to_owned());
    Ending { standing, words, elapsed: Some(results.time()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::base_tests::BaseTestsResult;

    fn shown(results: &[Outcome], base_tests: &[Outcome]) -> (Standing, String, u64) {
        let all = |outcomes: &[Outcome]| {
            let result = |outcome: &Outcome| StageResult::new(Stage::Test, 1.0, outcome.clone());
            Results(outcomes.iter().map(result).collect())
        };
        let (results, base_tests) = (all(results), all(base_tests));
        let second = BaseTestsResult { results: base_tests, ..BaseTestsResult::default() };
        let base_tests = Some(second);
        let entry = Entry { results, base_tests, ..Entry::default() };
        let ending = ending(&entry);
        (ending.standing, ending.words, ending.elapsed.unwrap_or_default().as_secs())
    }

    #[test]
    fn only_a_pass_without_a_doubt_is_good() {
        use Outcome::{CannotTell, Failed, Flaky, Passed, Skipped};
        assert_eq!(shown(&[Passed, Passed], &[]), (Standing::Good, "passed".into(), 2));
        assert_eq!(
            shown(&[Passed, Failed { code: 2 }, Skipped], &[]),
            (Standing::Bad, "test exit 2".into(), 3)
        );
        assert_eq!(shown(&[CannotTell], &[]), (Standing::Caution, "test cannot tell".into(), 1));
        assert_eq!(shown(&[Flaky { refused: false }], &[]), (Standing::Caution, "flaky".into(), 1));
        assert_eq!(
            shown(&[Passed], &[Failed { code: 1 }]),
            (Standing::Caution, "passed only its own tests".into(), 2)
        );
        assert_eq!(
            shown(&[Passed], &[CannotTell]),
            (Standing::Caution, "base's tests cannot tell".into(), 2)
        );
    }
}
