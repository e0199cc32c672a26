//! `git frites clean`: removes worktrees and branches, and nothing that is saved nowhere else.
use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::parse_address;
use crate::cli;
use crate::error::{Error, Result, exit};
use crate::funnel::removing;
use crate::funnel::session::Session;
use crate::git::worktree;
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
        removing::forget(session, run)?;
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
            removing::save(session, run, name)?;
        }
        removing::remove(session, run, name, args.discard)
    };
    match attempt() {
        Ok(bytes) => Removal { address, bytes, error: None },
        Err(error) => Removal { address, bytes: 0, error: Some(error) },
    }
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
