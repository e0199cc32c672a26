//! The commands of git-frites. The file of a command has its arguments, calls the operation that
//! does the work, and prints the answer.
pub mod add;
pub mod apply;
mod attempts;
pub mod capture;
pub mod clean;
pub mod completions;
pub mod config;
pub mod diff;
pub mod doctor;
pub mod exec;
pub mod explain;
pub mod hints;
pub mod judge;
mod judge_args;
mod judge_plan;
pub mod log;
pub mod man;
mod opened;
pub mod output;
pub mod path;
mod preflight;
pub mod report;
pub mod retry;
pub mod run;
pub mod shard;
pub mod spawn;
mod spawn_args;
pub mod status;
pub mod task;
pub mod usage;
mod values;
mod verdict;

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use crate::agents;
use crate::config::keys;
use crate::config::value::NotifyMode;
use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::model::agent_stop::AgentFault;
use crate::model::candidate::State;
use crate::model::count::count;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::outcome::Stage;
use crate::model::plain;
use crate::model::run::Run;
use crate::ops::judge::installed;
use crate::ops::session::Session;
use crate::oracle::{ResolvedOracle, setting};
use crate::process;
use crate::store::Store;
use crate::store::candidate::CandidateRef;
use crate::store::select::Selection;
use crate::ui::Ui;

/// Fails if `jobs` commands at once are more than `limits.jobs` allows. `option` is the option with
/// which the user set the number.
fn require_jobs_within_limit(session: &Session, jobs: usize, option: &str) -> Result<()> {
    let limit = session.config.get(keys::LIMITS_JOBS);
    if jobs <= limit {
        return Ok(());
    }
    Err(Error::fatal(format!("{jobs} commands at once are more than limits.jobs = {limit}"))
        .hint(format!("lower `{option}`, or raise the limit: `git config frites.limits.jobs N`")))
}

/// Tells the user which detected commands do not run because options or the configuration name
/// other commands.
fn note_left_out(ui: &Ui, oracle: &ResolvedOracle) {
    let commands: Vec<String> =
        oracle.left_out.iter().map(|c| format!("{} `{}`", c.stage, c.command)).collect();
    if !commands.is_empty() {
        let named_by = match oracle.commands.iter().any(|c| c.source.starts_with("--")) {
            true => "options",
            false => "configuration",
        };
        ui.note(format!(
            "detected, but left out because of commands in the {named_by}: {}",
            commands.join(", ")
        ));
    }
    for setup in oracle.left_out.iter().filter(|c| c.stage == Stage::Setup) {
        ui.hint(format!("if the test needs the setup, keep it: {}", setting(setup)));
    }
}

/// Tells the user which detected commands do not run, and which installed dependencies the judged
/// trees lack.
fn note_lacks(session: &Session, base: &Oid, oracle: &ResolvedOracle) -> Result<()> {
    note_left_out(&session.ui, oracle);
    installed::hint_at_unseeded(session, base, &oracle.commands)
}

/// The candidate that the user named, or else the only candidate of the run. Fails if the run has
/// several and none is named.
fn one_candidate<'a>(store: &'a Store, selection: &'a Selection) -> Result<CandidateRef<'a>> {
    let run = &selection.run;
    match (&selection.candidate, run.candidates.as_slice()) {
        (Some(name), _) | (None, [name]) => Ok(store.candidate(run, name)),
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|n| n.as_str()).collect();
            Err(Error::usage(format!("run {run} has {} candidates", several.len())).hint(format!(
                "name one of them, such as {run}/{}: {}",
                names[0],
                names.join(", ")
            )))
        }
    }
}

/// Prints the answer. On a terminal, shows it in git's pager, or without control characters if
/// there is none.
fn answer_paged(ui: &Ui, repo: &Repo, text: &[u8]) -> Result<()> {
    if ui.on_terminal() && !text.is_empty() {
        let pager = match repo.overrides().setting("core.pager") {
            Some(before) if std::env::var_os("GIT_PAGER").is_none() => before.into(),
            _ => repo.checkout().for_user().call("var").arg("GIT_PAGER").line()?,
        };
        if !pager.is_empty() && pager.as_bytes() != b"cat" {
            return process::page(&pager.to_string_lossy(), text)
                .map_err(|e| Error::io("could not start the pager", e));
        }
    }
    match ui.on_terminal() {
        true => ui.answer(plain::colored(&String::from_utf8_lossy(text))),
        false => ui.answer(text),
    }
    Ok(())
}

/// The hint for a run whose commands are unfinished after an interrupt or an error.
fn resume_hint(run: &Run) -> String {
    format!("continue with `git frites run --resume {run}`")
}

/// The hints about candidates whose agents could not go on, one for each reason.
fn limited_hints(session: &Session, run: &Run) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for candidate in session.store.candidates(run) {
        let Ok(record) = candidate.record() else { continue };
        if record.state == State::Limited {
            let agent = run.agents.get(candidate.name).and_then(|a| a.agent.as_ref());
            *counts.entry(condition_to_go_on(agent, record.end.fault)).or_default() += 1;
        }
    }
    let resume = format!("`git frites run --resume {run}` starts");
    let hint = |(condition_to_go_on, limited)| {
        format!("{condition_to_go_on} {resume} {} again", count(limited, "candidate"))
    };
    counts.into_iter().map(hint).collect()
}

/// The beginning of a hint, which says when an agent can go on.
fn condition_to_go_on(agent: Option<&Name>, fault: Option<AgentFault>) -> String {
    let (Some(agent), Some(fault)) = (agent, fault) else {
        return "when the limit of the agent is over,".to_owned();
    };
    let remedy = agents::remedy(agent, fault).unwrap_or("change that");
    format!("the agent '{agent}' {fault}: {remedy}; then")
}

/// Notifies the user that work has ended, in the way that `ui.notify` says.
fn notify(session: &Session, words: &str) {
    match session.config.get(keys::UI_NOTIFY) {
        NotifyMode::Off => {}
        NotifyMode::Bell => session.ui.ring(),
        NotifyMode::Auto => session.ui.notify(words),
    }
}
