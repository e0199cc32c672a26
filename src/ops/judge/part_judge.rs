//! Judges parts of a run, so that several processes or machines can share the work. A part is a
//! single candidate or the base.
use std::collections::BTreeSet;
use std::path::Path;
use std::slice;

use crate::error::Result;
use crate::fs::regular;
use crate::git::commit::neutral_commit;
use crate::model::FORMAT;
use crate::model::name::Name;
use crate::model::outcome::{Results, StageResult};
use crate::model::part::{Machine, Part, PartOutcome};
use crate::model::run::Run;
use crate::model::terms::Terms;
use crate::model::verdict::{Baseline, Entry, Verdict};
use crate::ops::capture::Captured;
use crate::ops::judge::entries;
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::overruled::overrule;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::judge::schedule::StopWhen;
use crate::ops::kept_commits::KeptCommits;
use crate::ops::session::Session;
use crate::oracle::ResolvedOracle;
use crate::oracle::ledger::Memory;
use crate::oracle::run::with_judge_command;
use crate::process::interrupt::Cancel;
use crate::store::Store;
use crate::store::events::Event;
use crate::store::parts::NewOutcome;
use crate::store::select::check_candidate;

/// Judges parts of one run, and returns their outcomes without storing them.
pub struct PartJudge<'a> {
    pub session: &'a Session,
    pub run: &'a Run,
    /// The terms, including the world on this machine.
    pub terms: Terms,
    /// The round of judging that the outcomes belong to.
    pub round: u32,
    /// The options of this process.
    pub options: JudgeOptions,
}

/// Judges only these candidates of a run, and stores their outcomes. If one passed, also judges the
/// base, unless its results are known. Other processes may judge other candidates at the same time.
/// Does not decide; [`super::replay`] does that. Returns the outcomes as they are after a
/// comparison with the base's results.
pub fn judge_some(
    session: &Session,
    run: &Run,
    names: &[Name],
    options: &JudgeOptions,
    on_oracle: impl Fn(&ResolvedOracle) -> Result<()>,
) -> Result<Vec<PartOutcome>> {
    let store = &session.store;
    for name in names {
        check_candidate(run, name)?;
    }
    let _lock = store.share_run(&run.run)?;
    entries::require_captures(session, run)?;
    let oracle = options.oracle(session, run.root())?;
    on_oracle(&oracle)?;
    let judge = PartJudge {
        session,
        run,
        terms: options.terms_to_run(session, &oracle)?,
        round: store.last_round(&run.run)?,
        options: options.clone(),
    };
    let mut captured = Vec::new();
    let mut seen = BTreeSet::new();
    for name in names.iter().filter(|name| seen.insert(*name)) {
        let one = session.capture_or_tell(store.candidate(run, name))?;
        session.print_omissions(&one);
        captured.push(one);
    }
    let _kept = KeptCommits { session, run };
    let mut parts = Vec::new();
    let judged = judge.judge_captured(&captured).map_err(|error| {
        let only: String = names.iter().map(|name| format!(" --candidate {name}")).collect();
        with_judge_command(error, &judge.terms, &run.run, &only)
    })?;
    for new in judged {
        store.save_outcome(&new)?;
        record_event(session, run, &new.outcome)?;
        parts.push(new.outcome);
    }
    let passed = parts.iter().filter_map(|part| part.candidate.as_ref()).any(Entry::passed);
    if passed
        && judge.terms.settings.needs_base()
        && let Some(PartOutcome { terms, round, .. }) = parts.first().cloned()
    {
        // A pass does not count until it has been compared with the base's results. The stored
        // outcomes stay as they are, because the decision compares them again, maybe with newer
        // results of the base.
        let baseline = judge.baseline(&terms, round)?;
        for entry in parts.iter_mut().filter_map(|part| part.candidate.as_mut()) {
            let entry = slice::from_mut(entry);
            overrule(&session.repo, run.root(), &terms, entry, Some(&baseline))?;
        }
    }
    Ok(parts)
}

/// The stored outcome of the base, if it was found in this round and on these terms.
pub fn base_outcome(
    store: &Store,
    run: &Run,
    round: u32,
    terms: &Terms,
) -> Result<Option<PartOutcome>> {
    let found = store.outcome(&run.run, &Part::Base)?;
    Ok(found.filter(|found| {
        (found.round, found.base, found.part()) == (round, run.base, Part::Base)
            && found.terms.first_difference(terms).is_none()
    }))
}

