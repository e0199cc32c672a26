//! The options of `judge`, and those that `judge` and `run` share: how candidates are judged.
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{ArgGroup, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use crate::commands::values;
use crate::complete;
use crate::error::Result;
use crate::integrity::trust;
use crate::model::address::Address;
use crate::model::oracle::shell_quoted;
use crate::model::part::PartAddress;
use crate::model::rank::Rank;
use crate::model::run::Run;
use crate::model::shard::Shard;
use crate::ops::judge::JudgeOptions;
use crate::ops::session::Session;
use crate::oracle::OracleFlags;

// `git frites judge`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Runs setup, build, lint and test on each distinct tree, up to the first one that fails. The \
commands come from these options, or else from the configuration, or else they are detected \
from the files of the base.\n\n\
Exit status: 0 a verified winner, 1 no candidate passed, 3 unverified (no command to run, \
no test among the detected commands, passed only with its own tests, judged --in-place, a seed leads back to a checkout, a missing result \
could still win, or git's configuration or files above the checkouts changed meanwhile), 4 no usable \
candidate.",
    group = ArgGroup::new("done-with-remote")
        .args(["candidates", "open", "shard", "pending", "replay"])
        .multiple(true)
)]
pub struct JudgeArgs {
    /// Run to judge  [default: the newest]
    #[arg(
        value_name = "RUN",
        value_parser = values::address,
        add = ArgValueCompleter::new(complete::runs),
    )]
    pub address: Option<Address>,
    /// Judge this candidate alone and store its results; --replay decides once all are judged
    #[arg(
        long = "candidate",
        value_name = "CAND",
        value_parser = values::part,
        add = ArgValueCompleter::new(complete::candidates),
    )]
    pub candidates: Vec<PartAddress>,
    /// Settle the terms for judging the run in parts, elsewhere; with --remote, push the run
    #[arg(
        long,
        conflicts_with_all = [
            "candidates", "shard", "pending", "replay", "until_pass", "in_place", "json", "rank"
        ],
    )]
    pub open: bool,
    /// Judge a share of the parts of an opened run: every N-th from the K-th
    #[arg(
        long,
        value_name = "K/N|auto|auto/N",
        value_parser = values::shard,
        conflicts_with_all = ["candidates", "pending", "replay", "until_pass", "in_place", "json"],
    )]
    pub shard: Option<Shard>,
    /// List the parts of an opened run that have no result yet
    #[arg(long, conflicts_with_all = ["candidates", "replay", "until_pass", "in_place", "json"])]
    pub pending: bool,
    /// With --shard or --candidate, write the results to this file instead of pushing them; with
    /// --replay, read such a file
    #[arg(long = "bundle", value_name = "FILE", conflicts_with_all = ["open", "pending"])]
    pub bundles: Vec<PathBuf>,
    /// The repository that has the run, and that results go to
    #[arg(long, value_name = "NAME|URL", requires = "done-with-remote")]
    pub remote: Option<String>,
    /// The options of judging
    #[command(flatten)]
    pub judging: SharedJudgeArgs,
    /// Number of candidates that are judged at once
    #[arg(short, long, value_name = "JOBS", default_value_t = 1, value_parser = values::count)]
    pub jobs: u32,
    /// Kill a command, and all processes that it started, after this time  [default:
    /// oracle.timeout, or 10m]
    #[arg(long, value_name = "DUR", value_parser = values::duration)]
    pub timeout: Option<Duration>,
    /// Judge in the worktrees themselves: faster, but never verified
    #[arg(long, conflicts_with = "protect")]
    pub in_place: bool,
    /// Show which commands run and why, what was passed over, and how the ranking was made
    #[arg(long)]
    pub explain: bool,
    /// Run nothing: show what would run, where it was found, and what is missing
    #[arg(
        short = 'n',
        long,
        conflicts_with_all = [
            "candidates", "open", "shard", "pending", "remote", "replay", "explain", "quiet",
            "trust_config",
        ],
    )]
    pub dry_run: bool,
    /// Commit to look at with --dry-run, as the base of a run to come  [default: the run's base, or
    /// HEAD if there is no run]
    #[arg(
        long,
        value_name = "REV",
        requires = "dry_run",
        conflicts_with = "address",
        add = ArgValueCompleter::new(complete::revisions),
    )]
    pub base: Option<String>,
    /// Accept git-frites' configuration as it is now, although it changed while commands ran
    #[arg(long)]
    pub trust_config: bool,
    /// Decide again from the stored results, without running anything
    #[arg(
        long,
        conflicts_with_all = ["candidates", "in_place", "cold", "no_cache", "timeout"],
    )]
    pub replay: bool,
    /// Look for results that are missing again and again, for so long at most
    #[arg(long, value_name = "DUR", value_parser = values::duration, requires_all = ["replay", "remote"])]
    pub wait: Option<Duration>,
    /// Write the verdict to this file as JUnit, which a CI can show
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["candidates", "open", "shard", "pending", "dry_run"],
    )]
    pub junit: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print nothing but the winner's address; nothing if there is no winner
    #[arg(short, long)]
    pub quiet: bool,
}

impl JudgeArgs {
    /// The options of judging.
    pub fn options(&self) -> JudgeOptions {
        JudgeOptions {
            jobs: self.jobs as usize,
            timeout: self.timeout,
            in_place: self.in_place,
            ..self.judging.options()
        }
    }

    /// Refuses to run what the configuration names if commands have changed that, unless
    /// `--trust-config` accepts it.
    pub fn require_trust(&self, session: &Session, run: &Run) -> Result<()> {
        if self.trust_config {
            trust::accept(session.integrity(), run)?;
        }
        trust::require_trust(session.integrity(), Some(run))
    }
}

// The options that `judge` and `run` share: the commands, and how their results are used.
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

    /// True if judging stops as soon as no other candidate can win.
    pub fn until_pass(&self) -> bool {
        self.until_pass
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
