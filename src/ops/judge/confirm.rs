//! Claims: results over the base's build outputs, and their confirmation without them.
//!
//! A stale output can let a broken tree pass, and a correct one fail. So a claim orders the work and
//! is shown, but every result that the recommendation depends on is found once more without
//! outputs; then the recommended candidate is that of a judging without any claims.
use crate::model::outcome;
use crate::model::ranking::{Rules, undecided};
use crate::model::verdict::Entry;

/// The entries as far as their results are no claims: those with claims were not run yet.
pub fn without_claims(entries: &[Entry]) -> Vec<Entry> {
    let without = |entry: &Entry| {
        let mut entry = entry.clone();
        if entry.is_claim() {
            entry.results.clear();
            if let Some(second) = &mut entry.base_tests {
                second.results.clear();
            }
        }
        entry
    };
    entries.iter().map(without).collect()
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

/// Puts confirmed results in the place of claims, and names what differs. Both lists have the same
/// candidates in the same order.
pub fn settle(claimed: &mut [Entry], confirmed: Vec<Entry>) {
    for (claim, confirmed) in claimed.iter_mut().zip(confirmed) {
        if !claim.is_claim() || confirmed.results.is_empty() {
            continue;
        }
        let stale = contradiction(claim, &confirmed);
        *claim = Entry { stale, ..confirmed };
    }
}

/// The difference between a claim and the results that count; none if both pass or both fail.
fn contradiction(claim: &Entry, confirmed: &Entry) -> Option<String> {
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
    let differs = end_of(claim) != end_of(confirmed);
    differs.then(|| {
        format!(
            "stale build output: over the base's outputs it {}, without them it {}",
            end(claim),
            end(confirmed)
        )
    })
}
