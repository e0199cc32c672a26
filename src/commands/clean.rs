//! `git frites clean`: captures the work in worktrees, and then removes the worktrees and their
//! branches.
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::commands::{hints, values};
use crate::complete;
use crate::error::{Error, Result, exit};
use crate::model::address::Address;
use crate::model::candidate::Landing;
use crate::model::count::some_of;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::clean;
use crate::ops::mirror::{self, IdleMirror};
use crate::ops::session::Session;
use crate::oracle::cache::{self, UserCache};
use crate::oracle::pool;
use crate::store::select::{Matching, Scope};
use crate::ui::table;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Captures unsaved work first. Work that cannot be captured is never removed without \
--discard. Captures stay under refs/frites/ until --forget.\n\n\
Exit status: 0; 1 if something was not removed because its work would have been lost."
)]
pub struct CleanArgs {
    /// Runs or candidates to remove  [default: the newest run]
    #[arg(value_name = "RUN[/CAND]", add = complete::address(Scope::Candidate))]
    pub addresses: Vec<Address>,
    /// Remove all runs
    #[arg(long, conflicts_with = "addresses")]
    pub all: bool,
    /// Remove only worktrees that are older than [retention] allows, of all runs or of those named
    #[arg(long, conflicts_with_all = ["all", "discard", "forget"])]
    pub expired: bool,
    /// Keep these candidates: from now on, one of them is removed only if you name it, not just its
    /// run
    #[arg(long, conflicts_with_all = ["all", "expired", "discard", "forget"])]
    pub keep: bool,
    /// Keep these candidates no longer
    #[arg(long, conflicts_with_all = ["keep", "all", "expired", "discard", "forget"])]
    pub no_keep: bool,
    /// Remove the cached outcomes and build outputs of this repository (with --all, of all
    /// repositories) and unused mirrors, but no run
    #[arg(
        long,
        conflicts_with_all = [
            "addresses", "expired", "keep", "no_keep", "discard", "forget",
        ],
    )]
    pub cache: bool,
    /// Remove worktrees even if they contain work that is not captured
    #[arg(long)]
    pub discard: bool,
    /// Remove captures and records, too; the run cannot be restored
    #[arg(long)]
    pub forget: bool,
    /// Show what would be removed, and remove nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print nothing but warnings and errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// From this size on, the kept build outputs are mentioned after `--all`.
const LARGE_LAYERS: u64 = 1_000_000_000;

/// The candidates of one run that are to be removed.
struct Target {
    run: Run,
    names: BTreeSet<Name>,
    /// The candidates whose own addresses were given. They are removed even if they are marked as
    /// kept.
    named: BTreeSet<Name>,
}

/// The result of removing one candidate.
struct Removal {
    address: String,
    /// The disk space that was freed; `None` if there was nothing to remove.
    bytes: Option<u64>,
    error: Option<Error>,
}

pub fn run(session: &Session, args: &CleanArgs) -> Result<u8> {
    session.warn_of_undeleted();
    if args.cache {
        return clear_cache(session, args);
    }
    let targets = targets(session, args)?;
    if args.keep || args.no_keep {
        return keep(session, args, &targets);
    }
    let mut removals = Vec::new();
    let mut forgotten = Vec::new();
    let alone = targets.len() == 1;
    let cleaned: Vec<Name> = targets.iter().map(|target| target.run.run.clone()).collect();
    let roots: BTreeSet<PathBuf> = targets
        .iter()
        .map(|target| session.store.worktrees(target.run.worktree_root.as_deref()))
        .collect();
    for target in &targets {
        let run = &target.run.run;
        match clean_run(session, target, args) {
            Ok(None) => {}
            Ok(Some(some)) => {
                if args.forget && some.iter().all(|r| r.error.is_none()) {
                    forgotten.push(run.clone());
                }
                removals.extend(some);
            }
            Err(error) if alone => return Err(error),
            // If this run cannot be cleaned, e.g. because its commands still run, other runs are
            // cleaned all the same.
            Err(error) => removals.push(Removal {
                address: run.to_string(),
                bytes: None,
                error: Some(hints::add(error)),
            }),
        }
    }
    if forgotten.is_empty() && removals.iter().all(|r| r.bytes.is_none() && r.error.is_none()) {
        session.ui.note(if args.expired {
            "nothing has expired"
        } else {
            "nothing is left to remove"
        });
    }
    report(session, args, &removals, &forgotten);
    if !(args.forget || args.dry_run || args.json) {
        hint_at_captures(session, &removals)?;
    }
    if args.all && !args.dry_run {
        hint_at_layers(session)?;
    }
    if !(args.all || args.expired || args.dry_run || args.json) {
        note_others(session, &cleaned)?;
    }
    if !args.dry_run {
        roots.iter().for_each(|root| clean::empty_trash(session, root));
    }
    Ok(if removals.iter().any(|r| r.error.is_some()) { exit::NO } else { exit::OK })
}

