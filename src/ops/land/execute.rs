//! Carries out a landing, or the undo of a merge: writes the intent, moves the branch and the files
//! of its checkout, and writes the record. If the process is killed at any moment, the next command
//! can recover.
use std::fs;
use std::path::Path;

use crate::error::{Error, IoContext, Result};
use crate::git::cli::Git;
use crate::git::commit::{self, CommitMessage};
use crate::git::landing::advance::{self, AdvanceInput, Rollback, Stopped};
use crate::git::landing::intent::Intent;
use crate::git::landing::recovery::remove_locks_of_commit;
use crate::git::merge::Conflicts;
use crate::git::refs::{self, Move};
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::ops::land::commit::{no_commit, require_tree};
use crate::ops::land::record::{record, record_conflicts};
use crate::ops::land::target::ResolvedTarget;
use crate::ops::session::Session;
use crate::store::events::MoveDetails;

/// The form in which a change lands on its branch.
pub enum LandedAs<'a> {
    /// The branch moves to a commit that was made earlier.
    At {
        commit: Oid,
        /// The message for the reflogs.
        why: &'a str,
        /// Parts of the event that only this process knows. If recovery writes the event after a
        /// kill, the event lacks these parts.
        details: &'a MoveDetails,
    },
    /// The branch is checked out, and the change is staged.
    Staged,
    /// The branch is checked out, and the user's git has committed the change with this message.
    Committed(&'a CommitMessage),
    /// The branch is checked out, with conflicts that a person is to resolve, and with the message
    /// for the person's commit.
    InConflict(&'a Conflicts, &'a CommitMessage),
}

/// Moves the branch as the intent says, and records the move. If the branch is checked out, also
/// moves the files and the index. After an error, either nothing has changed, or the intent stays,
/// and the next command recovers. Returns the commit that landed; `None` if the change is only
/// staged or in conflict. The caller holds the landing lock.
pub fn execute(
    session: &Session,
    target: &ResolvedTarget,
    intent: &Intent,
    landed: &LandedAs<'_>,
) -> Result<Option<Oid>> {
    let Session { repo, store, .. } = session;
    let mark = refs::landing(&intent.run, &intent.candidate);
    let marked = repo.read_ref(&mark)?;
    let mut moves = Vec::new();
    let mut why = "apply";
    if let LandedAs::At { commit, why: reason, .. } = landed {
        let old = target.exists.then_some(&target.tip);
        moves.push(Move { name: &intent.branch, old, new: commit });
        moves.push(Move { name: &mark, old: marked.as_ref(), new: commit });
        why = reason;
    }
    let lock = target.require_unchanged(session, &intent.from)?;
    let Some(checkout) = &target.checkout else {
        repo.move_refs(&repo.git(), &moves, why)?;
        drop(lock);
        return record_landed(session, intent, landed, None).map_err(|e| after_move(e, intent));
    };
    let git = advance::begin(&checkout.git)?;
    let conflicts = match landed {
        LandedAs::InConflict(conflicts, _) => Some(*conflicts),
        _ => None,
    };
    let input = AdvanceInput { index: &checkout.index, refs: &moves, why, conflicts };
    let file = store.begin_landing(intent)?;
    let moved = move_checkout(session, &git, intent, &input, landed);
    drop(lock);
    match moved {
        Ok(made) => record_landed(session, intent, landed, made)
            .and_then(|commit| end(session, target, intent, &file).map(|()| commit))
            .map_err(|e| after_move(e, intent)),
        Err(Stopped { error, is_whole: true }) => {
            // An intent that cannot be deleted does no harm, so this error is ignored, and the
            // first one is returned.
            let _ = store.end_landing(&file);
            Err(error)
        }
        // The checkout is half moved, because a file was edited meanwhile, or git was killed. The
        // intent stays, so that the next command can recover.
        Err(Stopped { error, .. }) => {
            Err(error
                .hint("then run `git frites status`, which finishes the landing or takes it back"))
        }
    }
}

/// Ends a landing that is recorded.
fn end(session: &Session, target: &ResolvedTarget, intent: &Intent, file: &Path) -> Result<()> {
    session.store.end_landing(file)?;
    let Some((run, name)) = &target.candidate else {
        session.note_landing(&intent.from.commit, &intent.to);
        return Ok(());
    };
    let candidate = session.store.candidate(run, name);
    let _lock = candidate.lock()?;
    session.bring_back(candidate).map(drop)
}

