//! `apply --merge`: merges the change of a candidate. The target is the current branch, a branch
//! that is not checked out, or another candidate, even if its worktree was removed. The commits are
//! made first. Then the branch and the files of its checkout move to the merge commit.
use crate::error::Result;
use crate::git::commit::{self, CommitMessage, CommitRequest, HooksToRun};
use crate::git::landing::intent::Intent;
use crate::git::{diff, refs};
use crate::integrity::trust;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::ops::kept_commits::KeptCommits;
use crate::ops::land::commit::make_commit;
use crate::ops::land::execute::{LandedAs, after_move, execute};
use crate::ops::land::guards::changed_hook;
use crate::ops::land::newest_wins::choices_as_json;
use crate::ops::land::plan::{LandOptions, Plan};
use crate::ops::land::target::ResolvedTarget;
use crate::ops::session::Session;
use crate::process::interrupt;
use crate::store::events::{Event, MoveDetails};
use crate::store::select::Selection;

/// A finished merge.
pub struct MergedCandidate {
    /// The plan that was carried out.
    pub plan: Plan,
    /// The branch that the candidate was merged into.
    pub branch: RefName,
    /// The merge commit.
    pub commit: Oid,
    /// The merge commit's second parent: the candidate's judged change, as one commit.
    pub landed: Oid,
    /// The tip of the branch before the merge.
    pub previous: Oid,
}

/// Merges the selected candidate into the target that `into` names (see [`ResolvedTarget::find`]).
/// Waits for other landings to end. If there are conflicts, or if the merge fails, nothing changes.
pub fn merge(
    session: &Session,
    selection: Selection,
    options: &LandOptions,
    into: Option<&str>,
) -> Result<MergedCandidate> {
    let _span = tracing::info_span!("land").entered();
    let _landing = session.store.lock_landing()?;
    interrupt::listen();
    let run = selection.run.clone();
    let target = ResolvedTarget::find(session, into, &run)?;
    let _kept = KeptCommits { session, run: &run };
    let mut plan = Plan::new(session, selection, options)?;
    let mark = refs::landing(&plan.run.run, &plan.candidate);
    let marked = session.repo.read_ref(&mark)?;
    match merge_plan(session, &mut plan, options, &target) {
        Ok((commit, landed)) => {
            let branch = target.branch;
            let previous = target.tip;
            Ok(MergedCandidate { plan, branch, commit, landed, previous })
        }
        // The branch has moved, and with it this ref, so the merge has not failed.
        Err(error) if session.repo.read_ref(&mark).is_ok_and(|now| now != marked) => Err(error),
        Err(error) => {
            let event = Event::MergeFailed {
                candidate: plan.candidate.clone(),
                iteration: plan.capture.iteration,
                branch: target.branch.short().to_owned(),
                reason: error.message.clone(),
            };
            // The first error is returned, even if the event cannot be recorded.
            let _ = session.store.record_event(&plan.run.run, &event);
            Err(error)
        }
    }
}

