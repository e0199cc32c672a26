//! Recovers landings whose process was killed: the next command finishes each of them, or takes it
//! back.
use std::path::Path;
use std::time::SystemTime;

use crate::error::Result;
use crate::fs::tree;
use crate::git::cli::Git;
use crate::git::landing::advance;
use crate::git::landing::intent::{Holder, Intent};
use crate::git::landing::recovery::{self, Interrupted};
use crate::git::worktree::Worktree;
use crate::ops::confined_git;
use crate::ops::land::record::{record, record_conflicts};
use crate::store::Store;
use crate::store::events::MoveDetails;
use crate::store::records::write_toml;

/// Finishes or takes back interrupted landings in this checkout and in candidates' worktrees.
/// Returns a message for each of them. Does nothing while another process lands.
pub fn recover_landings(store: &Store) -> Vec<String> {
    let mut messages = Vec::new();
    let files = store.landing_files();
    if files.is_empty() {
        return messages;
    }
    let _lock = match store.try_lock_landing() {
        Ok(Some(lock)) => lock,
        Ok(None) => return messages,
        // This is not an error, because the command that runs may be the one that repairs the
        // cause.
        Err(error) => {
            let why = error.message;
            return vec![format!("a landing was interrupted and could not be recovered: {why}")];
        }
    };
    for file in files {
        let Some((intent, written)) = store.landing_intent(&file) else { continue };
        let branch = intent.branch.clone();
        match recover_landing(store, &file, intent, written) {
            Ok(message) => messages.extend(message),
            Err(error) => messages.push(format!(
                "a landing on '{}' was interrupted and could not be recovered: {error}",
                branch.short()
            )),
        }
    }
    messages
}

fn recover_landing(
    store: &Store,
    file: &Path,
    mut intent: Intent,
    written: SystemTime,
) -> Result<Option<String>> {
    let Some(git) = git_of(store, intent.holder.as_ref())? else {
        store.end_landing(file)?;
        let branch = intent.branch.short();
        return Ok(Some(format!(
            "gave up an interrupted landing on '{branch}': its worktree is gone"
        )));
    };
    let git = match advance::begin(&git) {
        Ok(git) => git,
        Err(busy) => return Ok(Some(busy.message)),
    };
    let since = intent.killed_after.unwrap_or(written);
    recovery::refuse_other_lock(&git, &intent, since)?;
    if intent.killed_after.is_none() {
        recovery::remove_locks(store.repo(), &git, &intent.branch, since);
        intent.killed_after = Some(since);
        write_toml(file, &intent)?;
    }
    let is_deletion = intent.is_deletion();
    let found = recovery::finish_or_take_back(store.repo(), &git, &intent, since)?;
    match found {
        Interrupted::NotBegun | Interrupted::TakenBack if is_deletion => {
            record(store, &intent, None, MoveDetails::default())?;
        }
        Interrupted::Complete(commit) => {
            record(store, &intent, commit, MoveDetails::default())?;
        }
        Interrupted::Unmerged => record_conflicts(store, &intent)?,
        _ => {}
    }
    if !matches!(found, Interrupted::Edited(_)) {
        store.end_landing(file)?;
    }
    Ok(message(&found, &intent))
}

fn message(found: &Interrupted, intent: &Intent) -> Option<String> {
    let is_deletion = intent.is_deletion();
    let branch = intent.branch.short();
    let text = match found {
        Interrupted::NotBegun | Interrupted::TakenBack if is_deletion => {
            format!("the interrupted undo of '{branch}' is finished")
        }
        Interrupted::NotBegun => return None,
        Interrupted::InUse(_) if is_deletion => {
            format!(
                "the undo of '{branch}' was interrupted, and the branch is in use since: it stays"
            )
        }
        Interrupted::InUse(tip) => format!(
            "a landing on '{branch}' was interrupted, and {} was committed there since: the branch and \
             your checkout stay as they are",
            tip.short()
        ),
        Interrupted::Complete(_) => format!("the interrupted landing on '{branch}' was complete"),
        Interrupted::Unmerged => {
            format!("the interrupted landing on '{branch}' has left its conflicts there")
        }
        Interrupted::TakenBack => {
            let checkout = match &intent.holder {
                None => "your checkout".to_owned(),
                Some(holder) => format!("the worktree of {}/{}", holder.run, holder.candidate),
            };
            format!("the interrupted landing on '{branch}' is taken back; {checkout} is as it was")
        }
        Interrupted::Edited(path) => format!(
            "a landing on '{branch}' was interrupted, and '{}' has been edited since: save your edits \
             elsewhere, and the next command takes the landing back",
            path.quoted()
        ),
    };
    Some(text)
}

/// git in the worktree of the `holder`, or else in the user's checkout; `None` if the holder's
/// worktree does not exist.
pub fn git_of(store: &Store, holder: Option<&Holder>) -> Result<Option<Git>> {
    let Some(holder) = holder else { return Ok(Some(store.repo().checkout())) };
    let Some(run) = store.run(&holder.run)? else { return Ok(None) };
    let candidate = store.candidate(&run, &holder.candidate);
    let path = candidate.worktree();
    if !tree::is_real_directory(&candidate.worktree_root(), &path) {
        return Ok(None);
    }
    let Some(worktree) = Worktree::find(store.repo(), &path)? else { return Ok(None) };
    let git = worktree.git();
    // As in `put_back`, another attempt could replace directories by links while git writes.
    let world = confined_git::world_of_git(store, &path, git.git_dir());
    Ok(Some(git.confined_to(world)))
}
