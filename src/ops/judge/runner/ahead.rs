//! Judges ahead, while attempts are at work: the base, and then the trees of ended attempts, step
//! by step. A later judging in this process finds the outcomes in the ledger.
use crate::error::Result;
use crate::model::verdict::{Baseline, Entry};
use crate::ops::board::Board;
use crate::ops::judge::confirm;
use crate::ops::judge::next_step::NextStep;
use crate::ops::judge::runner::trees::TreeJudge;
use crate::ops::judge::runner::{OnEnd, OracleRunner};
use crate::ops::judge::schedule::{JudgePhase, Schedule, Scheduler, StopWhen, Work};
use crate::ops::kept_commits::{self, KeptCommits};
use crate::oracle::cache::JudgedTree;
use crate::oracle::sealed::{SealedCheckouts, Warmth};
use crate::process::interrupt::Cancel;
use crate::process::processor_share::ProcessorShare;

impl OracleRunner<'_> {
    /// Judges the base before the candidates, and keeps its layers for the judgings that follow.
    pub fn judge_base_ahead(&self, cancel: &Cancel, on_end: OnEnd<'_>) -> Result<()> {
        self.adopt_base_layer()?;
        self.judge_base(cancel, on_end)?;
        if let Some(layer) = self.layered.as_ref().and_then(SealedCheckouts::layers_in_use) {
            self.ledger.keep_base_layer(Some(layer));
        }
        Ok(())
    }

    /// Uses the base's layers that an earlier judging in this process has left.
    pub(super) fn adopt_base_layer(&self) -> Result<()> {
        let Some((layered, layer)) = self.layered.as_ref().zip(self.ledger.base_layer()) else {
            return Ok(());
        };
        layered.adopt(layer, &self.ledger.cache.distrusted)
    }

    /// The base's results; `None` if they are not known yet.
    pub fn known_base(&self) -> Result<Option<Baseline>> {
        let known = self.ledger.recall(&self.base_tree()?, Warmth::Warm);
        Ok(known.map(|known| Baseline { results: known.results, inherited: known.inherited }))
    }

    /// Fills in the known results of these entries. If both a claim and another result are known,
    /// fills in the other result.
    pub fn fill_in_known(&self, entries: &mut [Entry]) -> Result<()> {
        self.fill_in(entries, self.phase(), self.warmth())?;
        let mut plain = confirm::without_claims(entries);
        self.fill_in(&mut plain, JudgePhase::Confirming(entries), Warmth::Cold)?;
        for (entry, plain) in entries.iter_mut().zip(plain) {
            if entry.is_claim() && !plain.not_run() {
                *entry = plain;
            }
        }
        self.overrule(entries, self.known_base()?.as_ref()).map(drop)
    }

    fn fill_in(&self, entries: &mut [Entry], phase: JudgePhase<'_>, warmth: Warmth) -> Result<()> {
        let recall =
            |work: &Work| Ok(self.ledger.recall(&work.tree, warmth).map(|known| known.results));
        Scheduler::new(entries, Schedule::of_candidates(StopWhen::AllRan, phase)).fill_in(recall)
    }

    /// Copies the logs of an entry's results to the entry's own directory. The commands may have
    /// run for another candidate with the same tree.
    pub fn bring_logs(&self, entry: &Entry) -> Result<()> {
        let bring = |work: &Work| {
            let Some(known) = self.ledger.recall(&work.tree, Warmth::Warm) else {
                return Ok(None);
            };
            if let Some(directory) = known.logs.directory_now() {
                self.report_to(&work.of)?.logs.copy_from(&directory)?;
            }
            Ok(Some(known.results))
        };
        let mut entry = confirm::without_results(entry);
        let alone = std::slice::from_mut(&mut entry);
        Scheduler::new(alone, Schedule::of_candidates(StopWhen::AllRan, self.phase()))
            .fill_in(bring)
    }

    /// Judges the entries of a step. `entries` are all entries, with their known results.
    pub fn take_step(
        &self,
        entries: &[Entry],
        step: &NextStep,
        board: &Board,
        cancel: &Cancel,
    ) -> Result<()> {
        let NextStep { entries: wanted, warmth, share } = step;
        let before: Vec<&Entry> = entries.iter().filter(|e| wanted.contains(&e.index)).collect();
        let mut judged: Vec<Entry> = before.iter().map(|e| confirm::without_results(e)).collect();
        let names: Vec<_> = judged.iter().map(|entry| entry.candidate.clone()).collect();
        let is_cold = *warmth == Warmth::Cold;
        let phase = if is_cold { JudgePhase::Confirming(entries) } else { self.phase() };
        let scheduler =
            Scheduler::new(&mut judged, Schedule::of_candidates(StopWhen::AllRan, phase));
        let mut judge = TreeJudge::new(self, names.len(), *warmth, board, &names);
        (judge.ended_by, judge.share) = (Some(cancel), *share);
        scheduler.run(names.len(), &judge);
        scheduler.finish(0)?;
        for (claim, judged) in before.iter().zip(&judged) {
            let cause = self.cause(claim, self.has_outputs());
            let is_final = *share == ProcessorShare::Whole || judged.passed();
            let tree = claim.judged().filter(|_| claim.is_claim() && is_final);
            if let Some((tree, stale)) = tree.zip(confirm::contradiction(claim, judged, cause)) {
                self.ledger.note_stale(tree, &stale);
            }
        }
        Ok(())
    }

    /// Forgets all outcomes that this process knows, and removes them from the cache, too.
    pub fn forget_all(&self) -> Result<()> {
        let _kept = KeptCommits { session: self.session, run: self.run };
        self.ledger.forget_all(|tree| {
            Ok(JudgedTree { tree, commit: kept_commits::keep_tree(self.session, self.run, &tree)? })
        })
    }
}
