//! The rules that rank the candidates that passed.
use std::fmt;

use serde::{Deserialize, Serialize};

/// The ranking of the candidates that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// The fewest changed lines, then the fewest files.
    #[default]
    BlastRadius,
    /// The best overlap with the other attempts, then blast radius.
    Agreement,
    /// The largest share of the tests of the others that pass, then blast radius.
    Cross,
    /// One of the others, by who made the candidates and by what was run.
    Auto,
}

impl Rank {
    /// Every rule, in the order in which help lists them.
    pub const ALL: [Rank; 4] = [Rank::BlastRadius, Rank::Agreement, Rank::Cross, Rank::Auto];

    /// The word used in records and options.
    pub fn as_str(self) -> &'static str {
        match self {
            Rank::BlastRadius => "blast-radius",
            Rank::Agreement => "agreement",
            Rank::Cross => "cross",
            Rank::Auto => "auto",
        }
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
