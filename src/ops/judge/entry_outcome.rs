//! All that the oracle said about one entry of a verdict.
use crate::model::outcome::Results;
use crate::model::verdict::Effort;

/// All that the oracle said about one entry.
#[derive(Clone, Debug, Default)]
pub struct EntryOutcome {
    /// The results on the entry's tree.
    pub results: Results,
    /// The results on the tree with the base's tests; empty if they did not have to be known.
    pub base_tests: Results,
    /// The number of commands that were run and saved for this.
    pub effort: Effort,
}

impl EntryOutcome {
    /// The number of commands that were started for these results.
    pub fn commands_run(&self) -> u64 {
        self.results.commands_run() + self.base_tests.commands_run()
    }
}
