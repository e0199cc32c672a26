//! Red to green: the tests of a verified winner on the base, when its verdict is there.
use crate::config::keys;
use crate::config::value::ProofMode;
use crate::error::Result;
use crate::model::verdict::Verdict;
use crate::ops::judge::cross::{has_tests, proof_of};
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::record;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::kept_commits::KeptCommits;
use crate::ops::session::Session;
use crate::oracle::ledger::Memory;

/// Judges the tests of a verified winner on the base, after its verdict, and records what they
/// show. Gives that as a sentence; `None` if there is nothing to judge, or it is known.
pub fn prove(
    session: &Session,
    options: &JudgeOptions,
    verdict: &mut Verdict,
) -> Result<Option<String>> {
    let is_wanted = session.config.get(keys::ORACLE_PROOF) == ProofMode::Auto;
    let winner = verdict.winner().and_then(|name| verdict.entry(name)).cloned();
    let (Some(entry), Some(base)) = (winner, verdict.baseline.clone()) else { return Ok(None) };
    if !is_wanted || entry.proof.is_some() || !has_tests(&session.repo, &verdict.base, &entry)? {
        return Ok(None);
    }
    let (_lock, run) = &session.store.lock_and_read(&verdict.run)?;
    if session.store.verdict(&run.run)?.is_none_or(|now| now.judged != verdict.judged) {
        return Ok(None);
    }
    let _kept = KeptCommits::new(session, run);
    session.ui.note(format!(
        "run {}: the tests of {} are judged on the base, where they should fail",
        run.run, entry.candidate
    ));
    let memory = Memory::default();
    let runner = OracleRunner::new(session, run, verdict.terms.clone(), options, &memory)?;
    let proof =
        proof_of(&session.repo, &run.base, &entry, &base, |work| runner.judge_with_tests(&work));
    let (proof, doubts) = runner.end(proof)?;
    let (Some(proof), false) = (proof, doubts.tainted) else { return Ok(None) };
    let sentence = format!("{} {}", entry.candidate, proof.in_words());
    for own in verdict.candidates.iter_mut().filter(|own| own.candidate == entry.candidate) {
        own.proof = Some(proof.clone());
    }
    record::save_record(session, run, verdict)?;
    Ok(Some(sentence))
}
