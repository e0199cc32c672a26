//! `git frites clean`: removes worktrees and branches, and nothing that is saved nowhere else.
use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::parse_address;
use super::session::{Captured, Session};
use crate::cli;
use crate::error::{Error, IoContext, Kind, Result, exit};
use crate::git::{refs, worktree};
use crate::model::candidate::Landing;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::store::select::Matching;
use crate::ui::{json, table};

/// What became of one candidate.
struct Removal {
    address: String,
    bytes: u64,
    error: Option<Error>,
}

/// Runs the command.
pub fn run(session: &Session, args: &cli::Clean) -> Result<u8> {
    let mut removals = Vec::new();
    let mut forgotten = Vec::new();
    let targets = targets(session, args)?;
    let alone = targets.len() == 1;
    for (run, names) in targets {
        match clean_run(session, &run, &names, args) {
            Ok(some) => {
                if args.forget && some.iter().all(|r| r.error.is_none()) {
                    forgotten.push(run.run.clone());
                }
                removals.extend(some);
            }
            Err(error) if alone => return Err(error),
            // A run that is at work, for instance: the others are cleaned all the same.
            Err(error) => removals.push(Removal { address: run.run.to_string(), bytes: 0, error: Some(error) }),
        }
    }
    report(session, args, &removals, &forgotten)?;
    Ok(if removals.iter().any(|r| r.error.is_some()) { exit::NO } else { exit::OK })
}

fn clean_run(session: &Session, run: &Run, names: &[Name], args: &cli::Clean) -> Result<Vec<Removal>> {
    let _lock = session.store.lock_run(&run.run)?;
    session.repo.heal_ref_locks(&format!("refs/heads/frites/run/{}", run.run), Duration::from_secs(1))?;
    let removals: Vec<Removal> = names.iter().map(|name| clean_one(session, run, name, args)).collect();
    if args.forget && !args.dry_run && removals.iter().all(|r| r.error.is_none()) {
        forget(session, run)?;
    }
    Ok(removals)
}

/// The runs to clean and which of their candidates, each once. Refuses before anything is removed.
fn targets(session: &Session, args: &cli::Clean) -> Result<Vec<(Run, Vec<Name>)>> {
    if args.all {
        let runs = session.store.runs(&session.repo)?;
        return Ok(runs.into_iter().map(|run| (run.clone(), run.candidates)).collect());
    }
    let mut addresses = Vec::new();
    for text in &args.addresses {
        addresses.push(parse_address(Some(text))?);
    }
    if addresses.is_empty() {
        addresses.push(None);
    }
    let mut found: Vec<(Run, BTreeSet<Name>)> = Vec::new();
    for address in addresses {
        let selection = session.store.select(&session.repo, address.as_ref(), Matching::Exact)?;
        if selection.iteration.is_some() {
            return Err(Error::usage("an iteration cannot be cleaned alone").hint("name a run or a candidate"));
        }
        let names = selection.candidate.map_or_else(|| selection.run.candidates.clone(), |name| vec![name]);
        match found.iter_mut().find(|(run, _)| run.run == selection.run.run) {
            Some((_, set)) => set.extend(names),
            None => found.push((selection.run, names.into_iter().collect())),
        }
    }
    if let Some((run, _)) = found.iter().find(|(run, set)| args.forget && set.len() < run.candidates.len()) {
        return Err(
            Error::usage("--forget removes whole runs").hint(format!("write `git frites clean --forget {}`", run.run))
        );
    }
    let in_order = |(run, set): (Run, BTreeSet<Name>)| {
        let names = run.candidates.iter().filter(|n| set.contains(n)).cloned().collect();
        (run, names)
    };
    Ok(found.into_iter().map(in_order).collect())
}

/// One candidate; its failure is part of the answer and never stops the rest.
fn clean_one(session: &Session, run: &Run, name: &Name, args: &cli::Clean) -> Removal {
    let address = format!("{}/{name}", run.run);
    let attempt = || -> Result<u64> {
        if args.dry_run {
            return Ok(worktree::disk_usage(&session.store.worktree(run, name)));
        }
        if !args.discard {
            save(session, run, name)?;
        }
        remove(session, run, name, args.discard)
    };
    match attempt() {
        Ok(bytes) => Removal { address, bytes, error: None },
        Err(error) => Removal { address, bytes: 0, error: Some(error) },
    }
}

