//! The kinds of watched commands.

/// The commands that are watched. They decide which facts a fingerprint has, so the name of the
/// fingerprint's file says which commands they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchedCommands {
    /// A run's own commands.
    Attempts,
    /// A run's own commands, if the guard keeps all of them from writing to the repository and to the
    /// user's HOME.
    GuardedAttempts,
    /// The commands of its oracle.
    Oracle,
    /// The commands of its oracle, if none can write to a file outside its world.
    SealedOracle,
}

impl WatchedCommands {
    /// All kinds.
    pub const ALL: [WatchedCommands; 4] = [
        WatchedCommands::Attempts,
        WatchedCommands::GuardedAttempts,
        WatchedCommands::Oracle,
        WatchedCommands::SealedOracle,
    ];

    /// The name of the file with the fingerprint from before the commands.
    pub fn file(self) -> &'static str {
        match self {
            WatchedCommands::Attempts => "before-commands.json",
            WatchedCommands::GuardedAttempts => "before-guarded-commands.json",
            WatchedCommands::Oracle => "before-judging.json",
            WatchedCommands::SealedOracle => "before-sealed-judging.json",
        }
    }

    /// True if the commands judge.
    pub fn are_judging(self) -> bool {
        matches!(self, WatchedCommands::Oracle | WatchedCommands::SealedOracle)
    }

    /// True if the commands cannot write to any file that the user's git reads.
    pub fn are_confined(self) -> bool {
        matches!(self, WatchedCommands::GuardedAttempts | WatchedCommands::SealedOracle)
    }
}
