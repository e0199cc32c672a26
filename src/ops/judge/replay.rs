//! Deciding again from stored outcomes: those of the last whole judging, and of candidates that were
//! judged by themselves since.
use crate::error::{Error, Result};
use crate::fs::{atomic, regular};
use crate::integrity::trust;
use crate::model::FORMAT;
use crate::model::decision::decide;
use crate::model::name::Name;
use crate::model::ranking::Rules;
use crate::model::run::Run;
use crate::model::verdict::{Entry, PartialVerdict, Verdict};
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::partial::end_of_log;
use crate::ops::judge::record::save;
use crate::ops::judge::terms::OwnTerms;
use crate::ops::judge::{confirm, entries};
use crate::ops::session::Session;

/// Decides again from the stored outcomes, without running anything. The terms are this side's; see
/// [`OwnTerms::of`].
///
/// A new decision is recorded, because `apply` lands by the record.
pub fn replay(session: &Session, run: &Run, options: &JudgeOptions) -> Result<Verdict> {
    let store = &session.store;
    let (_lock, run) = &store.lock_and_read(&run.run)?;
    trust::require_own_record(session.integrity(), run)?;
    let stored = store.verdict(&run.run)?;
    let (names, parts): (Vec<&Name>, Vec<PartialVerdict>) = store.parts(run)?.into_iter().unzip();
    if stored.is_none() && parts.is_empty() {
        return Err(Error::fatal(format!("run {} was never judged", run.run))
            .hint(format!("judge it with `git frites judge {}`", run.run)));
    }
    let mut terms = OwnTerms::of(session, run, options, stored.as_ref(), &parts)?;
    if let Some(verdict) = &stored {
        terms.require_same_in_verdict(run, verdict)?;
        terms.settle_on(verdict.settings.world);
    }
    let mut verdict = match &stored {
        Some(verdict) => verdict.clone(),
        None => without_results(run, &terms, &parts),
    };
    let present = present_entries(session, run, &terms, &verdict, &names)?;
    let mut any_used = false;
    for (name, part) in names.into_iter().zip(parts) {
        let Some(entry) = present.iter().find(|e| e.candidate == *name) else { continue };
        if let Some(reason) = why_not_used(run, name, &part, entry, verdict.round) {
            session.ui.warn(format!(
                "{}/{name}: the outcome of judging it by itself is not used: {reason}",
                run.run
            ));
            continue;
        }
        terms.require_same_in_part(run, &part)?;
        terms.settle_on(part.settings.world);
        restore_logs(session, run, &part)?;
        add_part(&mut verdict, entry, part);
        any_used = true;
    }
    for entry in present {
        if verdict.entry(&entry.candidate).is_none() {
            verdict.candidates.push(entry);
        }
    }
    if stored.is_none() && !any_used {
        return Err(Error::fatal(format!("no stored outcome of run {} can be used", run.run))
            .hint(format!("judge it with `git frites judge {}`", run.run)));
    }
    decide_and_save(session, run, options, stored.as_ref(), verdict)
}

/// Decides over a verdict's candidates, and records the decision if it is new.
fn decide_and_save(
    session: &Session,
    run: &Run,
    options: &JudgeOptions,
    stored: Option<&Verdict>,
    mut verdict: Verdict,
) -> Result<Verdict> {
    verdict.candidates.sort_by_key(|entry| entry.index);
    if stored.map(|v| &v.candidates) != Some(&verdict.candidates) {
        forget_stale_twins(&mut verdict.candidates);
        entries::set_agreement_of_judged(session, run, &mut verdict.candidates)?;
    }
    verdict.settings.rank = options.rank.unwrap_or(verdict.settings.rank);
    let rules = Rules::from_settings(&verdict.settings);
    confirm::drop_decisive_claims(&mut verdict.candidates, rules);
    verdict.decision = decide(&verdict.candidates, verdict.baseline.as_ref(), rules);
    if stored != Some(&verdict) {
        save(session, run, &verdict)?;
    }
    // The record keeps what the judging took; this command has run nothing.
    verdict.effort = Default::default();
    Ok(verdict)
}

/// A verdict on this side's terms without any candidate.
fn without_results(run: &Run, terms: &OwnTerms, parts: &[PartialVerdict]) -> Verdict {
    let judged = parts.iter().map(|part| part.judged).max();
    Verdict {
        version: FORMAT,
        run: run.run.clone(),
        base: run.base,
        judged: judged.unwrap_or_default(),
        round: 0,
        seeds: terms.seeds.clone(),
        decision: decide(&[], None, Rules::from_settings(&terms.settings)),
        no_synthesis: None,
        settings: terms.settings.clone(),
        effort: Default::default(),
        oracle: terms.oracle.clone(),
        baseline: None,
        candidates: Vec::new(),
    }
}

