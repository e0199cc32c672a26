//! The parts of an opened run, and which of them have their outcome.
use crate::error::{Error, Result};
use crate::git::refs;
use crate::model::name::Name;
use crate::model::part::{Part, SharedTerms};
use crate::model::partial::PartOutcome;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::ops::judge::conditions;
use crate::ops::judge::terms::answers;
use crate::ops::session::Session;
use crate::ops::shard::exchange::Exchange;

/// A part, and its outcome if that answers the question of the terms.
pub struct PartState {
    /// The part.
    pub part: Part,
    /// The outcome.
    pub outcome: Option<PartOutcome>,
}

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

/// All parts of an opened run, with their outcomes as far as they are stored: at the remote, or else
/// here.
pub fn states(
    session: &Session,
    run: &Name,
    terms: &SharedTerms,
    exchange: Option<&Exchange<'_>>,
) -> Result<Vec<PartState>> {
    let state = |part: Part| {
        let own = refs::result_of(run, &part);
        let name: RefName = exchange.map_or(own.clone(), |exchange| exchange.fetched(&own));
        let outcome = session.store.outcome_at(run, &name)?;
        let outcome = outcome.filter(|outcome| answers(outcome, terms, &part));
        Ok(PartState { part, outcome })
    };
    terms.parts().map(state).collect()
}

/// Names the outcomes that nobody can read: at the remote, or else here.
pub fn name_unreadable(session: &Session, run: &Run, exchange: Option<&Exchange<'_>>) {
    conditions::name_unreadable(session, run, |own| {
        exchange.map_or(own.clone(), |exchange| exchange.fetched(&own))
    });
}

/// The parts without an outcome.
pub fn pending(
    session: &Session,
    run: &Name,
    terms: &SharedTerms,
    exchange: Option<&Exchange<'_>>,
) -> Result<Vec<Part>> {
    let all = states(session, run, terms, exchange)?;
    Ok(all.into_iter().filter(|state| state.outcome.is_none()).map(|state| state.part).collect())
}
