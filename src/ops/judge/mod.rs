//! Judging: the project's own commands on each distinct tree, and the verdict over them.
mod entries;
mod partial;
mod runner;
mod schedule;
mod tamper;

pub use partial::{judge_some, replay};
pub use runner::judge_commit;

use std::time::Duration;

use crate::config::keys;
use crate::config::value::Flaky;
use crate::error::Result;
use crate::git::commit::neutral_commit;
use crate::model::FORMAT;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::rank::Rank;
use crate::model::ranking::{Rules, decide};
use crate::model::run::Run;
use crate::model::verdict::{Baseline, Entry, JudgeSettings, Verdict};
use crate::ops::judge::runner::OracleRunner;
use crate::ops::judge::schedule::StopWhen;
use crate::ops::session::Session;
use crate::oracle::run as oracle_run;
use crate::oracle::{self, OracleFlags};
use crate::store::events::Event;

/// The options of one judging. What they leave open comes from configuration and the base's files.
#[derive(Clone, Debug, Default)]
pub struct JudgeOptions {
    /// The commands that flags name.
    pub flags: OracleFlags,
    /// The number of candidates that are judged at the same time; 0 counts as 1.
    pub jobs: usize,
    /// The time limit of each command; `oracle.timeout` if none.
    pub timeout: Option<Duration>,
    /// The number of further attempts after a failure; `oracle.retries` if none.
    pub retries: Option<u32>,
    /// Pathspecs to restore to the base's version, besides those of `oracle.protect`.
    pub protect: Vec<String>,
    /// The ranking of those that passed; `oracle.rank` if none.
    pub rank: Option<Rank>,
    /// True to judge the base, too. It always is when no candidate passed.
    pub baseline: bool,
    /// True to stop as soon as the recommended candidate cannot change.
    pub until_pass: bool,
    /// True to judge in the worktrees themselves.
    pub in_place: bool,
    /// True to keep ignored build directories from one candidate to the next.
    pub warm: bool,
    /// True to run everything, even if its outcome is cached.
    pub no_cache: bool,
}

impl JudgeOptions {
    /// The commands to run. `on_oracle` is called with them. Fails if the program of one is not
    /// installed.
    fn oracle(
        &self,
        session: &Session,
        run: &Run,
        on_oracle: impl Fn(&[OracleCommand]),
    ) -> Result<Vec<OracleCommand>> {
        let oracle = oracle::resolve(&session.repo, &session.config, &self.flags, &run.base)?;
        oracle_run::require_programs(&oracle)?;
        on_oracle(&oracle);
        Ok(oracle)
    }

    fn timeout(&self, session: &Session) -> Duration {
        self.timeout.unwrap_or_else(|| session.config.get(keys::ORACLE_TIMEOUT))
    }

    /// The settings to record: these options, completed by configuration.
    fn settings(&self, session: &Session) -> JudgeSettings {
        let config = &session.config;
        let mut protect = config.get(keys::ORACLE_PROTECT);
        for path in &self.protect {
            if !protect.contains(path) {
                protect.push(path.clone());
            }
        }
        JudgeSettings {
            rank: self.rank.unwrap_or_else(|| config.get(keys::ORACLE_RANK)),
            ceiling: Some(config.get(keys::SYNTHESIS_CEILING)),
            // Protected paths cannot be restored when judging in place.
            protect: if self.in_place { Vec::new() } else { protect },
            retries: self.retries.unwrap_or_else(|| config.get(keys::ORACLE_RETRIES)),
            refuse_flaky: config.get(keys::ORACLE_FLAKY) == Flaky::Fail,
            junit: config.get(keys::ORACLE_JUNIT),
            in_place: self.in_place,
            warm: self.warm,
            tainted: false,
        }
    }
}

/// Captures a run's candidates, runs the oracle on each distinct tree, decides, and records the
/// verdict. `on_oracle` is called with the commands before they run.
pub fn judge(
    session: &Session,
    run: &Run,
    options: &JudgeOptions,
    on_oracle: impl Fn(&[OracleCommand]),
) -> Result<Verdict> {
    let _span = tracing::info_span!("judge", run = %run.run).entered();
    let _lock = session.store.lock_run(&run.run)?;
    let oracle = options.oracle(session, run, on_oracle)?;
    let settings = options.settings(session);
    let mut entries = entries::of_run(session, run, &oracle, &settings)?;
    let mut verdict = Verdict {
        version: FORMAT,
        run: run.run.clone(),
        base: run.base,
        judged: jiff::Timestamp::now(),
        decision: decide(&entries, None, rules(&settings)),
        settings,
        effort: Default::default(),
        oracle,
        baseline: None,
        candidates: Vec::new(),
    };
    if !verdict.oracle.is_empty() && entries.iter().any(Entry::usable) {
        run_oracle(session, run, options, &mut verdict, &mut entries)?;
    }
    for entry in &mut entries {
        entries::forget_passing_tests(&mut entry.results);
    }
    verdict.decision = decide(&entries, verdict.baseline.as_ref(), rules(&verdict.settings));
    verdict.candidates = entries;
    save(session, run, &verdict)?;
    session.store.forget_parts(run)?;
    Ok(verdict)
}

/// Runs a verdict's oracle on the entries, and on the base where that is wanted, and fills the
/// results in.
fn run_oracle(
    session: &Session,
    run: &Run,
    options: &JudgeOptions,
    verdict: &mut Verdict,
    entries: &mut [Entry],
) -> Result<()> {
    let Verdict { oracle, settings, .. } = &*verdict;
    let timeout = options.timeout(session);
    let runner = OracleRunner::new(session, run, oracle, settings, timeout, !options.no_cache)?;
    let stop =
        if options.until_pass { StopWhen::Decided(rules(settings)) } else { StopWhen::AllRan };
    let ((effort, baseline), tainted) = runner.watched(|runner| {
        let mut effort = runner.run_all(entries, options.jobs, stop)?;
        let wanted = options.baseline || !entries.iter().any(Entry::passed);
        if !wanted || settings.in_place {
            return Ok((effort, None));
        }
        let results = runner.run_baseline(&mut effort)?;
        Ok((effort, Some(Baseline { results })))
    })?;
    verdict.effort = effort;
    verdict.baseline = baseline;
    verdict.settings.tainted = tainted;
    Ok(())
}

/// Records a verdict, with the judged commits as parents, and adds it to the event log.
fn save(session: &Session, run: &Run, verdict: &Verdict) -> Result<()> {
    let ran = verdict.candidates.iter().filter(|e| !e.results.is_empty());
    let mut commits: Vec<Oid> = Vec::new();
    for tree in ran.filter_map(Entry::judged) {
        commits.push(neutral_commit(&session.repo, tree, &run.base)?);
    }
    commits.sort();
    commits.dedup();
    session.store.save_record(run, Some(verdict), &commits)?;
    let decision = &verdict.decision;
    let failing = verdict
        .candidates
        .iter()
        .filter_map(|e| Some((e.candidate.clone(), e.failing_tests()?.to_vec())));
    let event = Event::Judged {
        decision: decision.decision,
        recommended: decision.recommended.clone(),
        rationale: decision.rationale.clone(),
        failing_tests: failing.filter(|(_, tests)| !tests.is_empty()).collect(),
    };
    session.store.record_event(&run.run, &event)
}

/// The rules by which a verdict with these settings is decided.
pub fn rules(settings: &JudgeSettings) -> Rules {
    Rules { ceiling: settings.ceiling.unwrap_or(Rules::default().ceiling), rank: settings.rank }
}
