//! The options that `spawn` and `run` share: the candidates of a run and their commands.
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap_complete::engine::ArgValueCompleter;

use crate::agents;
use crate::commands::require_jobs_within_limit;
use crate::commands::values;
use crate::complete;
use crate::config::keys;
use crate::error::{Error, IoContext, Result};
use crate::model::address::Address;
use crate::model::name::Name;
use crate::model::run::{Assignment, GivenLimits, Run};
use crate::ops::session::Session;
use crate::ops::spawn::add::{AddRequest, ChangeSource};
use crate::ops::spawn::attempt::AttemptOptions;
use crate::ops::spawn::command::CandidateCommand;
use crate::ops::spawn::{Request, Start};
use crate::process::{self, Limits};
use crate::store::candidate::CandidateRef;
use crate::store::select::Matching;

// The options that `spawn` and `run` share: the candidates of a run and their commands.
#[derive(Debug, clap::Args)]
pub struct SharedSpawnArgs {
    /// Number of candidates, named c1, c2, …  [default: 2]
    #[arg(
        short = 'n',
        value_name = "N",
        conflicts_with = "candidates",
        value_parser = values::count,
    )]
    pub count: Option<u32>,
    /// Names of the candidates, instead of -n
    #[arg(
        short = 'c',
        long = "candidate",
        value_name = "NAME",
        num_args = 1..,
        value_parser = values::new_candidate,
    )]
    pub candidates: Vec<Name>,
    /// Name of the run, instead of the next number
    #[arg(
        long,
        value_name = "RUN",
        allow_hyphen_values = true,
        value_parser = values::name,
        add = ArgValueCompleter::new(complete::runs),
    )]
    pub run: Option<Name>,
    /// Commit that every candidate starts from  [default: HEAD]
    #[arg(
        long,
        value_name = "REV",
        allow_hyphen_values = true,
        conflicts_with = "from",
        add = ArgValueCompleter::new(complete::revisions),
    )]
    pub base: Option<String>,
    /// Start from the current state of this candidate
    #[arg(
        long,
        value_name = "RUN/CAND",
        value_parser = values::address,
        add = ArgValueCompleter::new(complete::addresses),
    )]
    pub from: Option<Address>,
    /// Task that the run is for, such as an issue number; `status` shows it
    #[arg(long, value_name = "ID", value_parser = values::task)]
    pub task: Option<String>,
    /// Run an agent in K worktrees, named NAME-1, NAME-2, …; repeat the option to mix agents
    #[arg(
        long = "agent",
        value_name = "NAME[=K]",
        value_parser = agent_count,
        add = ArgValueCompleter::new(complete::agents),
        conflicts_with_all = ["count", "candidates", "command"],
    )]
    pub agents: Vec<AgentCount>,
    /// Prompt for the agents or the command; - reads it from standard input
    #[arg(
        short,
        long,
        value_name = "TEXT",
        conflicts_with = "prompt_file",
        allow_hyphen_values = true
    )]
    pub prompt: Option<String>,
    /// File with the prompt
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// Number of commands that run at once  [default: spawn.jobs, or the number of processors]
    #[arg(short, long, value_name = "JOBS", value_parser = values::count)]
    pub jobs: Option<u32>,
    /// Kill a command, and all processes that it started, after this time  [default: spawn.timeout,
    /// or 1h]
    #[arg(long, value_name = "DUR", value_parser = values::duration)]
    pub timeout: Option<Duration>,
    /// Kill a command that prints nothing for this long  [default: spawn.idle-timeout, or never]
    #[arg(long, value_name = "DUR", value_parser = values::duration)]
    pub idle_timeout: Option<Duration>,
    /// Take a checkpoint of each running candidate at this interval; each one is an iteration
    /// [default: spawn.auto-checkpoint, or none]
    #[arg(long, value_name = "DUR", value_parser = values::duration)]
    pub auto_checkpoint: Option<Duration>,
    /// Keep the worktree of a candidate even if its command changed nothing
    #[arg(long)]
    pub keep: bool,
    /// Command to run in each worktree
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `NAME` or `NAME=K`: an agent, and the number of its candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCount {
    agent: Name,
    count: usize,
}

