//! Recovery of landings whose process was killed: each is finished or taken back by the next
//! command.
use std::path::Path;
use std::time::SystemTime;

use crate::error::Result;
use crate::fs::tree;
use crate::git::cli::Git;
use crate::git::landing::fresh_branch::Interrupted;
use crate::git::landing::{advance, fresh_branch, writer};
use crate::git::refs;
use crate::git::worktree::Worktree;
use crate::ops::land::record::record;
use crate::store::Store;
use crate::store::events::MoveDetails;
use crate::store::intents::{Holder, Intent};

/// The record that a killed landing on a fresh branch still lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// The record that the branch was taken back.
    Rollback,
    /// The record that the change landed.
    Landing,
    /// None.
    Nothing,
}

/// Finishes or takes back the landings that were killed, in this checkout and in candidates'
/// worktrees; gives a message for each. Does nothing while another process lands.
pub fn recover_landings(store: &Store) -> Vec<String> {
    let mut messages = Vec::new();
    let files = store.landing_files();
    if files.is_empty() {
        return messages;
    }
    let _lock = match store.try_lock_landing() {
        Ok(Some(lock)) => lock,
        Ok(None) => return messages,
        // The command goes on: it may be one that helps.
        Err(error) => {
            let why = error.message;
            return vec![format!("a landing was interrupted and could not be recovered: {why}")];
        }
    };
    for file in files {
        let Some((intent, written)) = store.landing_intent(&file) else { continue };
        let branch = intent.branch.clone();
        let recovered = match intent.is_fresh() {
            true => recover_fresh_branch(store, &file, intent, written),
            false => recover_move(store, &file, intent, written).map(Some),
        };
        match recovered {
            Ok(message) => messages.extend(message),
            Err(error) => messages.push(format!(
                "a landing on '{}' was interrupted and could not be recovered: {}",
                branch.short(),
                error.message
            )),
        }
    }
    messages
}

fn recover_fresh_branch(
    store: &Store,
    file: &Path,
    mut intent: Intent,
    written: SystemTime,
) -> Result<Option<String>> {
    let git = match writer::begin(&store.repo().checkout()) {
        Ok(git) => git,
        Err(busy) => return Ok(Some(busy.message)),
    };
    if intent.killed_after.is_none() {
        fresh_branch::remove_locks(store.repo(), &intent.branch, written);
        intent.killed_after = Some(written);
        store.write_landing(file, &intent)?;
    }
    let keep = refs::withdrawn(&intent.run);
    let fresh = intent.fresh_branch(&git, &keep);
    let found = fresh_branch::recover(store.repo(), &fresh, intent.undoing)?;
    match missing(&found, intent.undoing) {
        Missing::Nothing => {}
        Missing::Rollback => record(store, &intent, None, MoveDetails::default())?,
        Missing::Landing => {
            let first = fresh_branch::first_commit(store.repo(), &fresh)?;
            record(store, &intent, first.map(|first| first.oid), MoveDetails::default())?;
        }
    }
    if !matches!(found, Interrupted::Edited(_)) {
        store.end_landing(file)?;
    }
    Ok(message(&found, &intent))
}

/// The record that a killed landing, or the undo of one, still lacks.
fn missing(found: &Interrupted, undoing: bool) -> Missing {
    match found {
        Interrupted::NotBegun | Interrupted::RolledBack if undoing => Missing::Rollback,
        Interrupted::Done if !undoing => Missing::Landing,
        _ => Missing::Nothing,
    }
}

