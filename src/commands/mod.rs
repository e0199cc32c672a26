//! One file a verb: read arguments, call the rooms that know, render.
pub mod apply;
pub mod clean;
pub mod completions;
pub mod config;
pub mod diff;
pub mod judge;
pub mod log;
mod making;
pub mod man;
pub mod path;
pub mod run;
pub mod spawn;
pub mod status;

use crate::cli;
use crate::error::{Error, Result};
use crate::funnel::judging::Asked;
use crate::model::address::{Address, InvalidAddress};
use crate::model::name::{Name, RULE};
use crate::model::run::Run;
use crate::oracle::Flags;

/// Reads a name that a user typed.
fn parse_name(what: &str, text: &str) -> Result<Name> {
    text.parse().map_err(|e| Error::usage(format!("{what}: {e}")).hint(RULE))
}

/// Reads an address that a user typed.
fn parse_address(text: Option<&str>) -> Result<Option<Address>> {
    let Some(text) = text else { return Ok(None) };
    text.parse().map(Some).map_err(|e: InvalidAddress| {
        let error = Error::usage(e.to_string()).hint("an address is RUN, RUN/CANDIDATE or RUN/CANDIDATE@ITERATION");
        if matches!(e, InvalidAddress::Name(_)) { error.hint(RULE) } else { error }
    })
}

/// What to type after something left a run's commands unfinished.
fn to_go_on(run: &Run) -> String {
    format!("go on with `git frites run --resume {}`", run.run)
}

/// What the options that `judge` and `run` share ask for.
fn judging(args: &cli::Judging) -> Asked {
    let cli::Judging { build, lint, test, retries, protect, baseline, until_pass, rank, warm, no_cache } = args;
    Asked {
        flags: Flags { build: build.clone(), lint: lint.clone(), test: test.clone() },
        retries: *retries,
        protect: protect.clone(),
        rank: *rank,
        baseline: *baseline,
        until_pass: *until_pass,
        warm: *warm,
        no_cache: *no_cache,
        ..Asked::default()
    }
}