/// An entry without results for each candidate that has a partial verdict, or that is not in the
/// whole one: as it is now, with its size and flags as this side finds them.
fn present_entries(
    session: &Session,
    run: &Run,
    terms: &OwnTerms,
    verdict: &Verdict,
    with_part: &[&Name],
) -> Result<Vec<Entry>> {
    let mut captured = Vec::new();
    for candidate in session.store.candidates(run) {
        if with_part.contains(&candidate.name) || verdict.entry(candidate.name).is_none() {
            captured.push(session.capture_or_tell(candidate)?);
        }
    }
    if captured.is_empty() {
        return Ok(Vec::new());
    }
    entries::from_captured(session, run, &terms.oracle, &terms.settings, &captured)
}

/// The reason why a partial verdict says nothing about the candidate as it is now, if there is one.
fn why_not_used(
    run: &Run,
    name: &Name,
    part: &PartialVerdict,
    present: &Entry,
    round: u32,
) -> Option<String> {
    let theirs = &part.candidate;
    if part.run != run.run || theirs.candidate != *name || part.base != run.base {
        return Some(format!(
            "it is of {}/{} on the base {:.10}",
            part.run,
            theirs.candidate,
            part.base.as_str()
        ));
    }
    if part.round != round {
        return Some(format!(
            "it belongs to round {} of judging, and the run is in round {round}",
            part.round
        ));
    }
    if theirs.tree != present.tree {
        let of = |entry: &Entry| entry.iteration.map_or("none".to_owned(), |n| format!("@{n}"));
        return Some(format!(
            "it is of another state, iteration {}; now it is {}",
            of(theirs),
            of(present)
        ));
    }
    if theirs.judged() != present.judged() && theirs.problem.is_none() {
        return Some("other changes to protected paths were put back".into());
    }
    let second = |e: &Entry| e.base_tests.as_ref().map(|b| (b.tree, b.problem.clone()));
    let was_judged_once = part.settings.in_place || theirs.problem.is_some();
    if second(theirs) != second(present) && !was_judged_once {
        return Some("it was not judged with the same of the base's tests put back".into());
    }
    None
}

/// Puts the outcome of a partial verdict into a verdict. All else is as this side finds it.
fn add_part(verdict: &mut Verdict, present: &Entry, part: PartialVerdict) {
    let PartialVerdict { judged, settings, candidate, .. } = part;
    verdict.judged = verdict.judged.max(judged);
    verdict.settings.tainted |= settings.tainted;
    for path in &settings.leads_back {
        if !verdict.settings.leads_back.contains(path) {
            verdict.settings.leads_back.push(path.clone());
        }
    }
    verdict.settings.in_place |= settings.in_place;
    // The same for all outcomes.
    verdict.settings.world = settings.world;
    let Entry { problem, results, base_tests, .. } = candidate;
    let entry = Entry { same_as: None, problem, results, base_tests, ..present.clone() };
    match verdict.candidates.iter_mut().find(|e| e.candidate == entry.candidate) {
        Some(old) => *old = entry,
        None => verdict.candidates.push(entry),
    }
}

/// Drops the remark that a candidate has the same tree as another, if that is not so any more.
fn forget_stale_twins(entries: &mut [Entry]) {
    let trees: Vec<_> =
        entries.iter().map(|e| (e.candidate.clone(), e.judged().copied())).collect();
    for entry in entries {
        let tree = entry.judged().copied();
        let is_twin = |twin: &Name| trees.iter().any(|(name, t)| name == twin && *t == tree);
        entry.same_as = entry.same_as.take().filter(is_twin);
    }
}

/// Writes the ends of the logs that a partial verdict carries, unless the logs are here.
fn restore_logs(session: &Session, run: &Run, part: &PartialVerdict) -> Result<()> {
    let name = &part.candidate.candidate;
    let names: Vec<String> = part.candidate.results.iter().flat_map(|r| r.log_names()).collect();
    let candidate = session.store.candidate(run, name);
    let directory = candidate.directory();
    let missing = |(file, kept): &(String, Vec<u8>)| {
        regular::read(&directory.join(file)).map_or(true, |log| end_of_log(&log) != kept)
    };
    let logs = session.store.part_logs(run, name, &names)?;
    if !logs.iter().any(missing) {
        return Ok(());
    }
    let _lock = candidate.lock()?;
    candidate.logs()?.judging(part.candidate.iteration).begin()?;
    logs.iter().try_for_each(|(file, kept)| atomic::write(&directory.join(file), kept))
}
