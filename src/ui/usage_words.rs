//! What agents used, in tables and in words.
use crate::model::usage::UsageSum;
use crate::model::verdict::Verdict;

/// Which columns of what agents used a table has: tokens and cost. Only what any agent told.
pub fn columns<'a>(sums: impl Iterator<Item = &'a UsageSum>) -> (bool, bool) {
    sums.fold((false, false), |(tokens, cost), sum| {
        (tokens || sum.has_tokens(), cost || sum.known.cost.is_some())
    })
}

/// The columns of [`columns`] in a verdict's comparison.
pub fn columns_of(verdict: &Verdict) -> (bool, bool) {
    columns(verdict.candidates.iter().filter_map(|entry| entry.usage.as_ref()))
}

/// What agents used in all, in words; none if none told anything.
pub fn total<'a>(sums: impl Iterator<Item = &'a UsageSum>) -> Option<String> {
    let all = sums.copied().reduce(UsageSum::and)?;
    Some(format!("the agents used {}", all.in_words()?))
}
