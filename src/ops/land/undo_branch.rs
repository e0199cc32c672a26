//! Undoes a landing on a fresh branch: deletes the branch, and switches the checkout back to where
//! it was before the landing.
use crate::error::{Error, Result};
use crate::git::landing::advance::{self, roll_back};
use crate::git::landing::intent::Intent;
use crate::git::landing::position::uncommitted_in_words;
use crate::git::{refs, worktree};
use crate::model::candidate::{Candidate, Landing};
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::ops::land::by_hand::keep_resolution;
use crate::ops::land::guards::refuse_overwrite;
use crate::ops::land::record::{LandedState, record, record_state};
use crate::ops::session::Session;
use crate::store::Store;
use crate::store::events::{Event, MoveDetails};

/// Deletes the fresh branch. Fails if the branch has commits that the landing did not make.
pub(super) fn delete_branch(
    session: &Session,
    run: &Run,
    candidate: &Candidate,
) -> Result<RefName> {
    let Session { repo, store, .. } = session;
    let address = candidate.address();
    let intent = store.landed(candidate);
    let recorded = intent.as_ref().map(|intent| &intent.branch);
    let recorded = recorded.or(candidate.landing_branch.as_ref()).cloned();
    let branch = recorded.unwrap_or_else(|| refs::apply_branch(&run.run));
    let short = branch.short().to_owned();
    let tip = repo.read_ref(&branch)?;
    refuse_merged(session, candidate, &branch, tip.is_some())?;
    let Some(tip) = tip else {
        session.ui.note(format!("the branch '{short}' is gone already"));
        record_deletion(store, candidate, &branch)?;
        return Ok(branch);
    };
    let landed_at = candidate.landing_commit.or(intent.as_ref().map(|intent| intent.from.commit));
    refuse_other_commits(landed_at, &tip, &short, &address)?;
    let here = repo.work_tree().is_some() && repo.head_branch().as_ref() == Some(&branch);
    refuse_checked_out_elsewhere(session, &branch, here)?;
    if let Some(left) = store.left_conflicts(&run.run, &candidate.candidate)? {
        keep_resolution(repo, run, &left.from, &tip)?;
        session.ui.note(format!("your resolution of the conflicts is kept: {}", tip.short()));
    }
    match intent {
        Some(intent) if here => return go_back(session, intent, &address),
        None if here => {
            return Err(Error::no(format!(
                "your checkout is on '{short}', and no record says where it came from"
            ))
            .hint("switch to another branch and undo again"));
        }
        intent => {
            repo.update_ref(&branch, None, Some(&tip), "undo")?;
            if intent.is_some_and(|intent| !intent.commit) {
                tell_what_may_stay(session, &address);
            }
        }
    }
    record_deletion(store, candidate, &branch)?;
    Ok(branch)
}

/// Fails if `tip` is not the commit at which the landing left the branch.
fn refuse_other_commits(
    landed_at: Option<Oid>,
    tip: &Oid,
    short: &str,
    address: &str,
) -> Result<()> {
    let look = format!("look with `git log {short}`; `git branch -D {short}` deletes it");
    match landed_at {
        Some(commit) if commit == *tip => Ok(()),
        Some(_) => Err(Error::no(format!("'{short}' has commits that {address} did not bring"))
            .hint(format!("{look} with them"))),
        None => {
            Err(Error::no(format!("no record says at which commit '{short}' was made")).hint(look))
        }
    }
}

fn record_deletion(store: &Store, landed: &Candidate, branch: &RefName) -> Result<()> {
    let Candidate { run, candidate, .. } = landed;
    let name = branch.short().to_owned();
    let event = Event::Undone { candidate: candidate.clone(), branch: name, moved: None };
    let state = LandedState { landing: Landing::Undone, branch: branch.clone(), commit: None };
    record_state(store, run, candidate, &state, &event)
}

/// Says that the change of an undone landing may still be staged, because `git switch` takes staged
/// changes along.
fn tell_what_may_stay(session: &Session, address: &str) {
    if let Ok(Some(files)) = uncommitted_in_words(&session.repo) {
        session.ui.warn(format!(
            "the change of {address} was not committed: if a switch took it along, it is among the changes here ({files})"
        ));
        session.ui.hint("put them aside with `git stash`");
    }
}

