//! `limits.cost`: a run that has reached this cost starts no further command.
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::keys;
use crate::error::{Error, Result};
use crate::model::run::Run;
use crate::model::usage::dollars;
use crate::ops::capture::Captured;
use crate::ops::session::Session;
use crate::ops::start_gate;
use crate::store::candidate::CandidateRef;

/// Applies the limit while commands of a run are started. Tells the user only once that it is
/// reached.
#[derive(Default)]
pub struct CostLimit {
    said: AtomicBool,
}

impl CostLimit {
    /// Marks a candidate whose command is not started because the run has reached its cost limit;
    /// `None` if the command can be started.
    pub fn refuse(
        &self,
        session: &Session,
        candidate: CandidateRef<'_>,
    ) -> Result<Option<Captured>> {
        let run = candidate.run;
        let Some(reached) = reached(session, run)? else { return Ok(None) };
        if !self.said.swap(true, Ordering::Relaxed) {
            session
                .ui
                .note(format!("run {}: {}, so nothing more is started", run.run, reached.words));
            session.ui.hint(reached.go_on);
        }
        start_gate::refuse(session, candidate, "limits.cost").map(Some)
    }
}

/// The state of a run that has reached its cost limit.
pub struct ReachedCost {
    /// The cost and the limit, in words.
    pub words: String,
    /// How to go on with the run.
    pub go_on: String,
    higher: f64,
}

impl ReachedCost {
    /// The error of a command that would cost more.
    pub fn into_error(self, run: &Run) -> Error {
        Error::no(format!("run {}: {}", run.run, self.words)).hint(format!(
            "allow it more with `git -c frites.limits.cost={:.2} frites …`",
            self.higher
        ))
    }
}

/// The reached limit of a run, by the costs that its agents have reported; `None` if it is not
/// reached.
pub fn reached(session: &Session, run: &Run) -> Result<Option<ReachedCost>> {
    let Some(limit) = session.config.get(keys::LIMITS_COST) else { return Ok(None) };
    let cost = session.store.usage(run)?.and_then(|usage| usage.known.cost).unwrap_or_default();
    let higher = cost + limit;
    Ok((cost >= limit).then(|| ReachedCost {
        words: format!("it has cost {}, and limits.cost is {}", dollars(cost), dollars(limit)),
        go_on: format!(
            "go on with a higher limit: `git -c frites.limits.cost={higher:.2} frites run --resume {}`",
            run.run
        ),
        higher,
    }))
}
