//! Landing: the plan of a landing, landing on a fresh branch, landing by a merge, undoing either of
//! them, and recovery after a kill.
pub mod by_hand;
mod commit;
mod execute;
pub mod fresh_branch;
pub mod guards;
mod judge_merged;
pub mod merge;
pub mod newest_wins;
pub mod plan;
pub mod record;
pub mod recover;
pub mod sides;
pub mod target;
pub mod undo;
mod undo_branch;
mod undo_merge;
mod unverified;
