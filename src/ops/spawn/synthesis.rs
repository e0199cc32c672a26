//! Synthesis: one more candidate, which integrates those that passed. It begins with the
//! recommended candidate's files, gets the other patches in its prompt, and is judged like any
//! other candidate (DESIGN.md §3).
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::git::diff;
use crate::integrity::trust;
use crate::model::candidate::{Candidate, State};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::run::{Assignment, Run, Synthesis};
use crate::model::verdict::{Entry, Verdict};
use crate::ops::session::Session;
use crate::ops::spawn::attempt::{self, AttemptOptions, AttemptReport};
use crate::ops::spawn::command::CandidateCommand;
use crate::ops::spawn::limits;
use crate::ops::spawn::prepare::{self, Preparation};
use crate::ops::spawn::resume::add_worktrees;
use crate::process::interrupt;
use crate::store::events::Event;

/// The limit of patches in a prompt, in bytes: an agent's context needs room for its work.
const MAX_PATCH_BYTES: usize = 256 * 1024;

/// The candidates that a synthesis integrates: those that passed, not only with their own tests,
/// with distinct trees, the best
/// first, without earlier syntheses. None if there are fewer than two.
pub fn material(verdict: &Verdict) -> Option<Vec<&Entry>> {
    let mut found: Vec<&Entry> = Vec::new();
    let ranked = verdict.decision.ranking.iter().filter_map(|name| verdict.entry(name));
    for entry in ranked.filter(|e| e.verified() && e.drew_on.is_empty()) {
        if found.iter().all(|other| other.judged() != entry.judged()) {
            found.push(entry);
        }
    }
    (found.len() >= 2).then_some(found)
}

/// Adds a candidate to a run and runs the command of `assignment` in it. Gives the changed run.
///
/// Refuses a run that was not judged, or in which fewer than two candidates passed with different
/// trees.
pub fn synthesize(
    session: &Session,
    run: &Run,
    assignment: Assignment,
    options: &AttemptOptions,
) -> Result<(Run, AttemptReport)> {
    let Session { repo, store, .. } = session;
    trust::require_trust(session.integrity(), Some(run))?;
    trust::require_own_record(session.integrity(), run)?;
    limits::require_depth(session)?;
    limits::require_room(session, 0, 1)?;
    // From here on no other process judges the run, adds to it or removes it.
    let _lock = store.lock_run(&run.run)?;
    let mut run = store.run(&run.run)?.ok_or_else(|| {
        Error::fatal(format!("run {} was removed meanwhile", run.run))
            .hint("`git frites status` lists the runs")
    })?;
    let verdict = store.verdict(&run.run)?.ok_or_else(|| {
        Error::no(format!("run {} was not judged, so nothing in it has passed yet", run.run))
            .hint(format!("judge it first: `git frites judge {}`", run.run))
    })?;
    let material = material(&verdict).ok_or_else(|| {
        Error::no(format!(
            "there is nothing to integrate in run {}: {}",
            run.run, verdict.decision.rationale
        ))
        .hint("a synthesis needs two candidates that passed with different results")
    })?;
    let text: Arc<[u8]> = prompt(session, &run, &verdict, &material)?.into();
    let command = CandidateCommand::assigned(&assignment, Some(text.clone()));
    command.require_prompt()?;
    command.require_program()?;
    prepare::require_space(session, &run.base, 1)?;
    let preparation = Preparation::new(session, &run.base)?;

    let name = next_name(&run)?;
    let drew_on = material.iter().map(|e| e.candidate.clone()).collect();
    let synthesis = Synthesis {
        drew_on,
        seed: *tree(&run, material[0]),
        prompt: repo.store_blob(text.as_ref())?,
    };
    let event = Event::Synthesis { candidate: name.clone(), drew_on: synthesis.drew_on.clone() };
    run.candidates.push(name.clone());
    run.agents.insert(name.clone(), assignment);
    run.synthesis.insert(name.clone(), synthesis);
    store.save_record(&run, Some(&verdict), &store.judged(&run.run)?)?;
    store.record_event(&run.run, &event)?;
    let names = [name.clone()];
    if let Err(error) = add_worktrees(session, &run, &names, &preparation) {
        // A candidate that was interrupted here can be resumed.
        let state = if interrupt::signal().is_some() { State::Cancelled } else { State::Failed };
        let mut candidate =
            Candidate::new(&run.run, &name, run.index_of(&name).unwrap_or_default(), state);
        candidate.reason = Some(error.message.clone());
        store.save_candidate(&candidate)?;
        store.clear_active(&run.run)?;
        return Err(error);
    }
    let report = attempt::run_attempts(session, &run, &[(name, command)], options, &|_| ())?;
    Ok((run, report))
}

