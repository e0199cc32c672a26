//! The rules that rank the candidates that passed.
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

// The help of `--rank` shows the comments on the values.
/// The ranking of the candidates that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, IntoStaticStr, ValueEnum)]
#[strum(serialize_all = "kebab-case")]
pub enum Rank {
    /// The fewest changed lines, then the fewest files
    #[default]
    BlastRadius,
    /// The largest overlap with the changes of other attempts, then the fewest lines
    Agreement,
    /// The largest share of the other candidates' tests that the candidate passes, then the
    /// fewest lines
    Cross,
    /// cross if --cross is given and at least two candidates wrote tests that can be compared.
    /// Otherwise agreement, if several agents or commands made the candidates, or if there is no
    /// command to run. Otherwise blast-radius
    Auto,
}

impl Rank {
    /// Every rule, in the order in which help lists them.
    pub const ALL: [Rank; 4] = [Rank::BlastRadius, Rank::Agreement, Rank::Cross, Rank::Auto];
}
