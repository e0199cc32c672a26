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

use crate::error::{Error, Result};
use crate::model::address::{Address, InvalidAddress};
use crate::model::name::{Name, RULE};
use crate::model::run::Run;

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
