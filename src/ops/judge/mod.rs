//! Judging: the project's own commands on each distinct tree, and the verdict over them.
mod base;
mod base_tests;
mod changed_file;
#[cfg(test)]
mod classify;
mod conditions;
mod confirm;
mod entries;
mod entry_outcome;
mod found;
mod groups;
mod judged_base;
mod judged_once;
pub mod keep;
mod kept_trees;
mod listed;
pub mod modules;
mod options;
mod partial;
pub mod plan;
mod record;
mod replay;
mod runner;
mod schedule;
mod shown;
pub mod spread;
mod tamper;
mod terms;
pub mod unseeded;
pub(super) mod worlds;

pub use base::BaseBeside;
pub use base_tests::{is_source_unknown, plan_for as plan_base_tests};
pub use changed_file::{ChangedFile, FileContent, changed_file};
pub use entries::covers;
pub use judged_base::JudgedBase;
pub use options::JudgeOptions;
pub use partial::judge_some;
pub use replay::replay;
pub use runner::commit::judge_commit;

use crate::error::{Error, Result};
use crate::model::FORMAT;
use crate::model::decision::decide;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::{Stage, StageResult};
use crate::model::ranking::Rules;
use crate::model::run::Run;
use crate::model::terms::Doubts;
use crate::model::verdict::{Effort, Entry, Verdict};
use crate::ops::judge::found::FoundBefore;
use crate::ops::judge::keep::KeptCommits;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::judge::schedule::StopWhen;
use crate::ops::session::Session;
use crate::oracle::ResolvedOracle;

/// Judges one run several times, each tree once.
pub struct RepeatedJudging<'a> {
    session: &'a Session,
    options: JudgeOptions,
    /// The run's base, if it was judged while the attempts worked.
    base: Option<&'a JudgedBase>,
    /// The verdicts so far.
    verdicts: Vec<Verdict>,
}

impl<'a> RepeatedJudging<'a> {
    /// Judges with these options. `base` is the run's base, if it was judged before.
    pub fn new(
        session: &'a Session,
        options: JudgeOptions,
        base: Option<&'a JudgedBase>,
    ) -> RepeatedJudging<'a> {
        RepeatedJudging { session, options, base, verdicts: Vec::new() }
    }

    /// Judges the run as it is now.
    pub fn judge(&mut self, run: &Run) -> Result<Verdict> {
        let found = FoundBefore { base: self.base, verdicts: &self.verdicts };
        let verdict = judge_knowing(self.session, run, &self.options, found, |_| Ok(()))?;
        self.verdicts.push(verdict.clone());
        Ok(verdict)
    }

    /// Forgets all outcomes: something has changed that outcomes depend on.
    pub fn forget(&mut self) {
        self.base = None;
        self.verdicts.clear();
    }
}

/// Captures a run's candidates, runs the oracle on each distinct tree, decides, and records the
/// verdict. `on_oracle` is called with the commands before they run.
pub fn judge(
    session: &Session,
    run: &Run,
    options: &JudgeOptions,
    on_oracle: impl Fn(&ResolvedOracle) -> Result<()>,
) -> Result<Verdict> {
    judge_knowing(session, run, options, FoundBefore::default(), on_oracle)
}

