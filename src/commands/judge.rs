//! `git frites judge`: the project's own commands on each distinct tree, and the verdict over them.
use super::parse_address;
use crate::cli;
use crate::error::{Error, Result};
use crate::funnel::escape;
use crate::funnel::judging::{self, Asked};
use crate::funnel::session::Session;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Outcome;
use crate::model::run::Run;
use crate::model::verdict::{DecisionKind, Verdict};
use crate::oracle;
use crate::store::select::Matching;
use crate::ui::table::{self, Grid, Tone};
use crate::ui::{Ui, json};

/// Runs the command.
pub fn run(session: &Session, args: &cli::Judge) -> Result<u8> {
    let address = parse_address(args.address.as_deref())?;
    let selection = session.store.select(&session.repo, address.as_ref(), Matching::Prefix)?;
    if let Some(name) = &selection.candidate {
        return Err(Error::usage(format!(
            "judge decides over a whole run, and '{}/{name}' is a candidate",
            selection.run.run
        ))
        .hint(format!("write `git frites judge {}`", selection.run.run)));
    }
    let run = selection.run;
    if args.trust_config {
        escape::accept(session, &run)?;
    }
    escape::require_trust(session, Some(&run))?;
    let verdict = if args.replay { judging::replay(session, &run)? } else { judge(session, &run, args)? };
    render(session, &run, &verdict, args)?;
    Ok(judging::exit_code(verdict.decision.decision))
}

fn judge(session: &Session, run: &Run, args: &cli::Judge) -> Result<Verdict> {
    let flags = oracle::Flags { build: args.build.clone(), lint: args.lint.clone(), test: args.test.clone() };
    let asked = Asked { flags, jobs: args.jobs as usize, timeout: args.timeout };
    judging::judge(session, run, &asked, |oracle| {
        if args.explain {
            explain(&session.ui, oracle);
        }
    })
}

fn explain(ui: &Ui, oracle: &[OracleCommand]) {
    if oracle.is_empty() {
        ui.note("no command was named, configured or found in the base's files");
    }
    for command in oracle {
        ui.note(format!("{}: `{}`, from {}", command.stage, command.command, command.source));
    }
}

fn render(session: &Session, run: &Run, verdict: &Verdict, args: &cli::Judge) -> Result<()> {
    let ui = &session.ui;
    let decision = &verdict.decision;
    let winner = decision.recommended.as_ref().map(|name| format!("{}/{name}", run.run));
    if args.json {
        return ui.answer(json::document(judging::as_json(verdict)));
    }
    if args.quiet {
        return match winner.filter(|_| decision.decision.verified()) {
            Some(address) => ui.answer(format!("{address}\n")),
            None => Ok(()),
        };
    }
    // With no usable candidate there is nothing to compare.
    let mut text =
        if decision.decision == DecisionKind::None { String::new() } else { grid(ui, verdict).render() + "\n" };
    let paint = if decision.decision.verified() { ui.out.good } else { ui.out.caution };
    text.push_str(&format!("{}: {}\n", paint.paint(decision.decision.as_str()), decision.rationale));
    ui.answer(text)?;
    match (decision.decision, winner) {
        (kind, Some(winner)) if kind.verified() => {
            ui.hint(format!("look at it with `git frites diff {winner}`, land it with `git frites apply {}`", run.run));
        }
        (DecisionKind::NearMiss, Some(winner)) => {
            if let Some(name) = &decision.recommended {
                ui.hint(format!("the logs are in '{}'", session.store.candidate_dir(&run.run, name).display()));
            }
            ui.hint(format!("go on in `cd \"$(git frites path {winner})\"` and judge again"));
        }
        (DecisionKind::NoOracle, Some(_)) => {
            ui.hint("name the commands: `git frites judge --test CMD`, or [oracle] in .frites.toml");
        }
        _ => ui.hint(format!("`git frites status {}` shows each candidate's state", run.run)),
    }
    Ok(())
}

/// The comparison: a row for each candidate, the recommended one marked.
fn grid(ui: &Ui, verdict: &Verdict) -> Grid {
    let stages: Vec<&OracleCommand> = verdict.oracle.iter().collect();
    let mut headings = vec!["", "candidate"];
    headings.extend(stages.iter().map(|c| c.stage.as_str()));
    headings.extend(["time", "lines", "files", "note"]);
    let first_number = 2 + stages.len();
    let mut grid = Grid::new(&headings, &[first_number, first_number + 1, first_number + 2], ui.out);
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
