//! Taking a landing back: a merge by a revert of it, a fresh branch by deleting it.
use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::git::commit::{Message, Wanted};
use crate::git::landing::fresh_branch;
use crate::git::merge::{self as git_merge, Merged};
use crate::git::{refs, worktree};
use crate::model::candidate::{Candidate, Landing};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::ops::land::merge::{self, Place};
use crate::ops::land::plan;
use crate::ops::session::Session;
use crate::store::events::MoveDetails;
use crate::store::landings::{LandingIntent, MoveIntent};
use crate::store::select::Selection;

/// A landing that is taken back.
pub struct Undone {
    /// Whose it was.
    pub candidate: Candidate,
    /// The branch.
    pub branch: RefName,
    /// The commit that takes it back; none if the branch is gone.
    pub commit: Option<Oid>,
    /// What landed on the branch after it, newest first.
    pub later: Vec<String>,
}

/// Takes back what `selection` names, one landing at a time.
pub fn undo(session: &Session, selection: &Selection) -> Result<Undone> {
    let _landing = session.store.lock_landing()?;
    let candidate = landed(session, selection)?;
    match candidate.landing {
        Landing::Merged => revert(session, candidate),
        _ => withdraw(session, &selection.run, candidate),
    }
}

/// The candidate that was named, or the only one of the run that landed.
fn landed(session: &Session, selection: &Selection) -> Result<Candidate> {
    let Selection { run, candidate, iteration } = selection;
    if iteration.is_some() {
        return Err(Error::usage("a landing is undone whole, whichever iteration it was")
            .hint("name the candidate"));
    }
    let read = |name: &Name| session.store.candidate(run, name).record();
    let all: Vec<Candidate> = match candidate {
        Some(name) => vec![read(name)?],
        None => run.candidates.iter().map(read).collect::<Result<_>>()?,
    };
    let is = |c: &&Candidate| matches!(c.landing, Landing::Landed | Landing::Merged);
    match all.iter().filter(is).collect::<Vec<_>>().as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            for undone in all.iter().filter(|c| c.landing == Landing::Undone) {
                if let Some(merged) = earlier_merge(session, undone)? {
                    return Ok(merged);
                }
            }
            let what = candidate
                .as_ref()
                .map_or_else(|| format!("run {}", run.run), |name| format!("{}/{name}", run.run));
            let undone = all.iter().any(|c| c.landing == Landing::Undone);
            let why = if undone { "was undone already" } else { "has not landed" };
            Err(Error::no(format!("{what} {why}"))
                .hint(format!("`git frites status {}` shows what landed", run.run)))
        }
        several => {
            let names: Vec<String> = several.iter().map(|c| c.address()).collect();
            Err(Error::usage(format!(
                "several candidates of run {} landed: {}",
                run.run,
                names.join(", ")
            ))
            .hint(format!("name one: `git frites apply --undo {}`", names[0])))
        }
    }
}

/// A candidate as it was before what its record tells of, if it was merged before and that still stands: a record
/// knows the last landing, and the branches know them all.
fn earlier_merge(session: &Session, undone: &Candidate) -> Result<Option<Candidate>> {
    let repo = &session.repo;
    // The merges and their reverts, newest first: the commit, the branch, and what it takes back.
    let log = |of: &str| -> Result<Vec<(Oid, RefName, bool)>> {
        let value = |trailer: Trailer| {
            format!("%(trailers:key={},valueonly,separator=%x20)", trailer.key())
        };
        let format =
            format!("--format=%H%x09{}%x09{}", value(Trailer::Into), value(Trailer::Undone));
        let grep = [Trailer::Run, Trailer::Undone]
            .map(|trailer| format!("--grep={}@", trailer.line(undone.address())));
        let call = repo
            .git()
            .call("log")
            .args(["-F", "--first-parent", "--no-show-signature", &format])
            .args(grep);
        let answer = call.args([of, "--"]).bytes()?;
        let read = |line: &str| {
            let mut fields = line.split('\t');
            let (commit, into, back) =
                (Oid::parse(fields.next()?)?, fields.next()?, fields.next()?);
            (!into.is_empty()).then(|| (commit, RefName::of_branch(into), !back.is_empty()))
        };
        Ok(String::from_utf8_lossy(&answer).lines().filter_map(read).collect())
    };
    let mut seen = BTreeSet::new();
    for (_, branch, _) in log("--branches")? {
        if !seen.insert(branch.clone()) || repo.read_ref(&branch)?.is_none() {
            continue;
        }
        let mut taken_back = 0;
        for (merge, _, back) in log(&branch)?.into_iter().filter(|(_, into, _)| *into == branch) {
            match (back, taken_back) {
                (true, _) => taken_back += 1,
                (false, 0) => {
                    let (landing, landing_commit, landing_branch) =
                        (Landing::Merged, Some(merge), Some(branch));
                    return Ok(Some(Candidate {
                        landing,
                        landing_commit,
                        landing_branch,
                        ..undone.clone()
                    }));
                }
                (false, _) => taken_back -= 1,
            }
        }
    }
    Ok(None)
}

