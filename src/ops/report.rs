//! Reads the content of a run's report from the stored records, logs and captures. A report
//! captures nothing and judges nothing.
use std::path::Path;

use crate::error::Result;
use crate::model::agreement::{self, Edit};
use crate::model::candidate::Candidate;
use crate::model::layout::AGENT;
use crate::model::outcome::{Outcome, StageResult};
use crate::model::run::Run;
use crate::model::verdict::{Entry, Verdict};
use crate::ops::judge::changed_files;
use crate::ops::log_excerpt;
use crate::ops::session::Session;
use crate::process::last_words;
use crate::store::candidate::CandidateRef;
use crate::store::events::{self, Event};
use crate::ui::report::content::{LogEnd, Report, ReportedCandidate};

/// The number of lines that a report shows of a log.
const LOG_LINES: usize = 20;

/// Reads everything that a report of the run shows.
pub fn read(session: &Session, run: &Run) -> Result<Report> {
    let verdict = session.store.verdict(&run.run)?;
    let mut candidates = Vec::new();
    for candidate in session.store.candidates(run) {
        candidates.push(reported(session, run, candidate, verdict.as_ref())?);
    }
    let is_usable = |one: &ReportedCandidate| one.record.state.usable(one.files.len() as u64);
    let places: Vec<usize> =
        (0..candidates.len()).filter(|at| is_usable(&candidates[*at])).collect();
    let edits: Vec<Edit> = places.iter().map(|at| Edit::of(&candidates[*at].files)).collect();
    let base = session.repo.commit(&run.base)?;
    let prompt = run.prompt.as_ref().map(|blob| session.repo.blob(blob)).transpose()?;
    let base_results = verdict.iter().flat_map(|v| &v.baseline).flat_map(|base| &base.results.0);
    let base_logs = session.store.base_logs(&run.run);
    let of_base = |result: &StageResult| {
        let log = base_logs.newest(result.stage.as_str());
        end_of(format!("{}, which fails on the base", result.stage), &log, false)
    };
    Ok(Report {
        base_subject: base.message.lines().next().unwrap_or_default().to_owned(),
        prompt: prompt.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        stored_outcomes: session.store.parts(run)?.len(),
        base_logs: failed(base_results).map(of_base).collect(),
        covers: places.into_iter().zip(agreement::covers(&edits)).collect(),
        warnings: warnings(session, run)?,
        run: run.clone(),
        verdict,
        candidates,
    })
}

/// The data of a candidate for a report.
fn reported(
    session: &Session,
    run: &Run,
    candidate: CandidateRef<'_>,
    verdict: Option<&Verdict>,
) -> Result<ReportedCandidate> {
    let record = candidate.record()?;
    let entry = verdict.and_then(|verdict| verdict.entry(candidate.name));
    let newest = candidate.latest()?;
    let judged = entry.and_then(Entry::judged).copied();
    let tree = judged.or(newest.as_ref().map(|capture| capture.tree));
    let files = tree.as_ref().map(|tree| changed_files(&session.repo, &run.base, tree));
    let newest = newest.map(|capture| capture.iteration);
    let iteration = entry.and_then(|entry| entry.iteration).or(newest);
    Ok(ReportedCandidate {
        made_by: made_by(run, &record),
        iteration,
        newer: newest.filter(|newest| Some(*newest) != iteration),
        files: files.transpose()?.unwrap_or_default(),
        logs: logs(candidate, &record, entry)?,
        record,
    })
}

/// The agent that made a candidate, or else its command, if that has started; `None` otherwise,
/// e.g. if a person made the candidate.
fn made_by(run: &Run, record: &Candidate) -> Option<String> {
    let own = run.agents.get(&record.candidate);
    if let Some(agent) = own.and_then(|own| own.agent.as_ref()) {
        return Some(agent.to_string());
    }
    let command = own.map_or(&run.command, |own| &own.command);
    let has_started = run.has_command(&record.candidate) && record.started.is_some();
    has_started.then(|| shell_words::join(command))
}

/// The last lines of a candidate's logs: the log of its own command, and the logs of the judge's
/// commands that failed on it.
fn logs(
    candidate: CandidateRef<'_>,
    record: &Candidate,
    entry: Option<&Entry>,
) -> Result<Vec<LogEnd>> {
    let log = candidate.directory().logs().log(AGENT);
    let mut ends = vec![LogEnd {
        command: AGENT.to_owned(),
        failed: record.end.exit_code.is_some_and(|code| code != 0),
        lines: last_words(&log, LOG_LINES),
        path: log.display().to_string(),
    }];
    let place = candidate.logs();
    let iteration = entry.and_then(|entry| entry.iteration);
    let end = |result: &StageResult, with: &str, second| {
        let log = place.of_judging(iteration, result.stage, second);
        end_of(format!("{}{with}", result.stage), &log, true)
    };
    for result in failed(entry.iter().flat_map(|entry| &entry.results.0)) {
        ends.push(end(result, "", false));
    }
    let second = entry.and_then(|entry| entry.base_tests.as_ref());
    for result in failed(second.iter().flat_map(|second| &second.results.0)) {
        ends.push(end(result, " with the base's tests", true));
    }
    ends.retain(|end| !end.lines.is_empty());
    Ok(ends)
}

fn failed<'a>(
    results: impl Iterator<Item = &'a StageResult>,
) -> impl Iterator<Item = &'a StageResult> {
    results.filter(|result| !result.outcome.passed() && result.outcome != Outcome::Skipped)
}

fn end_of(command: String, log: &Path, failed: bool) -> LogEnd {
    let lines = log_excerpt::of(log, LOG_LINES);
    LogEnd { command, failed, lines, path: log.display().to_string() }
}

/// The changes outside of worktrees that the event log has for the run. An attempt can write
/// anything into that log, so an event may lack its words; it is then left out.
fn warnings(session: &Session, run: &Run) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    for event in events::read_of(&session.store.dir().events(), &run.run)? {
        let Event::Escaped { judging, differences, .. } = event else { continue };
        let moment =
            if judging { "while the run was judged" } else { "while commands of attempts ran" };
        let words = differences.iter().filter_map(|change| change.get("what")?.as_str());
        warnings.extend(words.map(|words| format!("{moment}: {words}")));
    }
    Ok(warnings)
}
