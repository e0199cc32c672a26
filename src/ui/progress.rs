//! Lines that change while commands run, on a terminal's standard error.
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::ui::{moves_cursor, table};

/// One line: what a candidate is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Who.
    pub name: String,
    /// What it is at: a stage, or how it ended.
    pub doing: String,
    /// For how long.
    pub elapsed: Option<Duration>,
    /// What it printed last.
    pub last_line: Option<String>,
}

/// The lines as text, their columns aligned.
pub fn texts(lines: &[Line]) -> impl Iterator<Item = String> {
    let names = lines.iter().map(|line| line.name.len()).max().unwrap_or_default();
    let doing = lines.iter().map(|line| line.doing.len()).max().unwrap_or_default();
    lines.iter().map(move |Line { name, doing: what, elapsed, last_line }| {
        // Tenths would make a line change without end.
        let elapsed = match elapsed.map(|e| e.as_secs()) {
            None => String::new(),
            Some(few @ 0..10) => format!("{few}s"),
            Some(seconds) => table::duration(seconds as f64),
        };
        let last = last_line.as_deref().unwrap_or_default();
        format!("{name:names$}  {what:doing$}  {elapsed:>6}  {last}").trim_end().to_owned()
    })
}

/// The lines being shown. What is printed meanwhile goes above them.
#[derive(Debug)]
pub struct Live {
    all: MultiProgress,
    bars: Mutex<Vec<ProgressBar>>,
}

impl Live {
    /// Lines on standard error, if that is a terminal that can move its cursor.
    pub fn on_terminal() -> Option<Live> {
        let able = std::io::stderr().is_terminal() && moves_cursor();
        able.then(|| Live {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)),
            bars: Mutex::default(),
        })
    }

    /// Shows these lines instead of those before, as many as the terminal has room for.
    pub fn show(&self, lines: &[Line]) {
        let room = usize::from(console::Term::stderr().size().0).saturating_sub(2).max(1);
        let mut bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        while bars.len() > lines.len().min(room) {
            bars.pop().inspect(ProgressBar::finish_and_clear);
        }
        for (at, text) in texts(lines).take(room).enumerate() {
            if bars.len() == at {
                let plain =
                    ProgressStyle::with_template("{wide_msg}").expect("a template of indicatif's");
                bars.push(self.all.add(ProgressBar::no_length().with_style(plain)));
            }
            if bars[at].message() != text {
                bars[at].set_message(text);
            }
        }
    }

    /// Prints while no line is in the way.
    pub fn aside(&self, print: impl FnOnce()) {
        self.all.suspend(print);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        for bar in self.bars.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            bar.finish_and_clear();
        }
    }
}
