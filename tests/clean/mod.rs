//! Removal of worktrees, caches and runs.
mod background;
mod disk;
mod retention;
mod worktrees;