/// `git revert -m 1` of the merge, made in memory: conflicts leave nothing half-done.
fn revert(session: &Session, candidate: Candidate) -> Result<Undone> {
    let Session { repo, store, .. } = session;
    let address = candidate.address();
    let lost = || {
        Error::no(format!("it is not known which commit merged {address}")).hint(
            "find it with `git log --merges --grep 'Frites-Run: '`, and take it back with `git revert -m 1 COMMIT`",
        )
    };
    let merge = candidate.landing_commit.ok_or_else(lost)?;
    let branch = candidate.landing_branch.clone().ok_or_else(lost)?;
    let place = find(session, &branch)?;
    let name = place.name();
    let read = repo.commit(&merge)?;
    let [before, _] = read.parents.as_slice() else { return Err(lost()) };
    if !repo.is_ancestor(&merge, &place.tip)? {
        return Err(Error::no(format!("the merge of {address} is not in '{name}' any more"))
            .hint(format!("it was {}; there is nothing to undo", merge.short())));
    }
    let later = later_landings(session, &merge, &place.tip)?;
    let tree = match git_merge::merge(&repo.git(), &merge, place.state().as_str(), before.as_str())?
    {
        Merged::Clean(tree) => tree,
        Merged::Conflicts(conflicts) => {
            let error = Error::no(format!(
                "undoing {address} conflicts with what came after it in {}; nothing was changed",
                conflicts.in_words()
            ));
            let error = match later.as_slice() {
                [] => error,
                later => {
                    error.hint(format!("undo first what landed after it: {}", later.join(", ")))
                }
            };
            return Err(
                error.hint(format!("or resolve it yourself: `git revert -m 1 {}`", merge.short()))
            );
        }
    };
    if tree == repo.commit(place.state())?.tree {
        return Err(Error::no(format!("'{name}' holds nothing of {address} any more"))
            .hint(format!("look at `git log {}..{}`", merge.short(), branch.short())));
    }
    if let Some(checkout) = &place.checkout {
        let root = checkout.git.root().unwrap_or(repo.common_dir());
        plan::refuse_obstacles(
            session,
            root,
            &checkout.state,
            &tree,
            "move them away and undo again",
        )?;
    }
    let title = read.message.lines().next().unwrap_or_default();
    let iteration =
        Trailer::Run.find(&read.message).and_then(|run| run.rsplit_once('@')?.1.parse().ok());
    let iteration = iteration.unwrap_or(1);
    let message = Message {
        paragraphs: vec![
            format!("Revert \"{title}\""),
            format!("This reverts commit {merge}, reversing\nchanges made to {before}."),
        ],
        trailers: vec![
            Trailer::Undone.line(format_args!("{address}@{iteration}")),
            Trailer::Into.line(branch.short()),
        ],
        // As `git revert`: those hooks are for what people commit.
        verify: false,
    };
    let first = merge::committed_state(session, &place)?;
    let wanted = Wanted { tree: &tree, parent: &first, merged: None, message: &message };
    let commit = plan::make_commit(session, &wanted)?;
    let intent = MoveIntent {
        run: candidate.run.clone(),
        candidate: candidate.candidate.clone(),
        iteration,
        landing: Landing::Undone,
        target: branch.clone(),
        old: place.tip,
        new: commit,
        files: *place.state(),
        verified: false,
        killed_after: None,
        holder: merge::holder(&place),
    };
    merge::go(session, &place, &intent, &format!("revert: {address}"))?;
    let details =
        MoveDetails { merge: Some(merge), later: Some(later.clone()), ..MoveDetails::default() };
    store.record_move(&intent, details)?;
    Ok(Undone { candidate, branch, commit: Some(commit), later })
}

/// Where a branch is: a candidate's is in its worktree, if that is still there.
fn find(session: &Session, branch: &RefName) -> Result<Place> {
    if let Some((run, name)) =
        branch.strip_prefix("refs/heads/frites/run/").and_then(|rest| rest.split_once('/'))
        && let (Ok(run), Ok(name)) = (run.parse(), name.parse::<Name>())
        && let Some(run) = session.store.run(&run)?
        && session.store.candidate(&run, &name).worktree().exists()
    {
        return Place::candidate(session, session.store.candidate(&run, &name));
    }
    Place::branch(session, branch)
}

