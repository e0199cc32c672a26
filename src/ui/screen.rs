//! A text that is redrawn in place at the end of the terminal's output. Also finds out the
//! terminal's size and abilities.
use std::borrow::Borrow;
use std::io;

use console::{Term, truncate_str};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The maximum number of redraws in a second.
const MOST_REDRAWS: u8 = 20;

/// The text that is redrawn. It is the message of a progress bar that consists of nothing else.
#[derive(Debug)]
pub struct Screen {
    bar: ProgressBar,
    terminal: Term,
}

impl Screen {
    /// Makes an empty text on this terminal.
    pub fn on(terminal: Term) -> Screen {
        let target = ProgressDrawTarget::term(terminal.clone(), MOST_REDRAWS);
        let bar = ProgressBar::with_draw_target(None, target);
        let bar = match ProgressStyle::with_template("{msg}") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        Screen { bar, terminal }
    }

    /// Replaces the text by these lines, as far as they fit into `rows` and `columns`.
    pub fn draw(&self, lines: &[impl Borrow<str>], rows: usize, columns: usize) {
        let mut text = String::new();
        for line in lines.iter().take(rows.saturating_sub(1)) {
            text.push_str(&truncate_str(line.borrow(), columns, "…"));
            text.push('\n');
        }
        self.bar.set_message(text);
        self.return_cursor();
    }

    /// Calls `print`, whose output appears above the text.
    pub fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
        self.return_cursor();
    }

    /// Removes the text from the terminal.
    pub fn erase(&self) {
        self.bar.finish_and_clear();
    }

    /// Leaves the text on the terminal, with the cursor below it.
    pub fn leave(&self) {
        self.bar.abandon();
        self.return_cursor();
    }

    /// Moves the cursor to the start of the empty line below the text. The progress bar leaves the
    /// cursor at the end of this line. The echo of a key would wrap to the next line there, and an
    /// old row would stay on the screen.
    fn return_cursor(&self) {
        let _ = self.terminal.write_str("\r").and_then(|()| self.terminal.flush());
    }
}

/// True if `TERM` names a terminal that can move its cursor.
pub fn moves_cursor() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// The rows and columns of standard output; `COLUMNS` overrides the terminal, as in git.
pub fn window() -> (Option<usize>, Option<usize>) {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let some = |n: usize| (n > 0).then_some(n);
    let columns = set.and_then(some).or_else(|| size.and_then(|size| some(size.ws_col.into())));
    (size.and_then(|size| some(size.ws_row.into())), columns)
}
