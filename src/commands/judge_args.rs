//! The options of `judge`. `run` and `shard` share some of them.
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;

use crate::commands::values;
use crate::complete;
use crate::error::{Error, Result};
use crate::integrity::trust;
use crate::model::address::Address;
use crate::model::name::Name;
use crate::model::rank::Rank;
use crate::model::run::Run;
use crate::ops::judge::JudgeOptions;
use crate::ops::session::Session;
use crate::oracle::named_by_flags;
use crate::store::select::Scope;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A candidate is one attempt of a run. Its tree is the files that git-frites captured from its worktree. \
On each distinct tree, git-frites runs the commands setup, build, lint and test, and stops at the first one that fails. \
The commands come from --build, --lint and --test, or else from the configuration. If neither the options nor the configuration \
name commands, git-frites detects them in the files of the base. The base is the commit that the run starts from. \
In a chain of runs, it is the commit that the first run starts from.\n\n\
Exit status: 0 if the winner is verified. 1 if the decision is `near-miss`. 4 if no candidate is usable. 3 for any other verdict \
that is not verified. Examples: there is no command to run, no test is among the detected commands, the base and all \
usable candidates fail in the same command before the tests (setup, build or lint: `broken-base`), the best candidate passed \
only with its own tests, it was judged --in-place, or a candidate without a result could still win."
)]
pub struct JudgeArgs {
    /// Run to judge  [default: the newest]
    #[arg(value_name = "RUN", add = complete::address(Scope::Run))]
    pub address: Option<Address>,
    /// Judge this candidate alone, and store its results; `judge --replay` decides later from the
    /// stored results
    #[arg(
        help_heading = "Other ways to judge",
        long = "candidate",
        value_name = "CAND",
        value_parser = values::candidate_alone,
        add = complete::by(complete::candidates),
        conflicts_with_all = ["explain", "junit", "cross", "rank", "until_pass"],
        group = "mode",
    )]
    pub candidates: Vec<Name>,
    /// The options of judging
    #[command(flatten, next_help_heading = "Judging")]
    pub judging: SharedJudgeArgs,
    /// Number of candidates that are judged at once
    #[arg(help_heading = "Judging", short, long, value_name = "JOBS", default_value_t = 1, value_parser = values::count)]
    pub jobs: u32,
    /// Kill a command, and all processes that it started, after this time  [default:
    /// oracle.timeout, or 10m]
    #[arg(help_heading = "Judging", long, value_name = "DUR", value_parser = values::duration)]
    pub timeout: Option<Duration>,
    /// Judge in the worktrees themselves: faster, but never verified, and not confined
    #[arg(help_heading = "Judging", long, conflicts_with_all = ["protect", "cross"])]
    pub in_place: bool,
    /// Run nothing: show what would run, where it was found, and what is missing
    #[arg(
        help_heading = "Other ways to judge",
        short = 'n',
        long,
        conflicts_with_all = ["explain", "junit", "quiet", "trust_config", "cross", "rank", "until_pass"],
        group = "mode",
    )]
    pub dry_run: bool,
    /// Commit that --dry-run looks at, as if a new run started there  [default: the run's base, or
    /// HEAD if there is no run]
    #[arg(
        help_heading = "Other ways to judge",
        hide_short_help = true,
        long,
        value_name = "REV",
        requires = "dry_run",
        conflicts_with = "address",
        add = complete::by(complete::revisions),
    )]
    pub base: Option<String>,
    /// Accept git-frites' configuration as it is now, although it changed while commands ran
    #[arg(help_heading = "Judging", hide_short_help = true, long)]
    pub trust_config: bool,
    /// Decide again from the stored results, without running anything
    #[arg(
        help_heading = "Other ways to judge",
        hide_short_help = true,
        long,
        conflicts_with_all = ["jobs", "in_place", "cold", "no_cache", "timeout", "until_pass", "cross"],
        group = "mode",
    )]
    pub replay: bool,
    /// How the verdict is shown
    #[command(flatten, next_help_heading = "Output")]
    pub show: VerdictArgs,
}

impl JudgeArgs {
    /// Fails for `--rank cross` with `--in-place`, because `--in-place` does not run a candidate's
    /// tests on the other candidates.
    pub fn require_rankable(&self) -> Result<()> {
        match self.judging.decision.rank {
            Some(Rank::Cross) if self.in_place => Err(Error::usage(
                "'--rank cross' cannot be used with '--in-place', which does not run a candidate's \
                 tests on the other candidates",
            )
            .hint("judge the whole run in checkouts: `git frites judge --rank cross`")),
            _ => Ok(()),
        }
    }

