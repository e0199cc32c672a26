//! Rows on a terminal's standard error that change while commands run.
use std::io::{self, IsTerminal};
use std::time::Duration;

use console::{Term, measure_text_width};

use crate::model::board::{Row, Standing, fold};
use crate::ui::screen::{Screen, moves_cursor};
use crate::ui::style::{Styles, Tone};
use crate::ui::table;

/// The rows of the terminal that stay free for output above the changing rows.
const ABOVE: usize = 2;

/// The changing rows, and the line below them.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The candidates.
    pub rows: Vec<Row>,
    /// The number of candidates that are done, and the times.
    pub summary: String,
}

/// The rows as text, with aligned columns.
pub fn texts(rows: &[Row], styles: Styles) -> Vec<String> {
    let cells: Vec<[String; 4]> = rows.iter().map(cells).collect();
    let width = |at: usize| cells.iter().map(|c| measure_text_width(&c[at])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    let padded = |text: &str, at: usize| " ".repeat(widths[at] - measure_text_width(text));
    let line = |(row, cells): (&Row, &[String; 4])| {
        let [address, doing, elapsed, size] = cells;
        let style = styles.of(tone(row.standing));
        let mut line = style.style(row.mark()).to_string();
        line.push_str(&format!(" {address}{}  ", padded(address, 0)));
        line.push_str(&format!("{}{}  ", style.style(doing), padded(doing, 1)));
        line.push_str(&format!("{}{elapsed}", padded(elapsed, 2)));
        if widths[3] > 0 {
            line.push_str(&format!("  {size}{}", padded(size, 3)));
        }
        let last = row.last_line.as_deref().unwrap_or_default();
        if !last.is_empty() {
            line.push_str(&format!("  {}", styles.dim.style(table::printable(last))));
        }
        line.trim_end().to_owned()
    };
    rows.iter().zip(&cells).map(line).collect()
}

/// Address, stage, time and size of a row.
fn cells(row: &Row) -> [String; 4] {
    let size = row.size.filter(|size| *size != (0, 0));
    let size = size.map(|(added, deleted)| format!("+{added} −{deleted}"));
    [
        table::printable(&row.address),
        table::brief(&table::printable(&row.doing)),
        row.elapsed.map(whole_seconds).unwrap_or_default(),
        size.unwrap_or_default(),
    ]
}

/// A time in whole seconds, because tenths would redraw every row all the time.
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

/// The changing rows on standard error. Other output goes above them.
#[derive(Debug)]
pub struct Live {
    styles: Styles,
    screen: Screen,
    lines: Vec<String>,
}

impl Live {
    /// Changing rows on standard error; `None` unless it is a terminal that can move its cursor.
    pub fn on_terminal(styles: Styles) -> Option<Live> {
        let able = io::stderr().is_terminal() && moves_cursor();
        let screen = Screen::on(Term::buffered_stderr());
        able.then_some(Live { styles, screen, lines: Vec::new() })
    }

    /// Replaces the rows, as many as fit on the terminal. `stopping` replaces the summary.
    pub fn show(&mut self, view: &View, stopping: Option<&str>) {
        let rows = usize::from(Term::stderr().size().0);
        let room = rows.saturating_sub(ABOVE + 2).max(2);
        let (shown, rest) = fold(view.rows.clone(), room);
        let mut lines = texts(&shown, self.styles);
        lines.extend(rest.map(|rest| format!("  {}", self.styles.dim.style(rest))));
        lines.push(match stopping {
            Some(words) => self.styles.caution.style(words).to_string(),
            None => self.styles.dim.style(&view.summary).to_string(),
        });
        if self.lines != lines {
            self.lines = lines;
            self.draw();
        }
    }

    /// Replaces the last row, at once.
    pub fn say_last(&mut self, words: &str) {
        self.lines.pop();
        self.lines.push(self.styles.caution.style(words).to_string());
        self.draw();
    }

    /// Prints above the rows.
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
        let colored = texts(&rows, Styles::colored());
        let plain: Vec<_> = colored.iter().map(|l| console::strip_ansi_codes(l)).collect();
        assert_eq!(plain.iter().map(|l| l.trim_end()).collect::<Vec<_>>(), expected);
        assert!(colored[0].starts_with("\u{1b}[32m✓") && colored[2].contains("\u{1b}[31mtest"));
    }
}
