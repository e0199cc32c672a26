//! Two charts: when the attempts ran, and how long the commands that judged the candidates took.
use jiff::Timestamp;
use maud::{Markup, html};

use crate::model::candidate::State;
use crate::model::outcome::{Outcome, Results, StageResult};
use crate::ui::comparison::stop;
use crate::ui::local_time;
use crate::ui::report::content::Report;
use crate::ui::report::wording::{class, visible};
use crate::ui::style::Tone;
use crate::ui::table::duration;

/// A part of a bar.
struct Piece {
    /// Where the part begins, and its length, as fractions of the whole bar.
    from: f64,
    length: f64,
    tone: Tone,
    words: String,
}

/// Both charts. A chart without data is left out.
pub fn all(report: &Report) -> Markup {
    html! {
        section #timeline {
            (attempts(report))
            (judging(report))
        }
    }
}

fn attempts(report: &Report) -> Markup {
    let now = Timestamp::now();
    let spans: Vec<(usize, Timestamp, Timestamp)> = report
        .candidates
        .iter()
        .enumerate()
        .filter_map(|(at, one)| {
            let record = &one.record;
            let end = record.ended.or((record.state == State::Running).then_some(now))?;
            Some((at, record.started?, end))
        })
        .collect();
    let first = spans.iter().map(|(_, start, _)| *start).min();
    let last = spans.iter().map(|(_, _, end)| *end).max();
    let (Some(first), Some(last)) = (first, last) else { return html! {} };
    let whole = seconds(first, last).max(0.001);
    html! {
        h2 { "Attempts over time" }
        p.dim { "From " (local_time::text(first)) " to " (local_time::text(last)) ": " (duration(whole)) }
        table.bars { tbody { @for (at, start, end) in spans {
            @let record = &report.candidates[at].record;
            @let words = format!("{}, {}", record.state, duration(seconds(start, end)));
            @let tone = match record.state {
                State::Succeeded | State::Open => Tone::Good,
                State::Failed | State::TimedOut => Tone::Bad,
                State::Cancelled | State::Limited | State::Running => Tone::Caution,
                State::Empty => Tone::Dim,
            };
            @let piece = Piece { from: seconds(first, start) / whole, length: seconds(start, end) / whole, tone, words: words.clone() };
            (bar(record.candidate.as_str(), &[piece], &words))
        } } }
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

fn judging(report: &Report) -> Markup {
    let Some(verdict) = &report.verdict else { return html! {} };
    let base = verdict.baseline.iter().map(|base| ("@base".to_owned(), &base.results));
    let candidates = verdict.candidates.iter().map(|e| (e.candidate.to_string(), &e.results));
    let rows: Vec<(String, &Results)> =
        base.chain(candidates).filter(|(_, results)| !results.is_empty()).collect();
    let sum = |results: &[StageResult]| results.iter().map(taken).sum::<f64>();
    let longest = rows.iter().map(|(_, results)| sum(results)).fold(0.001, f64::max);
    html! {
        @if !rows.is_empty() {
            h2 { "Commands that judged" }
            p.dim { "In this order: setup, build, lint and test. The times include earlier tries." }
            table.bars { tbody { @for (name, results) in rows {
                @let words = results.iter().filter(|r| r.outcome != Outcome::Skipped).map(in_words).collect::<Vec<_>>().join(", ");
                (bar(&name, &pieces(results, longest), &words))
            } } }
        }
    }
}

/// The total time of all tries of a command, in seconds.
fn taken(result: &StageResult) -> f64 {
    result.seconds + result.earlier.iter().map(|attempt| attempt.seconds).sum::<f64>()
}

fn in_words(result: &StageResult) -> String {
    let time = if result.cached { "cached".to_owned() } else { duration(taken(result)) };
    format!("{} {} ({time})", result.stage, result.outcome)
}

fn pieces(results: &[StageResult], longest: f64) -> Vec<Piece> {
    let mut from = 0.0;
    let mut pieces = Vec::new();
    for result in results.iter().filter(|r| r.outcome != Outcome::Skipped) {
        let length = taken(result) / longest;
        let tone = match result.outcome {
            Outcome::Passed => Tone::Good,
            Outcome::Flaky { .. } => Tone::Caution,
            _ => stop(result).1,
        };
        pieces.push(Piece { from, length, tone, words: in_words(result) });
        from += length;
    }
    pieces
}

/// A row of a chart. It uses SVG attributes, because the page's content security policy forbids
/// style attributes.
fn bar(name: &str, pieces: &[Piece], words: &str) -> Markup {
    let percent = |part: f64| format!("{:.3}%", part * 100.0);
    html! {
        tr {
            th scope="row" { (name) }
            td.bar { svg width="100%" height="14" aria-hidden="true" {
                @for piece in pieces {
                    rect x=(percent(piece.from)) width=(percent(piece.length.max(0.002))) height="14" class=(class(piece.tone)) {
                        title { (visible(&piece.words)) }
                    }
                }
            } }
            td.dim { (visible(words)) }
        }
    }
}
