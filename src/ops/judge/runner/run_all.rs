//! All candidates and their base: what is cached, what runs, and the confirmation of claims.
use crate::error::Result;
use crate::model::ranking::Rules;
use crate::model::verdict::{Baseline, Effort, Entry};
use crate::model::world::WorldKind;
use crate::ops::judge::confirm::{self, StaleCause, StaleCauses, stumbled};
use crate::ops::judge::judged_base::{BaseState, JudgedBase};
use crate::ops::judge::kept_trees;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::judge::runner::candidate::{EntryJudge, Round};
use crate::ops::judge::schedule::{Scheduler, StopWhen};
use crate::ops::judge::shown;
use crate::ops::progress::{self, Board, WorkKind};
use crate::oracle::cache::Cache;
use crate::oracle::sealed::{SealedCheckouts, Warmth};
use crate::process::interrupt::Cancel;

impl OracleRunner<'_> {
    /// Runs the oracle for the entries without results, up to `jobs` at a time, and fills their
    /// results in. Equal trees are judged once. The base comes first, and with several jobs the
    /// entries are judged beside it.
    pub fn run_all(
        &self,
        entries: &mut [Entry],
        jobs: usize,
        stop: StopWhen,
        base: BaseState,
    ) -> Result<(Effort, Option<Baseline>)> {
        if !self.terms.settings.in_place {
            kept_trees::keep_trees(self.session, self.run, &self.terms, entries)?;
        }
        let scheduler = Scheduler::new(entries, self.terms.settings.in_place, stop);
        if self.cache.as_ref().is_some_and(Cache::gives_outcomes) {
            scheduler.fill_in_cached(|entry| self.find_cached_entry(entry))?;
        }
        let waiting = scheduler.waiting();
        let (mut base, with_base) = match base {
            BaseState::NotWanted => (None, false),
            BaseState::Unjudged => (None, true),
            BaseState::Judged(judged) => (Some(*judged), false),
        };
        if let (Some(layered), Some(JudgedBase { layer: Some(layer), .. })) = (&self.layered, &base)
        {
            let distrusted = self.cache.as_ref().map(Cache::distrusted).unwrap_or_default();
            layered.adopt(layer.clone(), distrusted)?;
        }
        let trees = waiting.len() + usize::from(with_base);
        if trees > 0 && !self.terms.settings.in_place {
            // One more is prepared while the commands on others run.
            let ahead = usize::from(self.world() == WorldKind::Sealed);
            self.require_space(&self.run.base, (jobs + ahead).min(trees))?;
        }
        let workers = scheduler.workers(jobs, usize::from(with_base));
        // The candidates wait for the outputs of the base, unless there are some.
        let waits = self.layered.is_some() && self.may_be_warm && !self.has_outputs();
        let base_first = workers == 1 || waits;
        let board = Board::new(WorkKind::Judging, workers);
        shown::expect(&board, base.as_ref());
        progress::live(self.session, self.run, &waiting, &board, || {
            if with_base && base_first {
                base = self.judge_base(&Cancel::default(), true)?;
                shown::expect(&board, base.as_ref());
            }
            let warmth = self.warmth();
            let judge_base = |cancel: &Cancel| {
                if with_base && !base_first {
                    base = self.judge_base(cancel, false)?;
                    shown::expect(&board, base.as_ref());
                }
                Ok(())
            };
            let judge = EntryJudge::new(self, workers, warmth, self.round(), &board);
            scheduler.run(workers, judge_base, &judge);
            Ok(())
        })?;
        let mut effort = scheduler.finish(self.terms.oracle.len())?;
        if confirm::any_claims(entries) {
            effort.add(self.confirm(entries, jobs)?);
        }
        if let Some(base) = &mut base {
            self.confirm_base(base, entries)?;
            base.baseline.settle();
        }
        let ran_base = base.as_ref().map_or(0, |base| base.ran);
        Ok((Effort { ran_base, ..effort }, base.map(|base| base.baseline)))
    }

    /// The share of the base that trees are judged over first.
    pub(super) fn warmth(&self) -> Warmth {
        if self.may_be_warm { Warmth::Warm } else { Warmth::Cold }
    }

    /// The round in which candidates are judged first. Where nothing is a claim, that is all.
    pub(super) fn round(&self) -> Round {
        if self.may_be_warm { Round::First } else { Round::Confirming }
    }

    /// True if outputs of the base are kept.
    pub(super) fn has_outputs(&self) -> bool {
        self.layered.as_ref().is_some_and(SealedCheckouts::has_outputs)
    }

    /// Runs the oracle without the base's layers on those of the entries that the recommendation
    /// depends on, and on those that the overlay has let fail.
    fn confirm(&self, entries: &mut [Entry], jobs: usize) -> Result<Effort> {
        let has_outputs = self.has_outputs();
        let causes: StaleCauses =
            entries.iter().map(|entry| (entry.index, self.cause(entry, has_outputs))).collect();
        let rules = Rules::from_settings(&self.terms.settings);
        let is_warm = entries.iter().any(|entry| entry.is_claim() && !entry.is_pending());
        let without = if is_warm { "the base's build outputs" } else { "its added tests" };
        self.session.ui.note(format!(
            "run {}: what the verdict depends on is judged once more, without {without}",
            self.run.run
        ));
        confirm::confirm(entries, &causes, rules, |entries, stop| {
            self.judge_cold(entries, jobs, stop)
        })
    }

    fn judge_cold(&self, entries: &mut [Entry], jobs: usize, stop: StopWhen) -> Result<Effort> {
        let scheduler = Scheduler::new(entries, false, stop);
        let waiting = scheduler.waiting();
        let workers = scheduler.workers(jobs.min(waiting.len()), 0);
        let board = Board::new(WorkKind::Judging, workers);
        progress::live(self.session, self.run, &waiting, &board, || {
            let judge = EntryJudge::new(self, workers, Warmth::Cold, Round::Confirming, &board);
            scheduler.run(workers, |_| Ok(()), &judge);
            Ok(())
        })?;
        scheduler.finish(0)
    }

    /// The cause that a claim's failure has if it is not confirmed.
    fn cause(&self, entry: &Entry, has_outputs: bool) -> StaleCause {
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
