//! Undoes a merge by a commit that reverts it.
use crate::error::{Error, Result};
use crate::git::commit::{CommitMessage, CommitRequest, HooksToRun};
use crate::git::landing::intent::Intent;
use crate::git::merge::{self, MergeResult};
use crate::git::refs;
use crate::git::repo::Commit;
use crate::model::candidate::Candidate;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::ops::kept_commits::KeptCommits;
use crate::ops::land::commit::make_commit;
use crate::ops::land::execute::{LandedAs, execute};
use crate::ops::land::merge::committed_state;
use crate::ops::land::target::ResolvedTarget;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;
use crate::store::events::MoveDetails;

/// Reverts the merge as `git revert -m 1` does, but in memory, so that nothing changes if there are
/// conflicts. Returns the branch, the commit that reverts the merge, and the addresses of later
/// landings on the branch, newest first.
pub(super) fn revert(
    session: &Session,
    run: &Run,
    candidate: &Candidate,
) -> Result<(RefName, Oid, Vec<String>)> {
    let _kept = KeptCommits { session, run };
    let Session { repo, store, .. } = session;
    let address = candidate.address();
    let lost = || {
        Error::no(format!("no record says which commit merged {address}")).hint(
            "find it with `git log --merges --grep 'Frites-Run: '`, and undo it with \
             `git revert -m 1 COMMIT`",
        )
    };
    let merge = candidate.landing_commit.ok_or_else(lost)?;
    let branch = candidate.landing_branch.clone().ok_or_else(lost)?;
    let target = resolve(session, &branch)?;
    let name = target.name();
    let read = repo.commit(&merge)?;
    // A commit with one parent is a person's resolution of conflicts (`apply --conflicts`).
    let (before, revert) = match read.parents.as_slice() {
        [before] => (before, format!("git revert {}", merge.short())),
        [before, _] => (before, format!("git revert -m 1 {}", merge.short())),
        _ => return Err(lost()),
    };
    if !repo.is_ancestor(&merge, &target.tip)? {
        return Err(Error::no(format!("the merge of {address} is not in '{name}' any more"))
            .hint(format!("it was {}; there is nothing to undo", merge.short())));
    }
    let later = later_landings(session, &merge, &target.tip)?;
    let tree = match merge::merge(&repo.git(), &merge, target.state().as_str(), before.as_str())? {
        MergeResult::Clean(tree) => tree,
        MergeResult::Conflicts(conflicts) => {
            let error = Error::no(format!(
                "undoing {address} conflicts with later changes in {}; nothing was changed",
                conflicts.in_words()
            ));
            let error = match later.as_slice() {
                [] => error,
                later => {
                    error.hint(format!("undo first what landed after it: {}", later.join(", ")))
                }
            };
            return Err(error.hint(format!("or resolve it yourself: `{revert}`")));
        }
    };
    if tree == repo.commit(target.state())?.tree {
        return Err(Error::no(format!("'{name}' holds nothing of {address} any more"))
            .hint(format!("look at `git log {}..{}`", merge.short(), branch.short())));
    }
    target.refuse_overwrite(session, &tree, "move them away and undo again")?;
    let landed = store.candidate(run, &candidate.candidate);
    let (commit, iteration) = commit_revert(session, landed, &target, &merge, &tree)?;
    let intent = Intent { undoing: true, ..target.intent(landed, iteration, commit) };
    let why = format!("revert: {address}");
    let details =
        MoveDetails { merge: Some(merge), later: Some(later.clone()), ..MoveDetails::default() };
    execute(session, &target, &intent, &LandedAs::At { commit, why: &why, details: &details })?;
    Ok((branch, commit, later))
}

/// Makes the commit that reverts `merge`, with this tree. Returns the commit and the iteration that
/// had landed.
fn commit_revert(
    session: &Session,
    candidate: CandidateRef<'_>,
    target: &ResolvedTarget,
    merge: &Oid,
    tree: &Oid,
) -> Result<(Oid, u32)> {
    let Commit { message: merged, parents, .. } = session.repo.commit(merge)?;
    let title = merged.lines().next().unwrap_or_default();
    let landed = Trailer::Run.find(&merged).and_then(|run| run.rsplit_once('@'));
    let iteration = match landed.and_then(|(_, iteration)| iteration.parse().ok()) {
        Some(iteration) => iteration,
        None => {
            let left = session.store.left_conflicts(&candidate.run.run, candidate.name)?;
            left.map_or(1, |left| left.iteration)
        }
    };
    let message = CommitMessage {
        paragraphs: vec![
            format!("Revert \"{title}\""),
            match parents.as_slice() {
                [before, _] => {
                    format!("This reverts commit {merge}, reversing\nchanges made to {before}.")
                }
                _ => format!("This reverts commit {merge}."),
            },
        ],
        trailers: vec![
            Trailer::Undone.line(format_args!("{}@{iteration}", candidate.address())),
            Trailer::Into.line(target.branch.short()),
        ],
        // The hooks that `--no-verify` skips are not run, as in `git revert`: they check commits
        // that people write.
        hooks: HooksToRun::NoVerify,
    };
    let parent = committed_state(session, candidate.run, target)?;
    let request = CommitRequest { tree, parent: &parent, merged: None, message: &message };
    Ok((make_commit(session, candidate.run, &request)?, iteration))
}

/// The target for a branch: the candidate to which the branch belongs, if the candidate's worktree
/// exists; otherwise the branch itself.
fn resolve(session: &Session, branch: &RefName) -> Result<ResolvedTarget> {
    if let Some((run, name)) = refs::attempt_of(branch)
        && let Some(run) = session.store.run(&run)?
        && session.store.candidate(&run, &name).worktree().exists()
    {
        return ResolvedTarget::candidate(session, session.store.candidate(&run, &name));
    }
    ResolvedTarget::branch(session, branch)
}

/// The addresses of candidates that landed on a branch after `merge`, newest first. Landings that
/// were undone since are left out.
fn later_landings(session: &Session, merge: &Oid, tip: &Oid) -> Result<Vec<String>> {
    let list = session
        .repo
        .git()
        .call("rev-list")
        .args(["--first-parent", tip.as_str(), &format!("^{merge}")])
        .bytes()?;
    let mut later: Vec<String> = Vec::new();
    let mut undone: Vec<String> = Vec::new();
    for oid in String::from_utf8_lossy(&list).lines().filter_map(Oid::parse) {
        let message = session.repo.commit(&oid)?.message;
        if let Some(address) = Trailer::Undone.find(&message) {
            undone.push(address.to_owned());
        } else if let Some(address) = Trailer::Run.find(&message) {
            match undone.iter().position(|u| u == address) {
                Some(at) => drop(undone.remove(at)),
                None => later.push(address.to_owned()),
            }
        }
    }
    Ok(later)
}
