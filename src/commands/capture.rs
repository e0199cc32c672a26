//! `git frites capture`: stores the present state of candidates as iterations.
use serde_json::{Value, json};

use crate::complete;
use crate::error::{Error, Result, exit};
use crate::model::address::Address;
use crate::model::candidate::State;
use crate::model::verdict::GONE;
use crate::ops::capture::Captured;
use crate::ops::corrected;
use crate::ops::session::Session;
use crate::process::environment::caller;
use crate::store::candidate::CandidateRef;
use crate::store::select::{Matching, Scope, Selection};

#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 if every candidate could be captured, 1 otherwise.")]
pub struct CaptureArgs {
    /// Run or candidate  [default: the candidate of this worktree, or else the newest run]
    #[arg(value_name = "RUN[/CAND]", add = complete::address(Scope::Candidate))]
    pub address: Option<Address>,
    /// Describe the checkpoint; repeat the option for more paragraphs
    #[arg(short, long, value_name = "MESSAGE", value_parser = paragraph)]
    pub message: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print nothing but the addresses of the iterations
    #[arg(short, long)]
    pub quiet: bool,
}

/// Parses a paragraph of a message. Fails if a line could be mistaken for a trailer that git-frites
/// adds to the message of a capture or a landing.
pub(super) fn paragraph(text: &str) -> Result<String> {
    if text.trim().is_empty() {
        return Err(Error::usage("the message is empty").hint("leave `-m` out for no message"));
    }
    if text.lines().any(|line| line.starts_with("Frites-")) {
        return Err(Error::usage("no line of a message may begin with 'Frites-'")
            .hint("git-frites writes such lines itself"));
    }
    Ok(text.trim().to_owned())
}

pub fn run(session: &Session, args: &CaptureArgs) -> Result<u8> {
    let Selection { run, candidate: selected, .. } = selection(session, args)?;
    let message = args.message.join("\n\n");
    let message = (!message.is_empty()).then_some(message);
    let names = selected.as_ref().map_or(run.candidates.as_slice(), std::slice::from_ref);
    // Only a person may open a failed attempt for judging, and only by naming it.
    let may_open = selected.is_some() && caller(&session.store.dir().runs()).is_none();
    let mut failed = false;
    let mut documents = Vec::new();
    for mut captured in session.capture_each(&run, names, message.as_deref())? {
        let name = captured.candidate.candidate.clone();
        let candidate = session.store.candidate(&run, &name);
        if may_open && let Some(open) = corrected::open(session, candidate, &captured)? {
            let fresh = captured.fresh;
            captured = Captured { fresh, ..open };
            session.ui.note(format!(
                "{candidate} is open now: its files have changed since its command ended"
            ));
            session.ui.hint(format!("judge it: `{}`", session.store.judge_command(&run.run)));
        }
        let is_unchanged =
            captured.problem.is_none() && !captured.fresh && captured.blast.files > 0;
        if may_open
            && is_unchanged
            && matches!(captured.candidate.state, State::Failed | State::TimedOut)
        {
            session.ui.hint(corrected::acceptance_hint(&candidate.address()));
        }
        session.print_omissions(&captured);
        failed |= captured.problem.is_some() || captured.gone && captured.capture.is_none();
        if message.is_some() && !captured.fresh && captured.problem.is_none() {
            let why = match captured.capture {
                Some(_) => GONE,
                None => "there is nothing to capture",
            };
            session.ui.warn(format!("{candidate}: the message is not stored: {why}"));
        }
        if args.json {
            documents.push(as_json(&captured, message.as_deref()));
        } else {
            answer(session, candidate, &captured, args.quiet);
        }
    }
    if args.json {
        let document = json!({ "run": run.run, "candidates": documents });
        session.ui.answer_json(document);
    }
    Ok(if failed { exit::NO } else { exit::OK })
}

/// The candidates to capture. If no address is given in a candidate's worktree, that candidate is
/// captured. So an attempt can make a checkpoint without knowing its own name.
fn selection(session: &Session, args: &CaptureArgs) -> Result<Selection> {
    let here = session.repo.work_tree().map(|here| session.store.candidate_at(here)).transpose()?;
    match (&args.address, here.flatten()) {
        (None, Some((run, name))) => Ok(Selection { run, candidate: Some(name), iteration: None }),
        (address, _) => session.store.select(address.as_ref(), Scope::Candidate, Matching::Prefix),
    }
}

fn answer(session: &Session, candidate: CandidateRef<'_>, captured: &Captured, quiet: bool) {
    let Some(capture) = &captured.capture else {
        let why = if captured.gone { "gone" } else { "nothing to capture" };
        if !quiet {
            session.ui.answer(format!("{candidate}\t{why}\n"));
        }
        return;
    };
    let address = format!("{candidate}@{}", capture.iteration);
    if quiet {
        return session.ui.answer(format!("{address}\n"));
    }
    let how = match &captured.problem {
        Some(_) => "not captured; before that",
        None if captured.fresh => "captured",
        None if captured.gone => "gone; before that",
        None => "unchanged",
    };
    session.ui.answer(format!("{address}\t{how}: {}\n", captured.blast));
}

fn as_json(captured: &Captured, message: Option<&str>) -> Value {
    let Captured { candidate, capture, fresh, blast, problem, .. } = captured;
    json!({
        "candidate": candidate.candidate, "state": candidate.state, "captured": fresh,
        "iteration": capture.as_ref().map(|c| c.iteration),
        "commit": capture.as_ref().map(|c| c.commit), "tree": capture.as_ref().map(|c| c.tree),
        "lines": blast.lines, "files": blast.files,
        "message": if *fresh { message } else { None }, "problem": problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraph_is_text_without_lines_of_ours() {
        assert_eq!(paragraph(" it builds\nnow \n").ok().as_deref(), Some("it builds\nnow"));
        for bad in ["", " \n", "x\nFrites-Head: y"] {
            assert!(paragraph(bad).is_err(), "{bad}");
        }
    }
}
