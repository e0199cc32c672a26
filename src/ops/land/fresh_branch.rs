//! Landing on a fresh branch: in the user's checkout, staged or committed, or without touching the
//! checkout.
use crate::error::{Error, Result};
use crate::git::cli::Git;
use crate::git::commit::{self, CommitMessage, CommitRequest};
use crate::git::landing::fresh_branch::{self, FreshBranch, Position, Rollback};
use crate::git::landing::writer;
use crate::git::merge::Conflicts;
use crate::git::refs::{self, Move};
use crate::git::worktree;
use crate::integrity::trust;
use crate::model::candidate::Landing;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::ops::kept_commits::KeptCommits;
use crate::ops::land::commit::{make_commit, no_commit, require_tree};
use crate::ops::land::guards::{refuse_candidates_worktree, refuse_overwrite};
use crate::ops::land::plan::{LandOptions, Plan};
use crate::ops::land::record::record;
use crate::ops::land::target::ResolvedTarget;
use crate::ops::session::Session;
use crate::process::interrupt;
use crate::store::events::{Event, MoveDetails};
use crate::store::intents::Intent;
use crate::store::landed::LeftConflicts;
use crate::store::select::Selection;

/// Options of a landing on a fresh branch.
#[derive(Clone, Debug, Default)]
pub struct FreshBranchOptions {
    /// The branch's name; `frites/apply/RUN` if none.
    pub branch: Option<String>,
    /// Commit the change, instead of only staging it.
    pub commit: bool,
    /// Leave the checkout alone.
    pub no_switch: bool,
    /// Leave conflicts in the checkout for a person to resolve.
    pub conflicts: bool,
}

/// A landing on a fresh branch that is done.
pub struct LandedBranch {
    /// The plan that was carried out.
    pub plan: Plan,
    /// The branch.
    pub branch: RefName,
    /// The commit that the branch was made at.
    pub from: Oid,
    /// The commit, if one was asked for.
    pub commit: Option<Oid>,
    /// The conflicts that a person has to resolve in the checkout.
    pub conflicts: Option<Conflicts>,
}

/// Lands the selected candidate on a fresh branch, one landing at a time.
pub fn land(
    session: &Session,
    selection: Selection,
    options: &LandOptions,
    fresh: &FreshBranchOptions,
) -> Result<LandedBranch> {
    let repo = &session.repo;
    let _span = tracing::info_span!("land").entered();
    let _landing = session.store.lock_landing()?;
    // A signal ends the git process that writes, and its failure takes the landing back.
    interrupt::listen();
    refuse_candidates_worktree(session)?;
    let run = selection.run.clone();
    let _kept = KeptCommits::new(session, &run);
    // What did not pass cannot land anywhere: that comes first. Then the branch: of several landings
    // at once, the later ones find the change of the first one staged.
    let mut plan = Plan::new(session, selection, options)?;
    let branch = free_branch(session, fresh.branch.as_deref(), &run)?;
    if !fresh.no_switch {
        repo.need_work_tree()
            .map_err(|e| e.hint("`--no-switch` makes the commit without a checkout"))?;
        fresh_branch::require_clean(repo)
            .map_err(|e| e.hint("`--no-switch` leaves your checkout alone"))?;
    }
    let from = fresh_branch::position(repo)?;
    let head = ResolvedTarget::head(session, from.commit);
    let base = plan.merge_base(session, &head, plan.run.root())?;
    if let Some(conflicts) = plan.merge_into(session, &head, &base, options)? {
        if !fresh.conflicts {
            return Err(plan.conflict_error(&head, &base, &conflicts));
        }
        return land_conflicts(session, plan, branch, &from, &base, options);
    }
    let intent = intent(&plan, &branch, &from, fresh.commit);
    let message = plan.commit_message(session, options)?;
    if !fresh.no_switch {
        refuse_overwrite_in_checkout(session, &from, &plan.tree)?;
    }
    if fresh.commit {
        trust::warn_before_commit(session.integrity());
    }
    let commit = if fresh.no_switch {
        Some(publish(session, &plan, &intent, &message)?)
    } else {
        session.store.write_landing(&session.store.landing_file(None), &intent)?;
        end_landing(session, &branch, switch_and_commit(session, &intent, &message))?
    };
    record(&session.store, &intent, commit, MoveDetails::default())?;
    Ok(LandedBranch { plan, branch, from: from.commit, commit, conflicts: None })
}

