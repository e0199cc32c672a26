//! The options that `judge` and `run` share: how candidates are judged.
use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::commands::values;
use crate::model::ranking::Rank;
use crate::ops::judge::JudgeOptions;
use crate::oracle::OracleFlags;

/// How candidates are judged: the options that `judge` and `run` share.
#[derive(Debug, clap::Args)]
pub struct SharedJudgeArgs {
    /// The build command, run by sh -c
    #[arg(long, value_name = "CMD")]
    build: Option<String>,
    /// The lint command, run by sh -c
    #[arg(long, value_name = "CMD")]
    lint: Option<String>,
    /// The test command, run by sh -c
    #[arg(long, value_name = "CMD")]
    test: Option<String>,
    /// Try a command that failed again, up to K times  [default: oracle.retries, or 0]
    #[arg(long, value_name = "K", value_parser = values::retries)]
    retries: Option<u32>,
    /// Put these paths back to the base's version before judging and landing, with those of oracle.protect
    #[arg(long, value_name = "PATHSPEC")]
    protect: Vec<String>,
    /// Judge the base, too, to tell what failed there before
    #[arg(long)]
    baseline: bool,
    /// Stop as soon as the recommended candidate cannot change any more
    #[arg(long)]
    until_pass: bool,
    /// What ranks those that passed  [default: oracle.rank, or blast-radius]
    #[arg(long, value_name = "BY")]
    pub rank: Option<Rank>,
    /// Keep ignored build directories from one candidate to the next
    #[arg(long)]
    warm: bool,
    /// Run everything, even what is cached
    #[arg(long)]
    no_cache: bool,
}

impl SharedJudgeArgs {
    /// The options for the judge; jobs and times are the command's own.
    pub fn options(&self) -> JudgeOptions {
        JudgeOptions {
            flags: OracleFlags {
                build: self.build.clone(),
                lint: self.lint.clone(),
                test: self.test.clone(),
            },
            retries: self.retries,
            protect: self.protect.clone(),
            rank: self.rank,
            baseline: self.baseline,
            until_pass: self.until_pass,
            warm: self.warm,
            no_cache: self.no_cache,
            ..JudgeOptions::default()
        }
    }
}

impl ValueEnum for Rank {
    fn value_variants<'a>() -> &'a [Rank] {
        &[Rank::BlastRadius, Rank::Agreement]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Rank::BlastRadius => PossibleValue::new("blast-radius")
                .help("The fewest changed lines, then the fewest files"),
            Rank::Agreement => PossibleValue::new("agreement")
                .help("What covers best what the other attempts do, then blast radius"),
        })
    }
}
