//! The two ways to rank the candidates that passed.
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
}

impl Rank {
    /// All of them.
    pub const ALL: [Rank; 2] = [Rank::BlastRadius, Rank::Agreement];

    /// The word that `--rank` takes.
    pub fn as_str(self) -> &'static str {
        match self {
            Rank::BlastRadius => "blast-radius",
            Rank::Agreement => "agreement",
        }
    }
}
