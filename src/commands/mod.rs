//! One file a verb: read arguments, call the rooms that know, render.
pub mod apply;
pub mod clean;
pub mod completions;
pub mod config;
pub mod diff;
pub mod judge;
pub mod log;
pub mod man;
pub mod path;
pub mod run;
pub mod spawn;
mod spawn_args;
pub mod status;

use serde_json::Value;

use crate::cli;
use crate::error::{Error, Result};
use crate::model::address::{Address, InvalidAddress};
use crate::model::name::{Name, RULE};
use crate::model::run::Run;
use crate::model::verdict::Verdict;
use crate::ops::judge::JudgeOptions;
use crate::ops::session::Session;
use crate::oracle::OracleFlags;
use crate::ui::{comparison, json};

/// Reads a name that a user typed.
fn parse_name(what: &str, text: &str) -> Result<Name> {
    text.parse().map_err(|e| Error::usage(format!("{what}: {e}")).hint(RULE))
}

/// Reads an address that a user typed.
fn parse_address(text: Option<&str>) -> Result<Option<Address>> {
    let Some(text) = text else { return Ok(None) };
    text.parse().map(Some).map_err(|e: InvalidAddress| {
        let error = Error::usage(e.to_string())
            .hint("an address is RUN, RUN/CANDIDATE or RUN/CANDIDATE@ITERATION");
        if matches!(e, InvalidAddress::Name(_)) { error.hint(RULE) } else { error }
    })
}

/// What to type after something left a run's commands unfinished.
fn to_go_on(run: &Run) -> String {
    format!("go on with `git frites run --resume {}`", run.run)
}

/// What the options that `judge` and `run` share ask for.
fn judging(args: &cli::Judging) -> JudgeOptions {
    let cli::Judging {
        build,
        lint,
        test,
        retries,
        protect,
        baseline,
        until_pass,
        rank,
        warm,
        no_cache,
    } = args;
    JudgeOptions {
        flags: OracleFlags { build: build.clone(), lint: lint.clone(), test: test.clone() },
        retries: *retries,
        protect: protect.clone(),
        rank: *rank,
        baseline: *baseline,
        until_pass: *until_pass,
        warm: *warm,
        no_cache: *no_cache,
        ..JudgeOptions::default()
    }
}

/// Tells a verdict: as this document if there is one, with `quiet` the winner's address alone, else the comparison, and
/// with `hints` what to do next.
fn tell_verdict(
    session: &Session,
    verdict: &Verdict,
    document: Option<Value>,
    quiet: bool,
    hints: bool,
) -> Result<()> {
    let (ui, run) = (&session.ui, &verdict.run);
    if let Some(document) = document {
        return ui.answer(json::document(document));
    }
    if quiet {
        return verdict.winner().map_or(Ok(()), |winner| ui.answer(format!("{run}/{winner}\n")));
    }
    ui.answer(comparison::text(ui.out, verdict))?;
    comparison::remarks(verdict).iter().for_each(|line| ui.note(line));
    if hints {
        comparison::hints(verdict, |name| session.store.candidate_dir(run, name))
            .iter()
            .for_each(|h| ui.hint(h));
    }
    Ok(())
}
