//! The kinds of commands that a watch is over.

/// The commands that a watch is over. They decide what a fingerprint covers, so the name of its file
/// says which they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchedCommands {
    /// A run's own.
    Attempts,
    /// Those of its oracle.
    Oracle,
    /// Those of its oracle, where none can write to a file outside its world.
    SealedOracle,
}

impl WatchedCommands {
    /// All there are.
    pub const ALL: [WatchedCommands; 3] =
        [WatchedCommands::Attempts, WatchedCommands::Oracle, WatchedCommands::SealedOracle];

    /// The file of the fingerprint from before the commands.
    pub fn file(self) -> &'static str {
        match self {
            WatchedCommands::Attempts => "before-commands.json",
            WatchedCommands::Oracle => "before-judging.json",
            WatchedCommands::SealedOracle => "before-sealed-judging.json",
        }
    }

    /// True if they judge.
    pub fn are_judging(self) -> bool {
        self != WatchedCommands::Attempts
    }

    /// True if they can write to the files of a checkout that is not theirs.
    pub fn can_reach_checkouts(self) -> bool {
        self != WatchedCommands::SealedOracle
    }
}
