//! `git frites explain`: explains the recorded verdict of a run.

use crate::commands::verdict;
use crate::complete;
use crate::error::{Error, Result, exit};
use crate::model::address::Address;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::run::Run;
use crate::model::verdict::Verdict;
use crate::ops::judge;
use crate::ops::session::Session;
use crate::oracle;
use crate::store::select::{Matching, Scope, Selection};
use crate::ui::{explanation, table};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Runs nothing and changes nothing: it reads the last verdict. `git frites judge --explain` prints the \
same after judging.\n\n\
Exit status: 0, whatever the verdict says."
)]
pub struct ExplainArgs {
    /// Run, or the candidate to explain  [default: the newest run]
    #[arg(value_name = "RUN[/CAND]", add = complete::address(Scope::Candidate))]
    pub address: Option<Address>,
}

pub fn run(session: &Session, args: &ExplainArgs) -> Result<u8> {
    let Selection { run, candidate, .. } =
        session.store.select(args.address.as_ref(), Scope::Candidate, Matching::Prefix)?;
    let Some(verdict) = session.store.verdict(&run.run)? else {
        return Err(Error::fatal(format!("run {run} was never judged"))
            .hint(format!("judge it with `git frites judge {run}`")));
    };
    let paragraphs = paragraphs(session, &verdict, candidate.as_ref())?;
    let text: Vec<String> = paragraphs
        .iter()
        .map(|lines| lines.iter().map(|line| format!("{}\n", table::printable(line))).collect())
        .collect();
    session.ui.answer(text.join("\n"));
    if candidate.is_none() {
        let hints = verdict::next_steps(session, &run, &verdict, None)?;
        hints.iter().for_each(|hint| session.ui.hint(hint));
    }
    Ok(exit::OK)
}

/// Explains a verdict, or one of its candidates. Returns paragraphs, each as a list of lines.
pub fn paragraphs(
    session: &Session,
    verdict: &Verdict,
    candidate: Option<&Name>,
) -> Result<Vec<Vec<String>>> {
    if let Some(name) = candidate {
        return Ok(explanation::of_candidate(verdict, name));
    }
    let run = session.store.run(&verdict.run)?;
    let base = run.as_ref().map_or(&verdict.base, Run::root);
    let mut commands = explanation::commands(verdict);
    commands.extend(passed_over(session, base, &verdict.terms.oracle)?);
    if judge::is_source_unknown(&session.repo, base, &verdict.terms.oracle)? {
        commands.push(
            "no known language was found in the base, so every file counts as source, except \
             tests, hidden files, and files that decide what is run"
                .to_owned(),
        );
    }
    Ok(explanation::of_verdict(verdict, commands))
}

/// The detected or configured commands that did not run.
fn passed_over(session: &Session, base: &Oid, ran: &[OracleCommand]) -> Result<Vec<String>> {
    let Session { repo, config, .. } = session;
    let flags = ran.iter().filter(|command| command.source.starts_with("--")).cloned();
    let flags: Vec<OracleCommand> = flags.collect();
    let mut oracle = oracle::resolve(repo, config, &flags, base)?;
    oracle.commands = ran.to_vec();
    let all = oracle::passed_over(repo, config, &flags, base, &oracle)?;
    Ok(all.iter().map(ToString::to_string).collect())
}
