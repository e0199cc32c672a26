//! The only module that prints. It writes the answer of a command to stdout, and everything else to
//! stderr.
pub mod comparison;
mod effort_words;
pub mod explanation;
pub mod json;
pub mod junit;
pub mod live;
pub mod local_time;
pub mod next_steps;
mod notify;
pub mod report;
pub mod screen;
pub mod style;
pub mod table;
mod test_words;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ColorChoice;
use console::truncate_str;
use parking_lot::Mutex;
use serde_json::Value;

use crate::error::{Error, ErrorKind, IoContext, Result};
use crate::ui::live::{Live, View};
use crate::ui::screen::{Screen, moves_cursor, window};
use crate::ui::style::{Styles, Tone};
use crate::ui::table::printable;

/// A line of a command's output is cut to this many columns if the terminal's width is not known.
const LONG_LINE: usize = 200;

/// The two output streams, and the styles for them.
#[derive(Clone, Debug)]
pub struct Ui {
    quiet: bool,
    terminal: bool,
    /// Styles for stdout.
    pub out: Styles,
    err: Styles,
    /// How many lines at the end of a failed command's output are shown.
    pub output_lines: usize,
    /// The maximum width of a line of a command's output, in columns.
    output_width: usize,
    live: Arc<Mutex<Option<Live>>>,
    /// True once a part of the answer was written.
    answered: Arc<AtomicBool>,
    /// The error of the first write of the answer that failed.
    lost: Arc<Mutex<Option<io::Error>>>,
}

impl Ui {
    /// Reads the terminal, `--color` and the environment once.
    pub fn new(color: ColorChoice, quiet: bool, verbose: bool) -> Ui {
        let terminal = io::stdout().is_terminal();
        let styles =
            |is_terminal| Styles { colored: style::wanted(color, is_terminal), width: None };
        let out = Styles { width: terminal.then(|| window().1).flatten(), ..styles(terminal) };
        let err = styles(io::stderr().is_terminal());
        let output_lines = if verbose { 20 } else { 3 };
        let output_width = window().1.map_or(LONG_LINE, |width| width.saturating_sub(4).max(20));
        Ui {
            quiet,
            terminal,
            out,
            err,
            output_lines,
            output_width,
            live: Arc::default(),
            answered: Arc::default(),
            lost: Arc::default(),
        }
    }

    /// True with `-q`, when only the answer, warnings and errors are printed.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Begins to show changing rows at the end of standard error. Everything else is then printed
    /// above them. Returns false if no rows are shown: with `-q`, or if standard error is not a
    /// terminal that can move its cursor.
    pub fn begin_live(&self) -> bool {
        let live = if self.quiet { None } else { Live::on_terminal(self.err) };
        let begun = live.is_some();
        *self.live.lock() = live;
        begun
    }

    /// Replaces the changing rows, if there are any. `requests` is how often git-frites was asked
    /// to end; if it is not 0, the last row says so.
    pub fn show_live(&self, view: &View, requests: usize) {
        if let Some(live) = &mut *self.live.lock() {
            live.show(view, stopping(requests));
        }
    }

    /// Tells the user that git-frites is stopping, if there is a terminal. `requests` is how often
    /// git-frites was asked to end. After the last possible request, removes the rows.
    pub fn tell_stopping(&self, requests: usize) {
        let words = if self.quiet { None } else { stopping(requests) };
        match (&mut *self.live.lock(), words) {
            (Some(live), Some(words)) => return live.say_last(words),
            (None, Some(words)) if io::stderr().is_terminal() => {
                // The terminal has printed ^C at the cursor. Write over it.
                let _ =
                    writeln!(io::stderr().lock(), "\r{}", self.err.of(Tone::Caution).style(words));
            }
            _ => {}
        }
        if words.is_none() {
            self.end_live();
        }
    }

    /// Removes the changing rows.
    pub fn end_live(&self) {
        *self.live.lock() = None;
    }

    /// Prints `word` and a line to standard error, above the changing rows. Control characters are
    /// escaped, so that it stays one line. If standard error is closed, does nothing.
    fn say(&self, word: &str, line: &str) {
        self.log(format!("{word}{}\n", printable(line)).as_bytes());
    }

    /// Writes lines to standard error as they are, above the changing rows.
    pub fn log(&self, bytes: &[u8]) {
        let print = || drop(io::stderr().lock().write_all(bytes));
        match &*self.live.lock() {
            Some(live) => live.aside(print),
            None => print(),
        }
    }

    /// Rings the bell of the terminal. Does nothing with `-q` or without a terminal.
    pub fn ring(&self) {
        self.signal(notify::BELL);
    }

    /// Shows a notification. If the terminal does not support notifications, rings its bell.
    pub fn notify(&self, words: &str) {
        self.signal(&notify::notification(words, |name| std::env::var(name).ok()));
    }

    fn signal(&self, sequence: &str) {
        if !self.quiet && io::stderr().is_terminal() {
            self.log(sequence.as_bytes());
        }
    }

    /// True if standard output is a terminal.
    pub fn on_terminal(&self) -> bool {
        self.terminal
    }

    /// True if standard output is a terminal that can move its cursor.
    pub fn can_redraw(&self) -> bool {
        self.terminal && moves_cursor()
    }