/// Adds a hint to an error that came after the landing. The hint says that the landing is done.
pub(super) fn after_move(error: Error, intent: &Intent) -> Error {
    let Intent { run, candidate, .. } = intent;
    let done =
        if intent.undoing { "no longer has the change" } else { "is where it put the change" };
    let branch = intent.branch.short();
    error.hint(format!("the landing itself is done: '{branch}' {done} of {run}/{candidate}"))
}

/// Moves the checkout. Then, as `landed` says, commits the change, or leaves the message for a
/// commit of the resolved conflicts. Returns the commit if one was made here.
fn move_checkout(
    session: &Session,
    git: &Git,
    intent: &Intent,
    input: &AdvanceInput<'_>,
    landed: &LandedAs<'_>,
) -> std::result::Result<Option<Oid>, Stopped> {
    let repo = &session.repo;
    advance::advance(repo, git, intent, input).map_err(|mut stopped| {
        if stopped.is_whole && input.refs.is_empty() {
            stopped.error = stopped.error.context("your checkout is as it was");
        }
        stopped
    })?;
    let error = match landed {
        LandedAs::At { .. } | LandedAs::Staged => return Ok(None),
        LandedAs::InConflict(_, message) => match leave_message(session, message) {
            Ok(()) => return Ok(None),
            Err(error) => error,
        },
        LandedAs::Committed(message) => match commit_staged(session, git, intent, message) {
            Ok(commit) => return Ok(Some(commit)),
            Err(error) => error,
        },
    };
    remove_locks_of_commit(repo, git, &intent.branch, &error);
    Err(match advance::roll_back(repo, git, intent) {
        Ok(found) => Stopped { error: with_rollback(error, &intent.to, &found), is_whole: true },
        Err(why) => {
            let hint = format!("your checkout could not be put back: {}", why.message);
            Stopped { error: error.hint(hint), is_whole: false }
        }
    })
}

/// Writes the message to the file that `git commit` reads. Does not write MERGE_HEAD, because the
/// person's commit is to have one parent.
fn leave_message(session: &Session, message: &CommitMessage) -> Result<()> {
    let text = [message.paragraphs.join("\n\n"), message.trailers.join("\n")].join("\n\n") + "\n";
    let file = session.repo.git_dir().join("MERGE_MSG");
    fs::write(&file, text).context(|| format!("could not write '{}'", file.display()))
}

fn commit_staged(
    session: &Session,
    git: &Git,
    intent: &Intent,
    message: &CommitMessage,
) -> Result<Oid> {
    let repo = &session.repo;
    let state = "your checkout is as it was";
    if !commit::commit(git, message)? {
        return Err(no_commit(state));
    }
    let commit = repo.read_ref(&intent.branch)?.ok_or_else(|| no_commit(state))?;
    // A `git gc` that listed the refs before this commit was made may have deleted the commit's
    // objects.
    repo.keep_whole(&commit, &[&intent.from.commit])?;
    require_tree(session, &intent.to, &commit, state)?;
    Ok(commit)
}

/// Adds hints to `error` about files that a hook changed before the commit failed. The rollback has
/// found them.
fn with_rollback(error: Error, tree: &Oid, found: &Rollback) -> Error {
    let error = match &found.kept {
        Some(commit) => {
            error.hint(format!("the hook's version is kept: `git diff {tree} {commit}`"))
        }
        None => error,
    };
    if found.modified.is_empty() {
        return error;
    }
    let names: Vec<String> = found.modified.iter().map(TreePath::quoted).collect();
    error.hint(format!("modified meanwhile, and left so: {}", names.join(", ")))
}

/// Records the landing. Returns the commit that landed: the one in `landed`, or else `made`.
fn record_landed(
    session: &Session,
    intent: &Intent,
    landed: &LandedAs<'_>,
    made: Option<Oid>,
) -> Result<Option<Oid>> {
    let store = &session.store;
    let (commit, details) = match landed {
        LandedAs::At { commit, details, .. } => (Some(*commit), (*details).clone()),
        LandedAs::InConflict(..) => {
            record_conflicts(store, intent)?;
            return Ok(None);
        }
        LandedAs::Staged | LandedAs::Committed(_) => (made, MoveDetails::default()),
    };
    record(store, intent, commit, details)?;
    Ok(commit)
}
