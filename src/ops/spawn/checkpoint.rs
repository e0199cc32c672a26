//! Checkpoints: captures of candidates at intervals while their commands run. Captures use an index of their
//! own, so they do not disturb git in the commands.
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::fs::parallel;
use crate::model::candidate::State;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;

/// Does `work`. Meanwhile, captures the candidates whose commands run, at the interval `every`.
pub fn beside<T>(
    session: &Session,
    run: &Run,
    names: &[Name],
    every: Option<Duration>,
    work: impl FnOnce() -> T,
) -> T {
    let Some(every) = every else { return work() };
    std::thread::scope(|scope| {
        let (done, waiting) = mpsc::channel::<()>();
        parallel::start(scope, move || {
            while waiting.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                for name in names {
                    checkpoint(session, session.store.candidate(run, name));
                }
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// Captures one candidate if its command runs. The capture can fail, e.g. because a file disappears while it
/// is read. A failure is only a note, because the next checkpoint tries again.
fn checkpoint(session: &Session, candidate: CandidateRef<'_>) {
    let ui = &session.ui;
    if !candidate.record().is_ok_and(|c| c.state == State::Running && c.started.is_some()) {
        return;
    }
    match session.capture(candidate) {
        Ok(captured) => {
            if let Some(capture) = captured.capture
                && captured.fresh
            {
                ui.note(format!(
                    "{candidate}@{}: checkpoint, {}",
                    capture.iteration, captured.blast
                ));
            }
        }
        Err(error) => {
            ui.note(format!("{candidate}: no checkpoint this time: {}", error.message));
        }
    }
}
