//! Captures: a worktree's files as a commit.
mod files;
mod iterations;
