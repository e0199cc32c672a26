//! The options that `judge` and `run` share: how candidates are judged.
use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::commands::values;
use crate::model::oracle::shell_quoted;
use crate::model::rank::Rank;
use crate::ops::judge::JudgeOptions;
use crate::oracle::OracleFlags;

/// The options that `judge` and `run` share: the commands, and how their results are used.
#[derive(Debug, clap::Args)]
pub struct SharedJudgeArgs {
    /// Build command, run by sh -c
    #[arg(long, value_name = "CMD")]
    build: Option<String>,
    /// Lint command, run by sh -c
    #[arg(long, value_name = "CMD")]
    lint: Option<String>,
    /// Test command, run by sh -c
    #[arg(long, value_name = "CMD")]
    test: Option<String>,
    /// Run a failed command again, up to K times  [default: oracle.retries, or 0]
    #[arg(long, value_name = "K", value_parser = values::retries)]
    retries: Option<u32>,
    /// Put edited and deleted files below these paths back before judging and landing, in addition
    /// to oracle.protect
    #[arg(long, value_name = "PATHSPEC")]
    protect: Vec<String>,
    /// Has no effect: the base is always judged
    #[arg(long, hide = true)]
    _baseline: bool,
    /// Stop as soon as no other candidate can win
    #[arg(long)]
    until_pass: bool,
    /// Ranking of the candidates that passed  [default: oracle.rank, or blast-radius]
    #[arg(long, value_name = "BY")]
    pub rank: Option<Rank>,
    /// Run nothing over the base's build outputs
    #[arg(long)]
    cold: bool,
    /// Run every command, even if its result is cached
    #[arg(long)]
    no_cache: bool,
}

impl SharedJudgeArgs {
    /// The options that set the terms of judging, as `--replay` needs them again, each after a
    /// space.
    pub fn terms(&self) -> String {
        let commands = [("build", &self.build), ("lint", &self.lint), ("test", &self.test)];
        let commands = commands.into_iter().filter_map(|(name, text)| Some((name, text.clone()?)));
        let retries = self.retries.map(|retries| ("retries", retries.to_string()));
        let protect = self.protect.iter().map(|path| ("protect", path.clone()));
        let all = commands.chain(retries).chain(protect);
        all.map(|(name, text)| format!(" --{name} {}", shell_quoted(&text))).collect()
    }

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
            until_pass: self.until_pass,
            cold: self.cold,
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
                .help("The best overlap with the other attempts, then blast radius"),
        })
    }
}
