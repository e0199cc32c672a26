//! The parts of an opened run: their terms, and where their outcomes are.
use crate::error::{Error, Result};
use crate::model::part::SharedTerms;
use crate::model::run::Run;
use crate::ops::judge::part_shelf::PartShelf;
use crate::ops::session::Session;
use crate::ops::shard::exchange::Exchange;

/// The terms of a run that was opened: those of the remote, or else of this repository.
pub fn current_terms(
    session: &Session,
    run: &Run,
    exchange: Option<&Exchange<'_>>,
) -> Result<SharedTerms> {
    let found = match exchange {
        Some(exchange) => exchange.terms(run)?,
        None => session.store.terms(&run.run)?,
    };
    let name = &run.run;
    found.ok_or_else(|| {
        let (place, option) = match exchange {
            Some(exchange) => (format!(" at '{}'", exchange.place()), " --remote R"),
            None => (String::new(), ""),
        };
        Error::fatal(format!("run {name} was not opened for judging in parts{place}"))
            .hint(format!("where its worktrees are: `git frites shard open{option} {name}`"))
    })
}

/// The stored outcomes of a run: at the remote, or else here.
pub fn shelf<'s>(
    session: &'s Session,
    run: &'s Run,
    exchange: Option<&'s Exchange<'_>>,
) -> PartShelf<'s> {
    let remote = exchange.map(|exchange| &exchange.remote);
    PartShelf { store: &session.store, run: &run.run, remote }
}