impl PartJudge<'_> {
    /// Judges captured candidates.
    pub fn judge_captured(&self, captured: &[Captured]) -> Result<Vec<NewOutcome>> {
        let PartJudge { session, run, terms, options, .. } = self;
        let mut entries = entries::from_captured(session, run, terms, captured)?;
        let outcome = match terms.oracle.as_slice() {
            [] => self.outcome_of(terms)?,
            _ => {
                let (_, outcome) = self.judged_by(|runner| {
                    runner.run_all(&mut entries, options.jobs, StopWhen::AllRan, false)
                })?;
                entries::name_twins(&mut entries);
                outcome
            }
        };
        let mut found = Vec::new();
        for mut entry in entries {
            // If several candidates have the same tree, the commands ran only for the first of
            // them. So the logs are in the first one's directory.
            let judged = entry.same_as.as_ref().unwrap_or(&entry.candidate);
            let directory = session.store.candidate_dir(&run.run, judged);
            let logs = last_of_logs(directory.path(), &entry.results);
            entry.results.forget_passing_tests(None);
            // Only a verdict over all candidates can set these two fields, because they compare
            // candidates.
            entry.agreement = None;
            entry.same_as = None;
            let tree = entry.judged().map(|tree| neutral_commit(&session.repo, tree, &run.base));
            let judged = tree.transpose()?;
            let outcome = PartOutcome { candidate: Some(entry), ..outcome.clone() };
            found.push(NewOutcome { outcome, judged, logs });
        }
        Ok(found)
    }

    /// The base's results on these terms: those of the last verdict, or else those of this round.
    /// If there are none yet, judges the base, and stores the outcome.
    fn baseline(&self, terms: &Terms, round: u32) -> Result<Baseline> {
        let store = &self.session.store;
        let is_same = |verdict: &Verdict| verdict.terms.first_difference(terms).is_none();
        let verdict = store.verdict(&self.run.run)?.filter(is_same);
        if let Some(baseline) = verdict.and_then(|verdict| verdict.baseline) {
            return Ok(baseline);
        }
        let found = match base_outcome(store, self.run, round, terms)? {
            Some(found) => found,
            None => {
                let new = self.judge_base()?;
                store.save_outcome(&new)?;
                new.outcome
            }
        };
        Ok(Baseline { results: found.on_base, inherited: false })
    }

    pub fn judge_base(&self) -> Result<NewOutcome> {
        let (judged, outcome) =
            self.judged_by(|runner| runner.judge_base(&Cancel::default(), &|_| ()))?;
        let outcome = PartOutcome { on_base: judged.unwrap_or_default(), ..outcome };
        let directory = self.session.store.base_logs(&self.run.run).judging(None).directory();
        let logs = last_of_logs(&directory, &outcome.on_base);
        Ok(NewOutcome { outcome, judged: None, logs })
    }

    /// Does `work` with a runner. Returns the value of `work`, and an outcome that lacks only the
    /// results.
    fn judged_by<T>(
        &self,
        work: impl FnOnce(&OracleRunner<'_>) -> Result<T>,
    ) -> Result<(T, PartOutcome)> {
        let PartJudge { session, run, terms, options, .. } = self;
        // Judge without the base's outputs, because the process that decides by stored outcomes
        // cannot confirm claims.
        let options = &JudgeOptions { cold: true, ..options.clone() };
        let memory = Memory::default();
        let runner = OracleRunner::new(session, run, terms.clone(), options, &memory)?;
        let mut outcome = self.outcome_of(&runner.terms)?;
        runner.warn_of_seeds();
        let done = work(&runner);
        let (done, doubts) = runner.end(done)?;
        outcome.terms.settings.doubts = doubts;
        Ok((done, outcome))
    }

    /// The outcome, still without results, of a judging on these terms that begins now on this
    /// machine.
    fn outcome_of(&self, terms: &Terms) -> Result<PartOutcome> {
        let git = self.session.repo.git().call("version").line()?.to_string_lossy().into_owned();
        Ok(PartOutcome {
            version: FORMAT,
            run: self.run.run.clone(),
            base: self.run.base,
            judged: jiff::Timestamp::now(),
            round: self.round,
            machine: Some(Machine {
                host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
                platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
                git: git.strip_prefix("git version ").unwrap_or(&git).to_owned(),
                git_frites: env!("CARGO_PKG_VERSION").to_owned(),
            }),
            terms: terms.clone(),
            candidate: None,
            on_base: Results::default(),
        })
    }
}

/// Adds an outcome to the event log.
pub fn record_event(session: &Session, run: &Run, outcome: &PartOutcome) -> Result<()> {
    let Some(candidate) = &outcome.candidate else { return Ok(()) };
    let event = Event::Outcome {
        candidate: candidate.candidate.clone(),
        passed: candidate.passed(),
        skipped: candidate.skipped(),
    };
    session.store.record_event(&run.run, &event)
}

/// A stored outcome keeps this many bytes of each log. They are the last ones, because the cause of
/// a failure is usually at the end.
const KEPT_OF_LOG: usize = 64 << 10;

/// The ends of the logs of these results, each with its file name. A log that cannot be read is
/// left out.
fn last_of_logs(directory: &Path, results: &Results) -> Vec<(String, Vec<u8>)> {
    let names = results.iter().flat_map(StageResult::log_names);
    let logs = names.filter_map(|name| {
        let bytes = regular::read(&directory.join(&name)).ok()?;
        Some((name, end_of_log(&bytes).to_vec()))
    });
    logs.collect()
}

/// The part of a log that a stored outcome keeps.
pub fn end_of_log(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len().saturating_sub(KEPT_OF_LOG)..]
}
