//! `git frites shard run`: makes one attempt of a run in another repository.

use crate::commands::spawn_args::AttemptArgs;
use crate::commands::values;
use crate::complete;
use crate::error::{Error, ErrorKind, Result, exit};
use crate::model::name::Name;
use crate::model::part::Part;
use crate::model::run::GivenLimits;
use crate::ops::session::Session;
use crate::ops::shard;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Makes the worktree of the candidate, runs its command, pushes the capture and removes the worktree. An \
attempt whose capture is stored already is left out, so that an engine can start the same command again. Prints \
RUN/CANDIDATE<TAB>STATE.\n\n\
Exit status: 0 if the capture is stored, however the attempt ended, 2 if the command line is wrong, and 128 or above \
if it is not stored."
)]
pub struct ShardRunArgs {
    /// Candidate whose attempt is made
    #[arg(
        value_name = "RUN/CAND",
        value_parser = values::run_or_part,
        add = complete::by(complete::pairs),
    )]
    pub candidate: (Name, Option<Part>),
    /// The repository that has the run, and to which the capture is pushed
    #[arg(long, value_name = "NAME|URL")]
    pub remote: String,
    /// How the command runs
    #[command(flatten)]
    pub attempts: AttemptArgs,
    /// Print nothing
    #[arg(short, long)]
    pub quiet: bool,
}

pub fn run(session: &Session, args: &ShardRunArgs) -> Result<u8> {
    let (run, Some(Part::Candidate(name))) = &args.candidate else {
        return Err(Error::usage("one attempt is made, so one candidate is to be named")
            .hint(format!("write {}/c1", args.candidate.0)));
    };
    let options = args.attempts.options(session, None, GivenLimits::default())?;
    let stored =
        shard::run_attempt(session, &args.remote, run, name, &options).map_err(|mut error| {
            // An exit code from 1 to 127 would tell a CI engine that trying again is useless.
            if error.kind == ErrorKind::No {
                error.kind = ErrorKind::Fatal;
            }
            error
        })?;
    if !args.quiet {
        let before = if stored.before { "\tstored before" } else { "" };
        session.ui.answer(format!("{run}/{name}\t{}{before}\n", stored.state));
    }
    Ok(exit::OK)
}
