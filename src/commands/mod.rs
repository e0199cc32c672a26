//! The commands, one file each, with arguments, the call of an operation, and output.
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
mod junit;
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

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::agents;
use crate::config::keys;
use crate::config::value::NotifyMode;
use crate::error::{Error, Result};
use crate::git::landing::position::uncommitted;
use crate::git::repo::Repo;
use crate::model::address::Address;
use crate::model::agent_stop::AgentFault;
use crate::model::candidate::{Landing, State};
use crate::model::count::count;
use crate::model::name::Name;
use crate::model::outcome::Stage;
use crate::model::repair::can_be_repaired;
use crate::model::run::Run;
use crate::model::verdict::{DecisionKind, Verdict};
use crate::ops::corrected;
use crate::ops::judge::{JudgeOptions, prove};
use crate::ops::session::Session;
use crate::oracle::{ResolvedOracle, setting};
use crate::process;
use crate::store::Store;
use crate::store::candidate::CandidateRef;
use crate::store::select::{Matching, Selection};
use crate::ui::{Ui, comparison};

/// Refuses to run more commands at once than `limits.jobs` allows. `option` is the option that sets
/// the number.
fn require_jobs_within_limit(session: &Session, jobs: usize, option: &str) -> Result<()> {
    let limit = session.config.get(keys::LIMITS_JOBS);
    if jobs <= limit {
        return Ok(());
    }
    Err(Error::fatal(format!("{jobs} commands at once are more than limits.jobs = {limit}"))
        .hint(format!("lower `{option}`, or raise the limit: `git config frites.limits.jobs N`")))
}

/// Tells the user which detected commands do not run because options or the configuration name
/// others.
fn note_left_out(ui: &Ui, oracle: &ResolvedOracle) {
    let commands: Vec<String> =
        oracle.left_out.iter().map(|c| format!("{} `{}`", c.stage, c.command)).collect();
    if !commands.is_empty() {
        let named_by = match oracle.commands.iter().any(|c| c.source.starts_with("--")) {
            true => "options",
            false => "configuration",
        };
        ui.note(format!(
            "only the commands of the {named_by} run; detected, and left out: {}",
            commands.join(", ")
        ));
    }
    for setup in oracle.left_out.iter().filter(|c| c.stage == Stage::Setup) {
        ui.hint(format!("if the test needs the setup, keep it: {}", setting(setup)));
    }
}

/// The run at an address; refuses a candidate.
fn run_at(session: &Session, address: Option<&Address>) -> Result<Run> {
    let Selection { run, candidate, .. } = session.store.select(address, Matching::Prefix)?;
    match candidate {
        None => Ok(run),
        Some(name) => Err(Error::usage(format!("'{}/{name}' is a candidate", run.run))
            .hint(format!("name the run: {}", run.run))),
    }
}

/// The named candidate, or the only candidate of the run. Fails if the run has several.
fn one_candidate<'a>(store: &'a Store, selection: &'a Selection) -> Result<CandidateRef<'a>> {
    let run = &selection.run;
    match (&selection.candidate, run.candidates.as_slice()) {
        (Some(name), _) | (None, [name]) => Ok(store.candidate(run, name)),
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|n| n.as_str()).collect();
            Err(Error::usage(format!("run {} has {} candidates", run.run, several.len())).hint(
                format!("name one of them, such as {}/{}: {}", run.run, names[0], names.join(", ")),
            ))
        }
    }
}

/// Prints the answer. On a terminal, uses git's pager.
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
    ui.answer(text)
}

/// The hint after an interrupt or error has left a run's commands unfinished.
fn resume_hint(run: &Run) -> String {
    format!("continue with `git frites run --resume {}`", run.run)
}

/// Prints a verdict: `document` if there is one; with `quiet`, only the winner's address; otherwise
/// the comparison and `hints`.
fn print_verdict(
    session: &Session,
    verdict: &Verdict,
    document: Option<Value>,
    quiet: bool,
    hints: &[String],
) -> Result<()> {
    let ui = &session.ui;
    let run = &verdict.run;
    notify(session, &verdict_in_brief(verdict));
    if let Some(document) = document {
        return ui.answer_json(document);
    }
    if quiet {
        return match verdict.winner() {
            Some(winner) => ui.answer(format!("{run}/{winner}\n")),
            None => {
                ui.tell(comparison::sentence(verdict));
                Ok(())
            }
        };
    }
    ui.answer(comparison::text(ui.out, verdict))?;
    comparison::remarks(verdict).iter().for_each(|line| ui.note(line));
    hints.iter().for_each(|hint| ui.hint(hint));
    Ok(())
}

