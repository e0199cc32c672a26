//! Red to green: checks whether the tests of a candidate, which pass on its own tree, fail on the base.
use crate::config::keys;
use crate::config::value::ProofMode;
use crate::error::Result;
use crate::git::diff::Change;
use crate::model::cross::{Cell, Proof, edited_tests};
use crate::model::rationale::base_passes_too;
use crate::model::test_report::TestReport;
use crate::model::verdict::{Baseline, Entry, Verdict};
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::record;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::judge::runner::cross::overlay::{TestFiles, lay_over};
use crate::ops::judge::schedule::Work;
use crate::ops::kept_commits::KeptCommits;
use crate::ops::session::Session;
use crate::oracle::ledger::Memory;

/// Judges the tests of a verified winner on the base, after the verdict, and records the result. Returns the
/// result as a sentence; `None` if there is nothing to judge, or if the result was already known.
pub fn prove(
    session: &Session,
    options: &JudgeOptions,
    verdict: &mut Verdict,
) -> Result<Option<String>> {
    let is_wanted = session.config.get(keys::ORACLE_PROOF) == ProofMode::Auto;
    let winner = verdict.winner().and_then(|name| verdict.entry(name)).cloned();
    let (Some(entry), Some(base)) = (winner, verdict.baseline.clone()) else { return Ok(None) };
    let Some(capture) = &entry.tree else { return Ok(None) };
    if !is_wanted || entry.proof.is_some() {
        return Ok(None);
    }
    if TestFiles::of(&session.repo, &verdict.base, capture)?.files.is_empty() {
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
    let proof = runner.proof_of(&entry, &base);
    let (proof, doubts) = runner.end(proof)?;
    if doubts.tainted {
        return Ok(None);
    }
    let Some(proof) = proof else {
        let name = &entry.candidate;
        return Ok(Some(format!(
            "the tests of {name} ran on the base, but the output does not tell how they ended: they show nothing"
        )));
    };
    let sentence = format!("{} {}", entry.candidate, proof.in_words());
    let open = base_passes_too(&base, &entry);
    for own in verdict.candidates.iter_mut().filter(|own| own.candidate == entry.candidate) {
        own.proof = Some(proof.clone());
        let rationale = &mut verdict.decision.rationale;
        *rationale = rationale.replace(open, base_passes_too(&base, own));
    }
    record::save_record(session, run, verdict)?;
    Ok(Some(sentence))
}

impl OracleRunner<'_> {
    /// The results of a passing candidate's tests on the base; `None` if no test can be moved to the base, or
    /// if the commands do not tell how the tests ended.
    pub(in crate::ops::judge::runner) fn proof_of(
        &self,
        entry: &Entry,
        baseline: &Baseline,
    ) -> Result<Option<Proof>> {
        let Some(capture) = &entry.tree else { return Ok(None) };
        let repo = &self.session.repo;
        let tests = TestFiles::of(repo, self.run.root(), capture)?;
        if tests.files.is_empty() {
            return Ok(None);
        }
        let files: Vec<&Change> = tests.files.iter().collect();
        let laid = lay_over(repo, &self.base_tree()?, &files)?;
        let work = Work::of_cross(None, entry.candidate.as_str(), laid);
        let there = self.judge_laid_over(&[work], 1, self.warmth())?.remove(0);
        let nothing = TestReport::default();
        let before = baseline.results.report().unwrap_or(&nothing);
        let own = entry.results.report();
        let mut names = own.map(|own| own.passing_beyond(before)).unwrap_or_default();
        names.extend(edited_tests(&there, before));
        if !names.is_empty() {
            let cells = names.iter().map(|name| (name.as_str(), Cell::of(&there, name)));
            return Ok(Proof::of(cells));
        }
        // No reported test is new or ends differently on the base, so only the exit code can tell.
        let cell = if there.passed() {
            Cell::Pass
        } else if before.passing.is_empty() && baseline.results.passed() {
            Cell::of_exit(&there, own.is_some())
        } else {
            return Ok(None);
        };
        Ok(Proof::of([(tests.in_words().as_str(), cell)]))
    }
}
