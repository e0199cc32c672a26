//! Deciding over a run whose outcomes lie in another repository, perhaps when all of them are there.
use std::time::{Duration, Instant};

use crate::error::{Cause, Result};
use crate::model::part::{Part, SharedTerms};
use crate::model::run::Run;
use crate::model::verdict::{DecisionKind, Verdict};
use crate::ops::judge::JudgeOptions;
use crate::ops::judge::replay::replay_locked;
use crate::ops::session::Session;
use crate::ops::shard::exchange::{Exchange, ExchangeSide, shelf};

/// The first and the longest pause between two looks.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Takes the outcomes that are there, and decides by the terms that `shard open` wrote; gives the parts
/// without an outcome, too.
///
/// With `wait`, looks again and again for so long, until each part has its outcome; with
/// `options.until_pass`, until no missing outcome could change the recommendation.
pub fn decide(
    session: &Session,
    run: &Run,
    options: &JudgeOptions,
    exchange: &Exchange<'_>,
    wait: Option<Duration>,
) -> Result<(Verdict, Vec<Part>)> {
    let end = Instant::now() + wait.unwrap_or_default();
    let mut pause = FIRST_PAUSE;
    let mut last_missing = None;
    loop {
        match look(session, run, options, exchange, &mut last_missing, end) {
            Ok(Some(decided)) => return Ok(decided),
            Ok(None) => {}
            // Another process decides at this moment.
            Err(error) if matches!(error.cause, Cause::RunBusy(_)) && Instant::now() < end => {}
            Err(error) => return Err(error),
        }
        std::thread::sleep(pause.min(end.saturating_duration_since(Instant::now())));
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        if let Err(error) = exchange.fetch() {
            if Instant::now() >= end {
                return Err(error);
            }
            session.ui.warn(format!("{}; looking again", error.message));
        }
    }
}

/// Takes over what was fetched, and decides if it is time; `None` if more is still to come.
fn look(
    session: &Session,
    run: &Run,
    options: &JudgeOptions,
    exchange: &Exchange<'_>,
    last_missing: &mut Option<Vec<Part>>,
    end: Instant,
) -> Result<Option<(Verdict, Vec<Part>)>> {
    let missing = take_all(session, run, exchange, last_missing.is_none())?;
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

/// Takes what was fetched; gives the parts without an outcome.
fn take_all(
    session: &Session,
    run: &Run,
    exchange: &Exchange<'_>,
    is_first_look: bool,
) -> Result<Vec<Part>> {
    let store = &session.store;
    let (_lock, run) = &store.lock_and_read(&run.run)?;
    let terms = store.terms(&run.run)?;
    if lacks_capture(session, run, terms.as_ref(), is_first_look)? {
        exchange.fetch_whole_run(run)?;
    }
    exchange.take_outcomes(terms.as_ref(), ExchangeSide::There)?;
    terms.map_or(Ok(Vec::new()), |terms| shelf(session, run, None).pending(&terms))
}

/// True if a ref here does not hold the capture that the terms name; with `any`, also if a
/// candidate has no capture. An object that is here by chance is none.
fn lacks_capture(
    session: &Session,
    run: &Run,
    terms: Option<&SharedTerms>,
    any: bool,
) -> Result<bool> {
    for candidate in session.store.candidates(run) {
        let Some(latest) = candidate.latest()? else {
            if any {
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
