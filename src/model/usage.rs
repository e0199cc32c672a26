//! The tokens and the money that the agents of a run used, by their own reports.
use serde::{Deserialize, Serialize};

/// The usage that an agent reported at the end of one command. A value that it did not report is
/// unknown, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Usage {
    /// The tokens that went into models, including cached ones.
    pub tokens_in: Option<u64>,
    /// The tokens that came out of models.
    pub tokens_out: Option<u64>,
    /// The cost in dollars.
    pub cost: Option<f64>,
}

/// The usage of one command of a candidate: of its first command, or of the command of a later
/// round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RoundUsage {
    /// The iteration with which the command ended; `None` if nothing was ever captured.
    pub iteration: Option<u32>,
    /// The usage that its agent reported.
    #[serde(flatten)]
    pub usage: Usage,
}

/// The usage of several commands, in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UsageSum {
    /// The sums of the known values.
    #[serde(flatten)]
    pub known: Usage,
    /// The number of commands whose tokens are unknown.
    #[serde(default)]
    pub unknown_tokens: u32,
    /// The number of commands whose cost is unknown.
    #[serde(default)]
    pub unknown_cost: u32,
}

impl UsageSum {
    /// The sum over commands; `None` if there are none.
    pub fn of<'a>(rounds: impl IntoIterator<Item = &'a RoundUsage>) -> Option<UsageSum> {
        rounds
            .into_iter()
            .map(|round| {
                let Usage { tokens_in, tokens_out, cost } = round.usage;
                UsageSum {
                    known: round.usage,
                    unknown_tokens: u32::from(tokens_in.is_none() || tokens_out.is_none()),
                    unknown_cost: u32::from(cost.is_none()),
                }
            })
            .reduce(UsageSum::and)
    }

    /// The sum of two sums.
    #[must_use]
    pub fn and(self, more: UsageSum) -> UsageSum {
        UsageSum {
            known: Usage {
                tokens_in: added(self.known.tokens_in, more.known.tokens_in, u64::saturating_add),
                tokens_out: added(
                    self.known.tokens_out,
                    more.known.tokens_out,
                    u64::saturating_add,
                ),
                cost: added(self.known.cost, more.known.cost, |a, b| a + b),
            },
            unknown_tokens: self.unknown_tokens.saturating_add(more.unknown_tokens),
            unknown_cost: self.unknown_cost.saturating_add(more.unknown_cost),
        }
    }

    /// True if any number of tokens is known.
    pub fn has_tokens(&self) -> bool {
        self.known.tokens_in.is_some() || self.known.tokens_out.is_some()
    }

    /// The tokens in and out, for a cell of a table: `12.3k/4.0k`; `≥` before them if some are
    /// unknown.
    pub fn tokens(&self) -> String {
        if !self.has_tokens() {
            return "unknown".to_owned();
        }
        let [tokens_in, tokens_out] = [self.known.tokens_in, self.known.tokens_out]
            .map(|number| number.map_or_else(|| "?".to_owned(), tokens));
        format!("{}{tokens_in}/{tokens_out}", at_least(self.unknown_tokens))
    }

    /// The cost, for a cell of a table: `$0.42`; `≥` before it if some of it is unknown.
    pub fn cost(&self) -> String {
        let cost =
            self.known.cost.map(|cost| format!("{}{}", at_least(self.unknown_cost), dollars(cost)));
        cost.unwrap_or_else(|| "unknown".to_owned())
    }

    /// The sum in words: `12.3k tokens in, 4.0k out, $0.42`; `None` if nothing is known.
    pub fn in_words(&self) -> Option<String> {
        let mut words = Vec::new();
        let mark = at_least(self.unknown_tokens);
        words.extend(self.known.tokens_in.map(|n| format!("{mark}{} tokens in", tokens(n))));
        words.extend(self.known.tokens_out.map(|n| format!("{mark}{} out", tokens(n))));
        words.extend(self.known.cost.map(|_| self.cost()));
        (!words.is_empty()).then(|| words.join(", "))
    }
}

fn added<T>(sum: Option<T>, more: Option<T>, add: fn(T, T) -> T) -> Option<T> {
    match (sum, more) {
        (Some(sum), Some(more)) => Some(add(sum, more)),
        (sum, more) => sum.or(more),
    }
}

fn at_least(unknown: u32) -> &'static str {
    if unknown > 0 { "≥" } else { "" }
}

/// A number of tokens for people: `950`, `12.3k`, `1.2M`.
fn tokens(number: u64) -> String {
    let number = number as f64;
    match number {
        0.0..999.5 => format!("{number:.0}"),
        ..999_950.0 => format!("{:.1}k", number / 1e3),
        _ => format!("{:.1}M", number / 1e6),
    }
}

/// An amount of money for people: `$0.42`.
pub fn dollars(amount: f64) -> String {
    if amount > 0.0 && amount < 0.005 { "<$0.01".to_owned() } else { format!("${amount:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(tokens_in: Option<u64>, tokens_out: Option<u64>, cost: Option<f64>) -> RoundUsage {
        RoundUsage { iteration: None, usage: Usage { tokens_in, tokens_out, cost } }
    }

    #[test]
    fn what_is_unknown_never_counts_as_zero() {
        assert_eq!(UsageSum::of([]), None);
        let nothing = UsageSum::of(&[round(None, None, None)]).expect("a command");
        assert_eq!((nothing.tokens(), nothing.cost()), ("unknown".into(), "unknown".into()));
        assert_eq!(nothing.in_words(), None);
        let both = [round(Some(12_345), Some(400), Some(0.25)), round(Some(1), Some(1), None)];
        let sum = UsageSum::of(&both).expect("commands");
        assert_eq!((sum.tokens(), sum.cost()), ("12.3k/401".into(), "≥$0.25".into()));
        assert_eq!(sum.in_words().as_deref(), Some("12.3k tokens in, 401 out, ≥$0.25"));
        let half = UsageSum::of(&[round(Some(5), None, None)]).expect("a command");
        assert_eq!(half.tokens(), "≥5/?");
    }

    #[test]
    fn numbers_read_well() {
        let numbers = [0, 999, 1000, 999_949, 999_999, 12_345_678].map(tokens);
        assert_eq!(numbers, ["0", "999", "1.0k", "999.9k", "1.0M", "12.3M"]);
        let amounts = [0.0, 0.004, 0.006, 0.42, 12.0].map(dollars);
        assert_eq!(amounts, ["$0.00", "<$0.01", "$0.01", "$0.42", "$12.00"]);
    }
}