/// If removed candidates have not landed, tells the user how to get the work of the first of them.
fn hint_at_captures(session: &Session, removals: &[Removal]) -> Result<()> {
    for removal in removals.iter().filter(|removal| removal.bytes.is_some()) {
        let address = values::address(&removal.address)?;
        let selection = session.store.select(Some(&address), Scope::Candidate, Matching::Exact)?;
        let Some(name) = &selection.candidate else { continue };
        let candidate = session.store.candidate(&selection.run, name);
        let has_not_landed = candidate.record()?.landing == Landing::Discarded;
        if has_not_landed && candidate.latest_usable()?.is_some() {
            let judged = session.store.verdict(&selection.run.run)?;
            let tree = judged.as_ref().and_then(|v| v.entry(name)?.judged());
            let is_verified =
                judged.as_ref().zip(tree).is_some_and(|(v, tree)| v.tree_passed(tree));
            let lands = match is_verified {
                true => format!(", `git frites apply {candidate}` lands it"),
                false => String::new(),
            };
            session.ui.hint(format!(
                "captures stay: `git frites diff {candidate}` shows the work{lands}"
            ));
            break;
        }
    }
    Ok(())
}

/// Hints at the kept build outputs of this repository if they are large. Their sizes are recorded,
/// so nothing is measured.
fn hint_at_layers(session: &Session) -> Result<()> {
    let bytes = UserCache::of(&session.repo)?.layers();
    if bytes >= LARGE_LAYERS {
        session.ui.hint(format!(
            "{} of build outputs stay in the cache: `git frites clean --cache` removes them",
            table::size(bytes)
        ));
    }
    Ok(())
}

/// Tells the user which other runs still have worktrees.
fn note_others(session: &Session, cleaned: &[Name]) -> Result<()> {
    let store = &session.store;
    let mut others = Vec::new();
    for run in store.runs()? {
        // `--all` leaves kept candidates alone.
        let has_some = store.candidates(&run).any(|candidate| {
            candidate.worktree().exists() && candidate.record().is_ok_and(|record| !record.kept)
        });
        if has_some && !cleaned.contains(&run.run) {
            others.push(run.run.to_string());
        }
    }
    if !others.is_empty() {
        let (runs, have) = if others.len() == 1 { ("run", "has") } else { ("runs", "have") };
        session.ui.note(format!("{runs} {} still {have} worktrees", some_of(&others)));
        session.ui.hint("`git frites clean --all` removes those of every run");
    }
    Ok(())
}