fn refuse_overwrite_in_checkout(session: &Session, from: &Position, tree: &Oid) -> Result<()> {
    let hint = "move them away, or make the commit without your checkout: `--no-switch -m MSG`";
    refuse_overwrite(session, session.repo.need_work_tree()?, &from.commit, tree, hint)
}

/// Removes the intent of a landing. An error of the landing itself is the one to report; if it left the
/// checkout on the fresh branch, the intent stays for the next command, which takes the landing back.
fn end_landing<T>(session: &Session, branch: &RefName, landed: Result<T>) -> Result<T> {
    if landed.is_err() && session.repo.head_branch().as_ref() == Some(branch) {
        return landed;
    }
    let ended = session.store.end_landing(&session.store.landing_file(None));
    let landed = landed?;
    ended?;
    Ok(landed)
}

fn intent(plan: &Plan, branch: &RefName, from: &Position, commit: bool) -> Intent {
    Intent {
        run: plan.run.run.clone(),
        candidate: plan.candidate.clone(),
        iteration: plan.capture.iteration,
        branch: branch.clone(),
        to: plan.tree,
        verified: plan.verified,
        commit,
        undoing: false,
        killed_after: None,
        files: None,
        from: from.clone(),
        holder: None,
    }
}

/// The branch to make. Fails if the name is not valid, or taken.
fn free_branch(session: &Session, wanted: Option<&str>, run: &Run) -> Result<RefName> {
    let branch = match wanted {
        None => refs::apply_branch(&run.run),
        Some(name) => {
            if !refs::is_branch_name(name) || name.starts_with("frites/run/") {
                return Err(Error::usage(format!("--branch: '{name}' is not a valid branch name"))
                    .hint("see `git help check-ref-format`"));
            }
            RefName::of_branch(name)
        }
    };
    if session.repo.read_ref(&branch)?.is_some() {
        return Err(taken(session, run, &branch)?);
    }
    if let Some(blocker) = blocking_branch(session, &branch)? {
        return Err(Error::fatal(format!(
            "a branch named '{}' is in the way of '{}'",
            blocker.short(),
            branch.short()
        ))
        .hint("take another with `--branch NAME`"));
    }
    Ok(branch)
}

/// The error that a branch exists: how to take back what landed there, or to land beside it.
fn taken(session: &Session, run: &Run, branch: &RefName) -> Result<Error> {
    let Session { repo, store, .. } = session;
    let short = branch.short();
    let mut free = format!("{short}-2");
    for n in 3.. {
        if repo.read_ref(&RefName::of_branch(&free))?.is_none() {
            break;
        }
        free = format!("{short}-{n}");
    }
    let beside = format!("or land on another branch: `--branch {free}`");
    let error = Error::fatal(format!("a branch named '{short}' exists"));
    for candidate in store.candidates(run) {
        let record = candidate.record()?;
        let landed =
            record.landing == Landing::Landed && record.landing_branch.as_ref() == Some(branch);
        let left = store.left_conflicts(&run.run, candidate.name)?;
        if landed || left.is_some_and(|left| left.branch == *branch) {
            return Ok(error
                .hint(format!(
                    "{candidate} landed there: take that back with `git frites apply --undo {candidate}`"
                ))
                .hint(beside));
        }
    }
    Ok(match worktree::holder_of(repo, branch, None)? {
        Some(holder) => {
            error.hint(format!("it is checked out in '{}'", holder.display())).hint(beside)
        }
        None => error.hint(format!(
            "take another with `--branch {free}`, or delete it with `git branch -D {short}`"
        )),
    })
}

/// A branch that keeps this one from being made: `a` and `a/b` cannot both be branches.
fn blocking_branch(session: &Session, branch: &RefName) -> Result<Option<RefName>> {
    for (at, _) in branch.match_indices('/').skip(2) {
        let above = RefName::new(&branch[..at]);
        if session.repo.read_ref(&above)?.is_some() {
            return Ok(Some(above));
        }
    }
    Ok(session.repo.ref_names(&format!("{branch}/"))?.into_iter().next())
}

/// Makes the commit and the branch without touching the checkout.
fn publish(
    session: &Session,
    plan: &Plan,
    intent: &Intent,
    message: &CommitMessage,
) -> Result<Oid> {
    let repo = &session.repo;
    let request =
        CommitRequest { tree: &plan.tree, parent: &intent.from.commit, merged: None, message };
    let commit = make_commit(session, &plan.run, &request)?;
    let mark = refs::landing(&intent.run, &intent.candidate);
    let old = repo.read_ref(&mark)?;
    let moves = [
        Move { name: &intent.branch, old: None, new: &commit },
        Move { name: &mark, old: old.as_ref(), new: &commit },
    ];
    repo.move_refs(&repo.git(), &moves, "git-frites: apply")?;
    Ok(commit)
}

