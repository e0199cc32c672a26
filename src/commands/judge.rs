//! `git frites judge`: the project's own commands on each distinct tree, and the verdict over them.
use super::parse_address;
use crate::cli;
use crate::error::{Error, Result};
use crate::funnel::escape;
use crate::funnel::judging::{self, Asked};
use crate::funnel::session::Session;
use crate::model::oracle::OracleCommand;
use crate::model::run::Run;
use crate::model::verdict::Verdict;
use crate::oracle;
use crate::store::select::Matching;
use crate::ui::{Ui, comparison, json};

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
    if args.json {
        return ui.answer(json::document(judging::as_json(verdict)));
    }
    if args.quiet {
        return match verdict.winner() {
            Some(winner) => ui.answer(format!("{}/{winner}\n", run.run)),
            None => Ok(()),
        };
    }
    ui.answer(comparison::text(ui.out, verdict))?;
    comparison::hints(verdict, |name| session.store.candidate_dir(&run.run, name)).iter().for_each(|h| ui.hint(h));
    Ok(())
}
