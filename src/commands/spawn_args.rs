//! Reading what `spawn` and `run` share: the options that say what a run is made of.
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use crate::agents;
use crate::cli;
use crate::commands::{parse_address, parse_name};
use crate::config::keys;
use crate::error::{Error, IoContext, Result};
use crate::model::name::Name;
use crate::model::run::{Assignment, Run};
use crate::ops::session::Session;
use crate::ops::spawn::attempt::{Order, Terms};
use crate::ops::spawn::{Request, Start};
use crate::process::{self, Limits};
use crate::store::candidate::CandidateRef;
use crate::store::select::Matching;

/// What the options ask for. Everything in them is checked here, before any effect.
pub fn request(session: &Session, args: &cli::Making) -> Result<Request> {
    let name = args.run.as_deref().map(|text| parse_name("--run", text)).transpose()?;
    let agents = assignments(session, &args.agents)?;
    let candidates = if agents.is_empty() {
        candidates(args)?
    } else {
        agents.iter().map(|(n, _)| n.clone()).collect()
    };
    refuse_twins(&candidates)?;
    let task = args.task.as_deref().map(task).transpose()?;
    let start = match &args.from {
        Some(address) => {
            let (run, name) = existing(session, "--from", address)?;
            Start::from(session, session.store.candidate(&run, &name))?
        }
        None => Start::at(session, args.base.as_deref().unwrap_or("HEAD"))?,
    };
    let prompt = prompt(args)?;
    let (command, agents) = (args.command.clone(), agents.into_iter().collect());
    let request =
        Request { name, candidates, start, task, prompt, command, agents, arguments: Vec::new() };
    request.orders().iter().try_for_each(|(_, order)| order.check())?;
    Ok(request)
}

/// How the commands are to run.
pub fn terms(session: &Session, args: &cli::Making) -> Result<Terms> {
    let jobs = args.jobs.map(|n| n as usize).or(session.config.get(keys::SPAWN_JOBS));
    let limit = session.config.get(keys::LIMITS_JOBS);
    if let Some(jobs) = jobs.filter(|jobs| *jobs > limit) {
        return Err(Error::fatal(format!(
            "{jobs} commands at once are more than limits.jobs = {limit}"
        ))
        .hint("ask for fewer with `-j`, or raise it: `git config frites.limits.jobs N`"));
    }
    let limits = Limits {
        hard: Some(args.timeout.unwrap_or_else(|| session.config.get(keys::SPAWN_TIMEOUT))),
        // None of itself: many agents think for long before they print a word.
        idle: args.idle_timeout.or(session.config.get(keys::SPAWN_IDLE_TIMEOUT)),
    };
    Ok(Terms {
        jobs: jobs.unwrap_or_else(process::processors),
        limits,
        checkpoint: args.auto_checkpoint,
        keep: args.keep,
    })
}

/// The candidate that an option names, in full.
pub fn existing(session: &Session, option: &str, address: &str) -> Result<(Run, Name)> {
    let parsed = parse_address(Some(address))?;
    let selection = session.store.select(parsed.as_ref(), Matching::Prefix)?;
    if let Some(iteration) = selection.iteration {
        return Err(Error::usage(format!(
            "{option} takes a candidate as it is now, not its iteration {iteration}"
        ))
        .hint(format!("write {option} {}", address.split('@').next().unwrap_or(address))));
    }
    match selection.candidate {
        Some(name) => Ok((selection.run, name)),
        None => Err(Error::usage(format!("{option} takes a candidate, and '{address}' is a run"))
            .hint(format!("write {option} {}/{}", selection.run.run, selection.run.candidates[0]))),
    }
}

