//! Recovery after a kill: the next command finishes what a killed one began, or takes it back.
use std::time::Duration;

use rustix::process::Pid;

use crate::error::Result;
use crate::git::{refs, worktree};
use crate::ops::land::recover::{recover_landing, recover_moves};
use crate::ops::rebuild::rebuild;
use crate::ops::spawn::recover::recover_run;
use crate::store::Store;

/// Recovers landings, refs and runs; gives a message for each thing done. If there is nothing to
/// do, it costs a listing of the runs' directory and of their refs.
pub fn recover(store: &Store) -> Result<Vec<String>> {
    // First: recovery may need these refs.
    store.repo().heal_ref_locks("refs/frites", Duration::from_secs(1))?;
    let mut messages: Vec<String> = match recover_landing(store) {
        Ok(message) => message.into_iter().collect(),
        // The command goes on: it may be one that helps.
        Err(error) => {
            vec![format!("a landing was interrupted and could not be recovered: {}", error.message)]
        }
    };
    messages.extend(recover_moves(store)?);
    store.repo().heal_deletion()?;
    store.repo().heal_ref_locks("refs/frites-judging", Duration::from_secs(1))?;
    release_judged(store)?;
    worktree::delete_old_trash(&store.worktrees(None));
    let recorded = store.run_names()?;
    for run in store.run_directories()? {
        let recovered = recover_run(store, &run).and_then(|message| {
            let is_lost = message.is_none() && !recorded.contains(&run);
            if is_lost { rebuild(store, &run) } else { Ok(message) }
        });
        match recovered {
            Ok(message) => messages.extend(message),
            // One damaged run must not stop every command on the others.
            Err(error) => messages.push(format!(
                "run {run} was interrupted and could not be recovered: {}",
                error.message
            )),
        }
    }
    Ok(messages)
}

/// Lets the commits go that killed processes kept while they judged them.
fn release_judged(store: &Store) -> Result<()> {
    let repo = store.repo();
    for name in repo.ref_names(refs::JUDGING)? {
        let mut parts = name[refs::JUDGING.len()..].split('/');
        let run = parts.next().and_then(|run| run.parse().ok());
        let process = parts.next().and_then(|process| process.parse().ok()).and_then(Pid::from_raw);
        let (Some(run), Some(process)) = (run, process) else { continue };
        if rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH) {
            continue;
        }
        // The process may live in another container: then it holds one of these locks.
        let run = store.try_lock_run(&run)?;
        let landing = store.try_lock_landing()?;
        if let (Some(_run), Some(_landing), Some(old)) = (run, landing, repo.read_ref(&name)?) {
            repo.update_ref(&name, None, Some(&old), "judging ended")?;
        }
    }
    Ok(())
}
