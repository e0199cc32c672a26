//! Code that several commands share for runs that were opened for judging in parts.
use crate::error::{Error, Result};
use crate::model::address::Address;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::model::verdict::Verdict;
use crate::ops::session::Session;
use crate::ops::shard::Exchange;
use crate::store::select::{Matching, Scope};

/// The run of this name, and the exchange with the remote if `remote` is given. With a remote,
/// first fetches the run's record and terms.
pub fn find<'a>(
    session: &'a Session,
    name: &Name,
    remote: Option<&str>,
) -> Result<(Run, Option<Exchange<'a>>)> {
    let Some(place) = remote else {
        let address = Address::Word { word: name.clone(), iteration: None };
        let selection = session.store.select(Some(&address), Scope::Run, Matching::Prefix)?;
        return Ok((selection.run, None));
    };
    let exchange = Exchange::new(session, place, name);
    exchange.fetch()?;
    let run = exchange.take_run()?;
    exchange.take_terms()?;
    Ok((run, Some(exchange)))
}

/// The hint to judge the missing parts of an opened run; `None` if they could not change the
/// decision.
pub fn hint_on_missing(
    session: &Session,
    verdict: &Verdict,
    remote: Option<&str>,
) -> Result<Option<String>> {
    let run = &verdict.run;
    let is_open = !verdict.decision.undecided.is_empty() || verdict.lacks_base();
    if !is_open || session.store.terms(run)?.is_none() {
        return Ok(None);
    }
    let remote = remote.map(|place| format!("--remote {} ", shell_words::quote(place)));
    let remote = remote.unwrap_or_default();
    Ok(Some(format!(
        "judge what is missing: `git frites shard judge {remote}{run} 1/1`; then decide: `git frites shard collect {remote}{run}`"
    )))
}

/// Fails if the run was opened for judging in parts. The candidates of such a run must be judged as
/// parts, on the run's terms.
pub fn require_unopened(session: &Session, run: &Run, candidates: &[Name]) -> Result<()> {
    if session.store.terms(&run.run)?.is_none() {
        return Ok(());
    }
    let error = Error::fatal(format!("run {run} was opened for judging in parts"));
    Err(candidates.iter().fold(error, |error, candidate| {
        error.hint(format!("judge the part: `git frites shard judge {run}/{candidate}`"))
    }))
}
