//! The parts of a report that are about all candidates: the verdict, the comparison, the tests and
//! the agreement.
use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::model::count::count;
use crate::model::test_report::{TestEnd, TestReport};
use crate::model::verdict::Verdict;
use crate::ui::comparison::{self, ComparisonRow, ComparisonTable, places};
use crate::ui::local_time;
use crate::ui::report::candidate::logs;
use crate::ui::report::content::{Report, ReportedCandidate};
use crate::ui::report::wording::{class, visible};
use crate::ui::style::Tone;

/// The maximum number of tests that are shown.
const TESTS: usize = 500;

/// At most this many rows of the comparison are unfolded: the row of the base, and those of 20
/// candidates.
const ROWS: usize = 21;

/// The run, its base and its prompt.
pub fn heading(report: &Report) -> Markup {
    let run = &report.run;
    html! {
        h1 { "Run " (run.run) }
        p.dim {
            (count(report.candidates.len(), "candidate")) " from " code { (run.base.short()) }
            @if !report.base_subject.is_empty() { " “" (visible(&report.base_subject)) "”" }
            ", made " (local_time::text(run.created))
            @if let Some(verdict) = &report.verdict { ", judged " (local_time::text(verdict.judged)) }
            @if let Some(task) = &run.task { ", for " (visible(task)) }
        }
        @if let Some(prompt) = &report.prompt {
            details { summary { "Prompt" } pre { (visible(prompt)) } }
        }
    }
}

/// The decision, its reason, and the doubts.
pub fn verdict(report: &Report) -> Markup {
    let Some(verdict) = &report.verdict else {
        return html! {
            section #verdict.caution {
                h2 { "Not judged" }
                @if report.stored_outcomes > 0 {
                    p { (count(report.stored_outcomes, "outcome")) " of candidates that were judged separately: decide with "
                        code { "git frites judge --replay " (report.run.run) } }
                } @else {
                    p { "Judge it with " code { "git frites judge " (report.run.run) } }
                }
            }
        };
    };
    let tone = if verdict.verified() { Tone::Good } else { Tone::Caution };
    let word = if verdict.verified() { "verified" } else { "not verified" };
    html! {
        section #verdict class=(class(tone)) {
            h2 {
                @match &verdict.decision.recommended {
                    Some(name) => (name),
                    None => "No candidate",
                }
                " " span.chip.(class(tone)) { (word) } " " span.chip.dim { (verdict.decision.decision) }
            }
            p.reason { (visible(&verdict.decision.rationale)) }
            ul {
                @for line in comparison::remarks(verdict) { li { (visible(&line)) } }
                @if let Some(why) = &verdict.no_synthesis { li.dim { "no synthesis: " (visible(why)) } }
            }
            (oracle(verdict))
            (logs(&report.base_logs))
        }
    }
}

/// The oracle's commands.
fn oracle(verdict: &Verdict) -> Markup {
    html! {
        @if !verdict.terms.oracle.is_empty() {
            table.plain {
                @for command in &verdict.terms.oracle {
                    tr { th scope="row" { (command.stage) } td { code { (visible(&command.command.to_string())) } }
                        td.dim { (visible(&command.source)) } }
                }
            }
            p.dim { "The commands ran " (places(&verdict.terms.settings, verdict.doubt_about_attempts())) "." }
        }
    }
}

/// The comparison table as `judge` prints it. If the run was not judged, a table of the candidates'
/// states. Rows after the first `ROWS` are folded.
pub fn comparison(report: &Report) -> Markup {
    let place = |name: &str| {
        report.candidates.iter().position(|c| c.record.candidate.as_str() == name).map(|at| at + 1)
    };
    let (headings, rows): (Markup, Vec<Markup>) = match &report.verdict {
        Some(verdict) => {
            let table = comparison::of_verdict(verdict);
            let rows = table.rows.iter().map(|row| compared(row, place(&row.name))).collect();
            (headings(&table), rows)
        }
        None => {
            let rows = (1..).zip(&report.candidates).map(|(n, one)| not_compared(n, one));
            (headings_without_verdict(), rows.collect())
        }
    };
    let (first, rest) = rows.split_at(if rows.len() > ROWS { ROWS } else { rows.len() });
    html! {
        section #comparison {
            h2 { "Comparison" }
            (table(&headings, first))
            @if !rest.is_empty() {
                details { summary { (count(rest.len(), "more candidate")) } (table(&headings, rest)) }
            }
        }
    }
}

fn table(headings: &Markup, rows: &[Markup]) -> Markup {
    html! { div.scroll { table { thead { (headings) } tbody { @for row in rows { (row) } } } } }
}

fn headings(table: &ComparisonTable) -> Markup {
    html! {
        tr {
            th {} th scope="col" { "candidate" } th scope="col" { "outcome" }
            @for heading in &table.headings { th.n scope="col" { (heading) } }
            th scope="col" { "flags" }
        }
    }
}

fn headings_without_verdict() -> Markup {
    html! {
        tr {
            th {} th scope="col" { "candidate" }
            th scope="col" { "state" } th.n scope="col" { "files" }
        }
    }
}

