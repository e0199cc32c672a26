//! The section in which a reader compares any two candidates side by side, file by file.
//!
//! If there are many candidates, not all pairs fit on the page. The pairs of the best candidates
//! come first. For the rest, the page shows the command that compares two candidates.
use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::model::changed_file::FileContent;
use crate::model::count::count;
use crate::model::path::TreePath;
use crate::ui::report::candidate::{change, parts};
use crate::ui::report::content::{Report, ReportedCandidate};
use crate::ui::report::difference::DiffLine;
use crate::ui::report::wording::visible;

/// The maximum number of lines that are shown of one file, of one pair, and of all pairs together.
const LINES_OF_FILE: usize = 400;
const LINES_OF_PAIR: usize = 1_200;
const LINES_OF_ALL: usize = 8_000;

/// The maximum number of bytes of all compared files together.
const BYTES: usize = 16 << 20;

/// The maximum number of files that are shown of a pair.
const FILES: usize = 100;

/// How many lines and bytes may still be used for pairs.
struct Budget {
    lines: usize,
    bytes: usize,
}

/// The section with the pairs; empty if fewer than two candidates changed any file.
pub fn all(report: &Report) -> Markup {
    let places: Vec<usize> = report
        .best_first()
        .into_iter()
        .filter(|at| !report.candidates[*at].files.is_empty())
        .collect();
    if places.len() < 2 {
        return html! {};
    }
    let mut budget = Budget { lines: LINES_OF_ALL, bytes: BYTES };
    let mut pairs = Vec::new();
    let mut left_out = 0;
    for (n, left) in places.iter().enumerate() {
        for right in &places[n + 1..] {
            match pair(report, *left, *right, &mut budget) {
                Some(markup) => pairs.push(markup),
                None => left_out += 1,
            }
        }
    }
    html! {
        section #pairs {
            h2 { "Two candidates side by side" }
            (choice(report, &places))
            p #no-pair hidden {
                "Below, each of them is compared with the base. To compare one with the other: "
                code { "git frites diff " (report.run.run) "/" span.name {} " " span.name {} }
            }
            div #beside {}
            @for pair in &pairs { (pair) }
            @if left_out > 0 {
                p.more { (count(left_out, "more pair")) ": " code { "git frites diff " (report.run.run) "/CANDIDATE CANDIDATE2" } }
            }
        }
    }
}

/// Two lists from which a reader chooses two candidates. They work only if scripts run.
fn choice(report: &Report, places: &[usize]) -> Markup {
    let list = |id: &str, chosen: usize| {
        html! {
            select id=(id) {
                @for (n, at) in places.iter().enumerate() {
                    option value=(at + 1) selected[n == chosen] { (report.candidates[*at].record.candidate) }
                }
            }
        }
    };
    html! { p.choice { label { "left " (list("left", 0)) } " " label { "right " (list("right", 1)) } } }
}

/// One pair: the files in which two candidates differ, side by side; `None` if the limits are
/// reached.
fn pair(report: &Report, left: usize, right: usize, budget: &mut Budget) -> Option<Markup> {
    let [one, other] = [left, right].map(|at| &report.candidates[at]);
    let differing = differing(one, other);
    let texts = differing.iter().flat_map(|(_, sides)| sides.map(FileContent::lossy));
    let bytes: usize = texts.map(|text| text.len()).sum();
    if budget.lines == 0 || bytes > budget.bytes {
        return None;
    }
    budget.bytes -= bytes;
    let mut lines = LINES_OF_PAIR.min(budget.lines);
    let before = lines;
    let names = [one, other].map(|one| one.record.candidate.as_str());
    let whole = format!("git frites diff {}/{} {}", report.run.run, names[0], names[1]);
    let files = html! {
        @for (path, sides) in differing.iter().take(FILES) { (file(path, *sides, &mut lines, &whole)) }
        @if differing.len() > FILES { p.more { (differing.len() - FILES) " more files: " code { (whole) } } }
    };
    budget.lines -= before - lines;
    Some(html! {
        details.pair id={ "p-" (left + 1) "-" (right + 1) } {
            summary { (names[0]) " on the left, " (names[1]) " on the right: "
                @if differing.is_empty() { "the same files" } @else { (count(differing.len(), "file")) @if differing.len() == 1 { " differs" } @else { " differ" } } }
            (files)
        }
    })
}

