//! Judging: the project's own commands on each distinct tree, and the verdict over them.
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::session::{Captured, Session};
use super::{preparing, watching};
use crate::config::keys;
use crate::error::{Error, IoContext, Result, exit};
use crate::git::commit;
use crate::model::FORMAT;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::StageResult;
use crate::model::run::Run;
use crate::model::verdict::{DecisionKind, Entry, Rules, Verdict, decide};
use crate::oracle::checkout::Room;
use crate::oracle::{self, run as oracle_run};
use crate::process;
use crate::ui::table;

/// How a run is judged.
pub struct Asked {
    /// What flags named of the oracle.
    pub flags: oracle::Flags,
    /// How many candidates are judged at once.
    pub jobs: usize,
    /// How long each command may take; `oracle.timeout` if none.
    pub timeout: Option<Duration>,
}

/// Captures a run's candidates, runs the oracle on each distinct tree, decides, and records the verdict.
/// `told` hears of the oracle before it runs.
pub fn judge(session: &Session, run: &Run, asked: &Asked, told: impl Fn(&[OracleCommand])) -> Result<Verdict> {
    let Session { repo, store, .. } = session;
    let _lock = store.lock_run(&run.run)?;
    let oracle = oracle::resolve(repo, &session.config, &asked.flags, &run.base)?;
    oracle_run::require_programs(&oracle)?;
    told(&oracle);
    let candidates = session.capture_all(run)?;
    for captured in &candidates {
        session.tell_notes(captured);
    }
    let mut entries: Vec<Entry> = candidates.iter().map(|captured| entry(run, captured)).collect();
    let mut judged = Vec::new();
    if !oracle.is_empty() {
        // Equal trees run once: the first in spawn order stands for the others.
        let mut distinct: BTreeMap<Oid, Name> = BTreeMap::new();
        for captured in candidates.iter().filter(|c| c.usable()) {
            let tree = captured.tree(&run.base).clone();
            distinct.entry(tree).or_insert_with(|| captured.candidate.candidate.clone());
        }
        let outcomes = run_oracle(session, run, &oracle, &distinct, asked)?;
        for entry in entries.iter_mut().filter(|e| e.usable()) {
            let Some((tree, (commit, results))) = entry.tree.as_ref().and_then(|t| outcomes.get_key_value(t)) else {
                continue;
            };
            entry.results.clone_from(results);
            entry.same_as = distinct.get(tree).filter(|n| **n != entry.candidate).cloned();
            judged.push(commit.clone());
        }
        judged.sort();
        judged.dedup();
    }
    let verdict = Verdict {
        version: FORMAT,
        run: run.run.clone(),
        base: run.base.clone(),
        judged: jiff::Timestamp::now(),
        decision: decide(&entries, rules(session)),
        oracle,
        candidates: entries,
    };
    store.save_record(repo, run, Some(&verdict), &judged)?;
    let decision = &verdict.decision;
    let details =
        json!({ "decision": decision.decision, "recommended": decision.recommended, "rationale": decision.rationale });
    store.record_event("judged", &run.run, details)?;
    Ok(verdict)
}

fn rules(session: &Session) -> Rules {
    Rules { ceiling: session.config.get(keys::SYNTHESIS_CEILING) }
}

fn entry(run: &Run, captured: &Captured) -> Entry {
    let synthesis = run.synthesis.get(&captured.candidate.candidate);
    Entry {
        candidate: captured.candidate.candidate.clone(),
        index: captured.candidate.index,
        state: captured.candidate.state,
        iteration: captured.capture.as_ref().map(|c| c.iteration),
        tree: captured.capture.as_ref().map(|c| c.tree.clone()),
        blast: captured.blast,
        problem: captured.problem.clone(),
        same_as: None,
        drew_on: synthesis.map(|s| s.drew_on.clone()).unwrap_or_default(),
        results: Vec::new(),
    }
}

