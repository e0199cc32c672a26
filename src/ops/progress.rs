//! Watching: how far the candidates of a run are, for lines that change on a terminal and for `status`.
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

/// How often the lines are drawn anew.
const BEAT: Duration = Duration::from_millis(200);

/// What runs for a candidate this moment, in whatever process; none if nothing does.
pub fn running(candidate: CandidateRef<'_>) -> Option<Running> {
    progress::running(&candidate.directory())
}

/// Does `work` for some candidates of a run; on a terminal a line for each of them tells how far it is.
pub fn live<T>(
    session: &Session,
    run: &Run,
    names: &[Name],
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let Some(live) = Live::on_terminal().filter(|_| !session.ui.is_quiet()) else { return work() };
    session.ui.begin_live(live);
    let result = thread::scope(|scope| {
        let (done, waiting) = channel::<()>();
        scope.spawn(move || {
            // Ends when the other end is dropped.
            while let Err(RecvTimeoutError::Timeout) = waiting.recv_timeout(BEAT) {
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

/// The line of a candidate for which something runs this moment, in whatever process; none if nothing does.
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
        (_, _) => line(record.state_in_words(), record.worked()),
    }
}
