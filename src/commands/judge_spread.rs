//! `git frites judge` in parts: `--open`, `--shard`, `--pending`, and `--remote` with others.
use std::path::PathBuf;

use crate::commands::judge_args::JudgeArgs;
use crate::commands::{note_left_out, require_jobs_within_limit};
use crate::error::{Error, Result, exit};
use crate::model::address::Address;
use crate::model::name::Name;
use crate::model::part::Part;
use crate::model::part::SharedTerms;
use crate::model::partial::PartOutcome;
use crate::model::run::Run;
use crate::model::shard::{SHARD_RULE, Shard};
use crate::model::verdict::{DecisionKind, Verdict};
use crate::ops::judge::spread::{self, Decided, Exchange, Sink};
use crate::ops::judge::unseeded;
use crate::ops::mirror::{self, MirrorUse};
use crate::ops::session::Session;
use crate::oracle::ResolvedOracle;
use crate::store::select::Matching;
use crate::ui::Ui;

impl JudgeArgs {
    /// Opens the repository to work in.
    pub fn session(&self, ui: &Ui) -> Result<Session> {
        match &self.remote {
            None => Session::open(ui.clone()),
            Some(place) => {
                let here = !self.judges_parts();
                mirror::session_with(ui.clone(), place, here, MirrorUse::Judging)
            }
        }
    }

    /// True if parts are judged, and nothing is decided.
    fn judges_parts(&self) -> bool {
        self.shard.is_some() || !self.candidates.is_empty()
    }

    /// The run that the command line names.
    fn named_run(&self) -> Result<Option<Name>> {
        let by_parts = self.candidates.iter().filter_map(|address| address.run.as_ref());
        let by_address = match &self.address {
            Some(Address::Word { word, iteration: None }) => Some(word),
            _ => None,
        };
        let mut named = by_address.into_iter().chain(by_parts);
        let Some(first) = named.next() else { return Ok(None) };
        match named.find(|name| *name != first) {
            None => Ok(Some(first.clone())),
            Some(other) => Err(Error::usage(format!("'{first}' and '{other}' are two runs"))
                .hint("name candidates of one run")),
        }
    }

    /// The parts that `--candidate` names.
    fn parts(&self) -> Vec<Part> {
        self.candidates.iter().map(|address| address.part.clone()).collect()
    }
}

/// The end of a command about parts.
pub enum SpreadEnd {
    /// All is said; this is the exit code.
    Code(u8),
    /// A verdict, to be shown as any other.
    Verdict(Box<Verdict>),
}

/// Runs what the options name of judging in parts; none if that is not what they name.
pub fn run(session: &Session, args: &JudgeArgs) -> Result<Option<SpreadEnd>> {
    if args.open {
        return open(session, args).map(SpreadEnd::Code).map(Some);
    }
    if !args.bundles.is_empty() {
        read_bundles(session, args)?;
    }
    if let Some(place) = &args.remote {
        let name = args.named_run()?.ok_or_else(|| {
            Error::usage("with --remote the run is to be named")
                .hint("write its whole name at the end: `git frites judge --remote R … RUN`")
        })?;
        let exchange = Exchange::new(session, place, &name);
        exchange.fetch()?;
        let run = exchange.take_run()?;
        exchange.take_terms()?;
        if args.replay {
            return replay(session, args, &run, &exchange)
                .map(Box::new)
                .map(SpreadEnd::Verdict)
                .map(Some);
        }
        return on_parts(session, args, &run, Some(&exchange)).map(SpreadEnd::Code).map(Some);
    }
    if !args.judges_parts() && !args.pending {
        return Ok(None);
    }
    let run = match args.named_run()? {
        Some(name) => {
            let address = Address::Word { word: name, iteration: None };
            session.store.select(Some(&address), Matching::Prefix)?.run
        }
        None => session.store.select(args.address.as_ref(), Matching::Prefix)?.run,
    };
    // Candidates of a run that was not opened are judged on the terms of this side.
    let needs_terms = args.shard.is_some()
        || args.pending
        || !args.bundles.is_empty()
        || args.parts().contains(&Part::Base);
    if !needs_terms && session.store.terms(&run.run)?.is_none() {
        return Ok(None);
    }
    on_parts(session, args, &run, None).map(SpreadEnd::Code).map(Some)
}

/// Takes the outcomes from bundles, to decide by them.
fn read_bundles(session: &Session, args: &JudgeArgs) -> Result<()> {
    if args.replay {
        let run = session.store.select(args.address.as_ref(), Matching::Prefix)?.run;
        return args.bundles.iter().try_for_each(|file| spread::take_bundle(session, &run, file));
    }
    match args.bundles.as_slice() {
        [_] if args.judges_parts() => Ok(()),
        _ => Err(Error::usage(
            "one bundle is written by --shard or --candidate, and any number is read by --replay",
        )
        .hint("write `--shard K/N --bundle FILE`, or `--replay --bundle FILE --bundle FILE`")),
    }
}