fn next_name(run: &Run) -> Result<Name> {
    for n in 1..=run.candidates.len() + 1 {
        let name: Name = format!("synthesis-{n}").parse().expect("the name is valid");
        if !run.candidates.iter().any(|c| c.collides(&name)) {
            return Ok(name);
        }
    }
    Err(Error::internal("no name is left for a synthesis"))
}

fn tree<'a>(run: &'a Run, entry: &'a Entry) -> &'a Oid {
    entry.judged().unwrap_or(&run.base)
}

/// The prompt of a synthesis: the task, the changes in its worktree, and the other attempts'
/// patches, the smallest first. A patch that exceeds the limit is only listed, with the path of its
/// file.
fn prompt(session: &Session, run: &Run, verdict: &Verdict, material: &[&Entry]) -> Result<Vec<u8>> {
    let Session { repo, store, .. } = session;
    let best = material[0];
    let others = &material[1..];
    let checks: Vec<String> =
        verdict.oracle.iter().map(|c| format!("{}: `{}`", c.stage, c.command)).collect();
    let mut text = format!(
        "Several attempts were made at one task, each on its own, and these passed the project's own checks. This \
         worktree holds the best of them, {best}, as changes that are not committed. Bring into it what the others do \
         better: a case that it forgets, a simpler way, a test.\n\n\
         Integrate, do not concatenate: the result must read as if one person had written it, and be about as small as \
         the attempts themselves. Where they differ in taste alone, leave {best} as it is; change nothing if nothing is \
         worth taking. Do not commit. The same checks run afterwards: {checks}.\n\n# The task\n\n",
        best = best.candidate,
        checks = checks.join(", "),
    )
    .into_bytes();
    match &run.prompt {
        Some(blob) => text.extend_from_slice(repo.blob(blob)?.trim_ascii()),
        None => text.extend_from_slice(
            format!("What the command `{}` does.", run.command.join(" ")).as_bytes(),
        ),
    }
    text.extend_from_slice(
        format!("\n\n# {}, which stands in this worktree: {}\n\n", best.candidate, best.blast)
            .as_bytes(),
    );
    text.extend(list(&diff::compare(repo, &run.base, &run.base, tree(run, best))?.changes));
    let mut by_size = others.to_vec();
    by_size.sort_by_key(|e| (e.blast, e.index));
    let mut room = MAX_PATCH_BYTES;
    for entry in by_size {
        let patch = diff::compare(repo, &run.base, &run.base, tree(run, entry))?;
        text.extend_from_slice(format!("\n# {}: {}\n\n", entry.candidate, entry.blast).as_bytes());
        if patch.bytes.len() <= room {
            room -= patch.bytes.len();
            let fence = fence(&patch.bytes);
            text.extend(
                [fence.as_bytes(), b"diff\n", &patch.bytes, fence.as_bytes(), b"\n"].concat(),
            );
            continue;
        }
        room = 0;
        text.extend(list(&patch.changes));
        let candidate = store.candidate(run, &entry.candidate);
        text.extend_from_slice(
            format!(
                "\nIt is too long to be shown. Its patch is in {}, its files are in {}: read there what you need, and change \
                 nothing there.\n",
                candidate.patch().display(),
                candidate.worktree().display()
            )
            .as_bytes(),
        );
    }
    Ok(text)
}

/// The paths that a change touches, a line each.
fn list(changes: &[diff::Change]) -> Vec<u8> {
    changes.iter().flat_map(|change| [b"- ", change.path.as_bytes(), b"\n"].concat()).collect()
}

/// A line of backquotes that is longer than any in the text.
fn fence(text: &[u8]) -> String {
    let longest = text.split(|b| *b != b'`').map(<[u8]>::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}
