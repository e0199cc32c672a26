//! The kinds of commands that a watch is over.

/// The commands that a watch is over. They decide what a fingerprint covers, so the name of its file
/// says which they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchedCommands {
    /// A run's own.
    Attempts,
    /// A run's own, where the guard lets none write to the repository or to the user's HOME.
    GuardedAttempts,
    /// The commands of its oracle.
    Oracle,
    /// The commands of its oracle, if none can write to a file outside its world.
    SealedOracle,
}

impl WatchedCommands {
    /// All there are.
    pub const ALL: [WatchedCommands; 4] = [
        WatchedCommands::Attempts,
        WatchedCommands::GuardedAttempts,
        WatchedCommands::Oracle,
        WatchedCommands::SealedOracle,
    ];

    /// The file of the fingerprint from before the commands.
    pub fn file(self) -> &'static str {
        match self {
            WatchedCommands::Attempts => "before-commands.json",
            WatchedCommands::GuardedAttempts => "before-guarded-commands.json",
            WatchedCommands::Oracle => "before-judging.json",
            WatchedCommands::SealedOracle => "before-sealed-judging.json",
        }
    }

    /// True if they judge.
    pub fn are_judging(self) -> bool {
        matches!(self, WatchedCommands::Oracle | WatchedCommands::SealedOracle)
    }

    /// True if they can write to nothing that the user's git reads.
    pub fn are_confined(self) -> bool {
        matches!(self, WatchedCommands::GuardedAttempts | WatchedCommands::SealedOracle)
    }
}
