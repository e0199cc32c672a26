//! Options that several commands share: the candidates, their commands, and how the commands run.
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::agents;
use crate::commands::{require_jobs_within_limit, values};
use crate::complete;
use crate::config::keys;
use crate::error::{Error, IoContext, Result};
use crate::model::address::Address;
use crate::model::name::Name;
use crate::model::run::{Assignment, GivenLimits, Run};
use crate::ops::session::Session;
use crate::ops::spawn::attempts::AttemptOptions;
use crate::ops::spawn::limits::require_candidates;
use crate::ops::spawn::{NewCandidates, Request, Start};
use crate::process::Limits;
use crate::store::select::{Matching, Scope};

// The options that `spawn` and `run` share: a new run, and how its commands run.
#[derive(Debug, clap::Args)]
pub struct SharedSpawnArgs {
    /// The run
    #[command(flatten)]
    pub new: NewRunArgs,
    /// How its commands run
    #[command(flatten)]
    pub attempts: AttemptArgs,
    /// Number of commands that run at once  [default: spawn.jobs; if unset, 16
    /// if agents make all candidates, else the number of processors]
    #[arg(short, long, value_name = "JOBS", value_parser = values::count)]
    pub jobs: Option<u32>,
}

impl SharedSpawnArgs {
    /// The new run that the options describe. Checks all options before it changes anything.
    pub fn request(&self, session: &Session) -> Result<Request> {
        self.new.request(session, self.attempts.given_limits())
    }
}

// A new run.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct NewRunArgs {
    /// The candidates
    #[command(flatten)]
    pub candidates: CandidateArgs,
    /// Name of the run, instead of the next number
    #[arg(hide_short_help = true, long, value_name = "RUN", allow_hyphen_values = true)]
    pub run: Option<Name>,
    /// Commit that every candidate starts from  [default: HEAD]
    #[arg(
        long,
        value_name = "REV",
        allow_hyphen_values = true,
        conflicts_with = "from",
        add = complete::by(complete::revisions),
    )]
    pub base: Option<String>,
    /// Start from the current state of this candidate
    #[arg(
        hide_short_help = true,
        long,
        value_name = "RUN/CAND",
        add = complete::by(complete::pairs_and_tasks),
    )]
    pub from: Option<Address>,
    /// Task that the run is for, such as an issue number; `status` shows it
    #[arg(hide_short_help = true, long, value_name = "ID", value_parser = values::task)]
    pub task: Option<String>,
    /// The command of the candidates
    #[command(flatten)]
    pub command: CommandArgs,
}

impl NewRunArgs {
    /// The new run that the options describe, with these time limits. Checks all options before it
    /// changes anything.
    pub fn request(&self, session: &Session, limits: GivenLimits) -> Result<Request> {
        let new = self.candidates.with_command(session, &[], 2, &self.command)?;
        let start = match &self.from {
            Some(address) => {
                let (run, name) = existing(session, "--from", address)?;
                Start::from(session, session.store.candidate(&run, &name))?
            }
            None => Start::at(session, self.base.as_deref().unwrap_or("HEAD"))?,
        };
        let request = Request {
            name: self.run.clone(),
            new: NewCandidates { limits, ..new },
            start,
            task: self.task.clone(),
            arguments: Vec::new(),
            merge_into: None,
        };
        request.new.commands().iter().try_for_each(|(_, command)| command.require_prompt())?;
        Ok(request)
    }
}

// New candidates: their number, their names, or a number for each agent.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[group(multiple = false)]
pub struct CandidateArgs {
    /// Number of candidates, named c1, c2, …  [default: 2; for `git frites add`: 1]
    #[arg(short = 'n', value_name = "N", value_parser = values::count)]
    pub count: Option<u32>,
    /// Names of the candidates, instead of -n: `-c one two` or `-c one -c two`
    #[arg(
        short = 'c',
        long = "candidate",
        value_name = "NAME",
        num_args = 1..,
        value_parser = values::new_candidate,
    )]
    pub candidates: Vec<Name>,
    /// Run an agent in K worktrees, named NAME-1, NAME-2, …; repeat the option to mix agents
    #[arg(
        long = "agent",
        value_name = "NAME[=K]",
        value_parser = agent_count,
        add = complete::by(complete::agents),
        conflicts_with = "command",
    )]
    pub agents: Vec<AgentCount>,
}

