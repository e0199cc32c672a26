//! The only place that prints: stdout carries the answer, stderr everything else.
pub mod comparison;
pub mod json;
pub mod style;
pub mod table;

use std::io::{self, IsTerminal, Write};

use self::style::Styles;
use crate::error::{Error, Kind, Result};

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR or TERM=dumb says otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where and how to print.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    quiet: bool,
    terminal: bool,
    /// Styles for stdout.
    pub out: Styles,
    err: Styles,
}

impl Ui {
    /// Looks at the terminal, `--color` and the environment once.
    pub fn new(color: ColorChoice, quiet: bool) -> Ui {
        let terminal = io::stdout().is_terminal();
        let styles =
            |is_terminal| if style::wanted(color, is_terminal) { Styles::colored() } else { Styles::default() };
        Ui { quiet, terminal, out: styles(terminal), err: styles(io::stderr().is_terminal()) }
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
            _ => Error::fatal(format!("could not write the output: {}", crate::error::describe(&e))),
        })
    }

    /// Says how things go; not with `-q`.
    pub fn note(&self, line: impl AsRef<str>) {
        if !self.quiet {
            say(line.as_ref());
        }
    }

    /// Says what the user should know, also with `-q`.
    pub fn warn(&self, line: impl AsRef<str>) {
        say(&format!("{} {}", self.err.caution.paint("warning:"), line.as_ref()));
    }

    /// Says what to type next; not with `-q`.
    pub fn hint(&self, line: impl AsRef<str>) {
        if !self.quiet {
            say(&format!("{} {}", self.err.dim.paint("hint:"), line.as_ref()));
        }
    }

    /// Says what went wrong, in git's form: `fatal:` or `error:`, then the hints.
    pub fn error(&self, error: &Error) {
        if error.kind == Kind::Pipe {
            return;
        }
        say(&format!("{} {}", self.err.bad.paint(&format!("{}:", error.kind.word())), error.message));
        for hint in &error.hints {
            say(&format!("{} {hint}", self.err.dim.paint("hint:")));
        }
    }
}

/// One line to stderr. A stderr that is gone is nothing to stop for.
fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
