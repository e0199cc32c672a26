//! Seeds: untracked files of the user's checkout that worktrees get, and the record of the seeds that a
//! worktree got.
pub mod find;
pub mod leads_back;
mod patterns;
pub mod placed;
pub mod search;
