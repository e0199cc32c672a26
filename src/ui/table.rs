//! Tables whose columns are aligned by display width, and which are cut to the width of the
//! terminal. Also sizes and times in words.
pub use crate::model::size::size;
use console::{measure_text_width, truncate_str};
use owo_colors::Style;
use textwrap::{Options, WordSplitter, WrapAlgorithm};

use crate::model::plain;
use crate::ui::style::{Styles, Tone};

/// A blank at which no line is broken.
const NO_BREAK: &str = "\u{a0}";

/// The number of blanks between two columns.
const GAP: usize = 2;

/// A table. Important columns must be on the left, because on a narrow terminal the right ones are
/// cut off.
pub struct Grid {
    /// The rows of cells. The headings, if there are any, are the first row.
    rows: Vec<Vec<(String, Style)>>,
    numbers: Vec<usize>,
    styles: Styles,
}

impl Grid {
    /// A table with these headings. If there are none, the table has no line of headings. The
    /// columns in `numbers` (counted from 0) are aligned right.
    pub fn new(headings: &[&str], numbers: &[usize], styles: Styles) -> Grid {
        let mut grid = Grid { rows: Vec::new(), numbers: numbers.to_vec(), styles };
        if !headings.is_empty() {
            grid.rows.push(
                headings.iter().map(|h| ((*h).to_owned(), styles.of(Tone::Strong))).collect(),
            );
        }
        grid
    }

    pub fn row(&mut self, cells: Vec<(String, Tone)>) {
        self.rows.push(
            cells
                .into_iter()
                .map(|(text, tone)| (printable(&text), self.styles.of(tone)))
                .collect(),
        );
    }

    /// The table as text. No line ends in blanks.
    pub fn render(&self) -> String {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, (text, _)) in widths.iter_mut().zip(row) {
                *width = measure_text_width(text).max(*width);
            }
        }
        self.rows.iter().map(|row| self.line(&widths, row)).collect()
    }

    fn line(&self, widths: &[usize], row: &[(String, Style)]) -> String {
        let mut line = String::new();
        // Blanks that are written only if text follows them.
        let mut blanks = 0;
        for (at, ((text, style), width)) in row.iter().zip(widths).enumerate() {
            let pad = width - measure_text_width(text);
            let (before, after) = if self.numbers.contains(&at) { (pad, 0) } else { (0, pad) };
            blanks += before;
            if !text.is_empty() {
                line.extend(std::iter::repeat_n(' ', blanks));
                line.push_str(&style.style(text).to_string());
                blanks = 0;
            }
            blanks += after + GAP;
        }
        if let Some(width) = self.styles.width {
            line = truncate_str(&line, width, "…").into_owned();
        }
        line.push('\n');
        line
    }
}

/// A text of unknown origin (e.g. a command's output or a file name) as one line. Control and
/// hidden characters are escaped. So the text can neither move the cursor, nor change colors, nor
/// reverse the text next to it.
pub fn printable(text: &str) -> String {
    if !text.contains(plain::is_invisible) {
        return text.to_owned();
    }
    text.chars()
        .map(
            |c| if plain::is_invisible(c) { c.escape_default().to_string() } else { c.to_string() },
        )
        .collect()
}

/// A text, cut to 40 columns, for a cell that must leave space for other cells.
pub fn brief(text: &str) -> String {
    truncate_str(text, 40, "…").into_owned()
}

/// The texts with commas between them, in lines of at most `width` columns. A text that does not
/// fit into a line is broken between its words. A word that does not fit is broken anywhere.
/// Nothing is cut off, because two names may differ only at their ends.
pub fn filled(texts: &[String], width: usize) -> Vec<String> {
    // No line is broken at the blanks of a text that fits into one line.
    let texts = texts.iter().map(|text| match measure_text_width(text) < width {
        true => text.replace(' ', NO_BREAK),
        false => text.clone(),
    });
    let joined = texts.collect::<Vec<_>>().join(", ");
    let options = Options::new(width)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .word_splitter(WordSplitter::NoHyphenation);
    let lines = textwrap::wrap(&joined, options).into_iter().filter(|line| !line.is_empty());
    lines.map(|line| line.replace(NO_BREAK, " ")).collect()
}

