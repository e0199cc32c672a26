//! Partial verdicts: the outcomes of candidates that were judged by themselves, in several
//! processes or on several machines, and the decision over all that are stored.

use crate::error::{Error, Result};
use crate::git::commit::neutral_commit;
use crate::integrity::trust;
use crate::model::FORMAT;
use crate::model::decision::decide;
use crate::model::name::Name;
use crate::model::oracle::OracleCommand;
use crate::model::rank::Rank;
use crate::model::ranking::Rules;
use crate::model::run::Run;
use crate::model::verdict::{JudgeSettings, PartialVerdict, Verdict};
use crate::ops::judge::entries;
use crate::ops::judge::judged_base::BaseState;
use crate::ops::judge::keep::KeptCommits;
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::record::save;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::judge::schedule::StopWhen;
use crate::ops::session::Session;
use crate::store::events::Event;
use crate::store::select::check_candidate;

/// Judges some candidates of a run by themselves and stores their outcomes; others may be judged at
/// the same time. Nothing is decided: see [`replay`].
pub fn judge_some(
    session: &Session,
    run: &Run,
    names: &[Name],
    options: &JudgeOptions,
    on_oracle: impl Fn(&[OracleCommand]),
) -> Result<Vec<PartialVerdict>> {
    let Session { repo, store, .. } = session;
    for name in names {
        check_candidate(run, name)?;
    }
    let _lock = store.share_run(&run.run)?;
    let _kept = KeptCommits::new(session, run);
    let oracle = options.oracle(session, &run.base)?;
    on_oracle(&oracle);
    let mut settings = options.settings(session);
    let mut captured = Vec::new();
    for name in names {
        let one = session.capture_or_tell(store.candidate(run, name))?;
        session.print_omissions(&one);
        captured.push(one);
    }
    let mut entries = entries::from_captured(session, run, &oracle, &settings, &captured)?;
    if !oracle.is_empty() {
        let timeout = options.timeout(session);
        let runner =
            OracleRunner::new(session, run, &oracle, &settings, timeout, !options.no_cache)?;
        let run_all = |runner: &OracleRunner<'_>| {
            runner.run_all(&mut entries, options.jobs, StopWhen::AllRan, BaseState::NotWanted)
        };
        let (_, tainted) = runner.watched(run_all)?;
        settings.tainted = tainted;
    }
    let mut parts = Vec::new();
    for mut entry in entries {
        entries::forget_passing_tests(&mut entry.results);
        // Only a verdict over all candidates can compare them, or tell which of them have the same
        // tree.
        entry.agreement = None;
        entry.same_as = None;
        let part = PartialVerdict {
            version: FORMAT,
            run: run.run.clone(),
            base: run.base,
            judged: jiff::Timestamp::now(),
            settings: settings.clone(),
            oracle: oracle.clone(),
            candidate: entry,
        };
        let commit = part
            .candidate
            .judged()
            .map(|tree| neutral_commit(repo, tree, &run.base))
            .transpose()?;
        store.save_part(&part, commit.as_ref())?;
        let event = Event::Outcome {
            candidate: part.candidate.candidate.clone(),
            passed: part.candidate.passed(),
        };
        store.record_event(&run.run, &event)?;
        parts.push(part);
    }
    Ok(parts)
}

