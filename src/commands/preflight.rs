//! Resolves and shows the plan of a run before the first attempt starts: the commands, the seeds,
//! the limits and the programs.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{self, Path};

use crate::agents;
use crate::commands::note_left_out;
use crate::ecosystems::detect::CI_RUNS;
use crate::error::{Error, IoContext, Result};
use crate::fs::tree;
use crate::model::count::{count, some_of};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::shell;
use crate::ops::agent_state::users::{self, UsersState};
use crate::ops::disk_space;
use crate::ops::judge::{JudgeOptions, installed, plan, why_late};
use crate::ops::session::Session;
use crate::ops::spawn::attempts::AttemptOptions;
use crate::ops::spawn::command::CandidateCommand;
use crate::oracle::{self, ResolvedOracle, pool};
use crate::ui::{Ui, table};

/// Fails if the file that an option names cannot be written. This is checked before the work
/// begins, so that no work is done in vain. A symbolic link in the checkout is refused, too: an
/// attempt may have made it, and it may lead to any file of the user.
pub fn require_writable(session: &Session, option: &str, file: Option<&Path>) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    let refused = |why: &str, hint: &str| {
        Err(Error::usage(format!("{option} cannot write '{}': {why}", file.display())).hint(hint))
    };
    let in_directory = "name a file in a directory that exists";
    let directory = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    match directory {
        _ if file.is_dir() => return refused("it is a directory", in_directory),
        Some(directory) if !directory.is_dir() => {
            return refused("its directory does not exist", in_directory);
        }
        _ => {}
    }
    let Some(checkout) = session.repo.work_tree().map(tree::nearest_real) else { return Ok(()) };
    let mut links = tree::links_and_real(&path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    links.pop();
    match links.iter().find(|link| link.starts_with(&checkout)) {
        Some(link) => {
            let why = format!("'{}' is a symbolic link in your checkout", link.display());
            refused(&why, "name the file that the link leads to, or one outside the checkout")
        }
        None => Ok(()),
    }
}

/// Writes the file that an option names, after the checks of [`require_writable`]: commands have
/// run since the first check.
pub fn write(session: &Session, option: &str, file: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    require_writable(session, option, Some(file))?;
    fs::write(file, text).context(|| format!("could not write '{}'", file.display()))
}

/// How a run is judged.
pub struct JudgingPlan {
    base: Oid,
    oracle: ResolvedOracle,
    /// The reason why no attempt is judged before all have ended; `None` if attempts are judged as
    /// they end.
    pub late: Option<String>,
}

impl JudgingPlan {
    /// Resolves everything that a run from `base` needs. Fails if a program is missing.
    pub fn check(
        session: &Session,
        base: &Oid,
        commands: &[(Name, CandidateCommand)],
        judging: &JudgeOptions,
    ) -> Result<JudgingPlan> {
        let oracle = judging.oracle(session, base)?;
        commands.iter().try_for_each(|(_, command)| command.require_program())?;
        let cache = pool::home(&session.repo)?;
        disk_space::require_space(session, &cache, base, judging.jobs.max(1), "checkouts")?;
        warn_of_agents(session, commands);
        let terms = judging.terms_to_run(session, &oracle)?;
        let late = why_late(session, terms.settings.commands.world)?;
        Ok(JudgingPlan { base: *base, oracle, late })
    }

    pub fn show(
        &self,
        session: &Session,
        commands: &[(Name, CandidateCommand)],
        attempts: &AttemptOptions,
        judging: &JudgeOptions,
    ) -> Result<()> {
        let JudgingPlan { base, oracle, late } = self;
        let ui = &session.ui;
        if commands.is_empty() {
            ui.note("attempts: none is started, because all have ended");
        } else {
            let limit = match attempts.limits.hard {
                None => "without a time limit".to_owned(),
                Some(limit) => format!("for at most {}", table::duration(limit.as_secs_f64())),
            };
            ui.note(format!(
                "attempts: {}; {} at once, each {limit}",
                attempt_programs(commands),
                attempts.jobs_for(commands.iter().map(|(_, command)| command)).min(commands.len()),
            ));
        }
        for (agent, line) in command_lines(commands) {
            ui.note(format!("agent {agent}: `{}`", table::printable(&line)));
        }
        if oracle.commands.is_empty() {
            ui.note("checks: none was given, configured or detected, so nothing will be verified");
        }
        for command in &oracle.commands {
            ui.note(format!("{}: `{}`, from {}", command.stage, command.command, command.source));
        }
        if !oracle.commands.is_empty() {
            ui.note(format!(
                "checks: {} at once, each command for at most {}; {}",
                count(judging.jobs.max(1), "candidate"),
                table::duration(judging.timeout(session).as_secs_f64()),
                match late {
                    None => "they begin when the first attempt ends".to_owned(),
                    Some(why) => format!("they begin when all attempts have ended: {why}"),
                },
            ));
        }
        if oracle.tests_nothing() {
            ui.warn("no test was detected: a pass of these commands verifies nothing; name a test with `--test CMD`");
        }
        note_left_out(ui, oracle);
        note_not_taken(ui, oracle);
        warn_of_new_scripts(session, base, oracle)?;
        note_seeds(session, base, oracle)
    }
}

