//! Judging: the project's own commands on each distinct tree, and the verdict over them.
mod entries;
mod partial;
mod runner;

pub use partial::{judge_some, replay};
pub use runner::{OracleRunner, judge_commit};

use std::time::Duration;

use serde_json::{Value, json};

use crate::config::keys;
use crate::config::value::Flaky;
use crate::error::{Result, exit};
use crate::git::commit::neutral_commit;
use crate::model::FORMAT;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::ranking::{Rank, Rules, decide};
use crate::model::run::Run;
use crate::model::verdict::{Baseline, DecisionKind, Entry, JudgeSettings, Verdict};
use crate::ops::judge::runner::StopWhen;
use crate::ops::session::Session;
use crate::oracle::run as oracle_run;
use crate::oracle::{self, OracleFlags};

/// How a run is judged; the default is what configuration and the base's files say.
#[derive(Clone, Debug, Default)]
pub struct JudgeOptions {
    /// What flags named of the oracle.
    pub flags: OracleFlags,
    /// How many candidates are judged at once; 0 is 1.
    pub jobs: usize,
    /// How long each command may take; `oracle.timeout` if none.
    pub timeout: Option<Duration>,
    /// How often a command that failed is tried again; `oracle.retries` if none.
    pub retries: Option<u32>,
    /// Pathspecs to put back to the base's version, beside those of `oracle.protect`.
    pub protect: Vec<String>,
    /// What ranks those that passed; `oracle.rank` if none.
    pub rank: Option<Rank>,
    /// Whether the base is judged, too; it always is when nobody passed.
    pub baseline: bool,
    /// Whether to stop as soon as the recommended candidate cannot change.
    pub until_pass: bool,
    /// Whether to judge in the worktrees themselves.
    pub in_place: bool,
    /// Whether ignored build directories stay from one candidate to the next.
    pub warm: bool,
    /// Whether known outcomes are left aside.
    pub no_cache: bool,
}

impl JudgeOptions {
    /// The commands that are to run, each of a program that is there. `told` hears of them.
    fn oracle(
        &self,
        session: &Session,
        run: &Run,
        told: impl Fn(&[OracleCommand]),
    ) -> Result<Vec<OracleCommand>> {
        let oracle = oracle::resolve(&session.repo, &session.config, &self.flags, &run.base)?;
        oracle_run::require_programs(&oracle)?;
        told(&oracle);
        Ok(oracle)
    }

    /// What was asked for, completed by configuration.
    fn terms(&self, session: &Session) -> JudgeSettings {
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
            // A worktree holds what the attempt left there.
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

/// Captures a run's candidates, runs the oracle on each distinct tree, decides, and records the verdict.
/// `told` hears of the oracle before it runs.
pub fn judge(
    session: &Session,
    run: &Run,
    asked: &JudgeOptions,
    told: impl Fn(&[OracleCommand]),
) -> Result<Verdict> {
    let _lock = session.store.lock_run(&run.run)?;
    let oracle = asked.oracle(session, run, told)?;
    let terms = asked.terms(session);
    let mut entries = entries::of_run(session, run, &oracle, &terms)?;
    let mut verdict = Verdict {
        version: FORMAT,
        run: run.run.clone(),
        base: run.base,
        judged: jiff::Timestamp::now(),
        decision: decide(&entries, None, rules(&terms)),
        terms,
        effort: Default::default(),
        oracle,
        baseline: None,
        candidates: Vec::new(),
    };
    if !verdict.oracle.is_empty() && entries.iter().any(Entry::usable) {
        let timeout = asked.timeout.unwrap_or_else(|| session.config.get(keys::ORACLE_TIMEOUT));
        let known = !asked.no_cache;
        let runner =
            OracleRunner::open(session, run, &verdict.oracle, &verdict.terms, timeout, known)?;
        let extent = if asked.until_pass {
            StopWhen::UntilDecided(rules(&verdict.terms))
        } else {
            StopWhen::All
        };
        let ((effort, baseline), tainted) = runner.watched(|runner| {
            let mut effort = runner.run_all(&mut entries, asked.jobs.max(1), &extent)?;
            let wanted =
                !verdict.terms.in_place && (asked.baseline || !entries.iter().any(Entry::passed));
            let results = wanted.then(|| runner.run_baseline(&mut effort)).transpose()?;
            Ok((effort, results.map(|results| Baseline { results })))
        })?;
        (verdict.effort, verdict.baseline, verdict.terms.tainted) = (effort, baseline, tainted);
    }
    for entry in &mut entries {
        entries::forget_passing_tests(&mut entry.results);
    }
    verdict.decision = decide(&entries, verdict.baseline.as_ref(), rules(&verdict.terms));
    verdict.candidates = entries;
    save(session, run, &verdict)?;
    session.store.forget_parts(run)?;
    Ok(verdict)
}

/// Writes a verdict down, with the judged commits as parents, and says so in the event log.
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
        .filter_map(|e| Some((e.candidate.to_string(), json!(e.failing_tests()?))));
    let failing: serde_json::Map<String, Value> =
        failing.filter(|(_, tests)| *tests != json!([])).collect();
    let mut details = json!({
        "decision": decision.decision, "recommended": decision.recommended, "rationale": decision.rationale,
    });
    if !failing.is_empty() {
        details["failing_tests"] = failing.into();
    }
    session.store.record_event("judged", &run.run, details)
}

/// The rules that a verdict was, or is to be, decided by.
pub fn rules(terms: &JudgeSettings) -> Rules {
    Rules { ceiling: terms.ceiling.unwrap_or(Rules::default().ceiling), rank: terms.rank }
}

/// What `judge` exits with, by DESIGN.md §2.
pub fn exit_code(verdict: &Verdict) -> u8 {
    match verdict.decision.decision {
        DecisionKind::NearMiss => exit::NO,
        DecisionKind::NoOracle => exit::UNVERIFIED,
        DecisionKind::None => exit::UNUSABLE,
        _ if !verdict.verified() => exit::UNVERIFIED,
        _ => exit::OK,
    }
}

/// Everything that the table says, and what it was decided from.
pub fn as_json(verdict: &Verdict) -> Value {
    let mut value = serde_json::to_value(verdict).unwrap_or_default();
    value["verified"] = json!(verdict.verified());
    value["exit_code"] = json!(exit_code(verdict));
    for (at, entry) in verdict.candidates.iter().enumerate() {
        value["candidates"][at]["usable"] = json!(entry.usable());
        value["candidates"][at]["passed"] = json!(entry.passed());
        if let Some(comparison) = verdict.baseline.as_ref().and_then(|b| b.compare(entry)) {
            value["candidates"][at]["failing_tests"] = json!(comparison);
        }
    }
    value
}