/// Decides again from the stored outcomes, without running anything: those of the last verdict, and
/// of candidates that were judged by themselves since. `rank` is another ranking than the recorded
/// one.
///
/// A new decision is recorded, because `apply` lands by the record.
pub fn replay(session: &Session, run: &Run, rank: Option<Rank>) -> Result<Verdict> {
    let store = &session.store;
    let _lock = store.lock_run(&run.run)?;
    trust::require_own_record(session.integrity(), run)?;
    let stored = store.verdict(&run.run)?;
    let since = stored.as_ref().map(|v| v.judged);
    let mut parts = store.parts(run)?;
    parts.retain(|part| since.is_none_or(|since| part.judged > since));
    let mut verdict = match (&stored, parts.first()) {
        (Some(verdict), _) => verdict.clone(),
        (None, Some(first)) => from_part(session, run, first)?,
        (None, None) => {
            return Err(Error::fatal(format!("run {} was never judged", run.run))
                .hint(format!("judge it with `git frites judge {}`", run.run)));
        }
    };
    for part in parts {
        require_same_oracle(run, &verdict, &part)?;
        verdict.judged = verdict.judged.max(part.judged);
        verdict.settings.tainted |= part.settings.tainted;
        match verdict.candidates.iter_mut().find(|e| e.candidate == part.candidate.candidate) {
            Some(entry) => *entry = part.candidate,
            None => verdict.candidates.push(part.candidate),
        }
    }
    add_missing_candidates(session, run, &mut verdict)?;
    if stored.as_ref().map(|v| &v.candidates) != Some(&verdict.candidates) {
        entries::set_agreement_of_judged(session, run, &mut verdict.candidates)?;
    }
    verdict.settings.rank = rank.unwrap_or(verdict.settings.rank);
    verdict.decision = decide(
        &verdict.candidates,
        verdict.baseline.as_ref(),
        Rules::from_settings(&verdict.settings),
    );
    if stored.as_ref() != Some(&verdict) {
        save(session, run, &verdict)?;
    }
    Ok(verdict)
}

/// Adds the candidates that the run has got since it was judged, without results: one of them could
/// win.
fn add_missing_candidates(session: &Session, run: &Run, verdict: &mut Verdict) -> Result<()> {
    let mut captured = Vec::new();
    for candidate in session.store.candidates(run) {
        if verdict.entry(candidate.name).is_none() {
            captured.push(session.capture_or_tell(candidate)?);
        }
    }
    if captured.is_empty() {
        return Ok(());
    }
    let Verdict { oracle, settings, .. } = &*verdict;
    let mut added = entries::from_captured(session, run, oracle, settings, &captured)?;
    verdict.candidates.append(&mut added);
    verdict.candidates.sort_by_key(|entry| entry.index);
    Ok(())
}

/// A verdict without any results, with the settings of a partial one: every candidate as it is now.
fn from_part(session: &Session, run: &Run, part: &PartialVerdict) -> Result<Verdict> {
    let candidates = entries::of_run(session, run, &part.oracle, &part.settings)?;
    Ok(Verdict {
        version: FORMAT,
        run: run.run.clone(),
        base: run.base,
        judged: part.judged,
        decision: decide(&candidates, None, Rules::from_settings(&part.settings)),
        settings: part.settings.clone(),
        effort: Default::default(),
        oracle: part.oracle.clone(),
        baseline: None,
        candidates,
    })
}

/// Refuses a partial verdict of another oracle, or with other settings: its outcomes cannot be
/// compared.
fn require_same_oracle(run: &Run, verdict: &Verdict, part: &PartialVerdict) -> Result<()> {
    let without_rank = |settings: &JudgeSettings| JudgeSettings {
        rank: Rank::default(),
        ceiling: None,
        tainted: false,
        ..settings.clone()
    };
    let commands = |oracle: &[OracleCommand]| -> Vec<_> {
        oracle.iter().map(|c| (c.stage, c.command.clone())).collect()
    };
    let same = commands(&part.oracle) == commands(&verdict.oracle)
        && without_rank(&part.settings) == without_rank(&verdict.settings)
        && part.base == verdict.base;
    if same {
        return Ok(());
    }
    let name = &part.candidate.candidate;
    Err(Error::fatal(format!(
        "{}/{name} was judged by other commands, or with other settings, than the rest",
        run.run
    ))
    .hint(format!("judge it as the others were: `git frites judge {} --candidate {name}`", run.run))
    .hint(format!("or all of them: `git frites judge {}`", run.run)))
}
