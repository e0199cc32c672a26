//! `git frites diff`: what candidates changed, against the base or each other.
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::cli;
use crate::commands::parse_address;
use crate::error::{Error, Result, exit};
use crate::git::diff::{self, Change, Format};
use crate::integrity::overrides;
use crate::model::address::Address;
use crate::model::blast::Blast;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::ops::session::{Captured, Session};
use crate::process;
use crate::store::candidate::CandidateRef;
use crate::store::select::{Matching, Selection, check_candidate};
use crate::ui::{json, table};

/// One side's answer.
struct View {
    address: String,
    from: Oid,
    to: Oid,
    iteration: Option<u32>,
    changes: Vec<Change>,
    blast: Blast,
    state: String,
}

/// Runs the command.
pub fn run(session: &Session, args: &cli::Diff) -> Result<u8> {
    let (first, range) = sides(args)?;
    let address = parse_address(first)?;
    let selection = session.store.select(address.as_ref(), Matching::Prefix)?;
    let run = &selection.run;
    let other = match (range, &selection.candidate) {
        (Some(end), Some(name)) if end.is_empty() || end.starts_with('@') => {
            Some(format!("{name}{end}"))
        }
        (Some(end), _) => Some(end.to_owned()),
        (None, _) => args.other.clone(),
    };
    let views: Vec<View> = match (&selection.candidate, &other) {
        (None, Some(_)) => {
            return Err(Error::usage(format!(
                "'{}' is a run: two candidates can be compared",
                run.run
            ))
            .hint(format!("write {}/CANDIDATE first", run.run)));
        }
        (None, None) => {
            let all = if args.no_capture {
                run.candidates
                    .iter()
                    .map(|name| session.stored(session.store.candidate(run, name)))
                    .collect::<Result<_>>()?
            } else {
                session.capture_all(run)?
            };
            all.into_iter().map(|captured| view_of(session, run, captured)).collect()
        }
        (Some(name), None) => {
            vec![view(session, session.store.candidate(run, name), selection.iteration, args)?]
        }
        (Some(name), Some(other)) => {
            let first =
                view(session, session.store.candidate(run, name), selection.iteration, args)?;
            let (other_run, other_name, iteration) = second(session, run, other)?;
            let second =
                view(session, session.store.candidate(&other_run, &other_name), iteration, args)?;
            let changes = diff::changes(&session.repo, &run.base, &first.to, &second.to)?;
            let blast = diff::blast(&session.repo, &changes);
            let address = format!("{}..{}", first.address, second.address);
            vec![View {
                address,
                from: first.to,
                to: second.to,
                iteration: None,
                changes,
                blast,
                state: String::new(),
            }]
        }
    };
    let differs = views.iter().any(|v| !v.changes.is_empty());
    if args.json {
        let all: Vec<Value> = views.iter().map(as_json).collect();
        session
            .ui
            .answer(json::document(json!({ "run": run.run, "base": run.base, "diffs": all })))?;
    } else {
        show(session, run, args, &views, selection.candidate.is_some())?;
    }
    Ok(if args.exit_code && differs { exit::NO } else { exit::OK })
}

/// The first address, and what follows it in a range: `RUN/CAND@1..@3`, `RUN/CAND@1..` for how it is now.
fn sides(args: &cli::Diff) -> Result<(Option<&str>, Option<&str>)> {
    match args.address.as_deref().and_then(|text| text.split_once("..")) {
        Some((first, end)) if args.other.is_some() => {
            Err(Error::usage(format!("'{first}..{end}' is a range already"))
                .hint("name two sides in all"))
        }
        Some((first, end)) => Ok((Some(first), Some(end))),
        None => Ok((args.address.as_deref(), None)),
    }
}

