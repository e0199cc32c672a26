//! All candidates and their base: what is known, what runs, and the confirmation of claims.
use crate::config::keys;
use crate::config::value::ProofMode;
use crate::error::Result;
use crate::git::layers::base::BaseLayer;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::outcome::Results;
use crate::model::ranking::{Rules, undecided};
use crate::model::verdict::{Baseline, Effort, Entry};
use crate::model::world::WorldKind;
use crate::ops::board::{self, Board, WorkKind};
use crate::ops::judge::confirm::{self, StaleCause, StaleCauses, must_confirm_base, stumbled};
use crate::ops::judge::entries;
use crate::ops::judge::live_rows;
use crate::ops::judge::overruled::overrule;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::judge::runner::trees::TreeJudge;
use crate::ops::judge::schedule::{BaseTurn, Round, Schedule, Scheduler, StopWhen, Subject, Work};
use crate::oracle::cache::JudgedTree;
use crate::oracle::ledger::TreeOutcome;
use crate::oracle::sealed::Warmth;
use crate::process::processor_share::ProcessorShare;

impl OracleRunner<'_> {
    /// Runs the oracle for the entries without results, up to `jobs` trees at a time, and fills
    /// their results in. The base comes first, and with several jobs the entries are judged beside
    /// it; `None` if it is not `wanted`. Gives the number of commands that this process has run and
    /// saved for the run, and the base's results.
    pub fn run_all(
        &self,
        entries: &mut [Entry],
        jobs: usize,
        stop: StopWhen,
        wants_base: bool,
    ) -> Result<(Effort, Option<Baseline>)> {
        if !self.is_in_place() {
            entries::keep_trees(self.session, self.run, &self.terms, entries)?;
            for entry in entries.iter_mut() {
                let known = entry.judged().and_then(|tree| self.ledger.recall(tree, self.warmth()));
                entry.stale = known.and_then(|known| known.stale);
            }
        }
        let tree = self.base_tree()?;
        if wants_base {
            self.adopt_base_layer()?;
        }
        // The candidates wait for the outputs of the base, unless there are some.
        let waits = self.layered.is_some() && self.may_be_warm && !self.has_outputs();
        let is_first = waits || jobs <= 1;
        let base = wants_base.then_some(BaseTurn { tree, is_first });
        let first = self.teacher(entries);
        let round = self.round();
        let schedule = Schedule { stop, round, in_place: self.is_in_place(), base, first };
        let scheduler = Scheduler::new(entries, schedule);
        scheduler.fill_in(|work| self.find(work, self.warmth()))?;
        let trees = scheduler.waiting().len() + usize::from(scheduler.awaits_base());
        if trees > 0 && !self.is_in_place() {
            // One more is prepared while the commands on others run.
            let ahead = usize::from(self.world() == WorldKind::Sealed);
            self.require_space(&self.run.base, (jobs + ahead).min(trees))?;
        }
        let board = Board::new(WorkKind::Judging, scheduler.workers(jobs));
        let shown = scheduler.waiting();
        let saved = self.run_scheduled(scheduler, (&board, &shown), self.warmth(), is_first)?;
        let known = if wants_base { self.ledger.recall(&tree, Warmth::Warm) } else { None };
        let baseline = known.map(baseline);
        // A candidate whose pass does not stand leaves its place to others.
        self.settle(entries, baseline.as_ref(), jobs)?;
        if let Some(baseline) = &baseline {
            self.judge_their_tests(entries, baseline, jobs)?;
            // Another candidate may come first now.
            self.settle(entries, Some(baseline), jobs)?;
        }
        let base = if wants_base { self.confirm_base(entries)? } else { None };
        Ok((Effort { saved_not_run: saved.saved_not_run, ..self.ledger.effort() }, base))
    }

    /// Lets no claim and no pass stand that the recommendation depends on and that is contradicted.
    fn settle(
        &self,
        entries: &mut [Entry],
        baseline: Option<&Baseline>,
        jobs: usize,
    ) -> Result<()> {
        let mut is_open = self.overrule(entries, baseline)? || confirm::any_claims(entries);
        while is_open {
            self.confirm(entries, baseline, jobs)?;
            is_open = self.overrule(entries, baseline)?;
        }
        Ok(())
    }

    /// Judges the tests of the candidates that passed on the others and on the base, as far as that is
    /// asked for.
    fn judge_their_tests(
        &self,
        entries: &mut [Entry],
        baseline: &Baseline,
        jobs: usize,
    ) -> Result<()> {
        if self.terms.settings.cross {
            return self.weigh(entries, baseline, jobs);
        }
        let mode = self.session.config.get(keys::ORACLE_PROOF);
        if mode == ProofMode::Always && !self.is_in_place() {
            for entry in entries.iter_mut().filter(|entry| entry.passed()) {
                entry.proof = self.proof_of(entry, baseline)?;
            }
        }
        Ok(())
    }

    pub(super) fn overrule(&self, entries: &mut [Entry], base: Option<&Baseline>) -> Result<bool> {
        overrule(&self.session.repo, &self.run.base, &self.terms, entries, base)
    }

    /// Judges all that a scheduler has, as many trees at a time as the board is for, and shows these
    /// candidates there; gives the number of commands that were saved.
    fn run_scheduled(
        &self,
        scheduler: Scheduler<'_>,
        (board, shown): (&Board, &[Name]),
        warmth: Warmth,
        base_is_first: bool,
    ) -> Result<Effort> {
        let base = self.ledger.recall(&self.base_tree()?, Warmth::Warm);
        board.expect(base.map(|base| base.results.time()).unwrap_or_default());
        board::live(self.session, self.run, shown, board, || {
            let mut judge = TreeJudge::new(self, board.jobs(), warmth, board, shown);
            judge.base.is_first |= base_is_first;
            scheduler.run(board.jobs(), &judge);
            Ok(())
        })?;
        let saved = scheduler.finish(self.terms.oracle.len())?;
        self.ledger.count(Effort { saved_not_run: 0, ..saved });
        Ok(saved)
    }

    /// The base's results, found once more in a plain directory if they may be other ones there,
    /// and matter. `None` if the base was cancelled.
    ///
    /// It may have failed because of the overlay: its output says so, or a candidate passed in a
    /// plain directory alone. Or it is a result with outputs of an earlier judging: a failure is
    /// compared with those of the candidates, and a pass where no candidate passes. Outputs that led to
    /// another result are not used again.
    fn confirm_base(&self, entries: &[Entry]) -> Result<Option<Baseline>> {
        let tree = self.base_tree()?;
        let Some(mut known) = self.ledger.recall(&tree, Warmth::Warm) else { return Ok(None) };
        let TreeOutcome { results, inherited, .. } = &known;
        if must_confirm_base(results, *inherited, stumbled(results), entries) {
            known = self.confirmed_base(&tree, &known)?;
        }
        self.drop_layers_of_failure(&tree, &known.results)?;
        let mut baseline = baseline(known);
        baseline.settle();
        Ok(Some(baseline))
    }

    /// Drops the layers that a failed run of the base has left, if it passes by now: it would never be judged
    /// over them. The pass goes with them, so that the next judging runs the base, and keeps new ones.
    fn drop_layers_of_failure(&self, tree: &Oid, results: &Results) -> Result<()> {
        let Some(layered) = &self.layered else { return Ok(()) };
        if !results.passed() || !layered.layers().is_some_and(|layers| layers.has_failed()) {
            return Ok(());
        }
        let repo = &self.session.repo;
        self.ledger.cache.forget(repo, &JudgedTree { tree: *tree, commit: self.run.base })?;
        self.ledger.keep_base_layer(None);
        layered.forget_layers()
    }

    fn confirmed_base(&self, tree: &Oid, known: &TreeOutcome) -> Result<TreeOutcome> {
        let results = self.judge_again(&Work::of_base(*tree))?;
        let confirmed = TreeOutcome::new(results, self.report_to(&Subject::Base)?.logs);
        let repo = &self.session.repo;
        self.tamper.check(false, None, || {
            let judged = JudgedTree::of(repo, self.run.base)?;
            self.ledger.keep(repo, &judged, &confirmed)?;
            Ok(Some(judged))
        })?;
        if known.results.passed() != confirmed.results.passed() {
            self.ledger.keep_base_layer(None);
            if let (true, Some(layered)) = (known.inherited, &self.layered) {
                layered.forget_layers()?;
            }
        }
        self.ledger.remember(tree, confirmed.clone());
        Ok(confirmed)
    }

    /// The share of the base with whose outputs trees are judged first.
    pub fn warmth(&self) -> Warmth {
        if self.may_be_warm { Warmth::Warm } else { Warmth::Cold }
    }

    /// The share of the base that is expected to cost the least time, confirmations included. What is
    /// unknown is learnt with outputs.
    pub(super) fn warmth_that_pays(&self) -> Result<Warmth> {
        if !self.weighs_warm {
            return Ok(self.warmth());
        }
        if !self.has_outputs() {
            // An overlay alone saves no run, and a failure there has to be confirmed.
            let base_failed = self.layers().is_some_and(|layers| layers.has_failed());
            return Ok(if base_failed { Warmth::Cold } else { self.warmth() });
        }
        let share = self.share();
        if share == ProcessorShare::Whole {
            self.note_time_of_base()?;
        }
        let pays = self.ledger.costs(share).warm_pays(self.run.candidates.len());
        Ok(if pays { Warmth::Warm } else { Warmth::Cold })
    }

    /// The candidate by which the time over the base's outputs is learnt, if it is not known: the one that
    /// would win last. As long as a better one passes, nothing depends on it, and it is not judged once more
    /// without outputs.
    fn teacher(&self, entries: &[Entry]) -> Option<u32> {
        let is_learnt = self.ledger.costs(self.share()).warm.is_some();
        if is_learnt || !self.weighs_warm || self.layered.is_none() {
            return None;
        }
        undecided(entries, Rules::of(&self.terms)).last().map(|entry| entry.index)
    }

    /// Notes the time that the base took without outputs: the shelves know that of a base which an earlier
    /// process has judged, and its layers that of the ancestor from whose outputs it began.
    fn note_time_of_base(&self) -> Result<()> {
        if let Some(base) = self.ledger.recall(&self.base_tree()?, Warmth::Cold) {
            self.ledger.note_cost(ProcessorShare::Whole, false, &base.results);
        }
        let seconds = self.layers().and_then(|layers| layers.cold_seconds());
        if let Some((seconds, last)) = seconds.zip(self.terms.oracle.last()) {
            self.ledger.note_seconds((ProcessorShare::Whole, last.stage), false, seconds);
        }
        Ok(())
    }

    /// The round in which candidates are judged first. Where nothing is a claim, that is all.
    pub(super) fn round(&self) -> Round<'static> {
        if self.may_be_warm { Round::First } else { Round::Confirming(&[]) }
    }

    /// The base's layers, if there are any by now.
    pub(super) fn layers(&self) -> Option<BaseLayer> {
        self.layered.as_ref()?.layers()
    }

    /// True if there are outputs of the base to judge over.
    pub(super) fn has_outputs(&self) -> bool {
        self.layers().is_some_and(|layers| layers.has_traces())
    }

    /// Runs the oracle without the base's layers on those of the entries that the recommendation
    /// depends on, and on those that the overlay has let fail.
    fn confirm(
        &self,
        entries: &mut [Entry],
        baseline: Option<&Baseline>,
        jobs: usize,
    ) -> Result<()> {
        let has_outputs = self.has_outputs();
        let causes: StaleCauses =
            entries.iter().map(|entry| (entry.index, self.cause(entry, has_outputs))).collect();
        let rules = Rules::of(&self.terms);
        let is_warm = entries.iter().any(|entry| entry.is_claim() && !entry.is_pending());
        let without = if is_warm { "the base's build outputs" } else { "its added tests" };
        let open = confirm::to_confirm(entries, rules);
        if let Some(first) = open.first() {
            let names: Vec<&str> = open.iter().map(|entry| entry.candidate.as_str()).collect();
            let leads = match first.passed_base_tests_too() {
                true => format!("{} leads; ", first.candidate),
                false => String::new(),
            };
            self.session.ui.note(format!(
                "run {}: {leads}what the verdict depends on is judged once more, without {without}: {}",
                self.run.run,
                names.join(", ")
            ));
        }
        confirm::confirm(entries, &causes, rules, |entries, claims, stop| {
            self.judge_cold(entries, claims, jobs, stop)?;
            // A pass that does not stand neither leads nor refutes a claim.
            self.overrule(entries, baseline).map(drop)
        })?;
        for entry in entries {
            if let (Some(tree), Some(stale)) = (entry.judged(), &entry.stale) {
                self.ledger.note_stale(tree, stale);
            }
        }
        Ok(())
    }

    fn judge_cold(
        &self,
        entries: &mut [Entry],
        claims: &[Entry],
        jobs: usize,
        stop: StopWhen,
    ) -> Result<()> {
        let provisional = match stop {
            StopWhen::Decided(rules) => confirm::provisional(entries, rules),
            StopWhen::AllRan => None,
        };
        let standing = provisional.map(|(leader, open)| {
            let names = open.iter().map(|entry| entry.candidate.clone()).collect::<Vec<_>>();
            (leader.candidate.clone(), live_rows::ending(leader), names)
        });
        let round = Round::Confirming(claims);
        let scheduler = Scheduler::new(
            entries,
            Schedule { stop, round, in_place: false, base: None, first: None },
        );
        let board = Board::new(WorkKind::Judging, scheduler.workers(jobs));
        let mut shown = scheduler.waiting();
        if let Some((leader, ending, open)) = standing {
            let names: Vec<&str> = open.iter().map(Name::as_str).collect();
            self.session.ui.note(format!(
                "run {}: {leader} is confirmed; the verdict is provisional until these are judged once \
                 more: {}",
                self.run.run,
                names.join(", ")
            ));
            board.ended(&leader, ending);
            board.stands(Some(leader.clone()), "the verdict is provisional".to_owned());
            shown = [vec![leader], open].concat();
        }
        self.run_scheduled(scheduler, (&board, &shown), Warmth::Cold, false).map(drop)
    }

    /// The cause that a claim's failure has if it is not confirmed.
    pub(super) fn cause(&self, entry: &Entry, has_outputs: bool) -> StaleCause {
        if self.world() != WorldKind::Sealed {
            return StaleCause::Outputs;
        }
        let mut second = entry.base_tests.iter();
        if stumbled(&entry.results) || second.any(|second| stumbled(&second.results)) {
            return StaleCause::Rename;
        }
        if has_outputs { StaleCause::Outputs } else { StaleCause::Overlay }
    }
}

/// The results of the base as a verdict holds them.
pub(super) fn baseline(known: TreeOutcome) -> Baseline {
    Baseline { results: known.results, inherited: known.inherited }
}
