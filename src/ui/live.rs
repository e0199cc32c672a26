//! Rows that change while commands run. They are shown on standard error if it is a terminal.
use std::io::{self, IsTerminal};
use std::time::Duration;

use console::Term;

use crate::model::board::{Row, Standing, fold};
use crate::ui::screen::{Screen, moves_cursor};
use crate::ui::style::{Styles, Tone};
use crate::ui::table::{self, Grid};

/// This many rows of the terminal stay free for output above the changing rows.
const ABOVE: usize = 2;

/// The changing rows, and the line below them.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub rows: Vec<Row>,
    /// The line below the rows: the number of finished candidates, and the times.
    pub summary: String,
}

/// The rows as text, with aligned columns.
pub fn texts(rows: &[Row], styles: Styles) -> Vec<String> {
    let has_sizes = rows.iter().any(|row| !size(row).is_empty());
    let mut grid = Grid::new(&[], &[2], styles);
    for row in rows {
        let tone = tone(row.standing);
        let mut cells = vec![
            (format!("{} {}", row.mark(), row.address), tone),
            (table::brief(&table::printable(&row.doing)), tone),
            (row.elapsed.map(whole_seconds).unwrap_or_default(), Tone::Plain),
        ];
        if has_sizes {
            cells.push((size(row), Tone::Plain));
        }
        cells.push((row.last_line.clone().unwrap_or_default(), Tone::Dim));
        grid.row(cells);
    }
    grid.render().lines().map(str::to_owned).collect()
}

/// The numbers of lines that a row's candidate has added and deleted, e.g. `+12 −3`; empty if there
/// are none.
fn size(row: &Row) -> String {
    match row.size {
        None | Some((0, 0)) => String::new(),
        Some((added, deleted)) => format!("+{added} −{deleted}"),
    }
}

/// A time in whole seconds. With tenths, every row would be redrawn all the time.
pub fn whole_seconds(time: Duration) -> String {
    match time.as_secs() {
        few @ 0..10 => format!("{few}s"),
        seconds => table::duration(seconds as f64),
    }
}

fn tone(standing: Standing) -> Tone {
    match standing {
        Standing::Running => Tone::Plain,
        Standing::Bad => Tone::Bad,
        Standing::Caution => Tone::Caution,
        Standing::Good => Tone::Good,
        Standing::Waiting => Tone::Dim,
    }
}

/// The changing rows on standard error. Other output is printed above them.
#[derive(Debug)]
pub struct Live {
    styles: Styles,
    screen: Screen,
    lines: Vec<String>,
}

impl Live {
    /// Makes changing rows on standard error; `None` unless standard error is a terminal that can
    /// move its cursor.
    pub fn on_terminal(styles: Styles) -> Option<Live> {
        let able = io::stderr().is_terminal() && moves_cursor();
        let screen = Screen::on(Term::buffered_stderr());
        able.then_some(Live { styles, screen, lines: Vec::new() })
    }

    /// Replaces the rows by the rows of `view`, as many as fit on the terminal. If `stopping` is
    /// given, it is shown in place of the summary.
    pub fn show(&mut self, view: &View, stopping: Option<&str>) {
        let rows = usize::from(Term::stderr().size().0);
        let room = rows.saturating_sub(ABOVE + 2).max(2);
        let (shown, rest) = fold(view.rows.clone(), room);
        let mut lines = texts(&shown, self.styles);
        lines.extend(rest.map(|rest| format!("  {}", self.styles.of(Tone::Dim).style(rest))));
        lines.push(match stopping {
            Some(words) => self.styles.of(Tone::Caution).style(words).to_string(),
            None => self.styles.of(Tone::Dim).style(&view.summary).to_string(),
        });
        if self.lines != lines {
            self.lines = lines;
            self.draw();
        }
    }

    /// Immediately replaces the last row by these words.
    pub fn say_last(&mut self, words: &str) {
        self.lines.pop();
        self.lines.push(self.styles.of(Tone::Caution).style(words).to_string());
        self.draw();
    }

    /// Calls `print`, whose output appears above the rows.
    pub fn aside(&self, print: impl FnOnce()) {
        self.screen.aside(print);
    }

    fn draw(&self) {
        let (rows, columns) = Term::stderr().size();
        self.screen.draw(&self.lines, rows.into(), columns.into());
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.screen.erase();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(address: &str, standing: Standing, doing: &str, seconds: Option<u64>) -> Row {
        Row {
            address: address.into(),
            standing,
            leads: false,
            doing: doing.into(),
            elapsed: seconds.map(Duration::from_secs),
            size: None,
            last_line: None,
        }
    }

    #[test]
    fn columns_are_aligned_and_a_last_line_controls_nothing() {
        let rows = [
            Row { size: Some((2, 1)), ..row("1/c1", Standing::Good, "passed", Some(42)) },
            Row {
                last_line: Some("\u{1b}[31mred".into()),
                ..row("1/c10", Standing::Running, "test", Some(7))
            },
            row("1/c2", Standing::Bad, "test exit 1", Some(125)),
            row("1/c3", Standing::Waiting, "waiting", None),
        ];
        let expected = [
            "✓ 1/c1   passed         42s  +2 −1",
            "● 1/c10  test            7s         \\u{1b}[31mred",
            "✗ 1/c2   test exit 1  2m05s",
            "· 1/c3   waiting",
        ];
        assert_eq!(texts(&rows, Styles::default()), expected);
        let colored = texts(&rows, Styles { colored: true, width: None });
        let plain: Vec<_> = colored.iter().map(|l| console::strip_ansi_codes(l)).collect();
        assert_eq!(plain.iter().map(|l| l.trim_end()).collect::<Vec<_>>(), expected);
        assert!(colored[0].starts_with("\u{1b}[32m✓") && colored[2].contains("\u{1b}[31mtest"));
    }
}
