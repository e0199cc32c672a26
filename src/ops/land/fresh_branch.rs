//! Lands a candidate on a fresh branch. The change is staged or committed in the user's checkout,
//! or committed without touching the checkout.
use crate::error::{Error, Result};
use crate::git::commit::{CommitMessage, CommitRequest, HooksToRun};
use crate::git::landing::intent::Intent;
use crate::git::landing::position::{position, require_clean};
use crate::git::merge::Conflicts;
use crate::git::{refs, worktree};
use crate::integrity::trust;
use crate::model::candidate::Landing;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::ops::kept_commits::KeptCommits;
use crate::ops::land::commit::make_commit;
use crate::ops::land::execute::{LandedAs, execute};
use crate::ops::land::guards::{ChangedPrograms, refuse_candidates_worktree};
use crate::ops::land::plan::{LandOptions, Plan};
use crate::ops::land::target::ResolvedTarget;
use crate::ops::land::undo_branch::branch_that_keeps;
use crate::ops::session::Session;
use crate::process::interrupt;
use crate::store::events::MoveDetails;
use crate::store::landed::LeftConflicts;
use crate::store::select::Selection;

/// Options of a landing on a fresh branch.
#[derive(Clone, Debug, Default)]
pub struct FreshBranchOptions {
    /// The branch's name; with `None`, it is `frites/apply/RUN`.
    pub branch: Option<String>,
    /// True if the change is committed, not only staged.
    pub commit: bool,
    /// True if the commit is made without touching the checkout.
    pub no_switch: bool,
    /// True if conflicts are left in the checkout, so that a person can resolve them.
    pub conflicts: bool,
}

/// A finished landing on a fresh branch.
pub struct LandedBranch {
    /// The plan of the landing.
    pub plan: Plan,
    pub branch: RefName,
    /// The commit at which the fresh branch was created.
    pub from: Oid,
    /// The commit that landed; `None` if the change is only staged or in conflict.
    pub commit: Option<Oid>,
    /// The conflicts that a person has to resolve in the checkout; `None` if there are none.
    pub conflicts: Option<Conflicts>,
}

/// Lands the selected candidate on a fresh branch. Waits for other landings to end.
pub fn land(
    session: &Session,
    selection: Selection,
    options: &LandOptions,
    fresh: &FreshBranchOptions,
) -> Result<LandedBranch> {
    let repo = &session.repo;
    let _span = tracing::info_span!("land").entered();
    let _landing = session.store.lock_landing()?;
    // On a signal, the git process that writes the files is ended. The landing then fails and is
    // rolled back.
    interrupt::listen();
    refuse_candidates_worktree(session)?;
    let run = selection.run.clone();
    let _kept = KeptCommits { session, run: &run };
    // The order of these checks decides which error is shown. `Plan::new` comes first, because a
    // candidate that did not pass cannot land on any branch. The branch name is checked before the
    // checkout. If two landings race, the second one finds the branch and the staged change of the
    // first one. Then "branch exists" is the more useful error.
    let mut plan = Plan::new(session, selection, options)?;
    let branch = free_branch(session, fresh.branch.as_deref(), &run)?;
    if !fresh.no_switch {
        repo.need_work_tree()
            .map_err(|e| e.hint("`--no-switch` makes the commit without a checkout"))?;
        require_clean(repo).map_err(|e| e.hint("`--no-switch` leaves your checkout alone"))?;
    }
    let from = position(repo)?;
    let head = ResolvedTarget::head(session, from.commit);
    let base = plan.merge_base(session, &head, plan.run.root())?;
    let conflicts = plan.merge_into(session, &head, &base, options)?;
    if let Some(conflicts) = &conflicts {
        if !fresh.conflicts {
            return Err(plan.conflict_error(&head, &base, conflicts, options));
        }
        plan.tree = conflicts.tree;
        plan.distrust("the conflicts are not resolved");
    }
    let mut message = plan.commit_message(session, options)?;
    if !fresh.no_switch && check_checkout(session, &plan, &head, options, fresh.commit)? {
        message.hooks = HooksToRun::None;
    }
    if fresh.commit {
        trust::warn_before_commit(session.integrity());
    }
    let candidate = session.store.candidate(&plan.run, &plan.candidate);
    let intent = Intent {
        branch: branch.clone(),
        verified: plan.verified,
        commit: fresh.commit,
        from: from.clone(),
        ..head.intent(candidate, plan.capture.iteration, plan.tree)
    };
    let commit = match (&conflicts, fresh.no_switch, fresh.commit) {
        (Some(conflicts), ..) => leave_conflicts(session, &head, &intent, conflicts, message)?,
        (None, true, _) => publish(session, &plan, &intent, &message)?,
        (None, false, true) => execute(session, &head, &intent, &LandedAs::Committed(&message))?,
        (None, false, false) => execute(session, &head, &intent, &LandedAs::Staged)?,
    };
    Ok(LandedBranch { plan, branch, from: from.commit, commit, conflicts })
}

