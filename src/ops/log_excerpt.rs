//! The part of a failed command's output that tells why the command failed. It is shown under the
//! line about the failure, in reports, and in the prompt of an agent that is to repair it.
use std::path::Path;

use crate::model::chatter::{first_telling, last_telling};
use crate::model::error_line::looks_like_error;
use crate::ops::session::Session;
use crate::process::{last_lines, last_words, lines_from};

/// At most this many lines at the end of a log are skipped. Such lines are about the tool itself or
/// about tests that passed.
const MOST_SKIPPED: usize = 500;

/// Stands for the lines that are left out between the first error and the end.
const LEFT_OUT: &str = "…";

/// Prints a line about a failure, with an excerpt of the log under the line. Prints nothing with
/// `-q`.
pub fn note(session: &Session, line: &str, log: &Path) {
    let shown = of(log, session.ui.output_lines);
    session.ui.note_output(line, &shown, &full_log_command(session, log));
}

/// Prints a line about a failed attempt, followed by the last lines of its command's output. Prints
/// nothing with `-q`.
pub fn note_of_agent(session: &Session, line: &str, log: &Path) {
    let wanted = session.ui.output_lines;
    let shown = last_telling(last_words(log, wanted + MOST_SKIPPED), wanted);
    session.ui.note_output(line, &shown, &full_log_command(session, log));
}

/// Prints a warning, with an excerpt of the log under the warning.
pub fn warn(session: &Session, line: &str, log: &Path) {
    let shown = of(log, session.ui.output_lines);
    session.ui.warn_output(line, &shown, &full_log_command(session, log));
}

/// The last `count` lines of the log of a command that failed. If none of these lines looks like an
/// error, most of them are replaced by the log's first line that does, and by the lines after it.
pub fn of(log: &Path, count: usize) -> Vec<String> {
    let last = last_telling(last_lines(log, count + MOST_SKIPPED), count);
    if last.iter().any(|line| looks_like_error(line)) {
        return last;
    }
    let from_error = lines_from(log, looks_like_error, count + MOST_SKIPPED);
    if from_error.is_empty() {
        return last;
    }
    let of_end = count / 3;
    let mut shown = first_telling(from_error, count + 1 - of_end);
    shown.push(LEFT_OUT.to_owned());
    shown.extend_from_slice(&last[last.len().saturating_sub(of_end)..]);
    shown
}

/// The command that shows the whole log; the log's path if no command shows this log.
fn full_log_command(session: &Session, log: &Path) -> String {
    match session.store.output_of(log) {
        Some(words) => format!("git frites output {words}"),
        None => format!("'{}'", log.display()),
    }
}
