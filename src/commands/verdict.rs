//! Shows a verdict on the terminal, as JSON and as JUnit, passes it to the hook, and names the next
//! steps.
use std::path::Path;

use serde_json::Value;

use crate::commands::judge_args::VerdictOutputArgs;
use crate::commands::{notify, opened, preflight, resume_hint};
use crate::config::keys;
use crate::error::{IoContext, Result};
use crate::git::landing::position::uncommitted;
use crate::model::candidate::State;
use crate::model::outcome::Stage;
use crate::model::repair::can_be_repaired;
use crate::model::run::Run;
use crate::model::verdict::{DecisionKind, Entry, Verdict};
use crate::ops::corrected;
use crate::ops::hooks;
use crate::ops::judge::{JudgeOptions, prove};
use crate::ops::log_excerpt;
use crate::ops::session::Session;
use crate::ui::{comparison, json, junit, next_steps};

/// Prints a verdict: as JSON with the additional fields `more`, or only the winner's address, or
/// the comparison and `hints`. Then runs the hook `verdict`.
pub fn show(
    session: &Session,
    verdict: &Verdict,
    args: &VerdictOutputArgs,
    more: Value,
    hints: &[String],
) {
    let ui = &session.ui;
    let document = comparison::as_json(verdict);
    notify(session, &in_brief(verdict));
    if args.json {
        let mut answer = document.clone();
        json::extend(&mut answer, more);
        ui.answer_json(answer);
    } else if !args.quiet {
        ui.answer(comparison::text(ui.out, verdict));
        comparison::remarks(verdict).iter().for_each(|line| ui.note(line));
        hints.iter().for_each(|hint| ui.hint(hint));
    } else if let Some(winner) = verdict.winner() {
        ui.answer(format!("{}/{winner}\n", verdict.run));
    } else {
        ui.tell(comparison::sentence(verdict));
    }
    hooks::tell(session, keys::HOOKS_VERDICT, &verdict.run, None, document);
}

/// The decision in a few words, for a notification.
fn in_brief(verdict: &Verdict) -> String {
    let decision = &verdict.decision;
    let kind = decision.decision.into_str();
    match &decision.recommended {
        Some(name) => format!("{}/{name}: {kind}", verdict.run),
        None => format!("run {}: {kind}", verdict.run),
    }
}

/// Runs the winner's tests on the base, and prints the result. An error is only a warning,
/// because the verdict does not depend on the result.
pub fn tell_proof(session: &Session, options: &JudgeOptions, verdict: &mut Verdict) {
    match prove(session, options, verdict) {
        Ok(sentence) => sentence.into_iter().for_each(|line| session.ui.note(line)),
        Err(error) => session.ui.warn(format!("the winner's tests on the base: {error}")),
    }
}

/// The hints about the next step after the verdict of a run. `remote` is the repository that has
/// outcomes of the run, if any.
pub fn next_steps(
    session: &Session,
    run: &Run,
    verdict: &Verdict,
    remote: Option<&str>,
) -> Result<Vec<String>> {
    if let Some(hint) = opened::hint_on_missing(session, verdict, remote)? {
        return Ok(vec![hint]);
    }
    let decision = &verdict.decision;
    let recommended = decision.recommended.as_ref();
    let record = recommended.map(|name| session.store.candidate(run, name).record());
    let landing = record.and_then(Result::ok).map(|record| record.landing);
    let mut hints = next_steps::hints(verdict, landing.unwrap_or_default());
    if decision.decision == DecisionKind::None {
        hints.extend(hints_after_no_change(session, verdict));
        let was_cancelled = verdict.candidates.iter().any(|e| e.state == State::Cancelled);
        if was_cancelled && run.has_commands() {
            hints.push(resume_hint(run));
        }
    }
    // The closest candidate can have another round of its agent or command, unless a person works
    // in its worktree.
    if let Some(entry) = recommended.and_then(|name| verdict.entry(name))
        && decision.decision == DecisionKind::NearMiss
        && can_be_repaired(entry)
        && run.has_command(&entry.candidate)
    {
        let address = format!("{run}/{}", entry.candidate);
        hints.push(format!("or send it back: `git frites retry {address}`"));
    }
    hints.extend(correction_hints(session, run, verdict));
    Ok(hints)
}

/// The hints for a run without a winner in which a candidate changed nothing. The user may have
/// made the change in the checkout by mistake.
fn hints_after_no_change(session: &Session, verdict: &Verdict) -> Vec<String> {
    let Some(entry) = verdict.candidates.iter().find(|entry| entry.changed_nothing()) else {
        return Vec::new();
    };
    let run = &verdict.run;
    let mut hints =
        vec![next_steps::after_no_change(&format!("{run}/{}", entry.candidate), entry.state)];
    if uncommitted(&session.repo).is_ok_and(|changes| !changes.is_empty()) {
        hints.push(format!(
            "your checkout has changes that are not committed, so no attempt has them; make an attempt of them: \
             `git diff --binary HEAD | git frites add --patch - {run}`"
        ));
    }
    hints
}

/// The hints about failed attempts that a person has corrected since. If there are none, and no
/// candidate is usable, the hints that help with a failed attempt.
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
        let address = format!("{run}/{}", entry.candidate);
        if entry.state == State::Failed && entry.end.cause(entry.state).is_none() {
            let record = session.store.candidate(run, &entry.candidate).record().ok();
            let reason = record.and_then(|record| record.reason).unwrap_or_default();
            if reason.starts_with(&format!("{}:", Stage::Setup)) {
                return vec![format!(
                    "the setup failed before the command could start: `git frites output {address}` shows why"
                )];
            }
            let hint = "the command could not start in the worktree, which begins with the files of the base: name a \
                        program on PATH, an absolute path, or a file of the base";
            return vec![hint.to_owned()];
        }
        hints.push(format!(
            "correct it in its worktree: `cd \"$(git frites path {address})\"`; after `git frites capture {address}`, `{}` judges it",
            verdict.terms.judge_command(&run.run, "")
        ));
        if entry.blast.files > 0 {
            hints.push(corrected::acceptance_hint(&address));
        }
    }
    hints
}

/// The number of lines that the JUnit file has from the end of a failed command's log.
const LINES: usize = 40;

/// Writes a verdict as JUnit to `file`. Does nothing if `file` is `None`.
pub fn write_junit(
    session: &Session,
    run: &Run,
    verdict: &Verdict,
    file: Option<&Path>,
) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    let log_end = |entry: &Entry, stage: Stage, second: bool| {
        let place = session.store.candidate(run, &entry.candidate).logs();
        log_excerpt::of(&place.of_judging(entry.iteration, stage, second), LINES)
    };
    let text = junit::document(verdict, &log_end)
        .context(|| format!("could not write '{}'", file.display()))?;
    preflight::write(session, "--junit", file, text)
}