/// The commit that each tree was judged as, and how its commands ended.
type Outcomes = BTreeMap<Oid, (Oid, Vec<StageResult>)>;

/// Runs the oracle on each tree, in spawn order of the candidates that stand for them.
fn run_oracle(
    session: &Session,
    run: &Run,
    oracle: &[OracleCommand],
    distinct: &BTreeMap<Oid, Name>,
    asked: &Asked,
) -> Result<Outcomes> {
    let timeout = asked.timeout.unwrap_or_else(|| session.config.get(keys::ORACLE_TIMEOUT));
    let room = Room::open(&session.repo, &session.store)?.seeded(session.seeds(&run.base)?);
    preparing::require_space_to_judge(session, room.path(), &run.base, asked.jobs.min(distinct.len()))?;
    let mut trees: Vec<(&Oid, &Name)> = distinct.iter().collect();
    trees.sort_by_key(|(_, name)| run.index_of(name));
    let names: Vec<Name> = trees.iter().map(|(_, name)| (*name).clone()).collect();
    let judge_one = |(tree, name): &(&Oid, &Name)| {
        let commit = commit::neutral_commit(&session.repo, tree, &run.base)?;
        let logs = session.store.candidate_dir(&run.run, name);
        let results = judge_commit(session, &room, oracle, timeout, &commit, &format!("{}/{name}", run.run), &logs)?;
        Ok(((*tree).clone(), (commit, results)))
    };
    let results = watching::live(session, run, &names, || process::in_parallel(asked.jobs, &trees, judge_one))?;
    Ok(results.into_iter().collect())
}

/// Runs the oracle on one commit in a pristine checkout, telling how it goes as `who`; output goes to the
/// folder `logs`, which is made.
pub fn judge_commit(
    session: &Session,
    room: &Room<'_>,
    oracle: &[OracleCommand],
    timeout: Duration,
    commit: &Oid,
    who: &str,
    logs: &Path,
) -> Result<Vec<StageResult>> {
    std::fs::create_dir_all(logs).context(|| format!("could not make '{}'", logs.display()))?;
    let checkout = room.checkout(&session.repo, commit.short(), commit)?;
    if let Some(reason) = &checkout.problem {
        session.ui.warn(format!("{who}: {reason}"));
        room.discard(&checkout)?;
        return Ok(oracle_run::not_started(oracle, reason));
    }
    let told = |result: &StageResult| {
        let StageResult { stage, seconds, outcome, leaky } = result;
        let left = if *leaky { ", and left processes behind: they were ended" } else { "" };
        session.ui.note(format!("{who}: {stage} {outcome} ({}){left}", table::duration(*seconds)));
    };
    let results = oracle_run::run(&checkout.path, oracle, &session.policy, timeout, logs, &told);
    room.discard(&checkout)?;
    results
}

/// Decides again from the stored outcomes.
pub fn replay(session: &Session, run: &Run) -> Result<Verdict> {
    let mut verdict = session.store.verdict(&session.repo, &run.run)?.ok_or_else(|| {
        Error::fatal(format!("run {} was never judged", run.run))
            .hint(format!("judge it with `git frites judge {}`", run.run))
    })?;
    verdict.decision = decide(&verdict.candidates, rules(session));
    Ok(verdict)
}

/// What `judge` exits with, by DESIGN.md §2.
pub fn exit_code(decision: DecisionKind) -> u8 {
    match decision {
        DecisionKind::NearMiss => exit::NO,
        DecisionKind::NoOracle => exit::UNVERIFIED,
        DecisionKind::None => exit::UNUSABLE,
        _ => exit::OK,
    }
}

/// Everything that the table says, and what it was decided from.
pub fn as_json(verdict: &Verdict) -> Value {
    let mut value = serde_json::to_value(verdict).unwrap_or_default();
    value["verified"] = json!(verdict.decision.decision.verified());
    value["exit_code"] = json!(exit_code(verdict.decision.decision));
    value
}
