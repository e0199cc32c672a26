//! The only place that prints: stdout carries the answer, stderr everything else.
pub mod comparison;
pub mod json;
pub mod progress;
pub mod screen;
pub mod style;
pub mod table;

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Kind, Result};
use crate::ui::progress::{Line, Live};
use crate::ui::style::Styles;
use crate::ui::table::printable;

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorMode {
    /// On a terminal, unless NO_COLOR or TERM=dumb says otherwise.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where and how to print.
#[derive(Clone, Debug)]
pub struct Ui {
    quiet: bool,
    terminal: bool,
    /// Styles for stdout.
    pub out: Styles,
    err: Styles,
    live: Arc<Mutex<Option<Live>>>,
}

impl Ui {
    /// Looks at the terminal, `--color` and the environment once.
    pub fn new(color: ColorMode, quiet: bool) -> Ui {
        let terminal = io::stdout().is_terminal();
        let styles = |is_terminal| {
            if style::wanted(color, is_terminal) { Styles::colored() } else { Styles::default() }
        };
        let out = Styles { width: terminal.then(|| window().1).flatten(), ..styles(terminal) };
        Ui { quiet, terminal, out, err: styles(io::stderr().is_terminal()), live: Arc::default() }
    }

    /// Whether only the bare answer was asked for.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// From now on lines change at the end of standard error, and everything else is printed above them.
    pub fn begin_live(&self, live: Live) {
        *self.live() = Some(live);
    }

    /// Shows these lines, if any are shown at all.
    pub fn show_live(&self, lines: &[Line]) {
        if let Some(live) = &*self.live() {
            live.show(lines);
        }
    }

    /// Takes the lines away.
    pub fn end_live(&self) {
        *self.live() = None;
    }

    fn live(&self) -> MutexGuard<'_, Option<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One line to standard error after a word that says what it is, above the lines that change. What it tells of may
    /// be called anything: it stays one line. A standard error that is gone is nothing to stop for.
    fn say(&self, word: &str, line: &str) {
        let print = || drop(writeln!(io::stderr().lock(), "{word}{}", printable(line)));
        match &*self.live() {
            Some(live) => live.aside(print),
            None => print(),
        }
    }

    /// Whether stdout is a terminal.
    pub fn on_terminal(&self) -> bool {
        self.terminal
    }

    /// Writes the answer, byte for byte.
    pub fn answer(&self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes.as_ref()).and_then(|()| out.flush()).map_err(|e| match e.kind() {
            io::ErrorKind::BrokenPipe => Error::new(Kind::Pipe, "the reader of the output is gone"),
            _ => Error::io("could not write the output", e),
        })
    }

    /// Says how things go; not with `-q`.
    pub fn note(&self, line: impl AsRef<str>) {
        if !self.quiet {
            self.say("", line.as_ref());
        }
    }

    /// Says what the user should know, also with `-q`.
    pub fn warn(&self, line: impl AsRef<str>) {
        self.say(&format!("{} ", self.err.caution.paint("warning:")), line.as_ref());
    }

    /// Says what to type next; not with `-q`.
    pub fn hint(&self, line: impl AsRef<str>) {
        if !self.quiet {
            self.say_hint(line.as_ref());
        }
    }

    fn say_hint(&self, line: &str) {
        self.say(&format!("{} ", self.err.dim.paint("hint:")), line);
    }

    /// Says what went wrong, in git's form: `fatal:` or `error:`, then the hints.
    pub fn error(&self, error: &Error) {
        if error.kind == Kind::Pipe {
            return;
        }
        self.say(
            &format!("{} ", self.err.bad.paint(&format!("{}:", error.kind.word()))),
            &error.message,
        );
        for hint in &error.hints {
            self.say_hint(hint);
        }
        debug_assert!(
            !error.hints.is_empty(),
            "an error says what to type next: {}",
            error.message
        );
    }
}

/// Whether a terminal of this kind can move its cursor.
fn moves_cursor() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// How many rows and columns standard output has: `COLUMNS`, as git has it, or what the terminal says.
fn window() -> (Option<usize>, Option<usize>) {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let some = |n: usize| (n > 0).then_some(n);
    let columns = set.and_then(some).or_else(|| size.and_then(|size| some(size.ws_col.into())));
    (size.and_then(|size| some(size.ws_row.into())), columns)
}