/// Does the same, without running again what was `found` before.
fn judge_knowing(
    session: &Session,
    run: &Run,
    options: &JudgeOptions,
    found: FoundBefore<'_>,
    on_oracle: impl Fn(&ResolvedOracle) -> Result<()>,
) -> Result<Verdict> {
    let _span = tracing::info_span!("judge", run = %run.run).entered();
    let (_lock, run) = &session.store.lock_and_read(&run.run)?;
    listed::require_captures(session, run)?;
    let _kept = KeptCommits::new(session, run);
    let oracle = options.oracle(session, &run.base)?;
    on_oracle(&oracle)?;
    let terms = options.terms_to_run(session, &oracle)?;
    let mut entries = entries::of_run(session, run, &terms)?;
    let mut verdict = Verdict {
        version: FORMAT,
        run: run.run.clone(),
        base: run.base,
        judged: jiff::Timestamp::now(),
        round: session.store.next_round(run)?,
        decision: decide(&entries, None, Rules::from_settings(&terms.settings)),
        no_synthesis: None,
        terms,
        effort: Default::default(),
        baseline: None,
        candidates: Vec::new(),
    };
    if !verdict.terms.oracle.is_empty() && entries.iter().any(Entry::usable) {
        run_oracle(session, run, options, found, &mut verdict, &mut entries)?;
        require_working_commands(&verdict, &entries)?;
    }
    for entry in &mut entries {
        entry.results.forget_passing_tests();
    }
    verdict.decision =
        decide(&entries, verdict.baseline.as_ref(), Rules::from_settings(&verdict.terms.settings));
    verdict.candidates = entries;
    record::save(session, run, &verdict)?;
    session.store.forget_parts(run)?;
    Ok(verdict)
}

/// Runs a verdict's oracle on the entries, and on the base, as far as their outcomes were not found
/// before, and fills the results in.
fn run_oracle(
    session: &Session,
    run: &Run,
    options: &JudgeOptions,
    found: FoundBefore<'_>,
    verdict: &mut Verdict,
    entries: &mut [Entry],
) -> Result<()> {
    let runner = OracleRunner::new(session, run, verdict.terms.clone(), options)?;
    verdict.terms = runner.terms().clone();
    let holding = found.holding(&verdict.terms);
    let base = found.base(&verdict.terms, &holding);
    runner.found_before(found::take_over(session, run, &holding, entries)?);
    let (leads_back, attempts_write) = (runner.warn_of_seeds(), runner.attempts_write());
    let stop = if options.until_pass {
        StopWhen::Decided(Rules::from_settings(&verdict.terms.settings))
    } else {
        StopWhen::AllRan
    };
    let ((mut effort, baseline), tainted) =
        runner.watched(|runner| runner.run_all(entries, options.jobs, stop, base))?;
    if let Some(before) = holding.first() {
        effort.add(Effort { saved_not_run: 0, ..before.effort });
    }
    verdict.effort = effort;
    verdict.baseline = baseline;
    verdict.terms.settings.doubts = Doubts { tainted, leads_back, attempts_write };
    Ok(())
}

/// Refuses to decide by a command that started nowhere: neither on the base nor on any candidate.
fn require_working_commands(verdict: &Verdict, entries: &[Entry]) -> Result<()> {
    let baseline = verdict.baseline.as_ref();
    let Some(result) = baseline.and_then(|base| base.starts_nowhere(entries)) else {
        return Ok(());
    };
    let (run, stage) = (&verdict.run, result.stage);
    let command = verdict.terms.oracle.iter().find(|command| command.stage == stage);
    let source = command.map(|c| format!(" (this one is from {})", c.source)).unwrap_or_default();
    let other = match stage {
        Stage::Setup => "set `oracle.setup` to another command".to_owned(),
        _ => format!("name another: `git frites judge {run} --{stage} CMD`"),
    };
    Err(why_not_working(&verdict.terms.oracle, result)
        .hint(format!("install what it needs, or {other}{source}"))
        .hint(format!("its output: `git frites output {run}/@base {stage}`")))
}

/// The error of a command that could start neither on the base nor on any candidate.
fn why_not_working(oracle: &[OracleCommand], result: &StageResult) -> Error {
    let stage = result.stage;
    let command = oracle.iter().find(|command| command.stage == stage);
    let words = command.map(|c| format!(" `{}`", c.command)).unwrap_or_default();
    Error::fatal(format!(
        "the {stage} command{words} does not work here: it could start neither on the base nor on any candidate ({})",
        result.outcome.why_not_started().unwrap_or_default()
    ))
}
