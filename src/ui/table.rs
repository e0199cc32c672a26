//! Tables: columns aligned by display width, cut to the terminal.
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};

use super::style::Styles;

/// What a cell means, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing special.
    Plain,
    /// Passed, recommended.
    Good,
    /// Failed.
    Bad,
    /// To be looked at.
    Caution,
    /// Less important.
    Dim,
}

/// A table being filled.
pub struct Grid {
    table: Table,
    styles: Styles,
}

impl Grid {
    /// A table with these headings. Columns named in `numbers` (from 0) are aligned right.
    pub fn new(headings: &[&str], numbers: &[usize], styles: Styles) -> Grid {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        if styles.colored {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        let bold =
            |text: &&str| if styles.colored { Cell::new(text).add_attribute(Attribute::Bold) } else { Cell::new(text) };
        table.set_header(headings.iter().map(bold).collect::<Vec<_>>());
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            if numbers.contains(&at) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Grid { table, styles }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<(String, Tone)>) {
        let cell = |(text, tone): (String, Tone)| {
            let cell = Cell::new(text);
            match tone {
                _ if !self.styles.colored => cell,
                Tone::Plain => cell,
                Tone::Good => cell.fg(Color::Green),
                Tone::Bad => cell.fg(Color::Red),
                Tone::Caution => cell.fg(Color::Yellow),
                Tone::Dim => cell.add_attribute(Attribute::Dim),
            }
        };
        let cells: Vec<Cell> = cells.into_iter().map(cell).collect();
        self.table.add_row(cells);
    }

    /// The table as text; no line ends in blanks.
    pub fn render(&self) -> String {
        self.table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// A time span for people: `0.4s`, `12s`, `3m05s`, `2h10m`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 9.95 => format!("{seconds:.1}s"),
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole % 3600 / 60),
    }
}

/// How long ago something was, for people: `5 min`, `3 h`, `2 days`.
pub fn age(then: jiff::Timestamp) -> String {
    // A clock that went back makes it the future: that is no time ago.
    let elapsed = u64::try_from(jiff::Timestamp::now().duration_since(then).as_secs()).unwrap_or_default();
    match elapsed {
        0..60 => format!("{elapsed} s"),
        60..3600 => format!("{} min", elapsed / 60),
        3600..86400 => format!("{} h", elapsed / 3600),
        86400..172_800 => "1 day".to_owned(),
        _ => format!("{} days", elapsed / 86400),
    }
}

/// A size for people: `512 B`, `3.4 MiB`.
pub fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_sizes_read_well() {
        let spans = [0.04, 9.94, 9.96, 59.0, 60.0, 3599.0, 7800.0].map(duration);
        assert_eq!(spans, ["0.0s", "9.9s", "10s", "59s", "1m00s", "59m59s", "2h10m"]);
        let sizes = [0, 1023, 1024, 3_565_158, 5 << 30].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "3.4 MiB", "5.0 GiB"]);
    }
}
