//! The sections of the candidates: for each, its outcome, its change, and the ends of its logs.
use maud::{Markup, html};

use crate::model::changed_file::{ChangedFile, FileContent};
use crate::model::count::count;
use crate::model::plain::cut;
use crate::model::rationale::{failed_at, how_it_passes, stopped_in, without_own_tests};
use crate::ui::report::content::{LogEnd, Report, ReportedCandidate};
use crate::ui::report::difference::{DiffLine, difference};
use crate::ui::report::wording::visible;

/// The maximum number of lines that are shown of one file, of one candidate, and of all candidates
/// together.
const LINES_OF_FILE: usize = 1_000;
const LINES_OF_CANDIDATE: usize = 3_000;
const LINES_OF_ALL: usize = 15_000;

/// The maximum number of changed files that are listed for a candidate.
const FILES: usize = 300;

/// The maximum number of characters that are shown of a line.
pub const LINE: usize = 600;

/// The maximum number of characters that are shown of the command that made a candidate.
const MADE_BY: usize = 120;

/// The sections of all candidates, the best first.
pub fn all(report: &Report) -> Markup {
    let mut room = LINES_OF_ALL;
    html! {
        section #candidates {
            h2 { "Candidates" }
            @for at in report.best_first() { (one(report, at, &mut room)) }
        }
    }
}

fn one(report: &Report, at: usize, room: &mut usize) -> Markup {
    let candidate = &report.candidates[at];
    let name = &candidate.record.candidate;
    let address = format!("{}/{name}", report.run.run);
    let recommended = report.is_recommended(candidate);
    let entry = report.entry(candidate);
    html! {
        article.candidate id={ "c-" (at + 1) } tabindex="-1" {
            h3 {
                (name) @match report.mark(candidate) {
                    "" => {},
                    "*" => { " " span.chip.good { "recommended" } },
                    _ => { " " span.chip { "closest" } },
                }
                @if let Some(made_by) = &candidate.made_by { " " span.dim { "by " (visible(&cut(made_by, MADE_BY))) } }
            }
            p.dim {
                (visible(&candidate.record.state_in_words()))
                @if let Some(n) = candidate.iteration { ", iteration " (n) }
                @if let Some(n) = candidate.newer { "; it changed since it was judged: iteration " (n) " is not shown" }
                ", landing: " (candidate.record.landing.in_words())
            }
            @if let Some(entry) = entry {
                @if let Some(problem) = &entry.problem { p.bad { "It could not be captured: " (visible(problem)) } }
                @if let Some(result) = entry.results.stopped_at() { p.bad { "It " (visible(&stopped_in(result))) } }
                @if entry.skipped_with_base_tests().is_some() { p.caution { "It " (visible(&failed_at(entry))) } }
                @if entry.passed_base_tests_too() { p.good { "It passed" } }
                @if entry.passed_own_tests_only() {
                    p.caution { "It " (how_it_passes(entry)) ": " (visible(&without_own_tests(entry))) }
                }
                @if let Some(stale) = &entry.stale { p.caution { (visible(stale)) } }
                @if !entry.flags.is_empty() || !entry.dropped.is_empty() {
                    ul.flags {
                        @for flag in &entry.flags { li.caution { "It " (visible(&flag.to_string())) } }
                        @for path in &entry.dropped { li.caution { "Its change to " code { (visible(path)) } " was undone: the path is protected" } }
                    }
                }
            }
            (logs(&candidate.logs))
            @if candidate.files.is_empty() {
                p.dim { "It changes no file." }
            } @else {
                details.change open[recommended] {
                    summary { (count(candidate.files.len(), "changed file")) }
                    (files(candidate, &address, room))
                }
            }
        }
    }
}

fn files(candidate: &ReportedCandidate, address: &str, room: &mut usize) -> Markup {
    let whole = format!("git frites diff {address}");
    let mut own_room = LINES_OF_CANDIDATE.min(*room);
    let before = own_room;
    let shown = html! {
        @for changed in candidate.files.iter().take(FILES) {
            (file(changed, &mut own_room, &whole))
        }
        @if candidate.files.len() > FILES {
            p.more { (candidate.files.len() - FILES) " more files: " code { (whole) } }
        }
    };
    *room -= before - own_room;
    shown
}

