//! Decides a run by the outcomes that are stored in another repository. Can wait until all of them
//! are stored.
use std::time::{Duration, Instant};

use crate::error::{Cause, Result};
use crate::model::part::{Part, SharedTerms};
use crate::model::run::Run;
use crate::model::verdict::{DecisionKind, Verdict};
use crate::ops::judge::JudgeOptions;
use crate::ops::judge::replay::replay_locked;
use crate::ops::session::Session;
use crate::ops::shard::exchange::{Exchange, ExchangeSide, part_storage};

/// The pause before the first further fetch. Each later pause is longer than the one before, up to
/// `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Takes over the stored outcomes, and decides by the terms that `shard open` wrote. Returns the
/// verdict and the parts that have no outcome yet.
///
/// With `wait`, fetches again until each part has an outcome, but no longer than this time. With
/// `options.until_pass`, also stops as soon as no missing outcome could change the recommendation.
pub fn decide(
    run: &Run,
    options: &JudgeOptions,
    exchange: &Exchange<'_>,
    wait: Option<Duration>,
) -> Result<(Verdict, Vec<Part>)> {
    let end = Instant::now() + wait.unwrap_or_default();
    let mut pause = FIRST_PAUSE;
    let mut last_missing = None;
    loop {
        match decide_if_ready(run, options, exchange, &mut last_missing, end) {
            Ok(Some(decided)) => return Ok(decided),
            Ok(None) => {}
            // Another process holds the run's lock. Try again later.
            Err(error) if matches!(error.cause, Cause::RunBusy(_)) && Instant::now() < end => {}
            Err(error) => return Err(error),
        }
        std::thread::sleep(pause.min(end.saturating_duration_since(Instant::now())));
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        if let Err(error) = exchange.fetch() {
            if Instant::now() >= end {
                return Err(error);
            }
            exchange.session.ui.warn(format!("{error}; looking again"));
        }
    }
}

/// Takes over the fetched outcomes. Decides if they suffice, or if the time is over; otherwise
/// returns `None`.
fn decide_if_ready(
    run: &Run,
    options: &JudgeOptions,
    exchange: &Exchange<'_>,
    last_missing: &mut Option<Vec<Part>>,
    end: Instant,
) -> Result<Option<(Verdict, Vec<Part>)>> {
    let session = exchange.session;
    let missing = take_all(run, exchange, last_missing.is_none())?;
    let is_last = missing.is_empty() || Instant::now() >= end;
    let is_news = last_missing.as_ref() != Some(&missing);
    if is_last || options.until_pass && is_news {
        let (_lock, run) = &session.store.lock_and_read(&run.run)?;
        let verdict = replay_locked(session, run, options)?;
        if is_last || verdict.decision.decision != DecisionKind::Undecided {
            return Ok(Some((verdict, missing)));
        }
    }
    *last_missing = Some(missing);
    Ok(None)
}

/// Takes over the fetched outcomes. Returns the parts that have no outcome yet.
fn take_all(run: &Run, exchange: &Exchange<'_>, is_first_look: bool) -> Result<Vec<Part>> {
    let session = exchange.session;
    let store = &session.store;
    let (_lock, run) = &store.lock_and_read(&run.run)?;
    let terms = store.terms(&run.run)?;
    if lacks_capture(session, run, terms.as_ref(), is_first_look)? {
        exchange.fetch_captures(&run.candidates)?;
    }
    exchange.take_outcomes(terms.as_ref(), ExchangeSide::There)?;
    terms.map_or(Ok(Vec::new()), |terms| part_storage(session, run, None).pending(&terms))
}

/// True if a candidate's ref here does not reach the capture that the terms name, so that git could
/// delete the capture's objects. With `needs_captures`, also true if a candidate has no capture
/// here.
fn lacks_capture(
    session: &Session,
    run: &Run,
    terms: Option<&SharedTerms>,
    needs_captures: bool,
) -> Result<bool> {
    for candidate in session.store.candidates(run) {
        let Some(latest) = candidate.latest()? else {
            if needs_captures {
                return Ok(true);
            }
            continue;
        };
        let Some(tree) = terms.and_then(|terms| terms.tree_of(candidate.name)) else { continue };
        let repo = &session.repo;
        if !repo.is_commit(&tree.commit) || !repo.is_ancestor(&tree.commit, &latest.commit)? {
            return Ok(true);
        }
    }
    Ok(false)
}