/// Warns, once for each agent, of faults that would stop the agent. An agent is checked only if its
/// command starts the program of the built-in agent with this name.
fn warn_of_agents(session: &Session, commands: &[(Name, CandidateCommand)]) {
    let state = UsersState::of(session);
    let agents: BTreeSet<&str> = commands
        .iter()
        .filter_map(|(_, command)| {
            let agent = agents::built_in(command.agent.as_ref()?.as_str())?;
            (command.argv.first()? == agent.command[0]).then_some(agent.name)
        })
        .collect();
    for agent in agents.into_iter().filter_map(agents::built_in) {
        for fault in users::faults(agent, &state) {
            session.ui.warn(format!("the agent '{}' {fault}", agent.name));
            agent.remedy(fault).iter().for_each(|remedy| session.ui.hint(remedy));
        }
    }
}

/// The programs of the attempts in words, each with the number of its candidates.
fn attempt_programs(commands: &[(Name, CandidateCommand)]) -> String {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for (_, command) in commands {
        let program = command.argv.first().map(|p| p.to_string_lossy().into_owned());
        let program = program.unwrap_or_default();
        let name = match &command.agent {
            Some(agent) if agent.as_str() != program => format!("{agent} ({program})"),
            _ => program,
        };
        match counted.iter_mut().find(|(other, _)| *other == name) {
            Some((_, count)) => *count += 1,
            None => counted.push((name, 1)),
        }
    }
    let words: Vec<String> =
        counted.into_iter().map(|(name, count)| format!("{count} of `{name}`")).collect();
    words.join(", ")
}

fn command_lines(commands: &[(Name, CandidateCommand)]) -> BTreeMap<&Name, String> {
    let agents = commands.iter().filter_map(|(_, c)| Some((c.agent.as_ref()?, c.line())));
    agents.collect()
}

/// Tells the user in one line how many commands the detection passed over, with one example. If CI
/// runs one of these commands, that command is the example.
fn note_not_taken(ui: &Ui, oracle: &ResolvedOracle) {
    let all = || oracle.not_taken.iter().filter_map(|other| Some((other.command.as_ref()?, other)));
    let of_ci = all().find(|(_, other)| other.reason == CI_RUNS);
    let Some((command, other)) = of_ci.or_else(|| all().next()) else { return };
    let number = all().count();
    let among = if number == 1 { "" } else { "among them " };
    let by_ci = if other.reason == CI_RUNS { ", which CI runs" } else { "" };
    ui.note(format!(
        "passed over: {}, {among}`{}`{by_ci}; `git frites judge -n` lists all",
        count(number, "command"),
        table::printable(&command.command.to_string()),
    ));
}

/// Warns if the first command begins with a script that the base does not have. This is no error,
/// because the attempts may have the task to write the script. If a command changes the directory
/// (`cd`), nothing is checked, because the path of the script does not begin at the root.
fn warn_of_new_scripts(session: &Session, base: &Oid, oracle: &ResolvedOracle) -> Result<()> {
    let Some(first) = oracle.commands.first() else { return Ok(()) };
    let tree = session.repo.commit(base)?.tree;
    if let Some(program) = oracle::programs(&first.command).into_iter().next() {
        let commands = shell::simple_commands(&first.command.to_string());
        let moves = commands.iter().any(|c| {
            c.words.first().is_some_and(|word| ["cd", "pushd"].contains(&word.text.as_str()))
        });
        let is_path = program.contains('/') && !program.starts_with('/') && !moves;
        let path = program.trim_start_matches("./");
        if is_path && !path.contains("..") && session.repo.file(&tree, path)?.is_none() {
            session
                .ui
                .warn(format!("'{program}' of the {} command is not in the base", first.stage));
        }
    }
    Ok(())
}

fn note_seeds(session: &Session, base: &Oid, oracle: &ResolvedOracle) -> Result<()> {
    let names = plan::seed_names(session, base)?;
    if !names.is_empty() {
        session.ui.note(format!("seeds: {}", some_of(&names)));
    }
    installed::hint_at_unseeded(session, base, &oracle.commands)
}
