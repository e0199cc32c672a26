//! The environment variables that a candidate's command gets from git-frites (DESIGN.md §2).

/// The run's name.
pub const RUN: &str = "FRITES_RUN";
/// The candidate's name.
pub const CANDIDATE: &str = "FRITES_CANDIDATE";
/// The candidate's position in its run, from 1.
pub const INDEX: &str = "FRITES_INDEX";
/// The number of candidates in the run.
pub const COUNT: &str = "FRITES_COUNT";
/// The commit that the run starts from.
pub const BASE: &str = "FRITES_BASE";
/// The path of the candidate's worktree.
pub const WORKTREE: &str = "FRITES_WORKTREE";
/// The path of the file that holds the prompt; unset without a prompt.
pub const PROMPT_FILE: &str = "FRITES_PROMPT_FILE";
/// The first of the candidate's ports; unset if it has none.
pub const PORT: &str = "FRITES_PORT";
/// The number of candidates' commands that surround this one, itself included.
pub const DEPTH: &str = "FRITES_DEPTH";
/// The hooks that this one runs inside of, itself included, with blanks between them.
pub const HOOK: &str = "FRITES_HOOK";

/// All of these. An oracle's command must not see any of them: its outcome depends on the tree
/// alone.
pub const ALL: [&str; 10] =
    [RUN, CANDIDATE, INDEX, COUNT, BASE, WORKTREE, PROMPT_FILE, PORT, DEPTH, HOOK];