/// What landed on a branch after a merge, and was not taken back since; newest first.
fn later_landings(session: &Session, merge: &Oid, tip: &Oid) -> Result<Vec<String>> {
    let list = session
        .repo
        .git()
        .call("rev-list")
        .args(["--first-parent", tip.as_str(), &format!("^{merge}")])
        .bytes()?;
    let (mut later, mut undone): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
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

/// Deletes the fresh branch, unless somebody has worked on it.
fn withdraw(session: &Session, run: &Run, candidate: Candidate) -> Result<Undone> {
    let Session { repo, store, .. } = session;
    let address = candidate.address();
    let intent = store.landed(&candidate);
    let told = intent.as_ref().map(|i| i.branch.clone()).or(candidate.landing_branch.clone());
    let branch = told.clone().unwrap_or_else(|| refs::apply_branch(&run.run));
    let short = branch.short().to_owned();
    let Some(tip) = repo.read_ref(&branch)? else {
        if let (None, Some(commit)) = (&told, &candidate.landing_commit) {
            refuse_unknown_branch(session, &address, commit)?;
        }
        session.ui.note(format!("the branch '{short}' is gone already"));
        store.record_withdrawn(&candidate, &branch)?;
        return Ok(Undone { candidate, branch, commit: None, later: Vec::new() });
    };
    let landed_at = candidate.landing_commit.as_ref().or(intent.as_ref().map(|i| &i.from.commit));
    if landed_at != Some(&tip) {
        return Err(Error::no(format!("'{short}' has commits that {address} did not bring")).hint(
            format!(
                "look at them with `git log {short}`; `git branch -D {short}` deletes it with them"
            ),
        ));
    }
    let here = repo.work_tree().is_some() && repo.head_branch().as_ref() == Some(&branch);
    let own = here.then(|| repo.git_dir());
    if let Some(holder) = worktree::holder_of(repo, &branch, own)?
        .filter(|dir| !here || Some(dir.as_path()) != repo.work_tree())
    {
        return Err(Error::no(format!(
            "the branch '{short}' is checked out in '{}'",
            holder.display()
        ))
        .hint("undo it there, or switch to another branch there"));
    }
    match intent {
        Some(intent) if here => take_back(session, intent, &address)?,
        None if here => {
            return Err(Error::no(format!(
                "your checkout is on '{short}', and it is not known where it came from"
            ))
            .hint("switch to another branch and undo again"));
        }
        _ => repo.update_ref(&branch, None, Some(&tip), "undo")?,
    }
    store.record_withdrawn(&candidate, &branch)?;
    Ok(Undone { candidate, branch, commit: None, later: Vec::new() })
}

/// Where it is not known any more on which branch something landed: a branch that holds it may be the one.
fn refuse_unknown_branch(session: &Session, address: &str, commit: &Oid) -> Result<()> {
    let call = session.repo.git().call("for-each-ref").args([
        "--count=1",
        "--format=%(refname)",
        "--contains",
    ]);
    let found = call.args([commit.as_str(), "refs/heads/"]).line()?;
    if found.is_empty() {
        return Ok(());
    }
    let found = RefName::new(found.to_string_lossy());
    let short = found.short();
    Err(Error::no(format!(
        "it is not known any more on which branch {address} landed, and '{short}' holds it"
    ))
    .hint(format!("look at it with `git log {short}`; `git branch -D {short}` deletes it")))
}

/// Goes back to where the checkout was before the landing.
fn take_back(session: &Session, intent: LandingIntent, address: &str) -> Result<()> {
    let Session { repo, store, .. } = session;
    let git = repo.checkout();
    git.call("update-index").args(["-q", "--refresh"]).output()?;
    // What is checked out in a submodule stays as it is, as it did when this landed.
    let as_landed = git.call("write-tree").oid().is_ok_and(|tree| tree == intent.tree)
        && git.call("diff-files").args(["--quiet", "--ignore-submodules=all"]).output()?.code == 0;
    if !as_landed {
        return Err(Error::no(format!(
            "'{}' holds more than {address} brought",
            intent.branch.short()
        ))
        .hint("commit it or put it aside with `git stash`, and switch to another branch"));
    }
    // What the landing took away comes back, and something else may lie there by now.
    let root = repo.need_work_tree()?;
    plan::refuse_obstacles(
        session,
        root,
        &intent.tree,
        &intent.from.commit,
        "move them away and undo again",
    )?;
    let intent = LandingIntent { undoing: true, unlocked: false, ..intent };
    store.begin_landing(&intent)?;
    let keep = refs::withdrawn(&intent.run);
    fresh_branch::withdraw(repo, &intent.as_landing(&keep))?;
    store.end_landing()
}