/// Captures what is not saved yet; refuses when something cannot be.
fn save(session: &Session, run: &Run, name: &Name) -> Result<()> {
    let captured: Captured = session.capture(run, name).map_err(|e| {
        let bytes = worktree::disk_usage(&session.store.worktree(run, name));
        Error::new(Kind::No, format!("{}; its worktree of {} is kept", e.message, table::size(bytes)))
            .hint("mend that and clean again; `--discard` removes it with what is not saved")
    })?;
    if !captured.notes.loses_work() {
        session.tell_notes(&captured);
        return Ok(());
    }
    let lines = captured.notes.lines().join("; ");
    Err(Error::no(format!("{}/{name} holds what cannot be captured: {lines}", run.run))
        .hint("move it away; `--discard` removes it for good"))
}

/// Removes a candidate's worktree, entry and branch; gives the bytes freed. Doing it twice is fine.
///
/// The worktree is renamed away first, so that a kill in the middle leaves nothing half there. Unless
/// `discard`, the branch must hold nothing that the capture does not reach.
pub fn remove(session: &Session, run: &Run, name: &Name, discard: bool) -> Result<u64> {
    let Session { repo, store, .. } = session;
    let _candidate = store.lock_candidate(&run.run, name)?;
    let root = store.worktrees(run.worktree_root.as_deref());
    let path = store.worktree(run, name);
    let branch = refs::branch(&run.run, name);
    let mut freed = 0;
    {
        let _repository = store.lock_repository()?;
        let admin = worktree::admin_of(repo, &path)?;
        if let Some(holder) = worktree::holder_of(repo, &branch, admin.as_deref())? {
            return Err(Error::no(format!(
                "the branch '{}' is checked out in '{}'",
                refs::short(&branch),
                holder.display()
            ))
            .hint("switch to another branch there"));
        }
        let tip = repo.read_ref(&branch)?;
        if let Some(tip) = tip.as_ref().filter(|_| !discard) {
            let saved = store.latest(repo, &run.run, name)?.map_or_else(|| run.base.clone(), |c| c.commit);
            if !repo.is_ancestor(tip, &saved)? {
                return Err(Error::no(format!("the branch '{}' has moved while it was cleaned", refs::short(&branch)))
                    .hint("clean again"));
            }
        }
        freed += worktree::discard(&root, &path, admin.as_deref())?;
        if let Some(tip) = tip {
            repo.update_ref(&branch, None, Some(&tip), "clean")?;
        }
    }
    let _ = std::fs::remove_dir(root.join(run.run.as_str()));
    let _ = std::fs::remove_file(store.index(&run.run, name));
    let mut candidate = store.candidate(repo, run, name)?;
    let first_time = !candidate.cleaned || freed > 0;
    candidate.cleaned = true;
    if candidate.landing == Landing::Pending {
        candidate.landing = Landing::Discarded;
    }
    store.save_candidate(&candidate)?;
    if first_time {
        store.record_event("cleaned", &run.run, json!({ "candidate": name, "bytes": freed }))?;
    }
    Ok(freed)
}

/// Removes a run's captures and records: after this it is gone.
fn forget(session: &Session, run: &Run) -> Result<()> {
    let Session { repo, store, .. } = session;
    let folder = store.run_dir(&run.run);
    worktree::delete_tree(&folder).context(|| format!("could not delete '{}'", folder.display()))?;
    // The record last: while it is there, the run can be forgotten again. `@` sorts before letters.
    for (name, tip) in repo.refs_under(&format!("refs/frites/{}/", run.run))?.into_iter().rev() {
        repo.update_ref(&name, None, Some(&tip), "forget")?;
    }
    store.record_event("forgotten", &run.run, json!({}))
}

fn report(session: &Session, args: &cli::Clean, removals: &[Removal], forgotten: &[Name]) -> Result<()> {
    let total: u64 = removals.iter().map(|r| r.bytes).sum();
    for removal in removals {
        if let Some(error) = &removal.error {
            session.ui.error(error);
        }
    }
    if args.json {
        let all: Vec<Value> = removals
            .iter()
            .map(|r| json!({ "address": r.address, "removed": r.error.is_none() && !args.dry_run, "bytes": r.bytes, "error": r.error.as_ref().map(|e| &e.message) }))
            .collect();
        let document = json!({ "dry_run": args.dry_run, "bytes": total, "candidates": all, "forgotten": forgotten });
        return session.ui.answer(json::document(document));
    }
    if args.quiet {
        return Ok(());
    }
    let mut text = String::new();
    let verb = if args.dry_run { "would remove" } else { "removed" };
    for removal in removals.iter().filter(|r| r.error.is_none()) {
        text.push_str(&format!("{verb} {} ({})\n", removal.address, table::size(removal.bytes)));
    }
    for run in forgotten {
        text.push_str(&format!("{} run {run}\n", if args.dry_run { "would forget" } else { "forgot" }));
    }
    text.push_str(&format!("{} {}\n", if args.dry_run { "would free" } else { "freed" }, table::size(total)));
    session.ui.answer(text)
}