/// Carries out the plan of a merge. Returns the merge commit and its second parent.
fn merge_plan(
    session: &Session,
    plan: &mut Plan,
    options: &LandOptions,
    target: &ResolvedTarget,
) -> Result<(Oid, Oid)> {
    let root = *plan.run.root();
    // If the target is a candidate, only the change since this run's base is merged. If this run
    // continues the target, the run's base is a state of the target, so the target has all earlier
    // changes already.
    let start = if target.candidate.is_some() { plan.run.base } else { root };
    let base = plan.merge_base(session, target, &start)?;
    if let Some(conflicts) = plan.merge_into(session, target, &base, options)? {
        return Err(plan.conflict_error(target, &base, &conflicts, options));
    }
    target.refuse_overwrite(session, &plan.tree, "move them away and merge again")?;
    let state = target.state();
    let changes = || diff::since(&session.repo, state, &plan.tree).changes();
    let hook = changed_hook(session, state, changes)?;
    trust::warn_before_commit(session.integrity());
    let message = plan.commit_message(session, options)?;
    let own = merged_message(plan, options, &message);
    // If the attempt has itself merged a newer commit (`base`), its own change is only what differs
    // from that commit.
    let parent = if base == start { &root } else { &base };
    let landed = make_commit(
        session,
        &plan.run,
        &CommitRequest { tree: &plan.judged.tree, parent, merged: None, message: &own },
    )?;
    let request = CommitRequest {
        tree: &plan.tree,
        parent: &committed_state(session, &plan.run, target)?,
        merged: Some(&landed),
        message: &merge_message(plan, options, target, message),
    };
    let commit = make_commit(session, &plan.run, &request)?;
    let candidate = session.store.candidate(&plan.run, &plan.candidate);
    let intent = target.intent(candidate, plan.capture.iteration, commit);
    let intent = Intent { verified: plan.verified, ..intent };
    let why = format!("merge {}: Merge made by git-frites.", plan.address());
    let details = MoveDetails {
        choices: Some(choices_as_json(&plan.choices)),
        strategy: plan.strategy().map(str::to_owned),
        resolution_seconds: plan.resolution.map(|time| time.as_secs_f64()),
        ..MoveDetails::default()
    };
    execute(session, target, &intent, &LandedAs::At { commit, why: &why, details: &details })?;
    if let Some(hook) = hook {
        let address = plan.address();
        session.ui.note(format!("post-merge is not run: {address} changes '{}'", hook.quoted()));
    } else if target.is_user_checkout() {
        // The merge is already made, so the hook's exit code is ignored, as in `git merge`.
        let _ = commit::run_hook(&session.repo.checkout(), "post-merge", &["0"])
            .map_err(|e| after_move(e, &intent))?;
    }
    Ok((commit, landed))
}

/// The message of the commit that is merged. Its trailer has the judged tree. If the user gave a
/// subject, this commit and the merge commit would have the same subject. So the candidate's
/// address is added to the subject of this commit. It is added at the end, because projects often
/// have rules for the beginning of a subject.
fn merged_message(plan: &Plan, options: &LandOptions, message: &CommitMessage) -> CommitMessage {
    let mut own = message.clone();
    for trailer in &mut own.trailers {
        if Trailer::Tree.value(trailer).is_some() {
            *trailer = Trailer::Tree.line(plan.judged.tree);
        }
    }
    if let (false, Some(first)) = (options.message.is_empty(), own.paragraphs.first_mut()) {
        let (subject, rest) = first.split_at(first.find('\n').unwrap_or(first.len()));
        *first = format!("{} ({}){rest}", subject.trim_end(), plan.address());
    }
    own
}

fn merge_message(
    plan: &Plan,
    options: &LandOptions,
    target: &ResolvedTarget,
    landed: CommitMessage,
) -> CommitMessage {
    let mut message = landed;
    if options.message.is_empty() {
        message.paragraphs = plan.default_paragraphs("Merge");
    }
    message.trailers.push(Trailer::Into.line(target.branch.short()));
    message
        .trailers
        .extend(plan.choices.iter().map(|choice| Trailer::Choice.line(choice.in_words())));
    message
}

/// The first parent of a merge: the target's tip. If the target is a candidate with uncommitted
/// work, the first parent is a new commit of that work, made on the tip.
pub fn committed_state(session: &Session, run: &Run, target: &ResolvedTarget) -> Result<Oid> {
    let repo = &session.repo;
    let tree = repo.commit(target.state())?.tree;
    if repo.commit(&target.tip)?.tree == tree {
        return Ok(target.tip);
    }
    let message = CommitMessage {
        paragraphs: vec![format!("Work of {} so far", target.name())],
        trailers: Vec::new(),
        hooks: HooksToRun::NoVerify,
    };
    make_commit(
        session,
        run,
        &CommitRequest { tree: &tree, parent: &target.tip, merged: None, message: &message },
    )
}
