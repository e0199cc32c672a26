//! Landing on a fresh branch: in the user's checkout, with the change staged or committed, or aside.
use crate::error::{Error, Result};
use crate::git::commit::{self, Wanted};
use crate::git::landing::fresh_branch::{self, Position, Withdrawal};
use crate::git::merge::Conflicts;
use crate::git::refs::{self, Move};
use crate::integrity::watch;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::trailer::Trailer;
use crate::ops::land::plan::{self, Asked, Onto, Plan};
use crate::ops::session::Session;
use crate::store::events::Event;
use crate::store::landings::LandingIntent;
use crate::store::select::Selection;

/// How a fresh branch is wanted.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    /// Its name; `frites/apply/RUN` if none.
    pub branch: Option<String>,
    /// Commit, and not only stage.
    pub commit: bool,
    /// Without touching the checkout.
    pub no_switch: bool,
    /// Leave conflicts there for a person to resolve.
    pub conflicts: bool,
}

/// A landing on a fresh branch.
pub struct Landed {
    /// What landed.
    pub plan: Plan,
    /// The branch.
    pub branch: RefName,
    /// The commit, if one was asked for.
    pub commit: Option<Oid>,
    /// What a person has to resolve there.
    pub conflicts: Option<Conflicts>,
}

/// Lands on a fresh branch, one landing at a time.
pub fn land(
    session: &Session,
    selection: Selection,
    asked: &Asked,
    fresh: &Fresh,
) -> Result<Landed> {
    let repo = &session.repo;
    let _landing = session.store.lock_landing()?;
    // The branch first: of several landings at once the later ones find the first one's change staged.
    let branch = fresh_branch(session, fresh.branch.as_deref(), &selection.run.run)?;
    plan::refuse_candidates_worktree(session)?;
    if !fresh.no_switch {
        repo.need_work_tree()
            .map_err(|e| e.hint("`--no-switch` makes the commit without a checkout"))?;
        fresh_branch::require_clean(repo)?;
    }
    let base = *selection.run.root();
    let mut plan = Plan::new(session, selection, asked)?;
    let from = fresh_branch::position(repo)?;
    let state = &from.commit;
    let onto = Onto {
        name: "HEAD",
        tip: &from.commit,
        state,
        is_here: true,
        candidate: None,
        base: &base,
    };
    if let Some(conflicts) = plan.merge(session, &onto, asked)? {
        if !fresh.conflicts {
            return Err(plan.conflict(&onto, &conflicts));
        }
        return materialise(session, plan, branch, &from, &base, asked);
    }
    if !fresh.no_switch {
        refuse_obstacles(session, &from, &plan.tree)?;
    }
    let intent = intent(&plan, &branch, &from, fresh.commit);
    let commit = put(session, asked, fresh, &plan, &intent)?;
    session.store.record_landing(&intent, commit.as_ref())?;
    Ok(Landed { plan, branch, commit, conflicts: None })
}

fn refuse_obstacles(session: &Session, from: &Position, tree: &Oid) -> Result<()> {
    let hint = "move them away, or make the commit without your checkout: `--no-switch -m MSG`";
    plan::refuse_obstacles(session, session.repo.need_work_tree()?, &from.commit, tree, hint)
}

fn intent(plan: &Plan, branch: &RefName, from: &Position, commit: bool) -> LandingIntent {
    LandingIntent {
        run: plan.run.run.clone(),
        candidate: plan.candidate.clone(),
        iteration: plan.capture.iteration,
        branch: branch.to_owned(),
        tree: plan.tree,
        verified: plan.verified,
        commit,
        unlocked: false,
        undoing: false,
        from: from.clone(),
    }
}

fn fresh_branch(session: &Session, wanted: Option<&str>, run: &Name) -> Result<RefName> {
    let branch = match wanted {
        None => refs::apply_branch(run),
        Some(name) => {
            if !refs::is_branch_name(name) || name.starts_with("frites/run/") {
                return Err(Error::usage(format!("--branch: '{name}' is not a valid branch name"))
                    .hint("see `git help check-ref-format`"));
            }
            RefName::of_branch(name)
        }
    };
    if session.repo.read_ref(&branch)?.is_some() {
        let short = branch.short();
        return Err(Error::fatal(format!("a branch named '{short}' exists")).hint(format!(
            "take another with `--branch NAME`, or delete it with `git branch -D {short}`"
        )));
    }
    // `a` and `a/b` cannot both be branches.
    let above = branch.match_indices('/').map(|(at, _)| RefName::new(&branch[..at])).skip(2);
    let mut blocker = None;
    for name in above {
        blocker = blocker.or(session.repo.read_ref(&name)?.map(|_| name));
    }
    let below = session.repo.ref_names(&format!("{branch}/"))?;
    if let Some(blocker) = blocker.or(below.into_iter().next()) {
        return Err(Error::fatal(format!(
            "a branch named '{}' is in the way of '{}'",
            blocker.short(),
            branch.short()
        ))
        .hint("take another with `--branch NAME`"));
    }
    Ok(branch)
}