    /// The options of judging.
    pub fn options(&self) -> JudgeOptions {
        JudgeOptions {
            jobs: self.jobs as usize,
            timeout: self.timeout,
            in_place: self.in_place,
            ..self.judging.options()
        }
    }
}

// The options that `judge` and `run` share.
#[derive(Debug, clap::Args)]
pub struct SharedJudgeArgs {
    /// How candidates are judged
    #[command(flatten)]
    pub terms: TermsArgs,
    /// Run the tests of each passing candidate on all other passing candidates, too
    #[arg(help_heading = "Decision", long, hide_short_help = true)]
    cross: bool,
    /// How the run is decided
    #[command(flatten, next_help_heading = "Decision")]
    pub decision: DecisionArgs,
}

// The terms of judging: the commands, and how their results are used.
#[derive(Debug, Default, PartialEq, clap::Args)]
pub struct TermsArgs {
    /// Build command, run by sh -c
    #[arg(hide_short_help = true, long, value_name = "CMD")]
    build: Option<String>,
    /// Lint command, run by sh -c
    #[arg(hide_short_help = true, long, value_name = "CMD")]
    lint: Option<String>,
    /// Test command, run by sh -c
    #[arg(long, value_name = "CMD")]
    test: Option<String>,
    /// Run a failed command again, up to K times  [default: oracle.retries, or 0]
    #[arg(hide_short_help = true, long, value_name = "K", value_parser = values::retries)]
    retries: Option<u32>,
    /// Before judging and landing, put back edited and deleted files below these paths, in addition
    /// to the paths in oracle.protect
    #[arg(hide_short_help = true, long, value_name = "PATHSPEC")]
    protect: Vec<String>,
    /// Judge without the base's build outputs
    #[arg(hide_short_help = true, long)]
    cold: bool,
    /// Run every command, even if its result is cached
    #[arg(hide_short_help = true, long)]
    no_cache: bool,
}

// How a run is decided.
#[derive(Debug, clap::Args)]
pub struct DecisionArgs {
    /// Stop as soon as no other candidate can win
    #[arg(hide_short_help = true, long)]
    pub until_pass: bool,
    /// Ranking of the candidates that passed  [default: oracle.rank, or blast-radius]
    #[arg(hide_short_help = true, long, value_name = "BY")]
    pub rank: Option<Rank>,
}

// How `judge` and `shard collect` show a verdict.
#[derive(Debug, clap::Args)]
pub struct VerdictArgs {
    /// Explain the verdict, as `git frites explain` does afterwards
    #[arg(long, conflicts_with = "quiet")]
    pub explain: bool,
    /// The form of the answer
    #[command(flatten)]
    pub output: VerdictOutputArgs,
}

// The form in which a verdict is shown.
#[derive(Debug, clap::Args)]
pub struct VerdictOutputArgs {
    /// Write the verdict to this file as JUnit, which a CI can show
    #[arg(hide_short_help = true, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub junit: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print nothing but the winner's address; nothing if there is no winner
    #[arg(short, long)]
    pub quiet: bool,
}

impl TermsArgs {
    /// The options of judging that these arguments set. The command adds the number of jobs and the
    /// time limit.
    pub fn options(&self) -> JudgeOptions {
        JudgeOptions {
            flags: named_by_flags([&self.build, &self.lint, &self.test]),
            retries: self.retries,
            protect: self.protect.clone(),
            cold: self.cold,
            no_cache: self.no_cache,
            ..JudgeOptions::default()
        }
    }
}

impl SharedJudgeArgs {
    /// The options of judging that these arguments set. The command adds the number of jobs and the
    /// time limit.
    pub fn options(&self) -> JudgeOptions {
        let DecisionArgs { until_pass, rank } = self.decision;
        JudgeOptions { rank, cross: self.cross, until_pass, ..self.terms.options() }
    }
}

/// Fails if commands have changed the configuration of git-frites. With `trust` (`--trust-config`),
/// accepts the change first.
pub fn require_trust(session: &Session, run: &Run, trust: bool) -> Result<()> {
    if trust {
        trust::accept(session.integrity(), run)?;
    }
    trust::require_trust(session.integrity(), Some(run))
}
