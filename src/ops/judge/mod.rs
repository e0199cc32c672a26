//! Judging: runs the project's own commands on each distinct tree, and decides.
mod base_tests;
mod changed_file;
mod confirm;
mod eager;
pub(super) mod entries;
pub mod installed;
mod next_step;
mod options;
mod overruled;
pub(super) mod part_judge;
pub(super) mod part_storage;
pub mod plan;
mod record;
pub(super) mod replay;
mod runner;
mod schedule;
mod tamper;
#[cfg(test)]
mod tests_classify;
pub mod worlds;

pub use base_tests::{is_source_unknown, plan_for as plan_base_tests};
pub use changed_file::changed_files;
pub use eager::{NextRounds, RoundGiver, why_late};
pub use entries::changed_deciders;
pub use options::JudgeOptions;
pub use overruled::overrule_results;
pub use part_judge::judge_some;
pub use replay::replay;
pub use runner::cross::prove;
pub use runner::judge_commit;

use crate::config::keys;
use crate::error::{Error, Result};
use crate::model::decision::decide;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::{Stage, StageResult};
use crate::model::ranking::Rules;
use crate::model::run::Run;
use crate::model::verdict::{DecisionKind, Entry, Verdict};
use crate::ops::judge::runner::OracleRunner;
use crate::ops::judge::schedule::StopWhen;
use crate::ops::kept_commits::KeptCommits;
use crate::ops::session::Session;
use crate::oracle::ResolvedOracle;
use crate::oracle::ledger::Memory;
use crate::oracle::run::with_judge_command;
use crate::process::processor_share::ProcessorShare;

/// Judges one run several times, e.g. after each round of repair, but each tree only once.
pub struct RepeatedJudging<'a> {
    pub session: &'a Session,
    options: JudgeOptions,
    memory: Memory,
}

impl<'a> RepeatedJudging<'a> {
    /// A judging with these options.
    pub fn new(session: &'a Session, options: JudgeOptions) -> RepeatedJudging<'a> {
        RepeatedJudging { session, options, memory: Memory::default() }
    }

    /// Captures a run's candidates, runs the oracle on each distinct tree whose outcome is not
    /// known yet, decides, and records the verdict. Calls `on_oracle` with the commands before they
    /// run.
    ///
    /// A verdict without commands says nothing about the candidates, so it does not replace a
    /// recorded verdict with commands.
    pub fn judge(
        &self,
        run: &Run,
        on_oracle: impl Fn(&ResolvedOracle) -> Result<()>,
    ) -> Result<Verdict> {
        let RepeatedJudging { session, options, .. } = self;
        let _span = tracing::info_span!("judge", run = %run.run).entered();
        let (_lock, run) = &session.store.lock_and_read(&run.run)?;
        entries::require_captures(session, run)?;
        let _kept = KeptCommits { session, run };
        let oracle = options.oracle(session, run.root())?;
        on_oracle(&oracle)?;
        let terms = options.terms_to_run(session, &oracle)?;
        let mut entries = entries::of_run(session, run, &terms)?;
        let round = session.store.next_round(run)?;
        let mut verdict = record::undecided(run, terms, round, jiff::Timestamp::now());
        if !verdict.terms.oracle.is_empty() && entries.iter().any(Entry::usable) {
            self.run_oracle(run, &mut verdict, &mut entries)
                .map_err(|error| with_judge_command(error, &verdict.terms, &run.run, ""))?;
            require_working_commands(&verdict, &entries)?;
        }
        let base = verdict.baseline.as_ref().and_then(|base| base.results.report());
        for entry in &mut entries {
            entry.results.forget_passing_tests(base);
        }
        verdict.decision = decide(&entries, verdict.baseline.as_ref(), Rules::of(&verdict.terms));
        verdict.candidates = entries;
        let last = session.store.verdict(&run.run)?;
        if verdict.decision.decision != DecisionKind::NoOracle
            || last.is_none_or(|last| last.terms.oracle.is_empty())
        {
            record::save(session, run, &verdict)?;
            session.store.forget_parts(run)?;
        }
        Ok(verdict)
    }

    /// Runs a verdict's oracle on the entries and on the base, unless their outcomes are known.
    /// Fills in the results.
    fn run_oracle(&self, run: &Run, verdict: &mut Verdict, entries: &mut [Entry]) -> Result<()> {
        let RepeatedJudging { session, options, memory } = self;
        memory.begin_judging();
        let runner = OracleRunner::new(session, run, verdict.terms.clone(), options, memory)?;
        verdict.terms = runner.terms.clone();
        runner.warn_of_seeds();
        if !options.in_place {
            warn_of_replaced_lists(session);
        }
        // With `--cross`, all candidates are judged, because a candidate that is not judged has no
        // score.
        let stop = if options.until_pass && !verdict.terms.settings.cross {
            StopWhen::Decided(Rules::of(&verdict.terms))
        } else {
            StopWhen::AllRan
        };
        let wants_base = !options.in_place;
        let judged = runner.run_all(entries, options.jobs, stop, wants_base);
        let ((effort, baseline), doubts) = runner.end(judged)?;
        let costs = memory.costs(ProcessorShare::Whole);
        verdict.costs = costs.warm.zip(costs.cold).map(|_| costs);
        if doubts.tainted {
            memory.forget_all();
        }
        if !options.in_place {
            entries::name_twins(entries);
        }
        verdict.effort = effort;
        verdict.baseline = baseline;
        verdict.terms.settings.doubts = doubts;
        Ok(())
    }

    /// Forgets all outcomes that this process knows, and removes them from the cache, too. Call
    /// this after a change that affects outcomes.
    pub fn forget(&self, run: &Run) -> Result<()> {
        let oracle = self.options.oracle(self.session, run.root())?;
        let terms = self.options.terms_to_run(self.session, &oracle)?;
        OracleRunner::new(self.session, run, terms, &self.options, &self.memory)?.forget_all()
    }
}

/// Warns if a later source of the configuration replaces a list of patterns that makes verdicts
/// stricter.
fn warn_of_replaced_lists(session: &Session) {
    for key in [keys::ORACLE_SOURCE.name, keys::ORACLE_PROTECT.name] {
        let Some(set) = session.config.all().get(key) else { continue };
        let Some(replaced) = &set.replaced else { continue };
        session.ui.warn(format!("{key}: the list in {} replaces that in {replaced}", set.place));
    }
}

/// Fails if a command started neither on the base nor on any candidate, because such a command
/// decides nothing.
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
        _ => {
            let other = format!(" --{stage} CMD");
            format!("name another: `{}`", verdict.terms.judge_command(run, &other))
        }
    };
    Err(why_not_working(&verdict.terms.oracle, result)
        .hint(format!("install what it needs, or {other}{source}"))
        .hint(format!("its output: `git frites output {run}/@base {stage}`")))
}

/// The error for a command that started neither on the base nor on any candidate.
pub fn why_not_working(oracle: &[OracleCommand], result: &StageResult) -> Error {
    let stage = result.stage;
    let command = oracle.iter().find(|command| command.stage == stage);
    let words = command.map(|c| format!(" `{}`", c.command)).unwrap_or_default();
    let why = result.outcome.why_not_started().unwrap_or_default();
    let obstacle = result.obstacle.as_ref().map_or(String::new(), |o| format!("; {o}"));
    Error::fatal(format!(
        "the {stage} command{words} does not work here: it could start neither on the base nor on any candidate ({why}{obstacle})"
    ))
}
