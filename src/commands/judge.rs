//! `git frites judge`: the project's own commands on each distinct tree, and the verdict over them.
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::session::{Captured, Session};
use super::{escape, parse_address};
use crate::cli;
use crate::error::{Error, IoContext, Result, exit};
use crate::git::land;
use crate::model::FORMAT;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::{Outcome, StageResult};
use crate::model::run::Run;
use crate::model::verdict::{DecisionKind, Entry, Rules, Verdict, decide};
use crate::oracle::checkout::Room;
use crate::oracle::{self, run as oracle_run};
use crate::process;
use crate::store::select::Matching;
use crate::ui::table::{self, Grid, Tone};
use crate::ui::{Ui, json};

/// Runs the command.
pub fn run(session: &Session, args: &cli::Judge) -> Result<u8> {
    let address = parse_address(args.address.as_deref())?;
    let selection = session.store.select(&session.repo, address.as_ref(), Matching::Prefix)?;
    if let Some(name) = &selection.candidate {
        return Err(Error::usage(format!(
            "judge decides over a whole run, and '{}/{name}' is a candidate",
            selection.run.run
        ))
        .hint(format!("write `git frites judge {}`", selection.run.run)));
    }
    let run = selection.run;
    if args.trust_config {
        escape::accept(session, &run)?;
    }
    escape::require_trust(session, Some(&run))?;
    let verdict = if args.replay { replay(session, &run)? } else { judge(session, &run, args)? };
    render(session, &run, &verdict, args)?;
    Ok(code(verdict.decision.decision))
}

fn code(decision: DecisionKind) -> u8 {
    match decision {
        DecisionKind::NearMiss => exit::NO,
        DecisionKind::NoOracle => exit::UNVERIFIED,
        DecisionKind::None => exit::UNUSABLE,
        _ => exit::OK,
    }
}

/// Decides again from the stored outcomes.
fn replay(session: &Session, run: &Run) -> Result<Verdict> {
    let mut verdict = session.store.verdict(&session.repo, &run.run)?.ok_or_else(|| {
        Error::fatal(format!("run {} was never judged", run.run))
            .hint(format!("judge it with `git frites judge {}`", run.run))
    })?;
    verdict.decision = decide(&verdict.candidates, Rules::default());
    Ok(verdict)
}

