//! The progress of a run's candidates, for the changing lines on a terminal and for `status`.
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::error::Result;
use crate::model::candidate::State;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::process::progress::{self, Running};
use crate::store::candidate::CandidateRef;
use crate::ui::progress::{Live, ProgressLine};

/// The interval between two redraws.
const REDRAW: Duration = Duration::from_millis(200);

/// The command that currently runs for a candidate, in any process; none if nothing runs.
pub fn running(candidate: CandidateRef<'_>) -> Option<Running> {
    progress::running(&candidate.directory())
}

/// Does `work` for some candidates of a run. On a terminal, a line for each of them shows its
/// progress.
pub fn live<T>(
    session: &Session,
    run: &Run,
    names: &[Name],
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    if session.ui.is_quiet() {
        return work();
    }
    let Some(live) = Live::on_terminal() else { return work() };
    session.ui.begin_live(live);
    let result = thread::scope(|scope| {
        let (done, waiting) = channel::<()>();
        scope.spawn(move || {
            // The loop ends when `done` is dropped.
            while let Err(RecvTimeoutError::Timeout) = waiting.recv_timeout(REDRAW) {
                let lines: Vec<ProgressLine> =
                    names.iter().map(|name| line(session.store.candidate(run, name))).collect();
                session.ui.show_live(&lines);
            }
        });
        let result = work();
        drop(done);
        result
    });
    session.ui.end_live();
    result
}

/// The progress line of a candidate for which a command runs, in any process; none if nothing runs.
pub fn at_work(candidate: CandidateRef<'_>) -> Option<ProgressLine> {
    let Running { what, elapsed, last_line } = running(candidate)?;
    let doing = if what == "agent" { State::Running.to_string() } else { what };
    Some(ProgressLine {
        name: candidate.name.to_string(),
        doing,
        elapsed: Some(elapsed),
        last_line,
    })
}

fn line(candidate: CandidateRef<'_>) -> ProgressLine {
    let line = |doing: String, elapsed| ProgressLine {
        name: candidate.name.to_string(),
        doing,
        elapsed,
        last_line: None,
    };
    if let Some(line) = at_work(candidate) {
        return line;
    }
    let Ok(record) = candidate.record() else {
        return line(String::new(), None);
    };
    match (record.state, record.started) {
        (State::Running, None) => line("waiting".into(), None),
        // Its command has ended, and it is being captured.
        (State::Running, Some(_)) => line("ended".into(), None),
        (_, _) => line(record.state_in_words(), record.run_time()),
    }
}
