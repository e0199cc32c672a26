//! How a verdict looks: the comparison table, the decision, and what to type next.
use std::path::PathBuf;

use super::style::Styles;
use super::table::{self, Grid, Tone};
use crate::model::name::Name;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Outcome;
use crate::model::verdict::{DecisionKind, Verdict};

/// The table and the decision under it.
pub fn text(styles: Styles, verdict: &Verdict) -> String {
    let decision = &verdict.decision;
    // With no usable candidate there is nothing to compare.
    let table =
        if decision.decision == DecisionKind::None { String::new() } else { grid(styles, verdict).render() + "\n" };
    let paint = if decision.decision.verified() { styles.good } else { styles.caution };
    format!("{table}{}: {}\n", paint.paint(decision.decision.as_str()), decision.rationale)
}

/// What to do with the verdict; `logs` tells where a candidate's logs lie.
pub fn hints(verdict: &Verdict, logs: impl Fn(&Name) -> PathBuf) -> Vec<String> {
    let (run, decision) = (&verdict.run, &verdict.decision);
    match (decision.decision, &decision.recommended) {
        (kind, Some(name)) if kind.verified() => {
            vec![format!("look at it with `git frites diff {run}/{name}`, land it with `git frites apply {run}`")]
        }
        (DecisionKind::NearMiss, Some(name)) => vec![
            format!("the logs are in '{}'", logs(name).display()),
            format!("go on in `cd \"$(git frites path {run}/{name})\"` and judge again"),
        ],
        (DecisionKind::NoOracle, Some(_)) => {
            vec!["name the commands: `git frites judge --test CMD`, or [oracle] in .frites.toml".to_owned()]
        }
        _ => vec![format!("`git frites status {run}` shows each candidate's state")],
    }
}

/// The comparison: a row for each candidate, the recommended one marked.
fn grid(styles: Styles, verdict: &Verdict) -> Grid {
    let stages: Vec<&OracleCommand> = verdict.oracle.iter().collect();
    let mut headings = vec!["", "candidate"];
    headings.extend(stages.iter().map(|c| c.stage.as_str()));
    headings.extend(["time", "lines", "files", "note"]);
    let first_number = 2 + stages.len();
    let mut grid = Grid::new(&headings, &[first_number, first_number + 1, first_number + 2], styles);
    for entry in &verdict.candidates {
        let recommended = verdict.decision.recommended.as_ref() == Some(&entry.candidate);
        let tone = if recommended && verdict.decision.decision.verified() { Tone::Good } else { Tone::Plain };
        let mut cells =
            vec![(if recommended { "*" } else { "" }.to_owned(), tone), (entry.candidate.to_string(), tone)];
        for command in &stages {
            cells.push(match entry.results.iter().find(|r| r.stage == command.stage).map(|r| &r.outcome) {
                Some(Outcome::Skipped) | None => ("-".into(), Tone::Dim),
                Some(Outcome::CouldNotStart { .. }) => ("no start".into(), Tone::Bad),
                Some(Outcome::Failed { code }) => (format!("exit {code}"), Tone::Bad),
                Some(outcome @ Outcome::Passed) => (outcome.to_string(), Tone::Good),
                Some(outcome @ Outcome::Flaky) => (outcome.to_string(), Tone::Caution),
                Some(outcome) => (outcome.to_string(), Tone::Bad),
            });
        }
        let seconds: f64 = entry.results.iter().map(|r| r.seconds).sum();
        let ran = !entry.results.is_empty();
        cells.push((if ran { table::duration(seconds) } else { "-".into() }, Tone::Dim));
        cells.push((entry.blast.lines.to_string(), Tone::Plain));
        cells.push((entry.blast.files.to_string(), Tone::Plain));
        let note = match (&entry.same_as, entry.usable()) {
            (Some(twin), _) => format!("same tree as {twin}"),
            (None, false) if entry.problem.is_some() => "not captured".into(),
            (None, false) if matches!(entry.state, crate::model::candidate::State::Open) => "changed nothing".into(),
            (None, false) => entry.state.to_string(),
            (None, true) if entry.results.iter().any(|r| r.leaky) => "leaky".into(),
            (None, true) => String::new(),
        };
        cells.push((note, Tone::Dim));
        grid.row(cells);
    }
    grid
}