fn on_parts(
    session: &Session,
    args: &JudgeArgs,
    run: &Run,
    exchange: Option<&Exchange<'_>>,
) -> Result<u8> {
    let terms = spread::current_terms(session, run, exchange)?;
    if args.pending {
        spread::name_unreadable(session, run, exchange);
        let pending = spread::pending(session, &run.run, &terms, exchange)?;
        let lines = pending.iter().map(|part| format!("{}/{part}\n", run.run));
        session.ui.answer(lines.collect::<String>())?;
        return Ok(exit::OK);
    }
    if args.json {
        return Err(Error::usage("parts of an opened run are answered in lines, not as JSON")
            .hint(format!(
                "leave --json out; `git frites judge --replay --json {}` decides",
                run.run
            )));
    }
    let jobs = args.jobs as usize;
    require_jobs_within_limit(session, jobs, "-j")?;
    args.require_trust(session, run)?;
    spread::require_terms(session, &terms, &args.options())?;
    let parts = match args.shard {
        Some(shard) => share_of(shard, terms.parts())?,
        None => args.parts(),
    };
    let sink = Sink { remote: exchange, bundle: args.bundles.first().map(PathBuf::as_path) };
    let on_part = |part: &Part, outcome: &PartOutcome, before: bool| {
        let before = if before { "\tstored before" } else { "" };
        if args.quiet {
            return Ok(());
        }
        session.ui.answer(format!("{}/{part}\t{}{before}\n", run.run, outcome.words()))
    };
    spread::judge_parts(session, run, &terms, &parts, jobs, sink, on_part)?;
    Ok(exit::OK)
}

fn replay(
    session: &Session,
    args: &JudgeArgs,
    run: &Run,
    exchange: &Exchange<'_>,
) -> Result<Verdict> {
    let Decided { verdict, missing } =
        spread::decide(session, run, &args.options(), exchange, args.wait)?;
    let missing: Vec<String> = missing.iter().map(|part| format!("{}/{part}", run.run)).collect();
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

/// The hint to judge what is missing of an opened run, if that could change the decision.
pub fn hint_on_missing(
    session: &Session,
    args: &JudgeArgs,
    verdict: &Verdict,
) -> Result<Option<String>> {
    if verdict.decision.undecided.is_empty() {
        return Ok(None);
    }
    let run = &verdict.run;
    let Some(terms) = session.store.terms(run)? else { return Ok(None) };
    let missing = spread::pending(session, run, &terms, None)?;
    let parts: String = missing.iter().map(|part| format!(" --candidate {run}/{part}")).collect();
    let remote =
        args.remote.as_ref().map(|place| format!(" --remote {}", shell_words::quote(place)));
    let remote = remote.unwrap_or_default();
    Ok(Some(format!(
        "judge what is missing: `git frites judge{remote}{parts}`; then decide: `git frites judge --replay{remote} {run}`"
    )))
}

fn share_of(shard: Shard, parts: impl Iterator<Item = Part>) -> Result<Vec<Part>> {
    let share = shard.resolve(|name| std::env::var(name).ok()).ok_or_else(|| {
        Error::usage("no variable of an engine says which share this is").hint(SHARD_RULE)
    })?;
    Ok(share.take(parts).collect())
}

fn open(session: &Session, args: &JudgeArgs) -> Result<u8> {
    let run = session.store.select(args.address.as_ref(), Matching::Prefix)?.run;
    args.require_trust(session, &run)?;
    let on_oracle = |oracle: &ResolvedOracle| {
        note_left_out(&session.ui, oracle);
        unseeded::hint(session, &run.base, &oracle.commands)
    };
    let terms = spread::open(session, &run, &args.options(), args.remote.as_deref(), on_oracle)?;
    note_unjudged(session, &run, &terms)?;
    if terms.trees.is_empty() {
        session.ui.warn(format!("run {} has no usable candidate", run.run));
        return Ok(exit::UNUSABLE);
    }
    session.ui.answer(format!("{}\n", terms.parts().count()))?;
    Ok(exit::OK)
}

/// Says which candidates are no part of what is opened, and why: an attempt that is made elsewhere
/// may not have ended yet.
fn note_unjudged(session: &Session, run: &Run, terms: &SharedTerms) -> Result<()> {
    let is_judged = |name: &Name| {
        terms.trees.iter().any(|tree| tree.candidate == *name || tree.same.contains(name))
    };
    let mut left_out = Vec::new();
    for candidate in session.store.candidates(run).filter(|candidate| !is_judged(candidate.name)) {
        let record = candidate.record()?;
        left_out.push(format!("{candidate} ({})", record.state_in_words()));
    }
    if !left_out.is_empty() {
        session.ui.note(format!("not to be judged: {}", left_out.join(", ")));
    }
    Ok(())
}
