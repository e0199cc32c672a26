//! Judges all candidates and their base: takes known outcomes, runs commands for the missing ones,
//! and confirms claims.
use crate::config::keys;
use crate::config::value::{ProofMode, WarmMode};
use crate::error::Result;
use crate::git::layers::base::BaseLayer;
use crate::model::missing_tests;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::outcome::Results;
use crate::model::ranking::{Rules, undecided};
use crate::model::verdict::{Baseline, Effort, Entry};
use crate::model::world::WorldKind;
use crate::ops::board::{self, Board, WorkKind};
use crate::ops::judge::confirm::{self, StaleCause, StaleCauses, must_confirm_base, stumbled};
use crate::ops::judge::entries;
use crate::ops::judge::overruled::overrule;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::judge::runner::trees::{TreeJudge, ending};
use crate::ops::judge::schedule::{
    BaseToJudge, JudgePhase, Schedule, Scheduler, StopWhen, Subject, Work,
};
use crate::oracle::cache::JudgedTree;
use crate::oracle::ledger::TreeOutcome;
use crate::oracle::sealed::Warmth;
use crate::process::processor_share::ProcessorShare;

impl OracleRunner<'_> {
    /// Runs the oracle for the entries without results, up to `jobs` trees at a time, and fills in
    /// the results. With one job, or if the candidates need the base's outputs, the base is judged
    /// before them. Returns the effort of this process for the run, and the base's results. The
    /// base's results are `None` if `wants_base` is false or if judging the base was cancelled.
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
        // The candidates wait until the base has left outputs, unless outputs of the base exist
        // already.
        let waits = self.layered.is_some() && self.warmth() == Warmth::Warm && !self.has_outputs();
        let is_first = waits || jobs <= 1;
        let base = wants_base.then_some(BaseToJudge { tree, is_first });
        let first = self.timing_candidate(entries);
        let phase = self.phase();
        let schedule = Schedule { stop, phase, in_place: self.is_in_place(), base, first };
        let scheduler = Scheduler::new(entries, schedule);
        scheduler.fill_in(|work| self.find(work, self.warmth()))?;
        let trees = scheduler.waiting().len() + usize::from(scheduler.awaits_base());
        if trees > 0 && !self.is_in_place() {
            // In sealed worlds, one more tree is checked out while commands run.
            let ahead = usize::from(self.world() == WorldKind::Sealed);
            self.require_space(self.run.root(), (jobs + ahead).min(trees))?;
        }
        let board = Board::new(WorkKind::Judging, scheduler.workers(jobs));
        let shown = scheduler.waiting();
        let saved = self.run_scheduled(scheduler, (&board, &shown), self.warmth(), is_first)?;
        let mut baseline = if wants_base { self.known_base()? } else { None };
        // If a pass does not count, another candidate may win, whose claims then have to be
        // confirmed.
        self.settle(entries, &mut baseline, jobs)?;
        if let Some(known) = &baseline {
            self.judge_their_tests(entries, known, jobs)?;
            // The candidates' tests may have changed the ranking.
            self.settle(entries, &mut baseline, jobs)?;
        }
        let base = if wants_base { self.confirm_base(entries)? } else { None };
        Ok((Effort { saved_not_run: saved.saved_not_run, ..self.ledger.effort() }, base))
    }

    /// Confirms claims and overrules passes that do not count (`ops/judge/overruled.rs`), until the
    /// recommendation depends neither on a claim nor on such a pass.
    fn settle(
        &self,
        entries: &mut [Entry],
        baseline: &mut Option<Baseline>,
        jobs: usize,
    ) -> Result<()> {
        let mut is_open = confirm::any_claims(entries);
        let cold = self.layers().and_then(|layers| layers.end().cold);
        let cold_tests = cold.map_or(0, |(_, tests)| tests);
        loop {
            if missing_tests::are_compared(&self.terms.settings)
                && let Some(base) = baseline.as_ref()
                && base.may_lack_tests(entries, cold_tests)
            {
                *baseline = Some(self.confirmed_base(&self.base_tree()?, base)?);
            }
            is_open |= self.overrule(entries, baseline.as_ref())?;
            if !is_open {
                return Ok(());
            }
            self.confirm(entries, baseline.as_ref(), jobs)?;
            is_open = false;
        }
    }

    /// Judges the tests of the candidates that passed, if the settings ask for it: on the other
    /// candidates and on the base, or on the base alone.
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
        overrule(&self.session.repo, self.run.root(), &self.terms, entries, base)
    }

    /// Judges the trees of a scheduler, as many at a time as the board has jobs. Shows the
    /// candidates in `shown` on the board. Returns how many commands did not have to run.
    fn run_scheduled(
        &self,
        scheduler: Scheduler<'_>,
        (board, shown): (&Board, &[Name]),
        warmth: Warmth,
        base_is_first: bool,
    ) -> Result<Effort> {
        let base = self.known_base()?;
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

    /// The base's results; `None` if judging the base was cancelled. If the results may be
    /// different in a plain directory, and the difference matters, judges the base again in a plain
    /// directory.
    ///
    /// Results may be different for two reasons. First, the overlay may have made the base fail:
    /// the output says so, or a candidate passed only in a plain directory. Second, build outputs
    /// of an earlier judging may have decided the result. A failure always matters, because the
    /// candidates' failures are compared with it. A pass matters only if no candidate passes.
    fn confirm_base(&self, entries: &[Entry]) -> Result<Option<Baseline>> {
        let tree = self.base_tree()?;
        let Some(mut base) = self.known_base()? else { return Ok(None) };
        let Baseline { results, inherited } = &base;
        if must_confirm_base(results, *inherited, stumbled(results), entries) {
            base = self.confirmed_base(&tree, &base)?;
        }
        self.drop_old_layers(&tree, &base.results)?;
        base.settle();
        Ok(Some(base))
    }

    /// Drops the base's layers if the base passes now, but failed or had more tests in the judging
    /// that wrote them. While these layers exist, no new ones are kept. Also forgets the pass, so
    /// that the next judging judges the base again and keeps new layers.
    fn drop_old_layers(&self, tree: &Oid, results: &Results) -> Result<()> {
        let Some(layered) = &self.layered else { return Ok(()) };
        let Some(layers) = layered.layers() else { return Ok(()) };
        let cold = layers.end().cold;
        let has_fewer =
            !results.is_claim() && cold.is_some_and(|(_, tests)| results.reported_tests() < tests);
        if !results.passed() || !(layers.has_failed() || has_fewer) {
            return Ok(());
        }
        self.ledger.cache.forget(&JudgedTree { tree: *tree, commit: *self.run.root() })?;
        self.ledger.keep_base_layer(None);
        layered.forget_layers()
    }

    fn confirmed_base(&self, tree: &Oid, known: &Baseline) -> Result<Baseline> {
        let results = self.judge_again(&Work::of_base(*tree))?;
        let confirmed = TreeOutcome::new(results.clone(), self.report_to(&Subject::Base)?.logs);
        self.tamper.check(false, None, || {
            let judged = JudgedTree { tree: *tree, commit: *self.run.root() };
            self.ledger.keep(&judged, &confirmed)?;
            Ok(Some(judged))
        })?;
        if known.results.passed() != results.passed() {
            self.ledger.keep_base_layer(None);
            if let (true, Some(layered)) = (known.inherited, &self.layered) {
                layered.forget_layers()?;
            }
        }
        self.ledger.remember(tree, confirmed);
        Ok(Baseline { results, inherited: false })
    }

    /// Whether trees are judged with the base's outputs first.
    pub fn warmth(&self) -> Warmth {
        if self.warm != WarmMode::Never { Warmth::Warm } else { Warmth::Cold }
    }

    /// The warmth with which judging, including confirmations, will probably take the least time.
    /// As long as it is not known how long judging with outputs takes, outputs are used, so that
    /// the time is measured.
    pub(super) fn warmth_that_pays(&self, share: ProcessorShare) -> Result<Warmth> {
        if self.warm != WarmMode::Auto {
            return Ok(self.warmth());
        }
        if !self.has_outputs() {
            // An overlay without outputs saves no time, and failures over it have to be confirmed.
            // If the base failed, no outputs will come.
            let base_failed = self.layers().is_some_and(|layers| layers.has_failed());
            return Ok(if base_failed { Warmth::Cold } else { self.warmth() });
        }
        if share == ProcessorShare::Whole {
            self.note_time_of_base()?;
        }
        let pays = self.ledger.memory.costs(share).warm_pays(self.run.candidates.len());
        Ok(if pays { Warmth::Warm } else { Warmth::Cold })
    }

    /// The candidate that is judged first to measure how long judging with the base's outputs
    /// takes; `None` if the time is known already, or is not needed. It is the candidate that wins
    /// only if no other candidate does. If a better one passes, the recommendation does not depend
    /// on this candidate, so its result need not be confirmed.
    fn timing_candidate(&self, entries: &[Entry]) -> Option<u32> {
        let is_learnt = self.ledger.memory.costs(ProcessorShare::Whole).warm.is_some();
        if is_learnt || self.warm != WarmMode::Auto || self.layered.is_none() {
            return None;
        }
        undecided(entries, Rules::of(&self.terms)).last().map(|entry| entry.index)
    }

    /// Notes the time that judging the base took without outputs. The ledger has this time if an
    /// earlier process judged the base. Otherwise the layers may have it.
    fn note_time_of_base(&self) -> Result<()> {
        if let Some(base) = self.ledger.recall(&self.base_tree()?, Warmth::Cold) {
            self.ledger.note_cost(ProcessorShare::Whole, false, &base.results);
        }
        let cold = self.layers().and_then(|layers| layers.end().cold);
        if let Some(((seconds, _), last)) = cold.zip(self.terms.oracle.last()) {
            self.ledger.note_seconds((ProcessorShare::Whole, last.stage), false, seconds);
        }
        Ok(())
    }

    /// The phase in which candidates are judged first. If no result can be a claim, it is the only
    /// phase.
    pub(super) fn phase(&self) -> JudgePhase<'static> {
        if self.warmth() == Warmth::Warm { JudgePhase::First } else { JudgePhase::Confirming(&[]) }
    }

    /// The base's layers; `None` if they do not exist yet.
    pub(super) fn layers(&self) -> Option<BaseLayer> {
        self.layered.as_ref()?.layers()
    }

    /// True if the base's layers have outputs that judging can use.
    pub(super) fn has_outputs(&self) -> bool {
        self.layers().is_some_and(|layers| layers.has_traces())
    }

    /// Runs the oracle without the base's layers on two kinds of entries: those with claims on
    /// which the recommendation depends, and those that probably failed because of the overlay.
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
        let without = if is_warm { "the base's build outputs" } else { "their added tests" };
        let open = confirm::to_confirm(entries, rules);
        if let Some(first) = open.first() {
            let names: Vec<&str> = open.iter().map(|entry| entry.candidate.as_str()).collect();
            let leads = match first.passed_base_tests_too() {
                true => format!("{} leads; ", first.candidate),
                false => String::new(),
            };
            self.session.ui.note(format!(
                "run {}: {leads}candidates on which the verdict depends are judged once more, without {without}: {}",
                self.run.run,
                names.join(", ")
            ));
        }
        confirm::confirm(entries, &causes, rules, |entries, claims, stop| {
            self.judge_cold(entries, claims, jobs, stop)?;
            // A pass that does not count must not make its candidate the leader, nor contradict a
            // claim.
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
            (leader.candidate.clone(), ending(leader), names)
        });
        let phase = JudgePhase::Confirming(claims);
        let scheduler = Scheduler::new(entries, Schedule::of_candidates(stop, phase));
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

    /// The probable cause, if the entry's result turns out to be different without layers.
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
