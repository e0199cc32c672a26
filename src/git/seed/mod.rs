//! Seeds: untracked files of the user's checkout that are copied into worktrees, and the record of
//! the seeds that a worktree has.
pub mod find;
pub mod leads_back;
mod patterns;
pub mod placed;
pub mod search;