/// Judges the winner's tests on the base, and prints the result. Only warns of errors, because the
/// verdict does not depend on it.
fn tell_proof(session: &Session, options: &JudgeOptions, verdict: &mut Verdict) {
    match prove(session, options, verdict) {
        Ok(sentence) => sentence.into_iter().for_each(|line| session.ui.note(line)),
        Err(error) => session.ui.warn(format!("the winner's tests on the base: {}", error.message)),
    }
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
    let resume = format!("`git frites run --resume {}` starts", run.run);
    let hint = |(condition_to_go_on, limited)| {
        format!("{condition_to_go_on} {resume} {} again", count(limited, "candidate"))
    };
    counts.into_iter().map(hint).collect()
}

/// The beginning of a hint: the condition on which an agent can go on.
fn condition_to_go_on(agent: Option<&Name>, fault: Option<AgentFault>) -> String {
    let (Some(agent), Some(fault)) = (agent, fault) else {
        return "when the limit of the agent is over,".to_owned();
    };
    let remedy = agents::remedy(agent, fault).unwrap_or("change that");
    format!("the agent '{agent}' {fault}: {remedy}; then")
}

/// The decision, for a notification.
fn verdict_in_brief(verdict: &Verdict) -> String {
    let decision = &verdict.decision;
    let kind = decision.decision.into_str();
    match &decision.recommended {
        Some(name) => format!("{}/{name}: {kind}", verdict.run),
        None => format!("run {}: {kind}", verdict.run),
    }
}

/// Notifies the user that work has ended, in the way that `ui.notify` sets.
fn notify(session: &Session, words: &str) {
    match session.config.get(keys::UI_NOTIFY) {
        NotifyMode::Off => {}
        NotifyMode::Bell => session.ui.ring(),
        NotifyMode::Auto => session.ui.notify(words),
    }
}

/// The hints about the next step after a verdict.
fn next_steps(session: &Session, verdict: &Verdict) -> Vec<String> {
    let Ok(Some(run)) = session.store.run(&verdict.run) else {
        return comparison::hints(verdict, Landing::default());
    };
    let decision = &verdict.decision;
    let recommended = decision.recommended.as_ref();
    let record = recommended.map(|name| session.store.candidate(&run, name).record());
    let landing = record.and_then(Result::ok).map(|record| record.landing);
    let mut hints = comparison::hints(verdict, landing.unwrap_or_default());
    if decision.decision == DecisionKind::None {
        hints.extend(hints_after_no_change(session, verdict));
        let was_cancelled = verdict.candidates.iter().any(|e| e.state == State::Cancelled);
        if was_cancelled && run.has_commands() {
            hints.push(resume_hint(&run));
        }
    }
    // A near-miss can be sent back to its agent or command, unless a person works there.
    if let Some(entry) = recommended.and_then(|name| verdict.entry(name))
        && decision.decision == DecisionKind::NearMiss
        && can_be_repaired(entry)
        && run.has_command(&entry.candidate)
    {
        let address = format!("{}/{}", run.run, entry.candidate);
        hints.push(format!("or send it back: `git frites retry {address}`"));
    }
    hints.extend(correction_hints(session, &run, verdict));
    hints
}

/// The hints for a run without a winner in which a candidate changed nothing. Its change may have
/// been made in the user's checkout by mistake.
fn hints_after_no_change(session: &Session, verdict: &Verdict) -> Vec<String> {
    let Some(entry) = verdict.candidates.iter().find(|entry| entry.changed_nothing()) else {
        return Vec::new();
    };
    let run = &verdict.run;
    let mut hints =
        vec![comparison::after_no_change(&format!("{run}/{}", entry.candidate), entry.state)];
    if uncommitted(&session.repo).is_ok_and(|changes| !changes.is_empty()) {
        hints.push(format!(
            "your checkout has changes that are not committed, so no attempt has them; make one of them: \
             `git diff --binary HEAD | git frites add --patch - {run}`"
        ));
    }
    hints
}

/// The hints about failed attempts: those that a person has corrected since, and how to correct one
/// if no other candidate is left.
fn correction_hints(session: &Session, run: &Run, verdict: &Verdict) -> Vec<String> {
    let mut hints = Vec::new();
    for entry in &verdict.candidates {
        let candidate = session.store.candidate(run, &entry.candidate);
        if corrected::is_corrected(candidate, entry.state, entry.tree.as_ref()).unwrap_or(false) {
            hints.push(corrected::hint(candidate));
        }
    }
    let is_alone = hints.is_empty() && verdict.decision.decision == DecisionKind::None;
    let mut entries = verdict.candidates.iter();
    if is_alone
        && let Some(entry) = entries.find(|e| matches!(e.state, State::Failed | State::TimedOut))
    {
        let address = format!("{}/{}", run.run, entry.candidate);
        hints.push(format!(
            "correct it in `cd \"$(git frites path {address})\"`; after `git frites capture {address}`, `{}` judges it",
            verdict.terms.judge_command(&run.run, "")
        ));
    }
    hints
}
