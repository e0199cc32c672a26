//! A gate that the commands of attempts wait for. The judging of the base opens it, or locks it if
//! no attempt could be judged.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::model::candidate::State;
use crate::model::run::Run;
use crate::ops::capture::Captured;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;

/// The gate. It is closed until it is opened or locked.
#[derive(Default)]
pub struct StartGate {
    settled: OnceLock<()>,
    /// The reason why no command is started from now on.
    locked: OnceLock<String>,
    /// True once a command was started.
    passed: AtomicBool,
}

impl StartGate {
    /// Lets commands start, unless the gate is locked.
    pub fn open(&self) {
        let _ = self.settled.set(());
    }

    /// Lets no further command start.
    pub fn lock(&self, why: String) {
        let _ = self.locked.set(why);
        self.open();
    }

    /// Waits until the gate is opened or locked. If it is locked, marks the candidate as not
    /// started, and gives it. `None` if its command may start.
    pub fn refuse(
        &self,
        session: &Session,
        candidate: CandidateRef<'_>,
    ) -> Result<Option<Captured>> {
        self.settled.wait();
        let Some(why) = self.locked.get() else {
            self.passed.store(true, Ordering::Relaxed);
            return Ok(None);
        };
        refuse(session, candidate, why).map(Some)
    }

    /// Fails if no command was started.
    pub fn require_passed(&self, run: &Run) -> Result<()> {
        match self.locked.get() {
            Some(why) if !self.passed.load(Ordering::Relaxed) => {
                Err(Error::fatal(format!("run {}: {why}, so no attempt was started", run.run)))
            }
            _ => Ok(()),
        }
    }
}

/// Marks a candidate as not started, for this reason.
pub(super) fn refuse(
    session: &Session,
    candidate: CandidateRef<'_>,
    why: &str,
) -> Result<Captured> {
    // A candidate whose later round is not started keeps the state from before that round, because
    // nothing has changed since.
    let before = match candidate.record()?.again {
        true => candidate.latest_usable()?.map(|(_, state)| state),
        false => None,
    };
    candidate.update(|record| {
        record.state = before.unwrap_or(State::Cancelled);
        record.reason = before.is_none().then(|| format!("not started: {why}"));
    })?;
    session.stored(candidate)
}