/// Parses `NAME[=K]`.
fn agent_count(text: &str) -> Result<AgentCount> {
    let (agent, count) = text.split_once('=').unwrap_or((text, "1"));
    let agent = values::name(agent)?;
    match count.parse() {
        Ok(count) if count > 0 => Ok(AgentCount { agent, count }),
        _ => Err(Error::usage(format!("'{count}' is not a number of candidates"))
            .hint(format!("write --agent {agent}=2 for two"))),
    }
}

impl SharedSpawnArgs {
    /// True if the prompt is standard input.
    pub fn reads_standard_input(&self) -> bool {
        self.prompt.as_deref() == Some("-")
            || self.prompt_file.as_deref().is_some_and(|file| file.as_os_str() == "-")
    }
}

/// The run that the options describe. Checks all of them, before any effect.
pub fn request(session: &Session, args: &SharedSpawnArgs) -> Result<Request> {
    let agents = assignments(session, &args.agents, &[])?;
    let candidates = if agents.is_empty() {
        candidates(args)?
    } else {
        agents.iter().map(|(n, _)| n.clone()).collect()
    };
    refuse_twins(&candidates)?;
    let start = match &args.from {
        Some(address) => {
            let (run, name) = existing(session, "--from", address)?;
            Start::from(session, session.store.candidate(&run, &name))?
        }
        None => Start::at(session, args.base.as_deref().unwrap_or("HEAD"))?,
    };
    let prompt = prompt(args)?;
    let (command, agents) = (args.command.clone(), agents.into_iter().collect());
    let request = Request {
        name: args.run.clone(),
        candidates,
        start,
        task: args.task.clone(),
        prompt,
        command,
        agents,
        limits: given_limits(args),
        arguments: Vec::new(),
    };
    request.commands().iter().try_for_each(|(_, command)| command.require_prompt())?;
    Ok(request)
}

/// The time limits in the options, for the record.
fn given_limits(args: &SharedSpawnArgs) -> GivenLimits {
    let seconds = |limit: Duration| limit.as_secs();
    GivenLimits { timeout: args.timeout.map(seconds), idle_timeout: args.idle_timeout.map(seconds) }
}

/// The number of commands at once and their time limits.
pub fn options(session: &Session, args: &SharedSpawnArgs) -> Result<AttemptOptions> {
    options_after(session, args, GivenLimits::default())
}

/// As [`options`], for commands that continue work: limits that are not given now are those that were
/// given `before`.
pub fn options_after(
    session: &Session,
    args: &SharedSpawnArgs,
    before: GivenLimits,
) -> Result<AttemptOptions> {
    let jobs = args.jobs.map(|n| n as usize).or(session.config.get(keys::SPAWN_JOBS));
    if let Some(jobs) = jobs {
        require_jobs_within_limit(session, jobs, "-j")?;
    }
    let hard = args.timeout.or(before.timeout.map(Duration::from_secs));
    let idle = args.idle_timeout.or(before.idle_timeout.map(Duration::from_secs));
    let limits = Limits {
        hard: Some(hard.unwrap_or_else(|| session.config.get(keys::SPAWN_TIMEOUT))),
        // No idle limit by default: many agents think for a long time before they print anything.
        idle: idle.or(session.config.get(keys::SPAWN_IDLE_TIMEOUT)),
    };
    Ok(AttemptOptions {
        jobs: jobs.unwrap_or_else(process::processors),
        limits,
        checkpoint: auto_checkpoint(session, args),
        keep: args.keep,
    })
}

/// The interval of checkpoints; none if there are to be none.
pub fn auto_checkpoint(session: &Session, args: &SharedSpawnArgs) -> Option<Duration> {
    args.auto_checkpoint.or(session.config.get(keys::SPAWN_AUTO_CHECKPOINT))
}

