//! Messages of `apply` about a candidate that is not verified.
use crate::error::Error;
use crate::model::candidate::State;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::rationale::{failed_at, how_it_passes, without_own_tests};
use crate::model::run::Run;
use crate::model::verdict::{Entry, Verdict};
use crate::ops::corrected::acceptance_hint;
use crate::ui::next_steps::{confirm_pending, look_at_own_tests};

/// The reason why the candidate `name` is not verified. `tree` is the tree that would land, if it
/// is known.
pub(super) fn why_unverified(
    run: &Run,
    name: &Name,
    tree: Option<&Oid>,
    verdict: Option<&Verdict>,
) -> String {
    let address = format!("{run}/{name}");
    let judged = |v: &Verdict| {
        tree.is_none_or(|tree| v.candidates.iter().any(|e| e.tree.as_ref() == Some(tree)))
    };
    // If a command has failed on the candidate, its name says more than a doubt about the results.
    let has_failed =
        |v: &Verdict| v.entry(name).is_some_and(|entry| entry.results.stopped_at().is_some());
    let doubts = verdict.map(|v| v.terms.settings.doubts_in_words()).unwrap_or_default();
    match verdict {
        None => format!("run {run} was not judged"),
        Some(v) if !judged(v) => format!("this state of {address} was not judged"),
        Some(v) if !has_failed(v) && !doubts.is_empty() => doubts.join("; "),
        Some(v) if v.decision.recommended.as_ref() == Some(name) => v.decision.rationale.clone(),
        Some(v) if v.entry(name).is_some_and(|entry| is_built_alone(v, entry)) => {
            format!("{address} was built, but nothing tests the change")
        }
        Some(v) if v.lacks_base() && v.entry(name).is_some_and(Entry::verified) => {
            format!("{address} passed, but the base has no outcome to compare that with")
        }
        Some(v) => match v.entry(name) {
            Some(entry) if entry.passed_own_tests_only() => {
                format!("{address} {}: {}", how_it_passes(entry), without_own_tests(entry))
            }
            Some(entry) if entry.is_pending() => format!(
                "{address} was not judged without its added tests, which could switch off other tests"
            ),
            Some(entry) if is_unconfirmed(entry) => {
                format!(
                    "{address} passed with what the base's commands left behind, and was not judged without it"
                )
            }
            Some(entry) => format!("{address} {}", failed_at(entry)),
            None => format!("{address} was not judged"),
        },
    }
}

/// True if a candidate passed, but no test ran.
fn is_built_alone(verdict: &Verdict, entry: &Entry) -> bool {
    entry.passed()
        && (verdict.terms.settings.tests_nothing
            || entry.why_untested(verdict.baseline.as_ref()).is_some())
}

/// True if a candidate has passed only with the base's build outputs, or only with the tests that
/// it added.
fn is_unconfirmed(entry: &Entry) -> bool {
    entry.passed_base_tests_too() && entry.is_claim()
}

/// The error that the candidate `name` is not verified.
pub(super) fn unverified(
    run: &Run,
    name: &Name,
    iteration: Option<u32>,
    verdict: Option<&Verdict>,
    why: &str,
) -> Error {
    let entry = verdict.and_then(|verdict| verdict.entry(name));
    let terms = verdict.map(|verdict| verdict.terms.clone()).unwrap_or_default();
    let iteration = iteration.map(|number| format!("@{number}")).unwrap_or_default();
    let candidate = format!("{run}/{name}");
    let address = format!("{candidate}{iteration}");
    let better = verdict.filter(|verdict| verdict.verified());
    let better = better.and_then(|verdict| verdict.decision.recommended.as_ref());
    let better = better.filter(|winner| *winner != name);
    let better = better
        .map(|winner| format!("{run}/{winner} is verified: land it with `git frites apply {run}`"));
    let remedy = match entry {
        Some(entry) if entry.passed_own_tests_only() => look_at_own_tests(&address, Some(entry)),
        Some(entry) if matches!(entry.state, State::Failed | State::TimedOut) => format!(
            "its command did not succeed, so it is not judged: correct it, and then `git frites capture {candidate}`; {}",
            acceptance_hint(&candidate)
        ),
        Some(entry) if entry.results.stopped_at().is_some() => {
            format!("see why: `git frites output {address}`")
        }
        Some(entry) if entry.is_pending() => {
            format!("judge it without them: `{}`", confirm_pending(&terms, &run.run, name))
        }
        Some(entry) if is_unconfirmed(entry) => {
            format!("confirm it: `{}`", terms.judge_command(&run.run, " --cold"))
        }
        _ => format!(
            "look at it with `git frites diff {address}`; judge with `{}`",
            terms.judge_command(&run.run, "")
        ),
    };
    let land = format!("to land it all the same: `git frites apply --allow-unverified {address}`");
    let mut hints = vec![remedy, land];
    if let Some(better) = better {
        // A candidate whose pass is only not confirmed yet may well be right.
        hints.insert(if entry.is_some_and(Entry::is_pending) { 2 } else { 0 }, better);
    }
    let error = Error::no(format!("nothing verified to land: {why}"));
    hints.into_iter().fold(error, Error::hint)
}
