//! `git frites shard open`: decides the terms on which a run is judged in parts. With `--attempts`,
//! makes a run whose attempts other machines make.
use std::time::Duration;

use crate::commands::attempts::{AnswerArgs, RoundAnswer};
use crate::commands::judge_args::{TermsArgs, require_trust};
use crate::commands::spawn_args::NewRunArgs;
use crate::commands::{note_lacks, values};
use crate::complete;
use crate::config::keys;
use crate::error::{Error, Result, exit};
use crate::model::address::Address;
use crate::model::part::SharedTerms;
use crate::model::rank::Rank;
use crate::model::run::{GivenLimits, Run};
use crate::ops::judge::JudgeOptions;
use crate::ops::session::Session;
use crate::ops::shard;
use crate::ops::spawn::attempts::AttemptReport;
use crate::oracle::ResolvedOracle;
use crate::store::select::{Matching, Scope};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Prints the number of parts; with --attempts, RUN/CANDIDATE for each attempt to be made.\n\n\
Exit status: 0 if the run is opened, 4 if it has no usable candidate."
)]
pub struct ShardOpenArgs {
    /// Run to judge  [default: the newest]
    #[arg(value_name = "RUN", add = complete::address(Scope::Run))]
    pub address: Option<Address>,
    /// The repository that the run is pushed to
    #[arg(long, value_name = "NAME|URL")]
    pub remote: Option<String>,
    /// How the run is judged
    #[command(flatten)]
    pub terms: TermsArgs,
    /// Kill a build, lint or test command after this time  [default: oracle.timeout, or 10m]
    #[arg(long, value_name = "DUR", value_parser = values::duration)]
    pub timeout: Option<Duration>,
    /// Accept git-frites' configuration as it is now, although it changed while commands ran
    #[arg(long)]
    pub trust_config: bool,
    /// Make a new run and start nothing: other machines make its attempts. The options below
    /// describe it
    #[arg(long, conflicts_with_all = ["address", "TermsArgs", "timeout"])]
    pub attempts: bool,
    /// The new run
    #[command(flatten, next_help_heading = "Options with --attempts")]
    pub new: NewRunArgs,
    /// Print the new run as one JSON document
    #[arg(long, requires = "attempts")]
    pub json: bool,
    /// Print nothing but the new run's id
    #[arg(short, long, requires = "attempts")]
    pub quiet: bool,
}

pub fn run(session: &Session, args: &ShardOpenArgs) -> Result<u8> {
    if args.attempts {
        return open_attempts(session, args);
    }
    if args.new != NewRunArgs::default() {
        return Err(Error::usage("candidates and commands describe a new run")
            .hint("make it: `git frites shard open --attempts …`"));
    }
    let run = session.store.select(args.address.as_ref(), Scope::Run, Matching::Prefix)?.run;
    if session.config.get(keys::ORACLE_RANK) == Rank::Cross {
        return Err(Error::fatal(format!("oracle.rank is cross, but parts of run {run} cannot be ranked so: no part runs one candidate's tests on another candidate"))
            .hint(format!("open it with another rule: `git -c frites.oracle.rank=auto frites shard open {run}`"))
            .hint(format!("or judge it here: `git frites judge {run}`")));
    }
    require_trust(session, &run, args.trust_config)?;
    let on_oracle = |oracle: &ResolvedOracle| note_lacks(session, run.root(), oracle);
    let options = JudgeOptions { timeout: args.timeout, ..args.terms.options() };
    let terms = shard::open(session, &run, &options, args.remote.as_deref(), on_oracle)?;
    note_unjudged(session, &run, &terms)?;
    if terms.trees.is_empty() {
        session.ui.warn(format!("run {run} has no usable candidate"));
        return Ok(exit::UNUSABLE);
    }
    session.ui.answer(format!("{}\n", terms.parts().count()));
    Ok(exit::OK)
}

/// Tells the user which candidates are not among the opened parts, and why. For example, an attempt
/// on another machine may not have ended yet.
fn note_unjudged(session: &Session, run: &Run, terms: &SharedTerms) -> Result<()> {
    let mut left_out = Vec::new();
    for candidate in session.store.candidates(run) {
        if terms.trees.iter().all(|tree| !tree.is_judged_for(candidate.name)) {
            left_out.push(format!("{candidate} ({})", candidate.record()?.state_in_words()));
        }
    }
    if !left_out.is_empty() {
        session.ui.note(format!("not to be judged: {}", left_out.join(", ")));
    }
    Ok(())
}

/// Makes a run whose attempts are made by other machines.
fn open_attempts(session: &Session, args: &ShardOpenArgs) -> Result<u8> {
    let request = args.new.request(session, GivenLimits::default())?;
    let run = shard::open_attempts(session, request, args.remote.as_deref())?;
    if args.json || args.quiet {
        let report = AttemptReport::default();
        let all = &run.candidates;
        let round = RoundAnswer { run: &run, candidates: all, report: &report, checkpoints: false };
        round.print(session, &AnswerArgs { json: args.json, quiet: args.quiet })?;
    } else {
        let lines = run.candidates.iter().map(|candidate| format!("{run}/{candidate}\n"));
        session.ui.answer(lines.collect::<String>());
    }
    let is_prepared = session.config.command(keys::SPAWN_SETUP).is_some_and(|(c, _)| !c.is_empty());
    if is_prepared || session.seeds(&run.base)?.paths().next().is_some() {
        session.ui.hint(
            "seeds and spawn.setup are not part of the run: git-frites-spread(7) says where machines get them",
        );
    }
    if args.remote.is_none() {
        session
            .ui
            .hint(format!("push it: `git push REMOTE 'refs/frites/{run}/*:refs/frites/{run}/*'`"));
    }
    session.ui.hint(format!(
        "make each attempt where you like: `git frites shard run --remote URL {run}/{}`",
        run.candidates[0]
    ));
    Ok(exit::OK)
}