impl CandidateArgs {
    /// The names of the new candidates, in order, and the agent of each candidate that has one. For
    /// `claude=2`, the names are `claude-1` and `claude-2`. If names in `taken` have such numbers,
    /// the next two numbers are used.
    pub fn resolve(
        &self,
        session: &Session,
        taken: &[Name],
        default: u32,
    ) -> Result<(Vec<Name>, BTreeMap<Name, Assignment>)> {
        let mut names = self.candidates.clone();
        let mut agents = BTreeMap::new();
        let is_numbered = names.is_empty() && self.agents.is_empty();
        let count = if is_numbered { self.count.unwrap_or(default) as usize } else { names.len() };
        // Check the limit before names are made: the user may have given a huge number.
        let wanted = self.agents.iter().fold(count, |sum, agent| sum.saturating_add(agent.count));
        require_candidates(session, taken.len(), wanted)?;
        if is_numbered {
            let first = highest(taken, "c") + 1;
            let numbers = first..first + count;
            names = numbers.map(|n| values::name(&format!("c{n}"))).collect::<Result<_>>()?;
        }
        let mut numbers: BTreeMap<&Name, usize> = BTreeMap::new();
        for AgentCount { agent, count } in &self.agents {
            for _ in 0..*count {
                let number =
                    numbers.entry(agent).or_insert_with(|| highest(taken, &format!("{agent}-")));
                *number += 1;
                let name =
                    values::name(&format!("{agent}-{number}")).map_err(|e| e.context("--agent"))?;
                names.push(name.clone());
                agents.insert(name, agents::assign(&session.config, agent, *number)?);
            }
        }
        refuse_twins(&names)?;
        Ok((names, agents))
    }

    /// The candidates that [`CandidateArgs::resolve`] names, with their command and prompt, and
    /// without time limits.
    pub fn with_command(
        &self,
        session: &Session,
        taken: &[Name],
        default: u32,
        command: &CommandArgs,
    ) -> Result<NewCandidates> {
        let (names, agents) = self.resolve(session, taken, default)?;
        let prompt = command.prompt()?;
        let command = command.command.clone();
        Ok(NewCandidates { names, agents, command, prompt, limits: GivenLimits::default() })
    }
}

// A command and its prompt.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct CommandArgs {
    /// Prompt for the agents or the command; if it is `-`, standard input is the prompt
    #[arg(
        short,
        long,
        value_name = "TEXT",
        conflicts_with = "prompt_file",
        allow_hyphen_values = true
    )]
    pub prompt: Option<String>,
    /// File with the prompt
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// Command to run in each worktree
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

impl CommandArgs {
    pub fn reads_standard_input(&self) -> bool {
        self.prompt.as_deref() == Some("-")
            || self.prompt_file.as_deref().is_some_and(|file| file.as_os_str() == "-")
    }

    /// The prompt, byte for byte. Reads it from standard input or from a file if the options say
    /// so.
    pub fn prompt(&self) -> Result<Option<Arc<[u8]>>> {
        let bytes = match (&self.prompt, &self.prompt_file) {
            (None, None) => return Ok(None),
            (Some(text), _) if text != "-" => text.clone().into_bytes(),
            (_, file) => {
                let file = file.as_deref().unwrap_or(Path::new("-"));
                let hint = "check the file name, or give the prompt itself with `-p TEXT`";
                read_input(file, "prompt", hint)?
            }
        };
        if bytes.trim_ascii().is_empty() {
            return Err(Error::usage("the prompt is empty").hint("describe the task: `-p TEXT`"));
        }
        Ok(Some(bytes.into()))
    }
}

