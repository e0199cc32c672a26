//! Detects changes by commands to everything that runs code or decides results: git's configuration, hooks
//! and info files, `.frites.toml` and our own refs. While the commands run, our own git calls use the
//! configuration from before they started. If a guard or a sealed world confines the commands, only the
//! configuration and our refs are compared.
//!
//! This is not a sandbox: a command runs as the user and can do what the user can. Changes are reported;
//! only changes in git-frites' own directories, and of the run's own refs, are reverted. git-frites runs
//! nothing that was planted, and `judge` waits for a person if the configuration of git-frites itself has
//! changed.
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
use crate::oracle::pool;
use crate::store::Store;
use crate::ui::Ui;

/// The parts of a session that this module works with.
#[derive(Clone, Copy)]
pub struct IntegrityContext<'a> {
    /// The repository and its state.
    pub store: &'a Store,
    /// The user's own checkout; `None` in a bare repository.
    pub home: Option<&'a Path>,
    /// The user interface, which reports changes.
    pub ui: &'a Ui,
}

impl<'a> IntegrityContext<'a> {
    fn repo(&self) -> &'a Repo {
        self.store.repo()
    }

    /// True for a checkout that git-frites made: a candidate's worktree, or one for judging.
    fn is_ours(&self, checkout: &Path) -> bool {
        pool::is_pool_checkout(checkout) || self.store.is_candidates(checkout).unwrap_or(false)
    }
}
