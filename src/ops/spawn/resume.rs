//! Resuming: the commands of a run that were interrupted start again, from where they started before.
use crate::error::Result;
use crate::integrity::watch;
use crate::model::candidate::State;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::ops::spawn::attempt::{self, Order, Terms, Worked};
use crate::ops::spawn::prepare::{self, Preparation, Prepared};
use crate::ops::{clean, spawn};
use crate::process;
use crate::store::events::Event;
use crate::store::intents::{Active, Phase};

/// Why a candidate whose worktree is being made anew is not running: what lies there is half a checkout.
const BEING_REMADE: &str = "its worktree is being made again";

/// Starts again what did not end: candidates that were cancelled, by a signal or because git-frites was killed.
///
/// Each begins with a fresh worktree, for half of an attempt is a state that no undisturbed run begins with; what
/// it had done is captured first, and stays an iteration. Candidates that ended are not touched, nor are those of which
/// another round (`spawn --again`) was interrupted: a fresh worktree would be without the rounds before.
pub fn resume(
    session: &Session,
    run: &Run,
    orders: &[(Name, Order)],
    terms: &Terms,
) -> Result<Worked> {
    let store = &session.store;
    watch::require_trust(session, Some(run))?;
    spawn::require_depth(session)?;
    let _lock = store.lock_run(&run.run)?;
    let mut pending = Vec::new();
    for (name, order) in orders {
        let candidate = store.candidate(run, name);
        let record = candidate.record()?;
        if record.state == State::Cancelled && record.again {
            session.ui.warn(format!(
                "{candidate}: another round of it was interrupted, and is not resumed"
            ));
            session
                .ui
                .hint(format!("go on in its worktree with `git frites spawn --again {candidate}`"));
        } else if record.state == State::Cancelled {
            spawn::require_program(order)?;
            pending.push((name.clone(), order.clone()));
        }
    }
    if pending.is_empty() {
        return Ok(Worked::default());
    }
    prepare::require_space(session, &run.base, pending.len())?;
    let preparation = Preparation::new(session, &run.base)?;
    let names: Vec<Name> = pending.iter().map(|(name, _)| name.clone()).collect();
    for name in &names {
        let candidate = store.candidate(run, name);
        let half_made = candidate.record()?.reason.as_deref() == Some(BEING_REMADE);
        if !half_made {
            clean::save(session, candidate)?;
            candidate.update(|record| record.reason = Some(BEING_REMADE.into()))?;
        }
        clean::remove(session, candidate, half_made)?;
    }
    store.record_event(&run.run, &Event::Resumed { candidates: names.clone() })?;
    add_worktrees(session, run, &names, &preparation)?;
    attempt::work(session, run, &pending, terms)
}

/// Makes worktrees for candidates of a run that is there already, and marks it as running. The caller holds the
/// run's lock, and calls [`attempt::work`] next.
pub fn add_worktrees(
    session: &Session,
    run: &Run,
    names: &[Name],
    preparation: &Preparation,
) -> Result<Vec<Prepared>> {
    let store = &session.store;
    store.set_active(&run.run, &Active { phase: Phase::Running, entries: Vec::new() })?;
    let (admins, ports) = {
        let _repository = store.lock_repository()?;
        let admins = names
            .iter()
            .map(|name| spawn::register(session, store.candidate(run, name)))
            .collect::<Result<Vec<_>>>()?;
        (admins, spawn::free_ports(session, names.len())?)
    };
    let places: Vec<usize> = (0..names.len()).collect();
    let prepared = process::in_parallel(process::processors(), &places, |at| {
        let candidate = store.candidate(run, &names[*at]);
        spawn::fill(session, candidate, &admins[*at], preparation, ports.get(*at).copied())
    })?;
    preparation.tell(session, run, names, &prepared)?;
    Ok(prepared)
}