/// Reads `what` from a file, or from standard input if the file is `-`. `hint` is about a file that
/// cannot be read.
pub fn read_input(file: &Path, what: &str, hint: &str) -> Result<Vec<u8>> {
    if file.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin()
            .read_to_end(&mut bytes)
            .context(|| format!("could not read the {what} from standard input"))?;
        return Ok(bytes);
    }
    fs::read(file)
        .context(|| format!("could not read the {what} from '{}'", file.display()))
        .map_err(|e| e.hint(hint))
}

// How the commands of attempts run.
#[derive(Debug, clap::Args)]
pub struct AttemptArgs {
    /// Kill a command, and all processes that it started, after this time  [default: spawn.timeout,
    /// or 1h]
    #[arg(long, value_name = "DUR", value_parser = values::duration)]
    pub timeout: Option<Duration>,
    /// Kill a command that prints nothing for this long  [default: spawn.idle-timeout, or no limit;
    /// but 2m if an agent prints only that it waits for the network]
    #[arg(hide_short_help = true, long, value_name = "DUR", value_parser = values::duration)]
    pub idle_timeout: Option<Duration>,
    /// Store the files of each running candidate as a commit at this interval
    /// [default: spawn.auto-checkpoint, or none]
    #[arg(hide_short_help = true, long, value_name = "DUR", value_parser = values::duration)]
    pub auto_checkpoint: Option<Duration>,
    /// Keep the worktree of a candidate even if its command changed nothing
    #[arg(hide_short_help = true, long)]
    pub keep: bool,
}

impl AttemptArgs {
    /// The time limits that the options give, for the run's record.
    pub fn given_limits(&self) -> GivenLimits {
        let seconds = |limit: Duration| limit.as_secs();
        GivenLimits {
            timeout: self.timeout.map(seconds),
            idle_timeout: self.idle_timeout.map(seconds),
        }
    }

    /// The options for running the commands. A limit that is not given now is taken from `before`,
    /// the limits that were given earlier.
    pub fn options(
        &self,
        session: &Session,
        jobs: Option<u32>,
        before: GivenLimits,
    ) -> Result<AttemptOptions> {
        let jobs = jobs.map(|n| n as usize).or(session.config.get(keys::SPAWN_JOBS));
        if let Some(jobs) = jobs {
            require_jobs_within_limit(session, jobs, "-j")?;
        }
        let hard = self.timeout.or(before.timeout.map(Duration::from_secs));
        let idle = self.idle_timeout.or(before.idle_timeout.map(Duration::from_secs));
        let limits = Limits {
            hard: Some(hard.unwrap_or_else(|| session.config.get(keys::SPAWN_TIMEOUT))),
            // There is no idle limit by default, because many agents think for a long time before
            // they print anything.
            idle: idle.or(session.config.get(keys::SPAWN_IDLE_TIMEOUT)),
            ..Limits::default()
        };
        Ok(AttemptOptions {
            jobs,
            limits,
            checkpoint: self.auto_checkpoint.or(session.config.get(keys::SPAWN_AUTO_CHECKPOINT)),
            keep: self.keep,
        })
    }
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

/// The run and the candidate at an address. `who` is the option or the command that takes the
/// address; messages name it.
pub fn existing(session: &Session, who: &str, address: &Address) -> Result<(Run, Name)> {
    let selection = session.store.select(Some(address), Scope::Candidate, Matching::Prefix)?;
    let typed = if who.starts_with('-') { who.to_owned() } else { format!("git frites {who}") };
    match selection.candidate {
        Some(name) => Ok((selection.run, name)),
        None => {
            Err(Error::usage(format!("{who} takes a candidate, and '{address}' is a run")).hint(
                format!("write `{typed} {}/{}`", selection.run.run, selection.run.candidates[0]),
            ))
        }
    }
}

/// The highest number that follows `prefix` in a name; 0 if no name consists of `prefix` and a
/// number. Numbers from a million on are ignored, because they may be part of a name, e.g. a date.
fn highest(names: &[Name], prefix: &str) -> usize {
    let numbers = names.iter().filter_map(|name| name.as_str().strip_prefix(prefix)?.parse().ok());
    numbers.filter(|number| *number < 1_000_000).max().unwrap_or_default()
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
