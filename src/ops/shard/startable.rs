//! Commands that cannot start on this machine: that is no outcome of a candidate, and another
//! machine may have what is missing.
use crate::error::Result;
use crate::model::outcome::StageResult;
use crate::model::part::{Part, PartOutcome};
use crate::model::verdict::{Baseline, Entry};
use crate::ops::judge::why_not_working;
use crate::store::outcomes::NewOutcome;

/// The programs that commands start, and whether this machine has them.
#[derive(Default)]
pub struct Startable {
    base: Option<Baseline>,
    candidates: Vec<Entry>,
}

impl Startable {
    /// Refuses outcomes of commands that start neither on the base nor on any candidate here.
    ///
    /// A shell says by its exit code alone that a program is missing, which can be the fault of a
    /// candidate, too. To tell, the base is judged with `judge`, and if nothing starts there, one of
    /// the `others` after another until something starts.
    pub fn require(
        &mut self,
        found: &[NewOutcome],
        others: &[Part],
        mut judge: impl FnMut(&Part) -> Result<Vec<NewOutcome>>,
    ) -> Result<()> {
        self.learn(found);
        let could_not_start = |result: &StageResult| result.outcome.could_not_start();
        if !found.iter().any(|new| new.outcome.all_results().any(could_not_start)) {
            return Ok(());
        }
        if self.base.is_none() {
            let base = judge(&Part::Base)?;
            self.learn(&base);
        }
        for other in others {
            if self.nowhere().is_none() {
                break;
            }
            if !self.candidates.iter().any(|e| Part::Candidate(e.candidate.clone()) == *other) {
                let judged = judge(other)?;
                self.learn(&judged);
            }
        }
        match self.nowhere() {
            None => Ok(()),
            Some(result) => {
                let oracle = found.first().map(|new| new.outcome.terms.oracle.as_slice());
                Err(why_not_working(oracle.unwrap_or_default(), result).hint(
                    "install on this machine what it needs, and judge again: no outcome was stored",
                ))
            }
        }
    }

    fn learn(&mut self, found: &[NewOutcome]) {
        for new in found {
            match &new.outcome {
                PartOutcome { candidate: Some(entry), .. } => self.candidates.push(entry.clone()),
                PartOutcome { on_base, .. } => {
                    self.base = Some(Baseline { results: on_base.clone(), inherited: false });
                }
            }
        }
    }

    fn nowhere(&self) -> Option<&StageResult> {
        let base = self.base.as_ref()?;
        match base.results.stopped_at().filter(|result| result.outcome.could_not_start()) {
            // No candidate was judged yet.
            Some(result) if self.candidates.is_empty() => Some(result),
            _ => base.starts_nowhere(&self.candidates),
        }
    }
}