fn view(
    session: &Session,
    candidate: CandidateRef<'_>,
    iteration: Option<u32>,
    args: &cli::Diff,
) -> Result<View> {
    let captured = if args.no_capture || iteration.is_some() {
        session.stored(candidate)?
    } else {
        session.capture(candidate)?
    };
    let mut view = view_of(session, candidate.run, captured);
    if let Some(wanted) = iteration {
        let capture = candidate.iteration(wanted)?;
        view.changes =
            diff::changes(&session.repo, &candidate.run.base, &candidate.run.base, &capture.tree)?;
        view.blast = diff::blast(&session.repo, &view.changes);
        view.address = format!("{}@{wanted}", view.address);
        view.to = capture.tree;
        view.iteration = iteration;
    }
    Ok(view)
}

fn view_of(session: &Session, run: &Run, captured: Captured) -> View {
    session.tell_notes(&captured);
    if let Some(capture) = captured.capture.as_ref().filter(|_| captured.fresh) {
        session.ui.note(format!("captured {}@{}", captured.candidate.address(), capture.iteration));
    }
    View {
        address: captured.candidate.address(),
        from: run.base,
        to: *captured.tree(&run.base),
        iteration: captured.capture.as_ref().map(|c| c.iteration),
        state: captured.candidate.state_in_words(),
        changes: captured.changes,
        blast: captured.blast,
    }
}

/// The second of two candidates: of the first one's run, unless it says otherwise.
fn second(session: &Session, run: &Run, text: &str) -> Result<(Run, Name, Option<u32>)> {
    match parse_address(Some(text))? {
        Some(Address::Word { word, iteration }) => {
            check_candidate(run, &word)?;
            Ok((run.clone(), word, iteration))
        }
        pair => {
            let Selection { run, candidate, iteration } =
                session.store.select(pair.as_ref(), Matching::Prefix)?;
            let candidate = candidate.ok_or_else(|| {
                Error::usage(format!("'{text}' names no candidate")).hint("write RUN/CANDIDATE")
            })?;
            Ok((run, candidate, iteration))
        }
    }
}

fn show(session: &Session, run: &Run, args: &cli::Diff, views: &[View], one: bool) -> Result<()> {
    let asked = [
        (args.stat, Format::Stat),
        (args.numstat, Format::Numstat),
        (args.name_status, Format::NameStatus),
        (args.name_only, Format::NameOnly),
        (args.patch, Format::Patch),
    ];
    let format = asked
        .into_iter()
        .find_map(|(on, format)| on.then_some(format))
        .or(one.then_some(Format::Patch));
    let mut text: Vec<u8> = Vec::new();
    for view in views {
        let Some(format) = format else {
            text.extend(
                format!("{}\t{}\t{}\n", view.address, view.blast, table::printable(&view.state))
                    .bytes(),
            );
            continue;
        };
        if !one {
            let end = if args.nul { '\0' } else { '\n' };
            text.extend(format!("# {}{end}", view.address).bytes());
        }
        let color = session.ui.out.colored && !args.nul;
        text.extend(diff::render(
            &session.repo,
            &run.base,
            &view.from,
            &view.to,
            format,
            args.nul,
            color,
        )?);
    }
    if session.ui.on_terminal() && !text.is_empty() {
        let pager = match overrides::pinned("core.pager") {
            Some(before) if std::env::var_os("GIT_PAGER").is_none() => before.into(),
            _ => session.repo.checkout().for_user().call("var").arg("GIT_PAGER").line()?,
        };
        if !pager.is_empty() && pager.as_bytes() != b"cat" {
            return process::page(&pager.to_string_lossy(), &text)
                .map_err(|e| Error::io("could not start the pager", e));
        }
    }
    session.ui.answer(text)
}

fn as_json(view: &View) -> Value {
    let files: Vec<Value> = view
        .changes
        .iter()
        .map(|change| {
            let mut object = json!({
                "status": change.status.to_string(),
                "added": change.lines.map(|l| l.0), "deleted": change.lines.map(|l| l.1),
                "old": change.old, "new": change.new,
            });
            json::put_path(&mut object, "path", &change.path);
            object
        })
        .collect();
    json!({
        "address": view.address, "iteration": view.iteration, "from": view.from, "to": view.to,
        "lines": view.blast.lines, "files_touched": view.blast.files, "files": files,
    })
}
