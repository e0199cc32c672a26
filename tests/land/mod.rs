//! Landing: a fresh branch, a merge, and the way back.
mod apply;
mod by_hand;
mod interrupted;
mod into;
mod merge;
mod newest_wins;
mod undo;
