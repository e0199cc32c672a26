//! The record of a verdict.
use crate::error::Result;
use crate::git::commit::neutral_commit;
use crate::model::FORMAT;
use crate::model::base_tests::BaseTestsResult;
use crate::model::decision::decide;
use crate::model::oid::Oid;
use crate::model::ranking::Rules;
use crate::model::run::Run;
use crate::model::terms::Terms;
use crate::model::verdict::{Effort, Entry, Verdict};
use crate::ops::session::Session;
use crate::store::events::Event;

/// A verdict on these terms that has no candidates and decides nothing yet.
pub(super) fn undecided(run: &Run, terms: Terms, round: u32, judged: jiff::Timestamp) -> Verdict {
    Verdict {
        version: FORMAT,
        run: run.run.clone(),
        base: run.base,
        judged,
        round,
        decision: decide(&[], None, Rules::of(&terms)),
        no_synthesis: None,
        terms,
        effort: Effort::default(),
        costs: None,
        baseline: None,
        candidates: Vec::new(),
    }
}

/// Records a verdict in a commit whose parents keep the judged trees, and adds the decision to the
/// event log.
pub(super) fn save(session: &Session, run: &Run, verdict: &Verdict) -> Result<()> {
    save_record(session, run, verdict)?;
    let decision = &verdict.decision;
    let failing = verdict
        .candidates
        .iter()
        .filter_map(|e| Some((e.candidate.clone(), e.results.failing_tests()?.to_vec())));
    let event = Event::Judged {
        decision: decision.decision,
        recommended: decision.recommended.clone(),
        rationale: decision.rationale.clone(),
        failing_tests: failing.filter(|(_, tests)| !tests.is_empty()).collect(),
    };
    session.store.record_event(&run.run, &event)
}

/// Records a verdict whose decision is already in the event log.
pub(super) fn save_record(session: &Session, run: &Run, verdict: &Verdict) -> Result<()> {
    let ran = verdict.candidates.iter().filter(|e| !e.results.is_empty());
    // Keep the trees of second judgings as well, so that people can look at them.
    let second = verdict.candidates.iter().filter_map(|e| e.base_tests.as_ref());
    let judged = second.filter(|second| !second.results.is_empty());
    let mut commits: Vec<Oid> = Vec::new();
    for tree in ran.filter_map(Entry::judged).chain(judged.flat_map(BaseTestsResult::trees)) {
        commits.push(neutral_commit(&session.repo, tree, &run.base)?);
    }
    commits.sort();
    commits.dedup();
    session.store.save_record(run, Some(verdict), &commits)
}