/// Removes cached outcomes, and the build outputs and mirrors that are not in use. With
/// `--dry-run`, only prints their size.
fn clear_cache(session: &Session, args: &CleanArgs) -> Result<u8> {
    let own = pool::home(&session.repo)?;
    let cache = match args.all {
        true => UserCache::of_all(&session.repo)?,
        false => UserCache::of(&session.repo)?,
    };
    let used = || cache.outcomes() + cache.layers();
    let mirrors = mirror::idle(Duration::ZERO);
    let bytes = used() + mirrors.iter().map(IdleMirror::disk_usage).sum::<u64>();
    if !args.dry_run {
        cache.clear()?;
        pool::remove_gone(&own);
        mirrors.into_iter().try_for_each(IdleMirror::delete)?;
    }
    let freed = if args.dry_run { bytes } else { bytes.saturating_sub(used()) };
    if args.json {
        let document =
            json!({ "dry_run": args.dry_run, "bytes": freed, "candidates": [], "cache": freed });
        session.ui.answer_json(document);
    } else if !args.quiet {
        let verb = if args.dry_run { "would free" } else { "freed" };
        session.ui.answer(format!("{verb} {} of the cache\n", table::size(freed)));
    }
    if !args.dry_run && cache::disk_usage(&own) > 0 {
        return Err(Error::no("some cached outcomes could not be removed")
            .hint(format!("look at '{}'", own.display())));
    }
    Ok(exit::OK)
}

/// Marks candidates as kept, or removes this mark.
fn keep(session: &Session, args: &CleanArgs, targets: &[Target]) -> Result<u8> {
    let mut text = String::new();
    let mut all = Vec::new();
    for Target { run, names, .. } in targets {
        for name in in_order(run, names) {
            if !args.dry_run {
                clean::mark_kept(session, session.store.candidate(run, name), args.keep)?;
            }
            let address = format!("{run}/{name}");
            let verb = match (args.dry_run, args.keep) {
                (false, true) => "kept",
                (false, false) => "no longer kept:",
                (true, true) => "would keep",
                (true, false) => "would no longer keep",
            };
            text.push_str(&format!("{verb} {address}\n"));
            all.push(json!({ "address": address, "kept": args.keep }));
        }
    }
    if args.json {
        let document = json!({ "dry_run": args.dry_run, "candidates": all });
        session.ui.answer_json(document);
    } else if !args.quiet {
        session.ui.answer(text);
    }
    Ok(exit::OK)
}

fn clean_run(session: &Session, target: &Target, args: &CleanArgs) -> Result<Option<Vec<Removal>>> {
    // Another command may have changed the run since the targets were read, e.g. while earlier
    // targets were removed.
    let locked = clean::lock(session, &target.run);
    if locked.is_err() && session.store.run(&target.run.run)?.is_none() {
        return Ok(None);
    }
    let (_lock, run) = &locked?;
    let names = &to_remove(session, run, target, args)?;
    let results = if args.dry_run {
        let each = names.iter().map(|name| session.store.candidate(run, name));
        each.map(|candidate| clean::dry_run(session, candidate, args.discard)).collect()
    } else {
        session.store.remove_abandoned_files(run);
        clean::remove_all(session, run, names, args.discard, args.forget)
    };
    // A failure does not end the command, because it is part of the answer.
    let removal = |(name, result): (&Name, Result<Option<u64>>)| {
        let address = session.store.candidate(run, name).address();
        match result {
            Ok(bytes) => Removal { address, bytes, error: None },
            Err(error) => Removal { address, bytes: None, error: Some(hints::add(error)) },
        }
    };
    let removals: Vec<Removal> = names.iter().zip(results).map(removal).collect();
    if args.forget && !args.dry_run && removals.iter().all(|r| r.error.is_none()) {
        clean::forget(session, run)?;
    }
    Ok(Some(removals))
}

/// The candidates to remove. If an address is wrong, fails before anything is removed.
fn targets(session: &Session, args: &CleanArgs) -> Result<Vec<Target>> {
    let whole = |run: Run| {
        let names = run.candidates.iter().cloned().collect();
        Target { run, names, named: BTreeSet::new() }
    };
    let mut found: Vec<Target> = Vec::new();
    if args.all || (args.expired && args.addresses.is_empty()) {
        found.extend(session.store.runs()?.into_iter().map(whole));
    } else {
        let mut addresses: Vec<Option<&Address>> = args.addresses.iter().map(Some).collect();
        if addresses.is_empty() {
            addresses.push(None);
        }
        for address in addresses {
            let selection = session.store.select(address, Scope::Candidate, Matching::Exact)?;
            let target = match selection.candidate {
                Some(name) => {
                    let named = BTreeSet::from([name]);
                    Target { run: selection.run, names: named.clone(), named }
                }
                None => whole(selection.run),
            };
            match found.iter_mut().find(|known| known.run.run == target.run.run) {
                Some(known) => {
                    known.names.extend(target.names);
                    known.named.extend(target.named);
                }
                None => found.push(target),
            }
        }
    }
    if args.forget {
        for target in &found {
            to_remove(session, &target.run, target, args)?;
        }
    }
    if args.expired {
        // A run in which nothing has expired is not locked, because its commands may still run.
        let mut over = Vec::new();
        for target in found {
            if !to_remove(session, &target.run, &target, args)?.is_empty() {
                over.push(target);
            }
        }
        return Ok(over);
    }
    Ok(found)
}

