//! Draws the figures of `make bench`: JSON lines on stdin, and on stdout the tables of
//! docs/FIGURES.md, or with `--svg` a picture of the comparisons in them.
#![expect(clippy::print_stdout, reason = "the drawing is the answer")]
use std::error::Error;
use std::fmt::Write as _;
use std::io::{Read as _, stdin};

use serde_json::Value;

/// The rows of the picture: what is compared, its heading in the benchmark, and words for it.
const SHOWN: [(&str, &str, &str); 5] = [
    ("spawn of 8, against", "10000 files", "8 worktrees"),
    ("spawn of 1, against", "10000 files", "1 worktree"),
    ("first git status", "cold:", "first git status there"),
    ("capture of 8", "10000 files, 8 candidates", "8 captures"),
    ("clean of 8", "cold:", "removing 8 worktrees"),
];

/// Pixels: the height of a row, the left end of the bars, and the length of the bar of git.
const ROW: usize = 34;
const LEFT: usize = 210;
const FULL: f64 = 400.0;

/// A comparison, under its heading, measured on this file system.
struct Comparison<'a> {
    place: &'a str,
    heading: &'a str,
    what: &'a str,
    line: &'a Value,
}

impl Comparison<'_> {
    fn ratio(&self) -> f64 {
        self.line["ratio"].as_f64().unwrap_or_default()
    }

    /// The median of the times of one side, in milliseconds.
    fn median(&self, side: &str) -> f64 {
        let times: Vec<f64> =
            self.line[side].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }
}

fn comparisons(lines: &[Value]) -> Vec<Comparison<'_>> {
    let (mut place, mut heading) = ("", "");
    let mut found = Vec::new();
    for line in lines {
        match (line["heading"].as_str(), line["what"].as_str()) {
            (Some(text), _) if text.starts_with("file system") => place = text,
            (Some(text), _) => heading = text,
            (None, Some(what)) => found.push(Comparison { place, heading, what, line }),
            (None, None) => {}
        }
    }
    found
}

fn tables(all: &[Comparison<'_>]) -> String {
    let mut text = String::new();
    let (mut place, mut heading) = ("", "");
    for one in all {
        if (place, heading) != (one.place, one.heading) {
            if place != one.place || heading.starts_with("memory") {
                let _ = write!(text, "\nMeasured on: {}.\n", one.place);
            }
            let _ = write!(
                text,
                "\n| {} | git frites | by hand | ratio |\n|---|---|---|---|\n",
                one.heading
            );
            (place, heading) = (one.place, one.heading);
        }
        let _ = match (one.line["value"].as_f64(), one.line["unit"].as_str()) {
            (Some(value), Some(unit)) => writeln!(text, "| {} | {value:.1} {unit} | | |", one.what),
            _ => writeln!(
                text,
                "| {} | {:.1} ms | {:.1} ms | {:.2} |",
                one.what,
                one.median("ours_ms"),
                one.median("by_hand_ms"),
                one.ratio()
            ),
        };
    }
    text
}

fn picture(all: &[Comparison<'_>]) -> String {
    let rows: Vec<(&str, f64)> = SHOWN
        .iter()
        .filter_map(|(what, heading, words)| {
            let is_shown =
                |one: &&Comparison<'_>| one.what.starts_with(what) && one.heading == *heading;
            // A heading below a size belongs to that size, and the largest comes last.
            Some((*words, all.iter().rev().find(is_shown)?.ratio()))
        })
        .collect();
    let height = ROW * rows.len() + 44;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="680" height="{height}" role="img" font-family="system-ui, sans-serif" font-size="14">
<title>The time of git frites, as a part of the time of git by hand, with 10,000 files</title>
<style>text {{ fill: #1f2328 }} .ours {{ fill: #0969da }} .git {{ fill: #d0d7de }} .small {{ font-size: 12px; fill: #59636e }}
@media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3 }} .ours {{ fill: #4493f8 }} .git {{ fill: #3d444d }} .small {{ fill: #9198a1 }} }}</style>
"#
    );
    for (at, (words, ratio)) in rows.iter().enumerate() {
        let top = at * ROW + 8;
        let (middle, end) = (top + 15, LEFT - 10);
        let (length, label) =
            (FULL * ratio.min(1.1), LEFT as f64 + FULL * ratio.clamp(1.0, 1.1) + 8.0);
        let _ = writeln!(
            svg,
            r#"<text x="{end}" y="{middle}" text-anchor="end">{words}</text><rect class="git" x="{LEFT}" y="{top}" width="{FULL}" height="20" rx="3"/><rect class="ours" x="{LEFT}" y="{top}" width="{length:.0}" height="20" rx="3"/><text x="{label:.0}" y="{middle}">{ratio:.2}</text>"#
        );
    }
    let _ = write!(
        svg,
        "<text class=\"small\" x=\"{LEFT}\" y=\"{}\">time of git frites, where git by hand takes 1.00; 10,000 files; shorter is faster</text>\n</svg>\n",
        height - 14
    );
    svg
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    let lines: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let all = comparisons(&lines);
    if all.is_empty() {
        return Err("stdin has no figures: `make bench BENCH_ARGS=--json` prints them".into());
    }
    let is_picture = std::env::args().any(|argument| argument == "--svg");
    print!("{}", if is_picture { picture(&all) } else { tables(&all) });
    Ok(())
}