fn message(found: &Interrupted, intent: &Intent) -> Option<String> {
    let branch = intent.branch.short();
    match found {
        Interrupted::NotBegun | Interrupted::RolledBack if intent.undoing => {
            Some(format!("the interrupted undo of '{branch}' is finished"))
        }
        Interrupted::Done if intent.undoing => None,
        Interrupted::NotBegun => None,
        Interrupted::BranchStays => Some(format!(
            "the undo of '{branch}' was interrupted, and the branch is in use since: it stays"
        )),
        Interrupted::InUse(tip) => Some(format!(
            "a landing on '{branch}' was interrupted, and {} was committed there since: the branch and \
             your checkout stay as they are",
            tip.short()
        )),
        Interrupted::Done => Some(format!("the interrupted landing on '{branch}' was complete")),
        Interrupted::Unmerged => {
            Some(format!("the interrupted landing on '{branch}' has left its conflicts there"))
        }
        Interrupted::RolledBack => Some(format!(
            "the interrupted landing on '{branch}' is taken back; your checkout is as it was"
        )),
        Interrupted::Edited(path) => Some(format!(
            "a landing on '{branch}' was interrupted, and '{}' has been edited since: save your edits \
             elsewhere and run `git switch -f` to your branch",
            path.quoted()
        )),
    }
}

fn recover_move(
    store: &Store,
    file: &Path,
    mut intent: Intent,
    written: SystemTime,
) -> Result<String> {
    let target = intent.branch.clone();
    let branch = target.short();
    let Some(git) = git_of(store, intent.holder.as_ref())? else {
        store.end_landing(file)?;
        return Ok(format!("gave up an interrupted landing on '{branch}': its worktree is gone"));
    };
    let git = writer::begin(&git)?;
    let since = intent.killed_after.unwrap_or(written);
    if intent.killed_after.is_none() {
        advance::remove_locks(store.repo(), &git, &target, since);
        intent.killed_after = Some(since);
        store.write_landing(file, &intent)?;
    }
    let tip = store.repo().read_ref(&target)?;
    let moved = match &tip {
        Some(tip) => store.repo().is_ancestor(&intent.to, tip)?,
        None => false,
    };
    if moved {
        if tip == Some(intent.to) {
            advance::finish(&git, &intent.to, since)?;
        }
        record(store, &intent, Some(intent.to), MoveDetails::default())?;
        store.end_landing(file)?;
        return Ok(format!("the interrupted landing on '{branch}' was complete"));
    }
    if let Some(path) = advance::take_back(store.repo(), &git, intent.files(), &intent.to, since)? {
        return Ok(format!(
            "a landing on '{branch}' was interrupted, and '{}' has been edited since: save your edits \
             elsewhere, and the next command takes the landing back",
            path.quoted()
        ));
    }
    store.end_landing(file)?;
    let checkout = match &intent.holder {
        None => "your checkout".to_owned(),
        Some(holder) => format!("the worktree of {}/{}", holder.run, holder.candidate),
    };
    Ok(format!("the interrupted landing on '{branch}' is taken back; {checkout} is as it was"))
}

/// git in the user's checkout, or in a candidate's worktree; none if that worktree is gone.
pub fn git_of(store: &Store, holder: Option<&Holder>) -> Result<Option<Git>> {
    let Some(holder) = holder else { return Ok(Some(store.repo().checkout())) };
    let Some(run) = store.run(&holder.run)? else { return Ok(None) };
    let candidate = store.candidate(&run, &holder.candidate);
    let path = candidate.worktree();
    if !tree::is_real_directory(&candidate.worktree_root(), &path) {
        return Ok(None);
    }
    Ok(Worktree::find(store.repo(), &path)?.map(|worktree| worktree.git()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_landing_is_recorded_and_an_undo_is_recorded_once_the_branch_is_gone() {
        let cases = [
            (Interrupted::NotBegun, Missing::Nothing, Missing::Rollback),
            (Interrupted::Done, Missing::Landing, Missing::Nothing),
            (Interrupted::Unmerged, Missing::Nothing, Missing::Nothing),
            (Interrupted::RolledBack, Missing::Nothing, Missing::Rollback),
            (
                Interrupted::Edited(crate::model::path::TreePath::new("a")),
                Missing::Nothing,
                Missing::Nothing,
            ),
        ];
        for (found, landing, undo) in cases {
            assert_eq!(missing(&found, false), landing, "{found:?}");
            assert_eq!(missing(&found, true), undo, "{found:?}");
        }
    }
}