/// The files in which two candidates differ, sorted by path, each with its content in the first and
/// in the second candidate.
fn differing<'a>(
    one: &'a ReportedCandidate,
    other: &'a ReportedCandidate,
) -> Vec<(&'a TreePath, [&'a FileContent; 2])> {
    let by_path = |candidate: &'a ReportedCandidate| -> BTreeMap<&'a TreePath, _> {
        candidate.files.iter().map(|file| (&file.path, file)).collect()
    };
    let ones = by_path(one);
    let others = by_path(other);
    let paths: BTreeSet<&TreePath> = ones.keys().chain(others.keys()).copied().collect();
    let sides = paths.into_iter().filter_map(|path| {
        // If only one candidate changes a file, the other candidate has the file of the base.
        let sides = match (ones.get(path), others.get(path)) {
            (Some(one), Some(other)) => [&one.after, &other.after],
            (Some(one), None) => [&one.after, &one.before],
            (None, Some(other)) => [&other.before, &other.after],
            (None, None) => return None,
        };
        (sides[0] != sides[1]).then_some((path, sides))
    });
    sides.collect()
}

fn file(
    path: &TreePath,
    [left, right]: [&FileContent; 2],
    lines: &mut usize,
    whole: &str,
) -> Markup {
    let change = change([left, right], LINES_OF_FILE, lines, whole, |hunks| {
        html! {
            @for (side, where_) in [(left, "left"), (right, "right")] {
                @if *side == FileContent::Missing { p.more { "there is no such file on the " (where_) } }
            }
            table.diff.sides {
                @for hunk in hunks {
                    tbody { @for (left, right) in beside(hunk) { tr { (cell(left, "del")) (cell(right, "add")) } } }
                }
            }
        }
    });
    html! { h4 { code { (visible(&path.lossy()).replace('\n', "␊")) } } (change) }
}

/// The lines of a hunk in two columns. Removed lines are next to the lines that replace them.
fn beside(hunk: &[DiffLine]) -> Vec<(Option<&DiffLine>, Option<&DiffLine>)> {
    let mut rows = Vec::new();
    let (mut gone, mut new): (Vec<&DiffLine>, Vec<&DiffLine>) = Default::default();
    let flush = |gone: &mut Vec<_>, new: &mut Vec<_>, rows: &mut Vec<_>| {
        for at in 0..gone.len().max(new.len()) {
            rows.push((gone.get(at).copied(), new.get(at).copied()));
        }
        gone.clear();
        new.clear();
    };
    for line in hunk {
        match (line.old, line.new) {
            (Some(_), Some(_)) => {
                flush(&mut gone, &mut new, &mut rows);
                rows.push((Some(line), Some(line)));
            }
            (Some(_), None) => gone.push(line),
            _ => new.push(line),
        }
    }
    flush(&mut gone, &mut new, &mut rows);
    rows
}

/// A line in its column; `None` makes an empty cell. `changed` is the CSS class for a line that the
/// other column does not have.
fn cell(line: Option<&DiffLine>, changed: &str) -> Markup {
    let Some(line) = line else { return html! { td.n {} td.none {} } };
    let number = if changed == "del" { line.old } else { line.new };
    let class = if line.old.is_some() && line.new.is_some() { "same" } else { changed };
    html! {
        td.n { @if let Some(n) = number { (n) } }
        td.t.(class) { (parts(line)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::report::difference::difference;

    #[test]
    fn lines_stand_beside_those_in_their_place() {
        let found = difference("a\nb\nc\n", "a\nx\ny\nc\n", 99);
        let text = |line: Option<&DiffLine>| {
            line.map(|l| l.parts.iter().map(|(_, text)| text.as_str()).collect::<String>())
        };
        let rows: Vec<_> =
            beside(&found.hunks[0]).into_iter().map(|(l, r)| (text(l), text(r))).collect();
        let row = |l: &str, r: &str| {
            let side = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            (side(l), side(r))
        };
        assert_eq!(rows, [row("a", "a"), row("b", "x"), row("", "y"), row("c", "c")]);
    }
}
