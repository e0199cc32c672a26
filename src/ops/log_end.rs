//! The end of a failed command's output, shown under the line that says that it failed.
use std::path::Path;

use crate::model::chatter::last_telling;
use crate::ops::session::Session;
use crate::process::{last_lines, last_words};

/// The most lines at the end of a log that are passed over because tools speak of themselves there.
const PASSED_OVER: usize = 20;

/// Prints a line about a failure, with the end of the log under it; not with `-q`.
pub fn note(session: &Session, line: &str, log: &Path) {
    session.ui.note_output(line, &end(session, log, last_lines), &whole(session, log));
}

/// Prints a line about a failed attempt, with the end of what its command said under it; not with `-q`.
pub fn note_of_agent(session: &Session, line: &str, log: &Path) {
    session.ui.note_output(line, &end(session, log, last_words), &whole(session, log));
}

/// Prints a warning, with the end of the log under it.
pub fn warn(session: &Session, line: &str, log: &Path) {
    session.ui.warn_output(line, &end(session, log, last_lines), &whole(session, log));
}

fn end(session: &Session, log: &Path, read: fn(&Path, usize) -> Vec<String>) -> Vec<String> {
    let wanted = session.ui.output_lines;
    last_telling(read(log, wanted + PASSED_OVER), wanted)
}

/// The command that shows all of a log, or else its path.
fn whole(session: &Session, log: &Path) -> String {
    match session.store.output_of(log) {
        Some(words) => format!("git frites output {words}"),
        None => format!("'{}'", log.display()),
    }
}
