//! The rules that rank the candidates that passed.
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

/// The ranking of the candidates that passed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Display, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Rank {
    /// The fewest changed lines, then the fewest files.
    #[default]
    BlastRadius,
    /// The best overlap with the other attempts, then blast radius.
    Agreement,
    /// The largest share of the other candidates' tests that pass, then blast radius.
    Cross,
    /// One of the other rules, depending on the makers of the candidates and on the tests that were run.
    Auto,
}

impl Rank {
    /// Every rule, in the order in which help lists them.
    pub const ALL: [Rank; 4] = [Rank::BlastRadius, Rank::Agreement, Rank::Cross, Rank::Auto];
}
