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
/// The number of candidates' commands that are nested here: 1 in a candidate's command, 2 in the
/// command of a candidate that such a command has spawned.
pub const DEPTH: &str = "FRITES_DEPTH";
/// The names of the hooks inside of which this process runs, with blanks between them.
pub const HOOK: &str = "FRITES_HOOK";

/// All of these variables. An oracle command must not see any of them, because its outcome must
/// depend only on the tree.
pub const ALL: [&str; 10] =
    [RUN, CANDIDATE, INDEX, COUNT, BASE, WORKTREE, PROMPT_FILE, PORT, DEPTH, HOOK];
