//! The only place that touches git: gix for reading in process, the git program for what gix does
//! not do as git does.
pub mod capture;
pub mod cli;
pub mod diff;
pub mod differences;
pub mod excludes;
pub mod fingerprint;
pub mod frozen;
pub mod land;
pub mod pins;
pub mod refs;
pub mod repo;
pub mod seed;
pub mod seeded;
pub mod worktree;