/// Goes to the fresh branch in the user's checkout and commits there, if a commit was asked for. If
/// that fails, the checkout goes back to where it was.
fn switch_and_commit(
    session: &Session,
    intent: &Intent,
    message: &CommitMessage,
) -> Result<Option<Oid>> {
    let repo = &session.repo;
    let git = writer::begin(&repo.checkout())?;
    let keep = refs::withdrawn(&intent.run);
    let fresh = intent.fresh_branch(&git, &keep);
    fresh_branch::switch_to(repo, &fresh)?;
    if !intent.commit {
        return Ok(None);
    }
    match commit_staged(session, &git, intent, message) {
        Ok(commit) => Ok(Some(commit)),
        Err(error) => Err(match take_back(session, &error, &fresh) {
            Ok(found) => with_rollback(error, &intent.to, &found),
            Err(why) => error.hint(format!("your checkout could not be put back: {}", why.message)),
        }),
    }
}

/// Goes back to where the checkout was before a commit that failed.
fn take_back(session: &Session, error: &Error, fresh: &FreshBranch<'_>) -> Result<Rollback> {
    fresh_branch::remove_locks_of_commit(&session.repo, fresh.branch, error);
    fresh_branch::roll_back(&session.repo, fresh)
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
    // A collection of garbage that listed the refs before may have deleted it.
    repo.keep_whole(&commit, &[&intent.from.commit])?;
    require_tree(session, &intent.to, &commit, state)?;
    Ok(commit)
}

/// Adds to an error what the rollback after it found: a hook may have changed files before it
/// refused.
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

/// Goes to the fresh branch with the conflicts in files and index, as `git merge --no-commit`
/// leaves them.
fn land_conflicts(
    session: &Session,
    mut plan: Plan,
    branch: RefName,
    from: &Position,
    base: &Oid,
    options: &LandOptions,
) -> Result<LandedBranch> {
    let Session { repo, store, .. } = session;
    let conflicts = fresh_branch::conflicts_with_names(
        repo,
        base,
        &plan.judged.commit,
        &plan.run.run,
        &plan.candidate,
    )?;
    plan.tree = conflicts.tree;
    plan.distrust("the conflicts are not resolved");
    refuse_overwrite_in_checkout(session, from, &plan.tree)?;
    let mut message = plan.commit_message(session, options)?;
    // A person resolves the conflicts, which gives another tree.
    message.trailers.retain(|line| Trailer::Tree.value(line).is_none());
    let intent = intent(&plan, &branch, from, false);
    let (run, candidate) = (&plan.run.run, &plan.candidate);
    let left = LeftConflicts {
        iteration: plan.capture.iteration,
        branch: branch.clone(),
        from: from.commit,
    };
    store.note_conflicts(run, candidate, &left)?;
    store.write_landing(&store.landing_file(None), &intent)?;
    let done = switch_and_leave(session, &intent, &conflicts, &message);
    let done = end_landing(session, &branch, done);
    if let Err(error) = done {
        // The first error is the one to report; conflicts that are not there are forgotten anyway.
        let _ = store.forget_conflicts(run, candidate);
        return Err(error);
    }
    // The way back, for `--undo`.
    store.save_landed(&intent)?;
    let event = Event::Conflicts {
        candidate: plan.candidate.clone(),
        iteration: plan.capture.iteration,
        branch: branch.short().to_owned(),
    };
    store.record_event(&plan.run.run, &event)?;
    let conflicts = Some(conflicts);
    Ok(LandedBranch { plan, branch, from: from.commit, commit: None, conflicts })
}

fn switch_and_leave(
    session: &Session,
    intent: &Intent,
    conflicts: &Conflicts,
    message: &CommitMessage,
) -> Result<()> {
    let git = writer::begin(&session.repo.checkout())?;
    let keep = refs::withdrawn(&intent.run);
    let fresh = intent.fresh_branch(&git, &keep);
    fresh_branch::switch_to(&session.repo, &fresh)?;
    fresh_branch::leave_conflicts(&session.repo, conflicts, message).map_err(|error| {
        match fresh_branch::roll_back(&session.repo, &fresh) {
            Ok(_) => error,
            Err(why) => error.hint(format!("your checkout could not be put back: {}", why.message)),
        }
    })
}
