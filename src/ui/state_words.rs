//! The state of a candidate in the words of its verdict.
use crate::model::candidate::{Candidate, State};
use crate::model::verdict::Verdict;
use crate::ui::comparison;
use crate::ui::style::Tone;

/// How a candidate was judged; `None` if its attempt did not end well, or if the verdict does not
/// know it as it is in this iteration.
pub fn judged(
    candidate: &Candidate,
    iteration: Option<u32>,
    verdict: Option<&Verdict>,
) -> Option<(String, Tone)> {
    if !matches!(candidate.state, State::Open | State::Succeeded) {
        return None;
    }
    let entry = verdict?.entry(&candidate.candidate)?;
    if !entry.usable() || entry.not_run() || entry.iteration != iteration {
        return None;
    }
    Some(if entry.passed_own_tests_only() {
        ("passed own tests only".into(), Tone::Caution)
    } else {
        comparison::outcome(entry)
    })
}
