//! Landing: the plan of a landing, a fresh branch, a merge, and how both are undone.
pub mod fresh_branch;
pub mod merge;
pub mod newest_wins;
pub mod plan;
pub mod undo;