/// Puts the tree on the branch; gives the commit, if one was asked for.
fn put(
    session: &Session,
    asked: &Asked,
    fresh: &Fresh,
    plan: &Plan,
    intent: &LandingIntent,
) -> Result<Option<Oid>> {
    let Session { repo, store, .. } = session;
    let message = plan.message(asked);
    if fresh.commit {
        watch::before_commit(session);
    }
    if fresh.no_switch {
        let wanted = Wanted {
            tree: &plan.tree,
            parent: &intent.from.commit,
            merged: None,
            message: &message,
        };
        let commit = plan::make_commit(session, &wanted)?;
        let mark = refs::landing(&intent.run, &intent.candidate);
        let old = repo.read_ref(&mark)?;
        let moves = [
            Move { name: &intent.branch, old: None, new: &commit },
            Move { name: &mark, old: old.as_ref(), new: &commit },
        ];
        repo.move_refs(&repo.git(), &moves, "git-frites: apply")?;
        return Ok(Some(commit));
    }
    store.begin_landing(intent)?;
    let landed = switch_and_commit(session, intent, &message);
    store.end_landing()?;
    landed
}

fn switch_and_commit(
    session: &Session,
    intent: &LandingIntent,
    message: &commit::Message,
) -> Result<Option<Oid>> {
    let repo = &session.repo;
    let keep = refs::withdrawn(&intent.run);
    let landing = intent.as_landing(&keep);
    fresh_branch::switch_to(repo, &landing)?;
    if !intent.commit {
        return Ok(None);
    }
    let made = commit::commit(&repo.checkout(), message).and_then(|made| {
        if !made {
            return Err(plan::refused("your checkout is as it was"));
        }
        let commit = repo
            .read_ref(&intent.branch)?
            .ok_or_else(|| plan::refused("your checkout is as it was"))?;
        plan::require_tree(session, &intent.tree, &commit, "your checkout is as it was")?;
        Ok(commit)
    });
    match made {
        Ok(commit) => Ok(Some(commit)),
        Err(error) => {
            let found = fresh_branch::withdraw(repo, &landing)?;
            Err(tell_withdrawal(error, &intent.tree, &found))
        }
    }
}

/// What a hook did besides refusing.
fn tell_withdrawal(error: Error, tree: &Oid, found: &Withdrawal) -> Error {
    let error = match &found.kept {
        Some(commit) => {
            error.hint(format!("what the hook made of it is kept: `git diff {tree} {commit}`"))
        }
        None => error,
    };
    if found.modified.is_empty() {
        return error;
    }
    let names: Vec<String> = found.modified.iter().map(|p| p.quoted()).collect();
    error.hint(format!("modified meanwhile, and left so: {}", names.join(", ")))
}

/// Goes to the fresh branch with the conflicts in files and index, as `git merge --no-commit` leaves them.
fn materialise(
    session: &Session,
    mut plan: Plan,
    branch: RefName,
    from: &Position,
    base: &Oid,
    asked: &Asked,
) -> Result<Landed> {
    let Session { repo, store, .. } = session;
    let conflicts = fresh_branch::conflicts_with_names(
        repo,
        base,
        &plan.judged.commit,
        &plan.run.run,
        &plan.candidate,
    )?;
    plan.tree = conflicts.tree;
    plan.verified = false;
    refuse_obstacles(session, from, &plan.tree)?;
    let intent = LandingIntent { commit: false, ..intent(&plan, &branch, from, false) };
    let keep = refs::withdrawn(&plan.run.run);
    store.begin_landing(&intent)?;
    let landing = intent.as_landing(&keep);
    let mut message = plan.message(asked);
    // What a person makes of the markers is another tree.
    message.trailers.retain(|line| Trailer::Tree.value(line).is_none());
    let left = fresh_branch::switch_to(repo, &landing).and_then(|()| {
        let left = fresh_branch::leave_conflicts(repo, &conflicts, &message);
        if left.is_err() {
            fresh_branch::withdraw(repo, &landing)?;
        }
        left
    });
    store.end_landing()?;
    left?;
    let event = Event::Conflicts {
        candidate: plan.candidate.clone(),
        iteration: plan.capture.iteration,
        branch: branch.short().to_owned(),
    };
    store.record_event(&plan.run.run, &event)?;
    Ok(Landed { plan, branch, commit: None, conflicts: Some(conflicts) })
}
