//! Recovery after a kill: the next command finishes or undoes the work of a killed command.
use std::collections::BTreeSet;
use std::time::Duration;

use crate::error::{Cause, Result};
use crate::fs::scratch;
use crate::git::ref_list::RefsOfRuns;
use crate::git::refs;
use crate::integrity::baseline::runs_at_work;
use crate::model::name::Name;
use crate::model::refname::RefName;
use crate::ops::land::by_hand;
use crate::ops::land::recover::recover_landings;
use crate::ops::rebuild::rebuild;
use crate::ops::spawn::recover::recover_run;
use crate::ops::trash;
use crate::process::{self, running};
use crate::store::Store;
use crate::store::records::run_names;

/// Ends the processes of commands that outlived the git-frites that started them. Returns a message
/// for each command.
fn end_survivors(store: &Store, runs: &[(Name, bool)]) -> Result<Vec<String>> {
    let mut messages = Vec::new();
    for run in runs_at_work(store, runs) {
        for place in store.log_directories(&run) {
            for (what, ended) in running::end_survivors(place.directory.path()) {
                let whose = &place.address;
                let what = place.in_words(&what);
                messages.push(match ended {
                    true => format!("{whose}: its {what} command had outlived git-frites, and is ended"),
                    false => format!(
                        "{whose}: its {what} command has outlived git-frites, and cannot be ended: look for it with `ps`"
                    ),
                });
            }
        }
    }
    Ok(messages)
}

/// The result of a recovery.
pub struct Recovery {
    /// A message for each recovered command, landing or run.
    pub messages: Vec<String>,
    /// The refs of runs as they were just read; `None` if they may have changed since.
    pub refs: Option<RefsOfRuns>,
}

/// Recovers landings, refs and runs. If there is nothing to recover, does only two things: lists
/// the directory and the refs of runs, and checks for each run whether a process works on it.
pub fn recover(store: &Store) -> Result<Recovery> {
    store.restore_ignore()?;
    // This list is read once: if a run is killed later, the next command recovers it.
    let runs = store.run_activities()?;
    // This comes first, because a surviving process could still change the files that are recovered
    // below.
    let mut messages = end_survivors(store, &runs)?;
    store.repo().heal_recorded_change()?;
    let (seen, locks) = store.repo().refs_and_locks_of_runs()?;
    if !locks.is_empty() {
        // Without the locks, the recovery below can change these refs.
        store.repo().heal_ref_locks("refs/frites", Duration::from_secs(1));
    }
    messages.extend(recover_landings(store));
    store.repo().heal_ref_locks("refs/frites-judging", Duration::from_secs(1));
    release_judged(store)?;
    // An error is ignored: the command that moved the files into the trash has already warned of
    // it.
    let _ = trash::empty(store, &store.worktrees(None));
    scratch::delete_old(&store.dir().scratch());
    let is_at_rest = messages.is_empty() && locks.is_empty() && !store.repo().has_moved_refs();
    let found = if is_at_rest { seen } else { store.repo().refs_of_runs()? };
    let names: Vec<RefName> = found.keys().cloned().collect();
    messages.extend(by_hand::detect(store, &names)?);
    let has_conflicts = names.iter().any(|name| refs::conflicts_of(name).is_some());
    let recorded: BTreeSet<Name> = run_names(&names).into_iter().collect();
    for (run, is_active) in runs {
        if !is_active && recorded.contains(&run) {
            continue;
        }
        let recovered = recover_run(store, &run).and_then(|message| {
            let is_lost = message.is_none() && !recorded.contains(&run);
            if is_lost { rebuild(store, &run) } else { Ok(message) }
        });
        match recovered {
            Ok(message) => messages.extend(message),
            // This process cannot write to the state, e.g. because it runs inside an attempt. A
            // command outside recovers the run.
            Err(error) if error.cause == Cause::ReadOnly => {}
            // A damaged run must not make commands on other runs fail.
            Err(error) => messages
                .push(format!("run {run} was interrupted and could not be recovered: {error}")),
        }
    }
    let are_unchanged = messages.is_empty() && !has_conflicts;
    Ok(Recovery { messages, refs: are_unchanged.then_some(found) })
}

/// Releases the commits that processes kept for their judging and did not release, because they
/// were killed.
fn release_judged(store: &Store) -> Result<()> {
    let repo = store.repo();
    for name in repo.ref_names(refs::JUDGING)? {
        let mut parts = name[refs::JUDGING.len()..].split('/');
        let run = parts.next().and_then(|run| run.parse().ok());
        let process = parts.next().and_then(|process| process.parse().ok());
        let (Some(run), Some(process)) = (run, process) else { continue };
        if process::is_alive(process) {
            continue;
        }
        // The process may still run in another container, where the same process has another id.
        // Then it holds one of these locks.
        let run = store.try_lock_run(&run)?;
        let landing = store.try_lock_landing()?;
        if let (Some(_run), Some(_landing), Some(old)) = (run, landing, repo.read_ref(&name)?) {
            repo.update_ref(&name, None, Some(&old), "judging ended")?;
        }
    }
    Ok(())
}
