//! The steps of the funnel, each of which more than one verb takes: opening the repository, spawning and preparing
//! worktrees, running commands in them and looking for escapes, capturing, judging, landing, removing. Between the verbs
//! and the rooms that know.
pub mod attempting;
pub mod branching;
pub mod checkpointing;
pub mod escape;
pub mod history;
pub mod judging;
pub mod landing;
pub mod merging;
pub mod preparing;
pub mod removing;
pub mod resuming;
pub mod session;
pub mod settling;
pub mod spawning;
pub mod synthesizing;
pub mod undoing;
pub mod watching;
