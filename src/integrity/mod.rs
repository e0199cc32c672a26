//! Detects changes that commands make outside of their worktrees, if these could run code or decide outcomes:
//! changes to git's configuration, hooks and info files, to `.frites.toml`, and to our own refs. While
//! commands run, our own git calls use the configuration from before the commands started. If the commands
//! are confined by a guard or a sealed world, only the configuration and our refs are compared.
//!
//! This is not a sandbox: a command runs as the user, and can do what the user can do. Changes are reported.
//! Changes are reverted only in git-frites' own directories and in the run's own refs. git-frites runs no
//! program that was planted. If the configuration of git-frites itself has changed, `judge` waits until a
//! person accepts the change.
pub mod baseline;
pub mod config_snapshot;
pub mod diff;
pub mod fact;
pub mod fingerprint;
pub mod overrides;
pub mod quarantine;
pub mod surroundings;
pub mod trust;
pub mod watch;
pub mod watched_commands;

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
    /// Keeps our git calls from planted includes.
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