fn judge(session: &Session, run: &Run, args: &cli::Judge) -> Result<Verdict> {
    let Session { repo, store, ui, .. } = session;
    let _lock = store.lock_run(&run.run)?;
    let flags = oracle::Flags { build: args.build.clone(), lint: args.lint.clone(), test: args.test.clone() };
    let oracle = oracle::resolve(repo, &session.config, &flags, &run.base)?;
    oracle_run::require_programs(&oracle)?;
    if args.explain {
        explain(ui, &oracle);
    }
    let candidates = session.capture_all(run)?;
    for captured in &candidates {
        session.tell_notes(captured);
    }
    let mut entries: Vec<Entry> = candidates.iter().map(entry).collect();
    let mut judged = Vec::new();
    if !oracle.is_empty() {
        // Equal trees run once: the first in spawn order stands for the others.
        let mut distinct: BTreeMap<Oid, Name> = BTreeMap::new();
        for captured in candidates.iter().filter(|c| c.usable()) {
            let tree = captured.tree(&run.base).clone();
            distinct.entry(tree).or_insert_with(|| captured.candidate.candidate.clone());
        }
        let outcomes = run_oracle(session, run, &oracle, &distinct, args)?;
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
        decision: decide(&entries, Rules::default()),
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

fn entry(captured: &Captured) -> Entry {
    Entry {
        candidate: captured.candidate.candidate.clone(),
        index: captured.candidate.index,
        state: captured.candidate.state,
        iteration: captured.capture.as_ref().map(|c| c.iteration),
        tree: captured.capture.as_ref().map(|c| c.tree.clone()),
        blast: captured.blast,
        problem: captured.problem.clone(),
        same_as: None,
        drew_on: Vec::new(),
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
    args: &cli::Judge,
) -> Result<Outcomes> {
    let timeout = args.timeout.unwrap_or_else(|| session.oracle_timeout());
    let room = Room::open(&session.repo, &session.store)?.seeded(session.seeds(&run.base)?);
    let mut trees: Vec<(&Oid, &Name)> = distinct.iter().collect();
    trees.sort_by_key(|(_, name)| run.index_of(name));
    let results = process::in_parallel(args.jobs as usize, &trees, |(tree, name)| {
        let commit = land::neutral_commit(&session.repo, tree, &run.base)?;
        let logs = session.store.candidate_dir(&run.run, name);
        let results = judge_commit(session, &room, oracle, timeout, &commit, &format!("{}/{name}", run.run), &logs)?;
        Ok(((*tree).clone(), (commit, results)))
    })?;
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
    let results = oracle_run::run(&checkout.path, oracle, timeout, logs, &told);
    room.discard(&checkout)?;
    results
}

fn explain(ui: &Ui, oracle: &[OracleCommand]) {
    if oracle.is_empty() {
        ui.note("no command was named, configured or found in the base's files");
    }
    for command in oracle {
        ui.note(format!("{}: `{}`, from {}", command.stage, command.command, command.source));
    }
}

fn render(session: &Session, run: &Run, verdict: &Verdict, args: &cli::Judge) -> Result<()> {
    let ui = &session.ui;
    let decision = &verdict.decision;
    let winner = decision.recommended.as_ref().map(|name| format!("{}/{name}", run.run));
    if args.json {
        return ui.answer(json::document(as_json(verdict)));
    }
    if args.quiet {
        return match winner.filter(|_| decision.decision.verified()) {
            Some(address) => ui.answer(format!("{address}\n")),
            None => Ok(()),
        };
    }
    // With no usable candidate there is nothing to compare.
    let mut text =
        if decision.decision == DecisionKind::None { String::new() } else { grid(ui, verdict).render() + "\n" };
    let paint = if decision.decision.verified() { ui.out.good } else { ui.out.caution };
    text.push_str(&format!("{}: {}\n", paint.paint(decision.decision.as_str()), decision.rationale));
    ui.answer(text)?;
    match (decision.decision, winner) {
        (kind, Some(winner)) if kind.verified() => {
            ui.hint(format!("look at it with `git frites diff {winner}`, land it with `git frites apply {}`", run.run));
        }
        (DecisionKind::NearMiss, Some(winner)) => {
            if let Some(name) = &decision.recommended {
                ui.hint(format!("the logs are in '{}'", session.store.candidate_dir(&run.run, name).display()));
            }
            ui.hint(format!("go on in `cd \"$(git frites path {winner})\"` and judge again"));
        }
        (DecisionKind::NoOracle, Some(_)) => {
            ui.hint("name the commands: `git frites judge --test CMD`, or [oracle] in .frites.toml");
        }
        _ => ui.hint(format!("`git frites status {}` shows each candidate's state", run.run)),
    }
    Ok(())
}

/// The comparison: a row for each candidate, the recommended one marked.
fn grid(ui: &Ui, verdict: &Verdict) -> Grid {
    let stages: Vec<&OracleCommand> = verdict.oracle.iter().collect();
    let mut headings = vec!["", "candidate"];
    headings.extend(stages.iter().map(|c| c.stage.as_str()));
    headings.extend(["time", "lines", "files", "note"]);
    let first_number = 2 + stages.len();
    let mut grid = Grid::new(&headings, &[first_number, first_number + 1, first_number + 2], ui.out);
    for entry in &verdict.candidates {
        let recommended = verdict.decision.recommended.as_ref() == Some(&entry.candidate);
        let tone = if recommended && verdict.decision.decision.verified() { Tone::Good } else { Tone::Plain };
        let mut cells =
            vec![(if recommended { "*" } else { "" }.to_owned(), tone), (entry.candidate.to_string(), tone)];
        for command in &stages {
            cells.push(match entry.results.iter().find(|r| r.stage == command.stage).map(|r| &r.outcome) {
                Some(Outcome::Skipped) | None => ("-".into(), Tone::Dim),
                Some(Outcome::CouldNotStart { .. }) => ("no start".into(), Tone::Bad),
                Some(Outcome::Failed { code }) => (format!("exit {code}"), Tone::Bad),
                Some(outcome @ Outcome::Passed) => (outcome.to_string(), Tone::Good),
                Some(outcome @ Outcome::Flaky) => (outcome.to_string(), Tone::Caution),
                Some(outcome) => (outcome.to_string(), Tone::Bad),
            });
        }
        let seconds: f64 = entry.results.iter().map(|r| r.seconds).sum();
        let ran = !entry.results.is_empty();
        cells.push((if ran { table::duration(seconds) } else { "-".into() }, Tone::Dim));
        cells.push((entry.blast.lines.to_string(), Tone::Plain));
        cells.push((entry.blast.files.to_string(), Tone::Plain));
        let note = match (&entry.same_as, entry.usable()) {
            (Some(twin), _) => format!("same tree as {twin}"),
            (None, false) if entry.problem.is_some() => "not captured".into(),
            (None, false) if matches!(entry.state, crate::model::candidate::State::Open) => "changed nothing".into(),
            (None, false) => entry.state.to_string(),
            (None, true) if entry.results.iter().any(|r| r.leaky) => "leaky".into(),
            (None, true) => String::new(),
        };
        cells.push((note, Tone::Dim));
        grid.row(cells);
    }
    grid
}

/// Everything that the table says, and what it was decided from.
pub fn as_json(verdict: &Verdict) -> Value {
    let mut value = serde_json::to_value(verdict).unwrap_or_default();
    value["verified"] = json!(verdict.decision.decision.verified());
    value["exit_code"] = json!(code(verdict.decision.decision));
    value
}
