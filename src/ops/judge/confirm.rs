//! Claims: results over the base's layers, and their confirmation in a plain directory without build
//! outputs.
//!
//! A stale output can let a broken tree pass, and a correct one fail; an overlay can let one fail. So
//! a claim orders the work and is shown, but every result that the recommendation depends on is
//! found once more without either; then the recommended candidate is that of a judging without any
//! claims.
use std::collections::BTreeMap;
use std::path::Path;

use crate::fs::regular;
use crate::model::outcome::{self, StageResult};
use crate::model::ranking::{Rules, undecided};
use crate::model::verdict::Entry;

/// The entries as far as their results are no claims: those with claims were not run yet.
pub fn without_claims(entries: &[Entry]) -> Vec<Entry> {
    let without =
        |entry: &Entry| if entry.is_claim() { without_results(entry) } else { entry.clone() };
    entries.iter().map(without).collect()
}

/// The entry as if it was not run yet.
fn without_results(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    entry.results.clear();
    if let Some(second) = &mut entry.base_tests {
        second.results.clear();
    }
    entry
}

/// True if any result is a claim.
pub fn any_claims(entries: &[Entry]) -> bool {
    entries.iter().any(Entry::is_claim)
}

/// Drops claims if a recommendation by these rules would depend on them.
pub fn drop_decisive_claims(entries: &mut Vec<Entry>, rules: Rules) {
    let without = without_claims(entries);
    if any_claims(entries) && !undecided(&without, rules).is_empty() {
        *entries = without;
    }
}

/// The reason why a result over the base's layers can be another one than that without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleCause {
    /// The base's build outputs.
    Outputs,
    /// The overlay: there were no outputs.
    Overlay,
    /// The overlay, in which a directory of the base cannot be renamed: the command said so.
    Rename,
}

/// True if the command that failed says that something could not be renamed, as the overlay refuses
/// it for directories of the base (EXDEV). Its log is in the directory `logs`.
pub fn stumbled(results: &[StageResult], logs: &Path) -> bool {
    let Some(result) = outcome::first_failure(results).filter(|result| result.warm) else {
        return false;
    };
    let log = regular::read(&logs.join(format!("{}.log", result.stage))).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    // The C library's words, without their first letter, and the name in other runtimes.
    log.contains("ross-device link") || log.contains("EXDEV")
}

/// The causes of the entries' claims, by spawn index.
pub type StaleCauses = BTreeMap<u32, StaleCause>;

/// The entries that failed because of the overlay, as far as one can tell, as if they were not run:
/// their commands said so, or others did not fail in a plain directory.
pub fn refused(entries: &[Entry], causes: &StaleCauses) -> Vec<Entry> {
    let cause = |entry: &Entry| causes.get(&entry.index).copied().unwrap_or(StaleCause::Outputs);
    let by_overlay = |entry: &Entry| cause(entry) != StaleCause::Outputs;
    let is_shown = entries.iter().any(|e| e.stale.is_some() && e.passed() && by_overlay(e));
    let is_refused = |entry: &&Entry| {
        let is_suspect = cause(entry) == StaleCause::Rename || is_shown && by_overlay(entry);
        entry.is_claim() && !entry.passed() && is_suspect
    };
    entries.iter().filter(is_refused).map(without_results).collect()
}

/// Puts confirmed results in the place of claims, and names what differs.
pub fn settle(entries: &mut [Entry], confirmed: Vec<Entry>, causes: &StaleCauses) {
    for confirmed in confirmed.into_iter().filter(|entry| !entry.results.is_empty()) {
        let claim = entries.iter_mut().find(|e| e.index == confirmed.index && e.is_claim());
        if let (Some(claim), Some(cause)) = (claim, causes.get(&confirmed.index)) {
            let stale = contradiction(claim, &confirmed, *cause);
            *claim = Entry { stale, ..confirmed };
        }
    }
}

/// The difference between a claim and the results that count; none if both pass or both fail.
fn contradiction(claim: &Entry, confirmed: &Entry, cause: StaleCause) -> Option<String> {
    let end = |entry: &Entry| {
        let results = match &entry.base_tests {
            Some(second) if outcome::all_passed(&entry.results) && !second.results.is_empty() => {
                &second.results
            }
            _ => &entry.results,
        };
        match outcome::first_failure(results) {
            None => "passed".to_owned(),
            Some(result) => format!("ended at {}: {}", result.stage, result.outcome),
        }
    };
    let end_of = |entry: &Entry| (entry.passed(), entry.passed_own_tests_only());
    if end_of(claim) == end_of(confirmed) {
        return None;
    }
    let (first, second) = (end(claim), end(confirmed));
    Some(match cause {
        StaleCause::Outputs => format!(
            "stale build output: over the base's outputs it {first}, without them it {second}"
        ),
        StaleCause::Overlay => format!(
            "failed over the overlay: over the base's layer it {first}, in a plain directory it \
             {second}"
        ),
        StaleCause::Rename => format!(
            "overlay refused a rename: over the base's layers it {first}, in a plain directory it \
             {second}"
        ),
    })
}