/// The run and the candidate that the address of `option` names.
pub fn existing(session: &Session, option: &str, address: &Address) -> Result<(Run, Name)> {
    let selection = session.store.select(Some(address), Matching::Prefix)?;
    if let Some(iteration) = selection.iteration {
        return Err(Error::usage(format!(
            "{option} takes the current state of a candidate, not its iteration {iteration}"
        ))
        .hint(format!("write {option} {}", address.without_iteration())));
    }
    match selection.candidate {
        Some(name) => Ok((selection.run, name)),
        None => Err(Error::usage(format!("{option} takes a candidate, and '{address}' is a run"))
            .hint(format!("write {option} {}/{}", selection.run.run, selection.run.candidates[0]))),
    }
}

/// The next command of a candidate: the one in the options, or else its last one. The prompt is
/// chosen in the same way.
pub fn command(
    session: &Session,
    args: &SharedSpawnArgs,
    candidate: CandidateRef<'_>,
) -> Result<CandidateCommand> {
    command_with(session, args, candidate, prompt(args)?)
}

/// The next command of a candidate with the prompt that it had before, and the text of the options'
/// prompt.
pub fn command_and_prompt(
    session: &Session,
    args: &SharedSpawnArgs,
    candidate: CandidateRef<'_>,
) -> Result<(CandidateCommand, Option<String>)> {
    let text = prompt(args)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok((command_with(session, args, candidate, None)?, text))
}

fn command_with(
    session: &Session,
    args: &SharedSpawnArgs,
    candidate: CandidateRef<'_>,
    prompt: Option<Arc<[u8]>>,
) -> Result<CandidateCommand> {
    let before = CandidateCommand::recorded(&session.repo, candidate)?;
    let prompt = prompt.or_else(|| before.as_ref()?.prompt.clone());
    let command = match assignments(session, &args.agents, &[])?.as_slice() {
        [] if args.command.is_empty() => {
            before.map(|command| CandidateCommand { prompt, ..command }).ok_or_else(|| {
                Error::usage(format!("{candidate} has no command to run again"))
                    .hint(format!("give one: `git frites spawn --again {candidate} -- CMD`"))
            })?
        }
        [] => CandidateCommand::typed(&args.command, prompt),
        [(_, agent)] => CandidateCommand::assigned(agent, prompt),
        several => {
            return Err(Error::usage(format!("{} agents for one candidate", several.len()))
                .hint("name one agent"));
        }
    };
    command.require_prompt()?;
    Ok(command)
}

/// The agent or the command in the options; fails if there is none, or more than one.
pub fn assignment(session: &Session, args: &SharedSpawnArgs) -> Result<Assignment> {
    match (assignments(session, &args.agents, &[])?.as_slice(), args.command.as_slice()) {
        ([(_, one)], _) => Ok(one.clone()),
        ([], []) => Err(Error::usage("a synthesis needs an agent or a command")
            .hint("name one agent: `--agent NAME`, or a command that reads the prompt: `-- CMD`")),
        ([], argv) => Ok(CandidateCommand::to_assignment(argv)),
        (several, _) => Err(Error::usage(format!("{} agents for one candidate", several.len()))
            .hint("name one agent")),
    }
}

/// The candidates that the options add to a run, and their commands. Checks all options, before any
/// effect.
pub fn additions(
    session: &Session,
    args: &SharedSpawnArgs,
    run: &Run,
    change: Option<ChangeSource>,
) -> Result<AddRequest> {
    let mut assigned = assignments(session, &args.agents, &run.candidates)?;
    let candidates = match (assigned.is_empty(), args.candidates.is_empty()) {
        (false, _) => assigned.iter().map(|(name, _)| name.clone()).collect(),
        (true, false) => args.candidates.clone(),
        (true, true) => {
            let first = highest(&run.candidates, "c") + 1;
            let numbers = first..first + args.count.unwrap_or(1) as usize;
            numbers.map(|n| values::name(&format!("c{n}"))).collect::<Result<_>>()?
        }
    };
    refuse_twins(&candidates)?;
    if !args.command.is_empty() {
        let assignment = CandidateCommand::to_assignment(&args.command);
        assigned = candidates.iter().map(|name| (name.clone(), assignment.clone())).collect();
    }
    Ok(AddRequest {
        candidates,
        assignments: assigned.into_iter().collect(),
        command: args.command.clone(),
        prompt: prompt(args)?,
        limits: given_limits(args),
        change,
    })
}

