//! `git frites spawn`: creates a run, and runs a command in each of its worktrees.
use crate::commands::attempts::{AnswerArgs, run_new};
use crate::commands::spawn_args::SharedSpawnArgs;
use crate::error::Result;
use crate::model::run::GivenLimits;
use crate::ops::session::Session;
use crate::ops::spawn;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A candidate is one attempt: a worktree and a branch. For each candidate, spawn prints \
RUN/CANDIDATE<TAB>PATH. If the command changed nothing, the worktree is removed (except with --keep), and the path is left out. \
The command after -- runs in each worktree, never through a shell. In its arguments, {run}, {candidate}, {index}, \
{worktree}, {prompt} and {prompt_file} are replaced by their values. The command reads \
the prompt from standard input, unless an argument contains {prompt} or {prompt_file}.\n\n\
Exit status: 0 if at least one candidate is usable, or is open for you to edit; 4 if there is none."
)]
pub struct SpawnArgs {
    /// The candidates and their commands
    #[command(flatten, next_help_heading = "Attempts")]
    pub shared: SharedSpawnArgs,
    /// How the answer is printed
    #[command(flatten, next_help_heading = "Output")]
    pub answer: AnswerArgs,
}

pub fn run(session: &Session, args: &SpawnArgs) -> Result<u8> {
    let options =
        args.shared.attempts.options(session, args.shared.jobs, GivenLimits::default())?;
    let request = args.shared.request(session)?;
    run_new(session, spawn::spawn(session, request)?, &options, &args.answer)
}
