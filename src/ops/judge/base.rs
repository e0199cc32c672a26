//! Judging the base while the run's attempts work.
use crate::error::Result;
use crate::model::outcome::{Stage, StageResult};
use crate::model::run::Run;
use crate::model::terms::Terms;
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::session::Session;
use crate::ops::spawn::start_gate::BesideAttempts;
use crate::oracle::ResolvedOracle;
use crate::oracle::ledger::Memory;
use crate::process::interrupt;

/// The judging of a base beside the commands of the run's attempts.
///
/// The watch over the attempts covers the base's commands, too: it begins before them and ends
/// after them. Nobody could tell two watches at the same time apart, and each change would be
/// reported twice. A change that affects outcomes makes the base be judged once more, with the
/// candidates. The outcome is not cached: one that appeared while attempts ran is not believed.
pub struct BaseBeside<'a> {
    session: &'a Session,
    run: &'a Run,
    options: &'a JudgeOptions,
    terms: Terms,
    memory: Memory,
}

impl<'a> BaseBeside<'a> {
    /// The base of a run, to be judged by these commands as `options` say. Fails if they cannot be
    /// run as the configuration requires.
    pub fn new(
        session: &'a Session,
        run: &'a Run,
        options: &'a JudgeOptions,
        oracle: &ResolvedOracle,
    ) -> Result<BaseBeside<'a>> {
        let terms = options.terms_to_run(session, oracle)?;
        Ok(BaseBeside { session, run, options, terms, memory: Memory::default() })
    }

    /// Judges the base, until it ends or is cancelled. An error is only a warning: the base is then
    /// judged with the candidates.
    ///
    /// Attempts begin once its setup has passed, and none begins if they could not be judged.
    pub fn judge(&self, beside: &BesideAttempts<'_>) {
        match self.terms.oracle.first().map(|command| command.stage) {
            None => return,
            Some(Stage::Setup) => {}
            Some(_) => beside.gate.open(),
        }
        match self.try_judge(beside) {
            Err(error) if interrupt::signal().is_none() => {
                self.session.ui.warn(format!("{}/@base: {}", self.run.run, error.message));
            }
            _ => {}
        }
    }

    fn try_judge(&self, beside: &BesideAttempts<'_>) -> Result<()> {
        let BaseBeside { session, run, options, terms, memory } = self;
        let runner = OracleRunner::new(session, run, terms.clone(), options, memory)?;
        let on_end = |result: &StageResult| match result.is_unjudgeable() {
            true => beside.gate.lock(format!(
                "{} does not pass on the base ({})",
                result.stage,
                result.why_not_passed()
            )),
            false => beside.gate.open(),
        };
        let runner = runner.covered_by_another_watch()?.telling_ends_to(&on_end);
        runner.watched(|runner| runner.judge_base_ahead(beside.cancel))?;
        Ok(())
    }

    /// The memory with the outcome; empty if the attempts may have affected it.
    pub fn finish(self, tainted: bool) -> Memory {
        if tainted {
            self.memory.forget_all();
        }
        self.memory
    }
}
