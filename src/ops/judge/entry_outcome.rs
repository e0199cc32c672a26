//! All that the oracle said about one entry of a verdict.
use crate::model::outcome::{Outcome, StageResult};
use crate::model::verdict::Effort;

/// All that the oracle said about one entry.
#[derive(Clone, Debug, Default)]
pub struct EntryOutcome {
    /// The results on the entry's tree.
    pub results: Vec<StageResult>,
    /// The results on the tree with the base's tests; empty if they did not have to be known.
    pub base_tests: Vec<StageResult>,
    /// The number of commands that were run and saved for this.
    pub effort: Effort,
}

impl EntryOutcome {
    /// The number of commands that were started for these results.
    pub fn commands_run(&self) -> u64 {
        commands_run(&self.results) + commands_run(&self.base_tests)
    }
}

/// The number of commands that were started for these results.
pub fn commands_run(results: &[StageResult]) -> u64 {
    let started = results.iter().filter(|r| !matches!(r.outcome, Outcome::CouldNotStart { .. }));
    started.map(|r| r.runs() as u64).sum()
}
