//! Progress lines on a terminal's standard error, while commands run.
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::ui::table;
use crate::ui::terminal::moves_cursor;

/// The progress of one candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressLine {
    /// The candidate.
    pub name: String,
    /// The stage that runs, or the result.
    pub doing: String,
    /// The time that the stage has taken so far.
    pub elapsed: Option<Duration>,
    /// The last line that the command printed.
    pub last_line: Option<String>,
}

/// The lines as text, with aligned columns.
pub fn texts(lines: &[ProgressLine]) -> impl Iterator<Item = String> {
    let names = lines.iter().map(|line| line.name.len()).max().unwrap_or_default();
    let doing = lines.iter().map(|line| line.doing.len()).max().unwrap_or_default();
    lines.iter().map(move |ProgressLine { name, doing: what, elapsed, last_line }| {
        // Tenths of a second would redraw every line all the time.
        let elapsed = match elapsed.map(|e| e.as_secs()) {
            None => String::new(),
            Some(few @ 0..10) => format!("{few}s"),
            Some(seconds) => table::duration(seconds as f64),
        };
        let last = last_line.as_deref().unwrap_or_default();
        format!("{name:names$}  {what:doing$}  {elapsed:>6}  {last}").trim_end().to_owned()
    })
}

/// The progress lines on the terminal. Other output goes above them.
#[derive(Debug)]
pub struct Live {
    all: MultiProgress,
    bars: Mutex<Vec<ProgressBar>>,
}

impl Live {
    /// Progress lines on standard error; none unless that is a terminal that can move its cursor.
    pub fn on_terminal() -> Option<Live> {
        let able = std::io::stderr().is_terminal() && moves_cursor();
        able.then(|| Live {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)),
            bars: Mutex::default(),
        })
    }

    /// Replaces the lines, as many as fit on the terminal.
    pub fn show(&self, lines: &[ProgressLine]) {
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

    /// Prints above the lines.
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