/// One more command for a candidate: what the options name, or else what it had before; the prompt likewise.
pub fn order(session: &Session, args: &cli::Making, candidate: CandidateRef<'_>) -> Result<Order> {
    let before = Order::recorded(&session.repo, candidate)?;
    let prompt = prompt(args)?.or_else(|| before.as_ref()?.prompt.clone());
    let order = match assignments(session, &args.agents)?.as_slice() {
        [] if args.command.is_empty() => {
            before.map(|order| Order { prompt, ..order }).ok_or_else(|| {
                Error::usage(format!("{candidate} has no command to run again"))
                    .hint(format!("give one: `git frites spawn --again {candidate} -- CMD`"))
            })?
        }
        [] => Order::command(&args.command, prompt),
        [(_, agent)] => Order::assigned(agent, prompt),
        several => {
            return Err(Error::usage(format!("{} agents for one candidate", several.len()))
                .hint("name one agent"));
        }
    };
    order.check()?;
    Ok(order)
}

/// The one agent or command that the options name.
pub fn assignment(session: &Session, args: &cli::Making) -> Result<Assignment> {
    match (assignments(session, &args.agents)?.as_slice(), args.command.as_slice()) {
        ([(_, one)], _) => Ok(one.clone()),
        ([], []) => Err(Error::usage("a synthesis needs somebody to make it")
            .hint("name one agent: `--agent NAME`, or a command that reads the prompt: `-- CMD`")),
        ([], argv) => Ok(Order::assignment(argv)),
        (several, _) => Err(Error::usage(format!("{} agents for one candidate", several.len()))
            .hint("name one agent")),
    }
}

/// The agents' candidates, in the order asked for: `claude=2` is `claude-1` and `claude-2`.
fn assignments(session: &Session, asked: &[String]) -> Result<Vec<(Name, Assignment)>> {
    let mut counts: BTreeMap<Name, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for text in asked {
        let (agent, times) = text.split_once('=').unwrap_or((text, "1"));
        let agent = parse_name("--agent", agent)?;
        let times: usize = times.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
            Error::usage(format!("--agent {text}: '{times}' is no number of candidates"))
                .hint(format!("write --agent {agent}=2 for two"))
        })?;
        for _ in 0..times.min(session.config.get(keys::LIMITS_CANDIDATES) + 1) {
            let number = counts.entry(agent.clone()).or_default();
            *number += 1;
            let name = parse_name("--agent", &format!("{agent}-{number}"))?;
            found.push((name, agents::assign(&session.config, &agent, *number)?));
        }
    }
    Ok(found)
}

fn candidates(args: &cli::Making) -> Result<Vec<Name>> {
    if args.candidates.is_empty() {
        return (1..=args.count.unwrap_or(2)).map(|n| parse_name("-n", &format!("c{n}"))).collect();
    }
    args.candidates.iter().map(|text| parse_name("-c", text)).collect()
}

fn refuse_twins(names: &[Name]) -> Result<()> {
    for (at, name) in names.iter().enumerate() {
        if let Some(twin) = names[..at].iter().find(|other| other.collides(name)) {
            return Err(Error::usage(format!(
                "-c: '{name}' and '{twin}' are the same name on some file systems"
            ))
            .hint("give each candidate a name that differs in more than case"));
        }
    }
    Ok(())
}

/// A task's id is shown in a line of `status`.
fn task(text: &str) -> Result<String> {
    let fits = !text.trim().is_empty()
        && text.chars().count() <= 200
        && !text.chars().any(char::is_control);
    let refusal = || {
        Error::usage("--task takes 1 to 200 characters in one line")
            .hint("write the task's id, such as `--task GH-17`")
    };
    fits.then(|| text.to_owned()).ok_or_else(refusal)
}

/// The prompt, byte for byte as it was given.
fn prompt(args: &cli::Making) -> Result<Option<Arc<[u8]>>> {
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
                    e.hint("name a file that is there, or write the prompt itself with `-p TEXT`")
                })?;
            read(Box::new(file), &what)?
        }
        _ => read(Box::new(io::stdin()), "standard input")?,
    };
    if bytes.trim_ascii().is_empty() {
        return Err(Error::usage("the prompt is empty").hint("say what is to be done: `-p TEXT`"));
    }
    Ok(Some(bytes.into()))
}
