//! Detects changes outside of worktrees by which commands could get code run or decide outcomes.
//! These are changes to git's configuration, hooks and info files, to `.frites.toml`, and to our
//! own refs.
//!
//! While commands run, our own git calls use the configuration from before the commands started. If
//! a guard or a sealed world confines the commands, only the configuration and our refs are
//! compared.
//!
//! This is not a sandbox: a command runs as the user, and can do what the user can do. Changes are
//! reported. They are reverted only in git-frites' own directories and in the run's own refs.
//! git-frites runs no program that was planted. If the configuration of git-frites itself has
//! changed, `judge` waits until a person accepts the change.
pub mod baseline;
pub mod config_snapshot;
pub mod diff;
pub mod fingerprint;
pub mod quarantine;
pub mod surroundings;
pub mod trust;
pub mod watch;

use std::path::Path;

use crate::git::repo::Repo;
use crate::integrity::config_snapshot::IncludeGuard;
use crate::oracle::pool;
use crate::store::Store;
use crate::ui::Ui;

/// The parts of a session that the functions of this module need.
#[derive(Clone, Copy)]
pub struct IntegrityContext<'a> {
    /// The repository and its state.
    pub store: &'a Store,
    /// The user's own checkout; `None` in a bare repository.
    pub home: Option<&'a Path>,
    /// The user interface, which reports changes.
    pub ui: &'a Ui,
    /// Makes our git calls ignore planted includes.
    pub includes: &'a IncludeGuard,
}

impl<'a> IntegrityContext<'a> {
    fn repo(&self) -> &'a Repo {
        self.store.repo()
    }

    /// True for a checkout that git-frites made: a candidate's worktree, or a judge checkout.
    fn is_ours(&self, checkout: &Path) -> bool {
        pool::is_pool_checkout(checkout) || self.store.is_candidates(checkout).unwrap_or(false)
    }
}

/// The commands that are watched. The kind decides which facts a fingerprint has. So the name of
/// the file with the fingerprint shows the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchedCommands {
    /// The commands of a run's attempts.
    Attempts,
    /// The commands of a run's attempts, if all of them are guarded. They cannot write to the
    /// repository or to the user's HOME.
    GuardedAttempts,
    /// The oracle commands.
    Oracle,
    /// The oracle commands, if all of them are sealed. They cannot write to a file outside of their
    /// world.
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