/// The change of one file, with old and new lines in one column. `room` is the number of lines that
/// may still be shown. `whole` is the command that shows the whole change.
fn file(changed: &ChangedFile, room: &mut usize, whole: &str) -> Markup {
    let sides = [&changed.before, &changed.after];
    let change = change(sides, LINES_OF_FILE, room, whole, |hunks| {
        html! {
            @if hunks.is_empty() { p.more { "its text is the same: it is empty, or its mode changed" } }
            @else {
                table.diff {
                    @for hunk in hunks { tbody { @for line in hunk { (unified(line)) } } }
                }
            }
        }
    });
    html! { (file_name(changed)) (change) }
}

/// The difference of two files, whose hunks `table` shows. At most `most` lines are shown, and at
/// most `room` lines. The lines that are shown are subtracted from `room`.
pub fn change(
    sides: [&FileContent; 2],
    most: usize,
    room: &mut usize,
    whole: &str,
    table: impl FnOnce(&[Vec<DiffLine>]) -> Markup,
) -> Markup {
    if sides.iter().any(|side| matches!(side, FileContent::Binary(..))) {
        return html! { p.more { "a binary file or a submodule" } };
    }
    let [before, after] = sides.map(FileContent::lossy);
    if *room == 0 && before != after {
        return html! { p.more { "the change: " code { (whole) } } };
    }
    let found = difference(&before, &after, most.min(*room));
    *room -= found.lines();
    html! {
        (table(&found.hunks))
        @if found.left_out > 0 { p.more { (count(found.left_out, "more changed line")) ": " code { (whole) } } }
    }
}

fn file_name(changed: &ChangedFile) -> Markup {
    let what = match (&changed.before, &changed.after) {
        (FileContent::Missing, _) => " (new)",
        (_, FileContent::Missing) => " (deleted)",
        _ => "",
    };
    html! { h4 { code { (visible(&changed.path.lossy()).replace('\n', "␊")) } span.dim { (what) } } }
}

fn unified(line: &DiffLine) -> Markup {
    let class = line_class(line);
    html! {
        tr class=(class) {
            td.n { @if let Some(n) = line.old { (n) } }
            td.n { @if let Some(n) = line.new { (n) } }
            td.t { (parts(line)) }
        }
    }
}

/// The CSS class of a line: added, removed, or neither.
fn line_class(line: &DiffLine) -> &'static str {
    match (line.old, line.new) {
        (None, _) => "add",
        (_, None) => "del",
        _ => "same",
    }
}

/// The text of a line, in which the differing words are marked. A very long line is cut.
pub fn parts(line: &DiffLine) -> Markup {
    let mut room = LINE;
    let mut shown = Vec::new();
    let mut left = 0;
    for (marked, text) in &line.parts {
        let part: String = text.chars().take(room).collect();
        let length = text.chars().count();
        left += length.saturating_sub(room);
        room = room.saturating_sub(length);
        if !part.is_empty() {
            shown.push((*marked, visible(&part)));
        }
    }
    html! {
        @for (marked, text) in &shown {
            @if *marked { mark { (text) } } @else { (text) }
        }
        @if left > 0 { span.more { " … " (left) " more characters" } }
    }
}

/// The ends of logs. Each can be unfolded; those of failed commands are unfolded from the start.
pub fn logs(ends: &[LogEnd]) -> Markup {
    html! {
        @for end in ends {
            details.log open[end.failed] {
                summary { (visible(&end.command)) ": the end of its output" @if end.failed { " " span.bad { "failed" } } }
                pre { @for line in &end.lines { (visible(&cut(line, LINE))) "\n" } }
                p.more { "all of it: " code { (visible(&end.path)) } }
            }
        }
    }
}