/// The row of the `n`th candidate, for a run without a verdict.
fn not_compared(n: usize, one: &ReportedCandidate) -> Markup {
    html! {
        tr { td {} th scope="row" { a href={ "#c-" (n) } { (one.record.candidate) } }
            td { (visible(&one.record.state_in_words())) } td.n { (one.files.len()) } }
    }
}

fn compared(row: &ComparisonRow, place: Option<usize>) -> Markup {
    let (outcome, tone) = &row.outcome;
    html! {
        tr.recommended[row.mark == "*"] {
            td { (row.mark) }
            th scope="row" {
                @match place {
                    Some(n) => { a href={ "#c-" (n) } { (row.name) } },
                    None => (row.name),
                }
            }
            td class=(class(*tone)) { (visible(outcome)) }
            @for figure in &row.figures { td.n { (figure) } }
            td class=(class(row.remarks_tone)) { (visible(&row.remarks.join(", "))) }
        }
    }
}

/// The warnings that were printed while commands of the run ran.
pub fn warnings(report: &Report) -> Markup {
    html! {
        @if !report.warnings.is_empty() {
            section #warnings.caution {
                h2 { "Warnings" }
                ul { @for line in &report.warnings { li { (visible(line)) } } }
            }
        }
    }
}

/// The table of all tests that failed on the base or on a candidate. It has a column for the base
/// and for each candidate that has a test report.
pub fn tests(report: &Report) -> Markup {
    let Some(verdict) = &report.verdict else { return html! {} };
    let base = verdict.baseline.iter().map(|base| ("@base".to_owned(), &base.results));
    let candidates = verdict.candidates.iter().map(|e| (e.candidate.to_string(), &e.results));
    let columns: Vec<(String, &TestReport)> = base
        .chain(candidates)
        .filter_map(|(name, results)| Some((name, results.report()?)))
        .collect();
    let mut rows: BTreeMap<&str, Vec<Option<TestEnd>>> = BTreeMap::new();
    for test in columns.iter().flat_map(|(_, tests)| &tests.failing) {
        rows.entry(test)
            .or_insert_with(|| columns.iter().map(|(_, of)| end_of(of, test)).collect());
    }
    html! {
        @if !rows.is_empty() {
            section #tests {
                h2 { "Tests that failed" }
                p.dim { "A dot: the test did not fail there. It passed, was skipped or did not run: “passed” is shown only for the base, and for tests that did not run on the base." }
                div.scroll { table.cells {
                    thead { tr { th scope="col" { "test" } @for (name, _) in &columns { th scope="col" { (name) } } } }
                    tbody {
                        @for (test, ends) in rows.iter().take(TESTS) {
                            tr { th scope="row" { code { (visible(test)) } } @for end in ends { (test_cell(*end)) } }
                        }
                    }
                } }
                @if rows.len() > TESTS { p.more { (rows.len() - TESTS) " more tests" } }
            }
        }
    }
}

/// How a test ended according to a report; `None` if the report does not tell.
fn end_of(report: &TestReport, test: &str) -> Option<TestEnd> {
    let is_in = |list: &[String]| list.binary_search_by(|name| name.as_str().cmp(test)).is_ok();
    match report {
        _ if is_in(&report.failing) => Some(TestEnd::Failed),
        // A candidate's report keeps only the names of passed tests that did not run on the base.
        _ if is_in(&report.passing) => Some(TestEnd::Passed),
        _ => None,
    }
}

fn test_cell(end: Option<TestEnd>) -> Markup {
    match end {
        Some(TestEnd::Failed) => html! { td.bad { "failed" } },
        Some(TestEnd::Passed) => html! { td.good { "passed" } },
        Some(TestEnd::Skipped) | None => html! { td.dim { "·" } },
    }
}

/// The table that compares the changes of any two candidates. A cell shows how much of one change
/// is also in the other one. A darker cell means more.
pub fn agreement(report: &Report) -> Markup {
    let name = |at: usize| &report.candidates[at].record.candidate;
    html! {
        @if report.covers.len() > 1 {
            section #agreement {
                h2 { "Agreement" }
                p.dim { "How much of the change of the candidate in the column is also in the change of the candidate in the row, from 0 to 100 %. Attempts that are right tend to agree." }
                div.scroll { table.cells.heat {
                    thead { tr { td {} @for (at, _) in &report.covers { th scope="col" { (name(*at)) } } } }
                    tbody {
                        @for (at, row) in &report.covers {
                            tr {
                                th scope="row" { a href={ "#c-" (at + 1) } { (name(*at)) } }
                                @for ((other, _), cover) in report.covers.iter().zip(row) {
                                    @if other == at { td.dim { "–" } }
                                    @else { td class={ "h" (shade(*cover)) } {
                                        (format!("{:.0}", cover * 100.0))
                                    } }
                                }
                            }
                        }
                    }
                } }
            }
        }
    }
}

/// The shade of a cell (0 to 10) for the share of a change that another change covers (0.0 to 1.0).
fn shade(cover: f64) -> u8 {
    (cover.clamp(0.0, 1.0) * 10.0).floor() as u8
}
