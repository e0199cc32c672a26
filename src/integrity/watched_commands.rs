//! The kinds of watched commands.

/// The commands that are watched. The kind decides which facts a fingerprint has, so the name of the file
/// with the fingerprint shows the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchedCommands {
    /// The commands of a run's attempts.
    Attempts,
    /// The commands of a run's attempts, if all of them are guarded: they cannot write to the repository or
    /// to the user's HOME.
    GuardedAttempts,
    /// The oracle commands.
    Oracle,
    /// The oracle commands, if all of them are sealed: they cannot write to a file outside of their world.
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

    /// True if the commands are oracle commands.
    pub fn are_judging(self) -> bool {
        matches!(self, WatchedCommands::Oracle | WatchedCommands::SealedOracle)
    }

    /// True if the commands cannot write to any file that the user's git reads.
    pub fn are_confined(self) -> bool {
        matches!(self, WatchedCommands::GuardedAttempts | WatchedCommands::SealedOracle)
    }
}