/// The candidates to remove from a target. With `--expired`, these are the ones that have expired.
/// Otherwise, these are the ones that are named themselves or not marked as kept. `run` is the
/// present state of the target's run. Fails if the run is to be forgotten, but some of its
/// candidates would stay.
fn to_remove(session: &Session, run: &Run, target: &Target, args: &CleanArgs) -> Result<Vec<Name>> {
    let mut names = Vec::new();
    for name in in_order(run, &target.names) {
        let candidate = session.store.candidate(run, name);
        let is_kept =
            || candidate.record().is_ok_and(|it| it.kept) && candidate.worktree().exists();
        if args.expired {
            if !clean::expired(session, candidate)? {
                continue;
            }
        } else if !target.named.contains(name) && is_kept() {
            if args.forget {
                return Err(Error::no(format!("{candidate} is kept, so nothing is forgotten"))
                    .hint(format!("keep it no longer: `git frites clean --no-keep {candidate}`")));
            }
            session.ui.note(format!("{candidate} stays, because it is kept"));
            session.ui.hint(format!("`git frites clean {candidate}` removes it all the same"));
            continue;
        }
        names.push(name.clone());
    }
    if args.forget && names.len() < run.candidates.len() {
        let all = target.run.candidates.len();
        return Err(match target.names.len() < all {
            true => Error::usage("--forget removes whole runs")
                .hint(format!("write `git frites clean --forget {run}`")),
            false => Error::no(format!("run {run} has got other candidates meanwhile"))
                .hint(format!("look at them with `git frites diff {run}`, then clean again")),
        });
    }
    Ok(names)
}

fn in_order<'r>(run: &'r Run, names: &'r BTreeSet<Name>) -> impl Iterator<Item = &'r Name> {
    run.candidates.iter().filter(|name| names.contains(*name))
}

fn report(session: &Session, args: &CleanArgs, removals: &[Removal], forgotten: &[Name]) {
    let total: u64 = removals.iter().filter_map(|r| r.bytes).sum();
    for removal in removals {
        if let Some(error) = &removal.error {
            session.ui.error(error);
        }
    }
    if args.json {
        let all: Vec<Value> = removals
            .iter()
            .map(|r| json!({ "address": r.address, "removed": r.error.is_none() && !args.dry_run, "bytes": r.bytes.unwrap_or(0), "error": r.error.as_ref().map(|e| &e.message) }))
            .collect();
        let document = json!({ "dry_run": args.dry_run, "bytes": total, "candidates": all, "forgotten": forgotten });
        return session.ui.answer_json(document);
    }
    if args.quiet {
        return;
    }
    let [removed, forgot, freed] = match args.dry_run {
        true => ["would remove", "would forget", "would free"],
        false => ["removed", "forgot", "freed"],
    };
    let mut text = String::new();
    for (removal, bytes) in removals.iter().filter_map(|r| Some((r, r.bytes?))) {
        text.push_str(&format!("{removed} {} ({})\n", removal.address, table::size(bytes)));
    }
    for run in forgotten {
        text.push_str(&format!("{forgot} run {run}\n"));
    }
    // The size of a run's records is not known, nor that of a removal that failed half-way.
    let has_failed = removals.iter().any(|r| r.error.is_some());
    if total > 0 || forgotten.is_empty() && !has_failed {
        text.push_str(&format!("{freed} {}\n", table::size(total)));
    }
    session.ui.answer(text);
}
