//! The only place that touches git: gix for reading in process, the git program for what gix does
//! not do as git does.
mod attributes;
pub mod capture;
pub mod checkout;
pub mod cli;
pub mod commit;
pub mod diff;
pub mod fan_out;
mod gc;
pub mod held_refs;
pub mod index;
pub mod landing;
pub mod layers;
pub mod merge;
pub mod mode;
pub mod objects;
pub mod overrides;
pub mod protect;
pub mod reflog;
pub mod refs;
pub mod registration;
pub mod repo;
pub mod seed;
mod stat;
mod text;
mod trees;
pub mod version;
pub mod worktree;
