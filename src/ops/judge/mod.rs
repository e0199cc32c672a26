//! Judging: the project's own commands on each distinct tree, and the verdict over them.
mod entries;
pub mod keep;
mod options;
mod partial;
mod record;
mod runner;
mod schedule;
mod tamper;

pub use options::JudgeOptions;
pub use partial::{judge_some, replay};
pub use runner::judge_commit;

use crate::error::Result;
use crate::model::FORMAT;
use crate::model::decision::decide;
use crate::model::oracle::OracleCommand;
use crate::model::ranking::Rules;
use crate::model::run::Run;
use crate::model::verdict::{Baseline, Entry, Verdict};
use crate::ops::judge::keep::KeptCommits;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::judge::schedule::StopWhen;
use crate::ops::session::Session;

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
    let _kept = KeptCommits::new(session, run);
    let oracle = options.oracle(session, run, on_oracle)?;
    let settings = options.settings(session);
    let mut entries = entries::of_run(session, run, &oracle, &settings)?;
    let mut verdict = Verdict {
        version: FORMAT,
        run: run.run.clone(),
        base: run.base,
        judged: jiff::Timestamp::now(),
        decision: decide(&entries, None, Rules::from_settings(&settings)),
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
    verdict.decision =
        decide(&entries, verdict.baseline.as_ref(), Rules::from_settings(&verdict.settings));
    verdict.candidates = entries;
    record::save(session, run, &verdict)?;
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
    let stop = if options.until_pass {
        StopWhen::Decided(Rules::from_settings(settings))
    } else {
        StopWhen::AllRan
    };
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
