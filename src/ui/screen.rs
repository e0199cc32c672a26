//! A text that is redrawn in place on a terminal.
use console::truncate_str;

use crate::error::Result;
use crate::ui::Ui;
use crate::ui::terminal::{moves_cursor, window};

/// The place on the terminal, as the number of lines drawn last.
#[derive(Debug, Default)]
pub struct Screen {
    drawn: usize,
}

impl Screen {
    /// True if standard output is a terminal that can move its cursor.
    pub fn possible(ui: &Ui) -> bool {
        ui.on_terminal() && moves_cursor()
    }

    /// Replaces the text drawn before, in one write, so that nothing flickers. Lines that do not
    /// fit on the terminal are left out.
    pub fn draw(&mut self, ui: &Ui, text: &str) -> Result<()> {
        let (rows, columns) = window();
        let mut frame =
            if self.drawn > 0 { format!("\x1b[{}A\r", self.drawn) } else { String::new() };
        self.drawn = 0;
        for line in text.lines().take(rows.unwrap_or(24).saturating_sub(1)) {
            frame.push_str(&truncate_str(line, columns.unwrap_or(80), "…"));
            frame.push_str("\x1b[0m\x1b[K\n");
            self.drawn += 1;
        }
        frame.push_str("\x1b[J");
        ui.answer(frame)
    }
}
