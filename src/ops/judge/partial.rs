//! Partial verdicts: the outcomes of candidates that were judged by themselves, in several
//! processes or on several machines.
use crate::error::Result;
use crate::fs::regular;
use crate::git::commit::neutral_commit;
use crate::model::FORMAT;
use crate::model::machine::Machine;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::model::verdict::{Entry, PartialVerdict};
use crate::ops::judge::entries;
use crate::ops::judge::judged_base::BaseState;
use crate::ops::judge::keep::KeptCommits;
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::judge::schedule::StopWhen;
use crate::ops::session::Session;
use crate::oracle::ResolvedOracle;
use crate::store::events::Event;
use crate::store::select::check_candidate;

/// Judges some candidates of a run by themselves and stores their outcomes; others may be judged at
/// the same time. Nothing is decided: that is what [`super::replay`] does.
pub fn judge_some(
    session: &Session,
    run: &Run,
    names: &[Name],
    options: &JudgeOptions,
    on_oracle: impl Fn(&ResolvedOracle) -> Result<()>,
) -> Result<Vec<PartialVerdict>> {
    let Session { repo, store, .. } = session;
    for name in names {
        check_candidate(run, name)?;
    }
    let _lock = store.share_run(&run.run)?;
    let _kept = KeptCommits::new(session, run);
    let oracle = options.oracle(session, &run.base)?;
    on_oracle(&oracle)?;
    let mut settings = options.settings_to_run(session, &oracle)?;
    let oracle = oracle.commands;
    let mut captured = Vec::new();
    for name in names {
        let one = session.capture_or_tell(store.candidate(run, name))?;
        session.print_omissions(&one);
        captured.push(one);
    }
    let round = store.verdict(&run.run)?.map_or(0, |verdict| verdict.round);
    let mut seeds = None;
    let mut entries = entries::from_captured(session, run, &oracle, &settings, &captured)?;
    if !oracle.is_empty() {
        let timeout = options.timeout(session);
        // Whoever decides over stored outcomes cannot confirm claims.
        let options = &JudgeOptions { cold: true, ..options.clone() };
        let runner = OracleRunner::new(session, run, &oracle, &settings, timeout, options)?;
        seeds = runner.seeds();
        let run_all = |runner: &OracleRunner<'_>| {
            runner.run_all(&mut entries, options.jobs, StopWhen::AllRan, BaseState::NotWanted)
        };
        let leads_back = runner.warn_of_seeds();
        let (_, tainted) = runner.watched(run_all)?;
        (settings.tainted, settings.leads_back) = (tainted, leads_back);
    }
    let machine = machine(session)?;
    let mut parts = Vec::new();
    for mut entry in entries {
        let logs = last_of_logs(session, run, &entry);
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
            round,
            seeds: seeds.clone(),
            machine: Some(machine.clone()),
            settings: settings.clone(),
            oracle: oracle.clone(),
            candidate: entry,
        };
        let commit = part
            .candidate
            .judged()
            .map(|tree| neutral_commit(repo, tree, &run.base))
            .transpose()?;
        store.save_part(&part, commit.as_ref(), &logs)?;
        let event = Event::Outcome {
            candidate: part.candidate.candidate.clone(),
            passed: part.candidate.passed(),
            skipped: part.candidate.skipped(),
        };
        store.record_event(&run.run, &event)?;
        parts.push(part);
    }
    Ok(parts)
}

fn machine(session: &Session) -> Result<Machine> {
    let git = session.repo.git().call("version").line()?.to_string_lossy().into_owned();
    Ok(Machine {
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        git: git.strip_prefix("git version ").unwrap_or(&git).to_owned(),
        git_frites: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The number of bytes at the end of each log that a partial verdict keeps: where a command failed
/// is usually said there.
const KEPT_OF_LOG: usize = 64 << 10;

/// The ends of a candidate's logs, by file name. A log that cannot be read is left out.
fn last_of_logs(session: &Session, run: &Run, entry: &Entry) -> Vec<(String, Vec<u8>)> {
    // The commands ran only for the first of several candidates with one tree.
    let judged = entry.same_as.as_ref().unwrap_or(&entry.candidate);
    let directory = session.store.candidate_dir(&run.run, judged);
    let names = entry.results.iter().flat_map(|result| result.log_names());
    let logs = names.filter_map(|name| {
        let bytes = regular::read(&directory.join(&name)).ok()?;
        Some((name, end_of_log(&bytes).to_vec()))
    });
    logs.collect()
}

/// The part of a log that a partial verdict keeps.
pub(super) fn end_of_log(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len().saturating_sub(KEPT_OF_LOG)..]
}