/// Fails if the branch is checked out in another checkout. `here` is true if it is checked out in
/// this one.
fn refuse_checked_out_elsewhere(session: &Session, branch: &RefName, here: bool) -> Result<()> {
    let repo = &session.repo;
    let own = here.then(|| repo.git_dir());
    let Some(holder) = worktree::holder_of(repo, branch, own)? else { return Ok(()) };
    let short = branch.short();
    Err(Error::no(format!("the branch '{short}' is checked out in '{}'", holder.display()))
        .hint("undo it there, or switch to another branch there"))
}

/// Fails if the commit of the landing is also on a branch of a person, e.g. after a merge. The
/// change would stay on that branch. Once the commit is reverted there, the landing can be undone.
pub(super) fn refuse_merged(
    session: &Session,
    candidate: &Candidate,
    fresh: &RefName,
    is_there: bool,
) -> Result<()> {
    let Some(commit) = &candidate.landing_commit else { return Ok(()) };
    let Some(branch) = branch_that_keeps(session, commit, fresh)? else { return Ok(()) };
    let short = branch.short();
    let address = candidate.address();
    let error =
        Error::no(format!("'{short}' has the commit of {address}, too, and would keep its change"))
            .hint(format!(
                "on '{short}' `git revert {}` takes it back; then undo again",
                commit.short()
            ));
    let fresh = fresh.short();
    Err(match is_there {
        true => error.hint(format!("`git branch -D {fresh}` deletes the fresh branch alone")),
        false => error,
    })
}

/// A branch of a person that has the commit of a landing on the branch `fresh`, and has not reverted
/// it; `None` if there is none.
pub(super) fn branch_that_keeps(
    session: &Session,
    commit: &Oid,
    fresh: &RefName,
) -> Result<Option<RefName>> {
    for branch in session.repo.refs_that_contain(commit, "refs/heads/")? {
        let is_ours = branch == *fresh || branch.short().starts_with("frites/run/");
        if !is_ours && !is_reverted(session, commit, &branch)? {
            return Ok(Some(branch));
        }
    }
    Ok(None)
}

/// True if a later commit of the branch says, in the words of `git revert`, that it reverts this
/// commit.
fn is_reverted(session: &Session, commit: &Oid, branch: &RefName) -> Result<bool> {
    let words = format!("--grep=This reverts commit {commit}");
    let range = format!("{commit}..{}", branch.as_str());
    let call = session.repo.git().call("rev-list").args(["-1", "--fixed-strings", &words, &range]);
    Ok(!call.bytes()?.is_empty())
}

/// Switches the checkout back to where it was before the landing. Fails if the checkout has changes
/// that are not those of the landing.
fn go_back(session: &Session, intent: Intent, address: &str) -> Result<RefName> {
    let Session { repo, store, .. } = session;
    let git = advance::begin(&repo.checkout())?;
    git.refresh()?;
    let staged = git.call("write-tree").oid().ok();
    // Submodules are ignored, because neither a landing nor its undo changes files in them.
    let compare = git.call("diff-files").args(["--quiet", "--ignore-submodules=all"]);
    if staged != Some(intent.to) || compare.output()?.code != 0 {
        return Err(Error::no(format!(
            "'{}' holds more than {address} brought",
            intent.branch.short()
        ))
        .hint("commit it or put it aside with `git stash`, and switch to another branch"));
    }
    // The undo restores files that the landing deleted. An untracked file may now have the path of
    // a file to restore.
    let hint = "move them away and undo again";
    refuse_overwrite(session, repo.need_work_tree()?, &intent.to, &intent.from.commit, hint)?;
    let intent = Intent { undoing: true, killed_after: None, ..intent };
    let file = store.begin_landing(&intent)?;
    roll_back(repo, &git, &intent)?;
    record(store, &intent, None, MoveDetails::default())?;
    store.end_landing(&file)?;
    Ok(intent.branch)
}
