//! A text that is redrawn in place on a terminal.
use console::truncate_str;

/// The place on the terminal, as the number of lines drawn last. The cursor is below them, so that what
/// the terminal shows of keys does not move them.
#[derive(Debug, Default)]
pub struct Screen {
    drawn: usize,
}

impl Screen {
    /// The characters that replace the lines drawn before.
    pub fn frame<'a>(
        &mut self,
        lines: impl Iterator<Item = &'a str>,
        rows: usize,
        columns: usize,
    ) -> String {
        let mut frame = self.back();
        self.drawn = 0;
        for line in lines.take(rows.saturating_sub(1)) {
            frame.push_str(&truncate_str(line, columns, "…"));
            frame.push_str("\x1b[0m\x1b[K\n");
            self.drawn += 1;
        }
        frame.push_str("\x1b[J");
        frame
    }

    /// The characters that erase the lines drawn before.
    pub fn erase(&mut self) -> String {
        let frame = format!("{}\r\x1b[J", self.back());
        self.drawn = 0;
        frame
    }

    fn back(&self) -> String {
        if self.drawn > 0 { format!("\x1b[{}A\r", self.drawn) } else { String::new() }
    }
}
