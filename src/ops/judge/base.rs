//! Judging the base while the run's attempts work.
use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::run::Run;
use crate::model::verdict::JudgeSettings;
use crate::ops::judge::judged_base::JudgedBase;
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::session::Session;
use crate::oracle::ResolvedOracle;
use crate::process::interrupt::{self, Cancel};

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
    oracle: Vec<OracleCommand>,
    settings: JudgeSettings,
    judged: Mutex<Option<JudgedBase>>,
}

/// The base of a run that was judged while its attempts ran.
#[derive(Clone, Debug)]
pub struct BaseOfAttempts {
    oracle: Vec<OracleCommand>,
    settings: JudgeSettings,
    judged: JudgedBase,
}

impl<'a> BaseBeside<'a> {
    /// The base of a run, to be judged by these commands as `options` say. Fails if they cannot be
    /// run as the configuration requires.
    pub fn new(
        session: &'a Session,
        run: &'a Run,
        options: &'a JudgeOptions,
        oracle: ResolvedOracle,
    ) -> Result<BaseBeside<'a>> {
        let settings = options.settings_to_run(session, &oracle)?;
        let oracle = oracle.commands;
        Ok(BaseBeside { session, run, options, oracle, settings, judged: Mutex::default() })
    }

    /// Judges the base, until it ends or is cancelled. An error is only a warning: the base is then
    /// judged with the candidates.
    pub fn judge(&self, cancel: &Cancel) {
        if self.oracle.is_empty() {
            return;
        }
        match self.try_judge(cancel) {
            Ok(judged) => *self.judged.lock().unwrap_or_else(PoisonError::into_inner) = judged,
            Err(error) if interrupt::signal().is_none() => {
                self.session.ui.warn(format!("{}/@base: {}", self.run.run, error.message));
            }
            Err(_) => {}
        }
    }

    fn try_judge(&self, cancel: &Cancel) -> Result<Option<JudgedBase>> {
        let BaseBeside { session, run, options, oracle, settings, .. } = self;
        let timeout = options.timeout(session);
        let runner = OracleRunner::new(session, run, oracle, settings, timeout, options)?;
        let (judged, _) =
            runner.covered_by_another_watch()?.watched(|runner| runner.judge_base(cancel, true))?;
        Ok(judged)
    }

    /// The outcome; none if there is none, or if the attempts may have affected it.
    pub fn finish(self, tainted: bool) -> Option<BaseOfAttempts> {
        let BaseBeside { oracle, settings, judged, .. } = self;
        let judged = judged.into_inner().unwrap_or_else(PoisonError::into_inner)?;
        (!tainted).then_some(BaseOfAttempts { oracle, settings, judged })
    }
}

impl BaseOfAttempts {
    /// The outcome, if it is that of these commands with these settings and seeds: somebody may have
    /// changed a seed while the attempts worked.
    pub fn under(
        &self,
        oracle: &[OracleCommand],
        settings: &JudgeSettings,
        seeds: Option<&str>,
    ) -> Option<&JudgedBase> {
        let is_same = self.oracle == oracle && self.settings == *settings;
        (is_same && self.judged.seeds.as_deref() == seeds).then_some(&self.judged)
    }
}
