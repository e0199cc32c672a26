//! `git frites shard collect`: takes over the outcomes that machines have stored, and decides.
use std::path::PathBuf;
use std::time::Duration;

use crate::commands::judge::show_verdict;
use crate::commands::judge_args::{DecisionArgs, VerdictArgs};
use crate::commands::opened::find;
use crate::commands::{preflight, values};
use crate::complete;
use crate::error::{Error, Result};
use crate::model::name::Name;
use crate::model::rank::Rank;
use crate::model::run::Run;
use crate::model::verdict::{DecisionKind, Verdict};
use crate::ops::judge::{self, JudgeOptions};
use crate::ops::session::Session;
use crate::ops::shard::{self, Exchange};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Takes the outcomes from the repository of --remote and from bundles, and decides by them and by those that are \
here. Nothing runs.\n\n\
Exit status: as for judge: 0 a verified winner, 1 the decision is `near-miss`, 3 unverified, or a missing outcome \
could change the recommendation, 4 no usable candidate."
)]
pub struct ShardCollectArgs {
    /// Run that was opened
    #[arg(value_name = "RUN", add = complete::by(complete::runs))]
    pub run: Name,
    /// The repository that has the run and its outcomes
    #[arg(long, value_name = "NAME|URL")]
    pub remote: Option<String>,
    /// Take outcomes from this file, which `shard judge --bundle` wrote
    #[arg(long = "bundle", value_name = "FILE")]
    pub bundles: Vec<PathBuf>,
    /// If outcomes are missing, look for them again and again, for at most this long
    #[arg(long, value_name = "DUR", value_parser = values::duration, requires = "remote")]
    pub wait: Option<Duration>,
    /// How it is decided
    #[command(flatten)]
    pub decision: DecisionArgs,
    /// How the verdict is shown
    #[command(flatten)]
    pub show: VerdictArgs,
}

pub fn run(session: &Session, args: &ShardCollectArgs) -> Result<u8> {
    let DecisionArgs { until_pass, rank } = args.decision;
    if until_pass && args.wait.is_none() {
        return Err(Error::usage("--until-pass needs --wait")
            .hint("without --wait, the outcomes that are there decide at once"));
    }
    let name = &args.run;
    if rank == Some(Rank::Cross) {
        return Err(Error::usage("parts cannot be ranked by cross: no part runs one candidate's tests on another candidate")
            .hint(format!("collect the outcomes by another rule, then judge here: `git frites judge --rank cross {name}`")));
    }
    preflight::require_writable(session, "--junit", args.show.output.junit.as_deref())?;
    let remote = args.remote.as_deref();
    let (run, exchange) = find(session, name, remote)?;
    args.bundles.iter().try_for_each(|file| shard::take_bundle(session, &run, file))?;
    let options = JudgeOptions { rank, until_pass, ..JudgeOptions::default() };
    let verdict = match exchange {
        Some(exchange) => decide(session, &run, &options, &exchange, args.wait)?,
        None => judge::replay(session, &run, &options)?,
    };
    show_verdict(session, &run, &verdict, &args.show, remote)
}

/// Decides by the outcomes of a remote, and tells the user which outcomes are missing.
fn decide(
    session: &Session,
    run: &Run,
    options: &JudgeOptions,
    exchange: &Exchange<'_>,
    wait: Option<Duration>,
) -> Result<Verdict> {
    let (verdict, missing) = shard::decide(run, options, exchange, wait)?;
    let missing: Vec<String> = missing.iter().map(|part| format!("{run}/{part}")).collect();
    if !missing.is_empty() {
        let what = if verdict.decision.decision == DecisionKind::Undecided {
            "missing"
        } else {
            "need not be judged any more"
        };
        session.ui.note(format!("{what}: {}", missing.join(" ")));
    }
    Ok(verdict)
}
