//! Detecting what commands change outside of their worktrees: git's configuration, hooks, refs and other
//! worktrees; and keeping our own git calls on the configuration that was there before.
pub mod baseline;
pub mod config_snapshot;
pub mod diff;
pub mod fingerprint;
pub mod overrides;
pub mod quarantine;
pub mod watch;
