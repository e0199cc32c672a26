//! `git frites shard judge`: judges a share of the parts of an opened run, or one part.
use std::path::PathBuf;

use crate::commands::judge_args::require_trust;
use crate::commands::opened::find;
use crate::commands::{preflight, require_jobs_within_limit, values};
use crate::complete;
use crate::error::{Error, Result, exit};
use crate::model::name::Name;
use crate::model::part::{Part, PartOutcome, SharedTerms};
use crate::model::shard::{SHARD_RULE, Shard};
use crate::ops::session::Session;
use crate::ops::shard::{self, ShardJudge};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Judges on the terms that the run was opened on, and stores each outcome: in the repository of --remote, or \
else here. Prints RUN/PART<TAB>OUTCOME for each part. A part that has its outcome is left out, so that an engine can \
start the same command again.\n\n\
Exit status: 0 if each outcome is stored, whatever it says, 2 if the command line is wrong, and 128 or above if an \
outcome is not stored."
)]
pub struct ShardJudgeArgs {
    /// Run that was opened; or one part of it: RUN/CAND or RUN/@base
    #[arg(
        value_name = "RUN[/PART]",
        value_parser = values::run_or_part,
        add = complete::by(complete::parts),
    )]
    pub what: (Name, Option<Part>),
    /// Share of the run's parts: every N-th from the K-th
    #[arg(value_name = "K/N|auto|auto/N", value_parser = values::shard)]
    pub share: Option<Shard>,
    /// The repository that has the run, and to which outcomes are pushed
    #[arg(long, value_name = "NAME|URL")]
    pub remote: Option<String>,
    /// Write the outcomes to this file instead of pushing them
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    /// Number of parts that are judged at once
    #[arg(short, long, value_name = "JOBS", default_value_t = 1, value_parser = values::count)]
    pub jobs: u32,
    /// Accept git-frites' configuration as it is now, although it changed while commands ran
    #[arg(long)]
    pub trust_config: bool,
    /// Print nothing
    #[arg(short, long)]
    pub quiet: bool,
}

pub fn run(session: &Session, args: &ShardJudgeArgs) -> Result<u8> {
    let (name, part) = &args.what;
    let jobs = args.jobs as usize;
    require_jobs_within_limit(session, jobs, "-j")?;
    preflight::require_writable(session, "--bundle", args.bundle.as_deref())?;
    let (run, exchange) = find(session, name, args.remote.as_deref())?;
    let terms = shard::current_terms(session, &run, exchange.as_ref())?;
    require_trust(session, &run, args.trust_config)?;
    let parts = parts(&terms, part.as_ref(), args.share)?;
    let judge = ShardJudge {
        session,
        run: &run,
        terms: &terms,
        jobs,
        remote: exchange.as_ref(),
        bundle: args.bundle.as_deref(),
    };
    judge.judge(&parts, |part: &Part, outcome: &PartOutcome, before: bool| {
        let before = if before { "\tstored before" } else { "" };
        if !args.quiet {
            session.ui.answer(format!("{run}/{part}\t{}{before}\n", outcome.words()));
        }
    })?;
    Ok(exit::OK)
}

/// The parts to judge: the part that the user named, or the parts of a share.
fn parts(terms: &SharedTerms, part: Option<&Part>, share: Option<Shard>) -> Result<Vec<Part>> {
    let shard = match (part, share) {
        (Some(part), None) => return Ok(vec![part.clone()]),
        (None, Some(shard)) => shard,
        (Some(part), Some(_)) => {
            let run = &terms.run;
            return Err(Error::usage(format!("'{run}/{part}' is one part, which has no shares"))
                .hint(format!("leave the share out, or name the run: {run}")));
        }
        (None, None) => {
            return Err(Error::usage("which parts are to be judged?").hint(SHARD_RULE).hint(
                format!(
                    "`git frites shard list {}` lists the parts, which can be judged one by one",
                    terms.run
                ),
            ));
        }
    };
    let share = shard.resolve(|name| std::env::var(name).ok()).ok_or_else(|| {
        Error::usage("no variable of an engine says which share this is").hint(SHARD_RULE)
    })?;
    Ok(share.take(terms.parts()).collect())
}
