//! The base's own results.
use crate::error::Result;
use crate::model::verdict::{Baseline, Entry};
use crate::model::world::WorldKind;
use crate::ops::judge::confirm::{must_confirm_base, stumbled};
use crate::ops::judge::judged_base::{JudgedBase, warn_of_base};
use crate::ops::judge::judged_once::TreeOutcome;
use crate::ops::judge::runner::{OracleRunner, ReportTo};
use crate::oracle::cache::JudgedTree;
use crate::oracle::run::OracleEnd;
use crate::oracle::sealed::{SealedCheckouts, Warmth};
use crate::process::interrupt::Cancel;

impl OracleRunner<'_> {
    /// Judges the base once more in a plain directory if its result may be another one there, and
    /// matters.
    ///
    /// It may have failed because of the overlay: its output says so, or a candidate passed in a
    /// plain directory alone. Or it is a result over outputs of an earlier judging: a failure is
    /// compared with those of the candidates, and a pass where no candidate passes. Outputs that led to
    /// another result are not used again.
    pub(super) fn confirm_base(&self, base: &mut JudgedBase, entries: &[Entry]) -> Result<()> {
        let report = self.report_of_base();
        let results = &base.baseline.results;
        let passed = results.passed();
        let said = stumbled(results);
        let inherited = base.baseline.inherited;
        if !must_confirm_base(results, inherited, said, entries) {
            return Ok(());
        }
        let commit = self.run.base;
        let cancel = Cancel::default();
        let end = self.run_on_commit(&commit, &report, &cancel, Warmth::Cold)?;
        self.tamper.check(None, || {
            let OracleEnd::Finished(results) = end else { return Ok(None) };
            let judged = JudgedTree::of(&self.session.repo, commit)?;
            self.keep_cached(&judged, &results, &report)?;
            base.ran += results.commands_run();
            if let Some(layered) = &self.layered
                && inherited
                && passed != results.passed()
            {
                base.layer = None;
                layered.forget_layers()?;
            }
            base.baseline = Baseline { results, inherited: false };
            Ok(Some(judged))
        })
    }

    fn report_of_base(&self) -> ReportTo {
        ReportTo {
            name: format!("{}/@base", self.run.run),
            logs: self.session.store.base_logs(&self.run.run).judging(None),
        }
    }

    /// Runs the oracle on the base itself. None if it was cancelled. `first` is true if no
    /// candidate is judged before it ends.
    pub fn judge_base(&self, cancel: &Cancel, first: bool) -> Result<Option<JudgedBase>> {
        let commit = self.run.base;
        let tree = self.session.repo.commit(&commit)?.tree;
        let report = self.report_of_base();
        let mut ran = 0;
        // Nothing is decided by the base's results, so that a claim will do. An overlay shows what its
        // commands leave.
        let is_sealed = self.world() == WorldKind::Sealed;
        let had_outputs = self.has_outputs();
        let needs_outputs = self.may_be_warm || is_sealed && !had_outputs;
        // What a failed test left could let it pass: a log that make takes for that of a pass.
        let failed = self.layered.as_ref().is_some_and(SealedCheckouts::base_failed);
        let warmth = if needs_outputs && !failed { Warmth::Warm } else { Warmth::Cold };
        let found = self.once(warmth).get_or_judge(&tree, || {
            let judged = JudgedTree { tree, commit };
            let logs = report.logs.directory();
            if let Some(results) = self.find_cached(&judged, &report, self.warmth())? {
                return Ok(Some(TreeOutcome { results, logs }));
            }
            let end = self.run_on_commit(&commit, &report, cancel, warmth)?;
            let OracleEnd::Finished(results) = end else {
                return Ok(None);
            };
            let cache = || {
                self.keep_cached(&judged, &results, &report)?;
                Ok(Some(judged))
            };
            if first {
                self.tamper.check_base_first(cache)?;
            } else {
                self.tamper.check(None, cache)?;
            }
            ran = results.commands_run();
            Ok(Some(TreeOutcome { results, logs }))
        })?;
        let Some((TreeOutcome { results, logs }, was_known)) = found else { return Ok(None) };
        if was_known {
            report.logs.copy_from(&logs)?;
            self.note_all(&report, &results);
        }
        warn_of_base(self.session, self.run, &results);
        let layer = self.layered.as_ref().and_then(SealedCheckouts::layer_in_use);
        // A failure may be a claim because of the overlay alone, and a pass only because of outputs.
        let over_outputs = results.passed()
            || had_outputs
            || self.layered.as_ref().is_some_and(SealedCheckouts::has_inherited);
        let inherited = over_outputs && results.is_claim();
        let baseline = Baseline { results, inherited };
        Ok(Some(JudgedBase { baseline, ran, layer, terms: self.terms.clone() }))
    }
}
