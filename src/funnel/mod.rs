//! The steps of the funnel, each of which more than one verb takes: opening the repository, capturing,
//! preparing worktrees, looking for escapes, judging, removing. Between the verbs and the rooms that know.
pub mod escape;
pub mod judging;
pub mod preparing;
pub mod removing;
pub mod session;
