//! The usage of agents, in tables and in words.
use crate::model::usage::UsageSum;

/// Whether a table shows the tokens and the cost of agents: only what at least one of them told.
pub fn columns<'a>(sums: impl Iterator<Item = &'a UsageSum>) -> (bool, bool) {
    sums.fold((false, false), |(tokens, cost), sum| {
        (tokens || sum.has_tokens(), cost || sum.known.cost.is_some())
    })
}

/// The total usage of agents, in words; `None` if no agent reported any.
pub fn total<'a>(sums: impl Iterator<Item = &'a UsageSum>) -> Option<String> {
    let all = sums.copied().reduce(UsageSum::and)?;
    Some(format!("the agents used {}", all.in_words()?))
}
