//! `git frites apply`: the human gate. What passed is what lands, or nothing does; and it can be taken back.
use serde_json::{Value, json};

use crate::cli;
use crate::commands::parse_address;
use crate::error::{Error, Result, exit};
use crate::git::refs;
use crate::model::oid::Oid;
use crate::ops::land::fresh_branch::{self, Fresh, Landed};
use crate::ops::land::merge::{self, Merged, Target};
use crate::ops::land::plan::{Asked, Plan};
use crate::ops::land::undo::{self, Undone};
use crate::ops::session::Session;
use crate::store::select::Matching;
use crate::ui::json;

/// Runs the command.
pub fn run(session: &Session, args: &cli::Apply) -> Result<u8> {
    let address = parse_address(args.address.as_deref())?;
    let matching = if args.undo { Matching::Exact } else { Matching::Prefix };
    let selection = session.store.select(address.as_ref(), matching)?;
    if args.undo {
        let undone = undo::undo(session, &selection)?;
        tell_undone(session, args, &undone)?;
        return Ok(exit::OK);
    }
    let asked = Asked {
        judged: args.judged,
        allow_unverified: args.allow_unverified,
        no_rejudge: args.no_rejudge,
        no_verify: args.no_verify,
        message: args.message.clone(),
        newest_file_wins: args.strategy.is_some(),
    };
    if args.merge {
        let target = Target::parse(session, args.into.as_deref())?;
        let merged = merge::merge(session, selection, &asked, &target)?;
        tell_merged(session, args, &merged)?;
        return Ok(exit::OK);
    }
    let fresh = Fresh {
        branch: args.branch.clone(),
        commit: args.commit || args.no_switch || !args.message.is_empty(),
        no_switch: args.no_switch,
        conflicts: args.conflicts,
    };
    let landed = fresh_branch::land(session, selection, &asked, &fresh)?;
    tell_landed(session, args, &landed)?;
    match &landed.conflicts {
        None => Ok(exit::OK),
        Some(conflicts) => Err(Error::no(format!(
            "{} conflicts with HEAD in {}",
            landed.plan.address(),
            conflicts.in_words()
        ))
        .hint("resolve them, then `git add` and `git commit`; `git status` lists them")
        .hint(format!(
            "or give up: `git switch -f -` and `git branch -D {}`",
            refs::short(&landed.branch)
        ))),
    }
}

/// What every document of a landing holds.
fn as_json(plan: &Plan, branch: &str, commit: Option<&Oid>) -> Value {
    json!({
        "run": plan.run.run, "candidate": plan.candidate, "iteration": plan.capture.iteration,
        "branch": refs::short(branch), "base": plan.run.base, "tree": plan.tree, "commit": commit,
        "verified": plan.verified,
    })
}

fn tell_landed(session: &Session, args: &cli::Apply, landed: &Landed) -> Result<()> {
    let Landed { plan, branch, commit, conflicts } = landed;
    if args.json {
        let mut document = as_json(plan, branch, commit.as_ref());
        let pairs = conflicts.iter().flat_map(|c| c.as_pairs());
        document["conflicts"] = pairs
            .map(|(path, kinds)| {
                let mut object = json!({ "kinds": kinds });
                json::put_path(&mut object, "path", path);
                object
            })
            .collect();
        return session.ui.answer(json::document(document));
    }
    let branch = refs::short(branch);
    session.ui.answer(format!("{branch}\n"))?;
    match (commit, args.no_switch) {
        _ if conflicts.is_some() => {}
        (None, _) => session
            .ui
            .hint("the change is staged; review it with `git diff --staged`, then `git commit`"),
        (Some(_), false) => {
            session.ui.hint("you are on that branch now; review it with `git show`");
        }
        (Some(_), true) => session.ui.hint(format!("review it with `git show {branch}`")),
    }
    Ok(())
}

fn tell_merged(session: &Session, args: &cli::Apply, merged: &Merged) -> Result<()> {
    let Merged { plan, branch, commit, landed, previous } = merged;
    if args.json {
        let mut document = as_json(plan, branch, Some(commit));
        document["merged"] = json!(landed);
        document["previous"] = json!(previous);
        document["choices"] = plan.choices_as_json();
        return session.ui.answer(json::document(document));
    }
    for choice in &plan.choices {
        session.ui.note(choice.in_words());
    }
    session.ui.answer(format!("{}\n", refs::short(branch)))?;
    session.ui.hint(merged.hint());
    Ok(())
}

fn tell_undone(session: &Session, args: &cli::Apply, undone: &Undone) -> Result<()> {
    let Undone { candidate, branch, commit, later } = undone;
    let address = candidate.address();
    if !later.is_empty() {
        let (n, what) = (later.len(), if later.len() == 1 { "landing" } else { "landings" });
        session.ui.warn(format!("{n} {what} came after {address} and stay: {}", later.join(", ")));
    }
    let branch = refs::short(branch);
    if args.json {
        let document = json!({
            "run": candidate.run, "candidate": candidate.candidate, "branch": branch, "commit": commit,
            "undone": candidate.landing, "later": later,
        });
        return session.ui.answer(json::document(document));
    }
    session.ui.answer(format!("{branch}\n"))?;
    match commit {
        Some(commit) => session
            .ui
            .hint(format!("{address} is reverted; review it with `git show {}`", commit.short())),
        None => session.ui.hint(format!(
            "the branch is deleted; `git frites diff {address}` still shows the change"
        )),
    }
    Ok(())
}
