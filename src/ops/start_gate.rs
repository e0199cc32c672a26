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

/// The gate is closed until it is opened or locked.
#[derive(Default)]
pub struct StartGate {
    settled: OnceLock<()>,
    /// The reason why no further command is started; empty unless the gate is locked.
    locked: OnceLock<String>,
    /// True once a command was started.
    passed: AtomicBool,
}

impl StartGate {
    /// Lets commands start, unless the gate is locked.
    pub fn open(&self) {
        let _ = self.settled.set(());
    }

    /// Lets no further command start, for the reason `why`.
    pub fn lock(&self, why: String) {
        let _ = self.locked.set(why);
        self.open();
    }

    /// Waits until the gate is opened or locked. If it is locked, marks the candidate as not
    /// started, and returns the candidate. Returns `None` if the candidate's command may start. If
    /// the setup of its worktree failed, returns `None` at once, because its command is not
    /// started.
    pub fn refuse(
        &self,
        session: &Session,
        candidate: CandidateRef<'_>,
    ) -> Result<Option<Captured>> {
        if candidate.record()?.state == State::Failed {
            return Ok(None);
        }
        self.settled.wait();
        let Some(why) = self.locked.get() else {
            self.passed.store(true, Ordering::Relaxed);
            return Ok(None);
        };
        refuse(session, candidate, why).map(Some)
    }

    /// Fails if the gate was locked before any command started.
    pub fn require_passed(&self, run: &Run) -> Result<()> {
        match self.locked.get() {
            Some(why) if !self.passed.load(Ordering::Relaxed) => {
                Err(Error::fatal(format!("run {run}: {why}, so no attempt was started")))
            }
            _ => Ok(()),
        }
    }
}

/// Records that a candidate's command was not started, for the reason `why`.
pub(super) fn refuse(
    session: &Session,
    candidate: CandidateRef<'_>,
    why: &str,
) -> Result<Captured> {
    // If the command was a later round, the candidate gets back its state from before that round,
    // because nothing has changed since.
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