/// A time span in words: `0.4s`, `12s`, `3m05s`, `2h10m`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 9.95 => format!("{seconds:.1}s"),
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole % 3600 / 60),
    }
}

/// The time since `then` in words: `5 min`, `3 h`, `2 days`.
pub fn age(then: jiff::Timestamp) -> String {
    // If the clock was set back, `then` may be in the future. In that case, it counts as now.
    let elapsed =
        u64::try_from(jiff::Timestamp::now().duration_since(then).as_secs()).unwrap_or_default();
    match elapsed {
        0..60 => format!("{elapsed} s"),
        60..3600 => format!("{} min", elapsed / 60),
        3600..86400 => format!("{} h", elapsed / 3600),
        86400..172_800 => "1 day".to_owned(),
        _ => format!("{} days", elapsed / 86400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(styles: Styles) -> String {
        let mut grid = Grid::new(&["", "name", "lines", "note"], &[2], styles);
        grid.row(vec![
            ("*".into(), Tone::Good),
            ("日本語".into(), Tone::Good),
            ("7".into(), Tone::Plain),
            ("é".into(), Tone::Dim),
        ]);
        grid.row(vec![
            ("".into(), Tone::Plain),
            ("👩‍👩‍👧 e\u{301}".into(), Tone::Plain),
            ("12".into(), Tone::Plain),
            ("".into(), Tone::Dim),
        ]);
        grid.row(vec![
            ("".into(), Tone::Plain),
            ("a\n\u{1b}[31m".into(), Tone::Plain),
            ("1".into(), Tone::Plain),
            ("x".into(), Tone::Bad),
        ]);
        grid.render()
    }

    #[test]
    fn columns_are_aligned_by_what_a_terminal_shows() {
        let expected = [
            "   name           lines  note",
            "*  日本語             7  é",
            "   👩\u{200d}👩\u{200d}👧 e\u{301}              12",
            "   a\\n\\u{1b}[31m      1  x",
        ];
        let expected: String = expected.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(table(Styles::default()), expected);
    }

    #[test]
    fn texts_fill_lines_up_to_their_width_and_longer_ones_are_broken() {
        let lines = |texts: &[&str], width| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            filled(&texts, width)
        };
        assert_eq!(lines(&[], 8), [""; 0]);
        assert_eq!(lines(&["ab", "cd", "ef"], 8), ["ab, cd,", "ef"]);
        assert_eq!(lines(&["ab", "cde"], 7), ["ab, cde"], "a line may be full");
        assert_eq!(lines(&["äö", "üßé"], 7), ["äö, üßé"], "by columns, not by bytes");
        assert_eq!(lines(&["日本", "日本"], 9), ["日本,", "日本"]);
        assert_eq!(lines(&["a::long::name"], 8), ["a::long:", ":name"]);
        assert_eq!(lines(&["a", "b::long::name", "c"], 8), ["a,", "b::long:", ":name, c"]);
        for width in 3..12 {
            let cut = lines(&["日本語日本語", "e\u{301}", "", "abcdefghijklm"], width);
            assert!(cut.iter().all(|line| measure_text_width(line) <= width), "{cut:?}");
        }
    }

    #[test]
    fn lines_are_cut_to_the_width_and_colours_take_no_room() {
        let cut = table(Styles { width: Some(8), ..Styles::default() });
        // If a joined emoji is cut in its middle, the line is narrower than necessary, but never
        // wider.
        assert_eq!(cut, "   name…\n*  日本…\n   👩\u{200d}👩…\n   a\\n\\…\n");
        let colored = table(Styles { width: Some(8), colored: true });
        assert_eq!(console::strip_ansi_codes(&colored), cut);
    }

    #[test]
    fn characters_that_turn_or_hide_text_are_escaped() {
        assert_eq!(printable("a\u{202e}b\u{200b}\n"), "a\\u{202e}b\\u{200b}\\n");
        assert_eq!(printable("👩\u{200d}👩 é"), "👩\u{200d}👩 é");
    }

    #[test]
    fn spans_read_well() {
        let spans = [0.04, 9.94, 9.96, 59.0, 60.0, 3599.0, 7800.0].map(duration);
        assert_eq!(spans, ["0.0s", "9.9s", "10s", "59s", "1m00s", "59m59s", "2h10m"]);
    }
}
