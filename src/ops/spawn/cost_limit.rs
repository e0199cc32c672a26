//! `limits.cost`: once a run has reached this cost, no further command of it is started.
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::keys;
use crate::error::{Error, Result};
use crate::model::run::Run;
use crate::model::usage::dollars;
use crate::ops::capture::Captured;
use crate::ops::session::Session;
use crate::ops::start_gate;
use crate::store::candidate::CandidateRef;

/// Applies the limit while commands of a run are started. Tells the user only once that the run has
/// reached the limit.
#[derive(Default)]
pub struct CostLimit {
    is_told: AtomicBool,
}

impl CostLimit {
    /// If the run has reached its cost limit, marks the candidate as not started, and returns the
    /// candidate. Returns `None` if the candidate's command can be started.
    pub fn refuse(
        &self,
        session: &Session,
        candidate: CandidateRef<'_>,
    ) -> Result<Option<Captured>> {
        if !self.is_reached(session, candidate.run, "so nothing more is started")? {
            return Ok(None);
        }
        start_gate::refuse(session, candidate, "limits.cost").map(Some)
    }

    /// True if the run has reached its cost limit. The first time, tells the user so, and which
    /// `effect` this has.
    pub fn is_reached(&self, session: &Session, run: &Run, effect: &str) -> Result<bool> {
        let Some(reached) = reached(session, run)? else { return Ok(false) };
        if !self.is_told.swap(true, Ordering::Relaxed) {
            session.ui.note(format!("run {}: {}, {effect}", run.run, reached.words));
            session.ui.hint(reached.go_on);
        }
        Ok(true)
    }

    /// True if the user has been told that the run has reached the limit.
    pub fn is_told(&self) -> bool {
        self.is_told.load(Ordering::Relaxed)
    }
}

/// The state of a run that has reached its cost limit.
pub struct ReachedCost {
    /// The cost and the limit, e.g. `it has cost $5.10, and limits.cost is $5.00`.
    pub words: String,
    /// The hint that tells the user how to go on with the run.
    pub go_on: String,
    higher: f64,
}

impl ReachedCost {
    /// The error of a git-frites command that would start another command.
    pub fn into_error(self, run: &Run) -> Error {
        Error::no(format!("run {}: {}", run.run, self.words)).hint(format!(
            "allow it more with `git -c frites.limits.cost={:.2} frites …`",
            self.higher
        ))
    }
}

/// The state of a run whose agents have reported a cost of at least `limits.cost`; `None` if the
/// cost is lower, or if no limit is configured.
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