/// The highest N of the names that are `prefix` and N; 0 if there are none. A number that nobody
/// counts up to is part of a name.
fn highest(names: &[Name], prefix: &str) -> usize {
    let numbers = names.iter().filter_map(|name| name.as_str().strip_prefix(prefix)?.parse().ok());
    numbers.filter(|number| *number < 1_000_000).max().unwrap_or_default()
}

/// The agents' candidates, in the order of the options: `claude=2` is `claude-1` and `claude-2`, or
/// the numbers after those in `taken`.
fn assignments(
    session: &Session,
    counts: &[AgentCount],
    taken: &[Name],
) -> Result<Vec<(Name, Assignment)>> {
    // One more than the limit is enough to be refused.
    let limit = session.config.get(keys::LIMITS_CANDIDATES) + 1;
    let mut numbers: BTreeMap<&Name, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for AgentCount { agent, count } in counts {
        for _ in 0..(*count).min(limit) {
            let number =
                numbers.entry(agent).or_insert_with(|| highest(taken, &format!("{agent}-")));
            *number += 1;
            let name = values::name(&format!("{agent}-{number}")).map_err(|e| e.context("--agent"));
            found.push((name?, agents::assign(&session.config, agent, *number)?));
        }
    }
    Ok(found)
}

fn candidates(args: &SharedSpawnArgs) -> Result<Vec<Name>> {
    if args.candidates.is_empty() {
        return (1..=args.count.unwrap_or(2)).map(|n| values::name(&format!("c{n}"))).collect();
    }
    Ok(args.candidates.clone())
}

fn refuse_twins(names: &[Name]) -> Result<()> {
    for (at, name) in names.iter().enumerate() {
        if let Some(twin) = names[..at].iter().find(|other| other.collides(name)) {
            let message = if twin == name {
                format!("-c: the name '{name}' is given twice")
            } else {
                format!(
                    "-c: '{name}' and '{twin}' are the same name on file systems that ignore case"
                )
            };
            return Err(Error::usage(message).hint("give each candidate a name of its own"));
        }
    }
    Ok(())
}

/// The prompt, byte for byte; reads standard input or a file if the options say so.
fn prompt(args: &SharedSpawnArgs) -> Result<Option<Arc<[u8]>>> {
    let read = |mut from: Box<dyn Read>, what: &str| {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)
            .context(|| format!("could not read the prompt from {what}"))?;
        Ok::<_, Error>(bytes)
    };
    let bytes = match (&args.prompt, &args.prompt_file) {
        (None, None) => return Ok(None),
        (Some(text), _) if text != "-" => text.clone().into_bytes(),
        (None, Some(path)) if path.as_os_str() != "-" => {
            let what = format!("'{}'", path.display());
            let file = File::open(path)
                .context(|| format!("could not read the prompt from {what}"))
                .map_err(|e| {
                    e.hint("check the file name, or give the prompt itself with `-p TEXT`")
                })?;
            read(Box::new(file), &what)?
        }
        _ => read(Box::new(io::stdin()), "standard input")?,
    };
    if bytes.trim_ascii().is_empty() {
        return Err(Error::usage("the prompt is empty").hint("describe the task: `-p TEXT`"));
    }
    Ok(Some(bytes.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_number_is_that_of_the_names_with_the_prefix() {
        let names = |all: &[&str]| -> Vec<Name> {
            all.iter().map(|name| name.parse().expect("a name")).collect()
        };
        assert_eq!(highest(&names(&["c1", "c7", "d9", "c", "claude-8"]), "c"), 7);
        assert_eq!(highest(&names(&["c18446744073709551615", "c2x"]), "c"), 0);
    }

    #[test]
    fn agent_without_a_number_makes_one_candidate() {
        let agent: Name = "claude".parse().expect("a name");
        assert_eq!(agent_count("claude").ok(), Some(AgentCount { agent: agent.clone(), count: 1 }));
        assert_eq!(agent_count("claude=3").ok(), Some(AgentCount { agent, count: 3 }));
        for bad in ["", "=2", "a/b", "claude=", "claude=0", "claude=x", "claude=1=2"] {
            assert!(agent_count(bad).is_err(), "{bad}");
        }
    }
}
