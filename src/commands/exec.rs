//! `git frites exec`: runs a command in a candidate's worktree, with the candidate's environment.
use std::ffi::OsString;

use crate::commands::one_candidate;
use crate::complete;
use crate::error::{Error, IoContext, Result, describe};
use crate::fs::regular;
use crate::model::address::Address;
use crate::ops::agent_state;
use crate::ops::session::Session;
use crate::ops::spawn::command::{CandidateCommand, CommandContext};
use crate::process;
use crate::store::select::{Matching, Scope};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without a command, it starts your shell ($SHELL) in the worktree; its prompt can show $FRITES_CANDIDATE.\n\n\
Exit status: that of the command."
)]
pub struct ExecArgs {
    /// Candidate, or a run with one candidate  [default: the newest run]
    #[arg(value_name = "RUN/CAND", add = complete::address(Scope::Candidate))]
    pub address: Option<Address>,
    /// Command to run in the worktree  [default: your shell]
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Replaces the git-frites process by the command. Returns only if the command cannot be started.
pub fn run(session: &Session, args: &ExecArgs) -> Result<u8> {
    let selection =
        session.store.select(args.address.as_ref(), Scope::Candidate, Matching::Prefix)?;
    let candidate = one_candidate(&session.store, &selection)?;
    let lock = candidate.lock_for_use()?;
    let dir = candidate.require_worktree()?;
    candidate.warning_of_git().iter().for_each(|line| session.ui.warn(line));
    let command = match args.command.as_slice() {
        [] => vec![std::env::var_os("SHELL").unwrap_or_else(|| "sh".into())],
        words => words.to_vec(),
    };
    CandidateCommand::typed(&command, None).require_program()?;
    let prompt_file = candidate.directory().prompt();
    let prompt = regular::read(&prompt_file).ok();
    let context = CommandContext {
        run: candidate.run,
        candidate: &candidate.record()?,
        dir: &dir,
        prompt: prompt.as_deref(),
        prompt_file: &prompt_file,
        depth: None,
        is_guarded: false,
    };
    let argv = context.argv(&command);
    let mut variables = context.variables();
    // These variables name the attempt's state directories, so that e.g. `claude --resume`
    // continues the attempt's conversation.
    variables.extend(agent_state::prepare_for_person(session, candidate)?);
    lock.hand_on().could_not("mark the use of", &dir)?;
    let error = process::replace(&argv, &dir, &session.policy, &variables);
    let program = command[0].to_string_lossy().into_owned();
    Err(Error::fatal(format!("'{program}' cannot be started: {}", describe(&error)))
        .hint("a command after -- is a program and its arguments; it starts in the worktree"))
}