/// Fails if the landing would overwrite files in the user's checkout. Also fails if a commit there
/// would run a program or a hook of the attempt. With `--no-verify`, a changed hook is no failure.
/// If there is one, returns true, and the commit must run no hook at all.
fn check_checkout(
    session: &Session,
    plan: &Plan,
    head: &ResolvedTarget,
    options: &LandOptions,
    commits: bool,
) -> Result<bool> {
    // The hint does not name `--no-switch`: if the user merged that branch later, git would
    // overwrite ignored files.
    head.refuse_overwrite(session, &plan.tree, "move them away and apply again")?;
    if !commits {
        return Ok(false);
    }
    let address = plan.address();
    let changed = ChangedPrograms::find(session, &head.tip, &plan.tree, &address)?;
    changed.refuse(!options.no_verify, &address)?;
    Ok(changed.hook.is_some())
}

/// The name of the branch to create. Fails if it is invalid or taken.
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
        .hint("choose another name with `--branch NAME`"));
    }
    Ok(branch)
}

/// The error that the branch exists already. Its hints tell how to undo the landing on this branch,
/// or to land on another branch.
fn taken(session: &Session, run: &Run, branch: &RefName) -> Result<Error> {
    let Session { repo, store, .. } = session;
    let short = branch.short();
    let mut names = (2..).map(|number| format!("{short}-{number}"));
    let free = names.find(|name| !matches!(repo.read_ref(&RefName::of_branch(name)), Ok(Some(_))));
    let free = free.unwrap_or_default();
    let beside = format!("or land on another branch: `--branch {free}`");
    let error = Error::fatal(format!("a branch named '{short}' exists"));
    for candidate in store.candidates(run) {
        let record = candidate.record()?;
        let landed =
            record.landing == Landing::Landed && record.landing_branch.as_ref() == Some(branch);
        let left = store.left_conflicts(&run.run, candidate.name)?;
        if landed
            && let Some(commit) = &record.landing_commit
            && branch_that_keeps(session, commit, branch)?.is_some()
        {
            return Ok(error
                .hint(format!(
                    "{candidate} landed there, and another branch has its commit, too: `git branch -D {short}` deletes '{short}'"
                ))
                .hint(beside));
        }
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
            "choose another name with `--branch {free}`, or delete it with `git branch -D {short}`"
        )),
    })
}

/// An existing branch whose name keeps git from creating `branch`: `a` and `a/b` cannot both be
/// branches.
fn blocking_branch(session: &Session, branch: &RefName) -> Result<Option<RefName>> {
    for (at, _) in branch.match_indices('/').skip(2) {
        let above = RefName::new(&branch[..at]);
        if session.repo.read_ref(&above)?.is_some() {
            return Ok(Some(above));
        }
    }
    Ok(session.repo.ref_names(&format!("{branch}/"))?.into_iter().next())
}

/// Makes the commit and the fresh branch without touching the checkout.
fn publish(
    session: &Session,
    plan: &Plan,
    intent: &Intent,
    message: &CommitMessage,
) -> Result<Option<Oid>> {
    let request =
        CommitRequest { tree: &plan.tree, parent: &intent.from.commit, merged: None, message };
    let commit = make_commit(session, &plan.run, &request)?;
    let target = ResolvedTarget::fresh(intent.branch.clone(), intent.from.commit);
    let why = "git-frites: apply";
    let details = &MoveDetails::default();
    execute(session, &target, intent, &LandedAs::At { commit, why, details })
}

/// Switches to the fresh branch, and leaves the conflicts in the files and the index, as `git merge
/// --no-commit` does.
fn leave_conflicts(
    session: &Session,
    head: &ResolvedTarget,
    intent: &Intent,
    conflicts: &Conflicts,
    mut message: CommitMessage,
) -> Result<Option<Oid>> {
    let store = &session.store;
    // The message gets no trailer for the tree, which is unknown until a person has resolved the
    // conflicts.
    message.trailers.retain(|line| Trailer::Tree.value(line).is_none());
    let Intent { run, candidate, iteration, branch, from, .. } = intent;
    let left = LeftConflicts { iteration: *iteration, branch: branch.clone(), from: from.commit };
    store.note_conflicts(run, candidate, &left)?;
    let done = execute(session, head, intent, &LandedAs::InConflict(conflicts, &message));
    // If the branch exists, the conflicts are left there, although something failed afterwards.
    if done.is_err() && matches!(session.repo.read_ref(branch), Ok(None)) {
        // The first error is returned. If `forget_conflicts` fails, a later command forgets the
        // conflicts, because their branch does not exist.
        let _ = store.forget_conflicts(run, candidate);
    }
    done
}