    /// Draws a text on the screen, in place of the text that was drawn before.
    pub fn redraw(&self, screen: &Screen, text: &str) {
        let (rows, columns) = window();
        let lines: Vec<&str> = text.lines().collect();
        screen.draw(&lines, rows.unwrap_or(24), columns.unwrap_or(80));
    }

    /// Writes the command's answer to standard output, byte for byte. If the write fails, the
    /// command goes on with its work. For example, it finishes a landing although the reader (such
    /// as `head`) went away. [`Ui::written`] reports the failure.
    pub fn answer(&self, bytes: impl AsRef<[u8]>) {
        self.answered.store(true, Ordering::Relaxed);
        let mut lost = self.lost.lock();
        if lost.is_none() {
            let mut out = io::stdout().lock();
            *lost = out.write_all(bytes.as_ref()).and_then(|()| out.flush()).err();
        }
    }

    /// Writes the command's answer as one JSON document with these fields, as [`Ui::answer`] does.
    pub fn answer_json(&self, fields: Value) {
        self.answer(json::document(fields));
    }

    /// Fails if a part of the answer could not be written. Every command calls this at its end. A
    /// command that follows other work also calls it in each round, because it must end if nobody
    /// reads.
    pub fn written(&self) -> Result<()> {
        match self.lost.lock().take() {
            None => Ok(()),
            Some(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                Err(Error::new(ErrorKind::Pipe, "the reader of the output went away"))
            }
            Some(e) => Err(Error::io("could not write the output", e)),
        }
    }

    /// Prints a line about progress or state. Prints nothing with `-q`.
    pub fn note(&self, line: impl AsRef<str>) {
        if !self.quiet {
            self.say("", line.as_ref());
        }
    }

    /// Prints a line as [`Ui::note`] does, but even with `-q`.
    pub fn tell(&self, line: impl AsRef<str>) {
        self.say("", line.as_ref());
    }

    /// Prints a line about a failure as [`Ui::note`] does. Under it, prints the last lines of a
    /// command's output, and `whole`, which tells where the whole output is. Other threads cannot
    /// print in between.
    pub fn note_output(&self, line: &str, output: &[String], whole: &str) {
        if !self.quiet {
            self.say_with_output("", line, output, whole);
        }
    }

    /// Asks the user a yes/no question. Returns `None` if there is no terminal for it.
    pub fn ask(&self, question: &str) -> Result<Option<bool>> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(None);
        }
        let _ = io::stderr().write_all(format!("{question} [y/N] ").as_bytes());
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).context(|| "could not read the answer".into())?;
        Ok(Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")))
    }

    /// Prints a warning, and under it the same lines as [`Ui::note_output`], even with `-q`.
    pub fn warn_output(&self, line: &str, output: &[String], whole: &str) {
        let word = format!("{} ", self.err.of(Tone::Caution).style("warning:"));
        self.say_with_output(&word, line, output, whole);
    }

    fn say_with_output(&self, word: &str, line: &str, output: &[String], whole: &str) {
        let mut text = format!("{word}{}\n", printable(line));
        for line in output {
            let line = printable(line);
            let shown = truncate_str(&line, self.output_width, "…");
            text.push_str(&format!("  {} {shown}\n", self.err.of(Tone::Dim).style("|")));
        }
        if !output.is_empty() {
            let whole = format!("  the whole output: {}", printable(whole));
            text.push_str(&format!("{}\n", self.err.of(Tone::Dim).style(whole)));
        }
        self.log(text.as_bytes());
    }

    /// Prints a warning, even with `-q`.
    pub fn warn(&self, line: impl AsRef<str>) {
        self.say(&format!("{} ", self.err.of(Tone::Caution).style("warning:")), line.as_ref());
    }

    /// Prints a hint about what to type next. Prints nothing with `-q`.
    pub fn hint(&self, line: impl AsRef<str>) {
        if !self.quiet {
            self.say_hint(line.as_ref());
        }
    }

    fn say_hint(&self, line: &str) {
        self.say(&format!("{} ", self.err.of(Tone::Dim).style("hint:")), line);
    }

    /// Prints the errors that led to `error`, the nearest first.
    pub fn sources(&self, error: &Error) {
        let mut next = std::error::Error::source(error);
        while let Some(source) = next {
            for line in source.to_string().lines() {
                self.say("caused by: ", line);
            }
            next = source.source();
        }
    }

    /// Prints an error as a JSON document in place of the answer. Does nothing if a part of the
    /// answer was already written.
    pub fn error_as_json(&self, error: &Error) {
        if error.kind != ErrorKind::Pipe && !self.answered.load(Ordering::Relaxed) {
            self.answer_json(json::error(error));
        }
    }

    /// Prints an error in git's form: a line that begins with `fatal:` or `error:`, and then the
    /// hints.
    pub fn error(&self, error: &Error) {
        if error.kind == ErrorKind::Pipe {
            return;
        }
        self.say(
            &format!("{} ", self.err.of(Tone::Bad).style(format!("{}:", error.kind.word()))),
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

/// The message after git-frites was asked to end this many times; `None` before the first request,
/// and after the third one, which ends git-frites at once.
fn stopping(requests: usize) -> Option<&'static str> {
    match requests {
        1 => Some("stopping … (again: kill)"),
        2 => Some("killing … (again: leave at once)"),
        _ => None,
    }
}
