//! `git frites add`: adds candidates to an existing run.
use std::path::{Path, PathBuf};

use crate::commands::attempts::{AnswerArgs, run_new};
use crate::commands::spawn_args::{AttemptArgs, CandidateArgs, CommandArgs, read_input};
use crate::commands::values;
use crate::complete;
use crate::error::{Error, Result};
use crate::model::address::Address;
use crate::model::run::{Assignment, GivenLimits, Run};
use crate::ops::session::Session;
use crate::ops::spawn::NewCandidates;
use crate::ops::spawn::add::{self, ChangeSource};
use crate::ops::spawn::command::CandidateCommand;
use crate::ops::spawn::synthesis;
use crate::store::select::{Matching, Scope};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Adds one candidate, or as many as -n, -c or --agent say. Each starts at the base of the run, and is \
open to work in unless an agent or a command makes it. Prints RUN/CANDIDATE<TAB>PATH for each.\n\n\
Exit status: 0 if at least one of the new candidates is usable, or is open for you to edit; 4 if there is none."
)]
pub struct AddArgs {
    /// Run that the candidates join
    #[arg(value_name = "RUN", add = complete::address(Scope::Run))]
    pub run: Address,
    /// The new candidates
    #[command(flatten)]
    pub candidates: CandidateArgs,
    /// Begin with the patch in this file, or with a patch from standard input if it is `-`
    #[arg(long, value_name = "FILE", group = "change")]
    pub patch: Option<PathBuf>,
    /// Begin with the change of this commit or branch
    #[arg(
        long,
        value_name = "REV",
        group = "change",
        allow_hyphen_values = true,
        add = complete::by(complete::revisions),
    )]
    pub commit: Option<String>,
    /// Make one candidate from those that passed
    #[arg(
        long,
        group = "change",
        conflicts_with_all = ["count", "candidates", "prompt", "prompt_file"],
    )]
    pub synthesize: bool,
    /// The command of the new candidates
    #[command(flatten)]
    pub command: CommandArgs,
    /// How the commands run
    #[command(flatten)]
    pub attempts: AttemptArgs,
    /// Number of commands that run at once  [default: spawn.jobs; if unset, 16
    /// if agents make all candidates, else the number of processors]
    #[arg(short, long, value_name = "JOBS", value_parser = values::count)]
    pub jobs: Option<u32>,
    /// How the answer is printed
    #[command(flatten)]
    pub answer: AnswerArgs,
}

pub fn run(session: &Session, args: &AddArgs) -> Result<u8> {
    let options = args.attempts.options(session, args.jobs, GivenLimits::default())?;
    let run = session.store.select(Some(&args.run), Scope::Run, Matching::Prefix)?.run;
    if !args.synthesize {
        let (new, change) = request(session, args, &run)?;
        let made = add::add(session, &run, new, change)?;
        return run_new(session, made, &options, &args.answer);
    }
    let made = synthesis::add(session, &run, maker(session, args)?)?;
    let options = match args.attempts.timeout {
        Some(_) => options,
        None => synthesis::options(session, &options),
    };
    run_new(session, made, &options, &args.answer)
}

/// The new candidates and their commands, as the options describe them. All options are checked
/// before any effect.
fn request(
    session: &Session,
    args: &AddArgs,
    run: &Run,
) -> Result<(NewCandidates, Option<ChangeSource>)> {
    let change = match (&args.patch, &args.commit) {
        (Some(file), _) => Some(read_patch(file, &args.command)?),
        (None, commit) => commit.clone().map(ChangeSource::Commit),
    };
    let mut new = args.candidates.with_command(session, &run.candidates, 1, &args.command)?;
    new.limits = args.attempts.given_limits();
    if !new.command.is_empty() {
        let assignment = CandidateCommand::to_assignment(&new.command);
        new.agents = new.names.iter().map(|name| (name.clone(), assignment.clone())).collect();
    }
    Ok((new, change))
}

fn read_patch(file: &Path, command: &CommandArgs) -> Result<ChangeSource> {
    let is_stdin = file.as_os_str() == "-";
    if is_stdin && command.reads_standard_input() {
        return Err(Error::usage("the patch and the prompt cannot both be standard input")
            .hint("write one of them to a file"));
    }
    let hint = "check the file name, or read it with `--patch -`";
    let bytes = read_input(file, "patch", hint)?;
    let name = match is_stdin {
        true => "on standard input".to_owned(),
        false => format!("'{}'", file.display()),
    };
    Ok(ChangeSource::Patch(bytes, name))
}

/// The agent or command that makes the synthesis: the one that the options name, or else
/// `synthesis.agent`.
fn maker(session: &Session, args: &AddArgs) -> Result<Assignment> {
    if !args.command.command.is_empty() {
        return Ok(CandidateCommand::to_assignment(&args.command.command));
    }
    if args.candidates.agents.is_empty() {
        return synthesis::configured_agent(session)?.ok_or_else(|| {
            Error::usage("a synthesis needs an agent or a command").hint(
                "name one agent: `--agent NAME`, or a command that reads the prompt: `-- CMD`",
            )
        });
    }
    let (_, agents) = args.candidates.resolve(session, &[], 1)?;
    let count = agents.len();
    match agents.into_values().next() {
        Some(one) if count == 1 => Ok(one),
        _ => Err(Error::usage(format!("{count} agents for one candidate")).hint("name one agent")),
    }
}
