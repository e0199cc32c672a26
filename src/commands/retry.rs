//! `git frites retry`: runs another round of a candidate in its worktree.

use crate::agents;
use crate::commands::attempts::{AnswerArgs, RoundAnswer};
use crate::commands::spawn_args::{AttemptArgs, CommandArgs, existing};
use crate::complete;
use crate::error::{Error, Result};
use crate::model::address::Address;
use crate::model::name::Name;
use crate::ops::beside::NextAttempt;
use crate::ops::repair;
use crate::ops::session::Session;
use crate::ops::spawn::attempts::Attempts;
use crate::ops::spawn::command::CandidateCommand;
use crate::store::candidate::CandidateRef;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Runs the candidate's own command again, or another one, and captures the result as the next \
iteration. A command with a prompt is told why the candidate failed when it was judged last; other commands get \
their standard input as it is. An unchanged command with an unchanged prompt runs only if you confirm that.\n\n\
Exit status: 0 if the candidate is usable, 4 if it is not."
)]
pub struct RetryArgs {
    /// Candidate whose worktree the command runs in
    #[arg(value_name = "RUN/CAND", add = complete::by(complete::pairs_and_tasks))]
    pub candidate: Address,
    /// Run this agent instead of the candidate's own command
    #[arg(
        long,
        value_name = "NAME",
        add = complete::by(complete::agents),
        conflicts_with = "command",
    )]
    pub agent: Option<Name>,
    /// The command, and more words for its prompt
    #[command(flatten)]
    pub command: CommandArgs,
    /// Run the same command again without asking
    #[arg(long)]
    pub yes: bool,
    /// How the command runs
    #[command(flatten)]
    pub attempts: AttemptArgs,
    /// How the answer is printed
    #[command(flatten)]
    pub answer: AnswerArgs,
}

pub fn run(session: &Session, args: &RetryArgs) -> Result<u8> {
    let (run, name) = existing(session, "retry", &args.candidate)?;
    let options = args.attempts.options(session, None, run.given_limits(&name))?;
    let candidate = session.store.candidate(&run, &name);
    let recorded = CandidateCommand::recorded(&session.repo, candidate)?;
    let prompt = recorded.as_ref().and_then(|command| command.prompt.clone());
    let is_own = args.agent.is_none() && args.command.command.is_empty();
    let command = match (&args.agent, recorded) {
        (Some(agent), _) => {
            CandidateCommand::assigned(&agents::assign(&session.config, agent, 1)?, prompt.clone())
        }
        (None, Some(own)) if is_own => own.require_exact().map(|()| own)?,
        (None, None) if is_own => {
            return Err(Error::usage(format!("{candidate} has no command to run again"))
                .hint(format!("give one: `git frites retry {candidate} -- CMD`")));
        }
        (None, _) => CandidateCommand::typed(&args.command.command, prompt.clone()),
    };
    let command = repair::by_hand(session, candidate, command, args.command.prompt()?)?;
    if is_own && command.prompt == prompt {
        require_yes(session, candidate, &command, args.yes)?;
    }
    let round = NextAttempt { candidate: name.clone(), command, is_further_round: true };
    let report =
        Attempts { session, run: &run, options: &options, beside: &() }.rerun(vec![round])?;
    let typed = if args.command.command.is_empty() { "" } else { " -- …" };
    let go_on = format!("continue with another `git frites retry {candidate}{typed}`");
    let candidates = std::slice::from_ref(&name);
    let checkpoints = options.checkpoint.is_some();
    let round = RoundAnswer { run: &run, candidates, report: &report, checkpoints };
    round.conclude(session, &args.answer, &go_on)
}

/// Tells the user which command will run again, and asks for confirmation unless `yes` is true.
fn require_yes(
    session: &Session,
    candidate: CandidateRef<'_>,
    command: &CandidateCommand,
    yes: bool,
) -> Result<()> {
    session.ui.note(format!("{candidate} runs this again: {}", command.line()));
    if yes {
        return Ok(());
    }
    match session.ui.ask("run it?")? {
        Some(true) => Ok(()),
        Some(false) => Err(Error::no("nothing was run")
            .hint(format!("another command: `git frites retry {candidate} -- CMD`"))),
        None => Err(Error::usage("without a terminal, the same command needs --yes")
            .hint("run it: add --yes to what you typed")
            .hint(format!("or another: `git frites retry {candidate} -- CMD`"))),
    }
}
