//! The only place that touches git: gix for reading in process, the git program for what gix does
//! not do as git does.
pub mod advance;
pub mod capture;
pub mod cli;
pub mod commit;
pub mod diff;
pub mod differences;
pub mod excludes;
pub mod fingerprint;
pub mod frozen;
mod housekeeper;
pub mod land;
pub mod leftovers;
pub mod merge;
pub mod obstacles;
pub mod pins;
pub mod pristine;
pub mod protect;
pub mod refs;
pub mod repo;
pub mod seed;
pub mod seeded;
mod stamp;
pub mod times;
pub mod unchanged;
pub mod worktree;
