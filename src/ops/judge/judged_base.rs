//! The base: what the oracle's commands say of it, before any attempt's change.
//!
//! A base that passes makes a pass prove less, and a command that cannot start on the base starts
//! on no candidate either, which a person should know before every attempt has ended.
use std::sync::Arc;

use crate::model::outcome::{Outcome, Results, Stage, StageResult};
use crate::model::run::Run;
use crate::model::terms::Terms;
use crate::model::verdict::Baseline;
use crate::ops::session::Session;
use crate::oracle::sealed::BaseInUse;

/// The outcome of a run's base, and how many commands that took.
#[derive(Clone, Debug)]
pub struct JudgedBase {
    /// The results of the commands.
    pub baseline: Baseline,
    /// The number of commands that were started.
    pub ran: u64,
    /// The layers with the outputs of these commands, if they ran in a sealed world.
    pub layer: Option<Arc<BaseInUse>>,
    /// The terms of the judging.
    pub terms: Terms,
}

/// The base as the judging of a run finds it.
#[derive(Debug)]
pub enum BaseState {
    /// It is not judged.
    NotWanted,
    /// It is still to be judged.
    Unjudged,
    /// It was judged with the same commands and settings.
    Judged(Box<JudgedBase>),
}

/// Says that a command cannot start on the base, or that it lets failures of tests pass.
pub(super) fn warn_of_base(session: &Session, run: &Run, results: &Results) {
    if let Some(result) = results.stopped_at()
        && let Outcome::ReportedFailures { .. } = result.outcome
    {
        let (ui, StageResult { stage, outcome, .. }) = (&session.ui, result);
        ui.warn(format!("run {}: the {stage} command ends on the base with {outcome}", run.run));
        ui.hint(
            "keep the exit code of the tests (`set -o pipefail`); or, where failures are known, \
             trust it: `git config frites.oracle.trust-exit true`",
        );
    }
    let found = results.iter().find_map(|r| Some((r, r.outcome.why_not_started()?)));
    let Some((result, why)) = found else { return };
    let (ui, stage) = (&session.ui, result.stage);
    ui.warn(format!("run {}: the {stage} command cannot start on the base: {why}", run.run));
    let other = match stage {
        Stage::Setup => "set `oracle.setup` to another command".to_owned(),
        Stage::Test => {
            format!("judge with another command: `git frites judge {} --test CMD`", run.run)
        }
        // Another command in its place would be the only one that is run.
        Stage::Build | Stage::Lint => {
            format!("leave it out: `git frites judge {} --{stage} ''`", run.run)
        }
    };
    ui.hint(format!(
        "if it cannot start on the candidates either, none of them can pass: install what it \
         needs, or {other}"
    ));
}
