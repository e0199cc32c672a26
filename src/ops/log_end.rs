//! The end of a failed command's output, shown under the line that says that it failed.
use std::path::Path;

use crate::process::{last_lines, last_words};
use crate::ui::Ui;

/// Prints a line about a failure, with the end of the log under it; not with `-q`.
pub fn note(ui: &Ui, line: &str, log: &Path) {
    ui.note_output(line, &last_lines(log, ui.output_lines), log);
}

/// Prints a line about a failed attempt, with the end of what its command said under it; not with `-q`.
pub fn note_of_agent(ui: &Ui, line: &str, log: &Path) {
    ui.note_output(line, &last_words(log, ui.output_lines), log);
}

/// Prints a warning, with the end of the log under it.
pub fn warn(ui: &Ui, line: &str, log: &Path) {
    ui.warn_output(line, &last_lines(log, ui.output_lines), log);
}
