//! `apply --undo`: undoes a merge by reverting it, and a landing on a fresh branch by deleting the
//! branch.
use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::git::commit::{CommitMessage, CommitRequest};
use crate::git::landing::{fresh_branch, writer};
use crate::git::merge::{self, MergeResult};
use crate::git::repo::Commit;
use crate::git::{refs, worktree};
use crate::model::candidate::{Candidate, Landing};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::rationale::some_of;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::ops::land::by_hand::{keep_resolution, unresolved};
use crate::ops::land::change::carried_along;
use crate::ops::land::commit::make_commit;
use crate::ops::land::guards::refuse_overwrite;
use crate::ops::land::merge::{committed_state, execute, refuse_overwrite_in};
use crate::ops::land::record::{record_move, record_rollback};
use crate::ops::land::target::ResolvedTarget;
use crate::ops::session::Session;
use crate::process::interrupt;
use crate::store::events::MoveDetails;
use crate::store::intents::{LandingIntent, MoveIntent};
use crate::store::select::Selection;

/// A landing that has been undone.
pub struct UndoneLanding {
    /// The candidate that had landed.
    pub candidate: Candidate,
    /// The branch.
    pub branch: RefName,
    /// The commit that reverts the merge; none if the branch was deleted.
    pub commit: Option<Oid>,
    /// The addresses of what landed on the branch afterwards, newest first.
    pub later: Vec<String>,
}

/// Undoes the selected landing, one at a time.
pub fn undo(session: &Session, selection: &Selection) -> Result<UndoneLanding> {
    let _landing = session.store.lock_landing()?;
    interrupt::listen();
    let candidate = landed(session, selection)?;
    match candidate.landing {
        Landing::Merged => revert(session, candidate),
        _ => delete_branch(session, &selection.run, candidate),
    }
}

/// The landing that `--undo` takes among a run's candidates.
#[derive(Debug, PartialEq, Eq)]
enum UndoChoice {
    /// The landing of the candidate with this index.
    Only(usize),
    /// No landing is in effect now; a merge before the last landing may.
    Earlier,
    /// Several landings are in effect: those of the candidates with these indexes.
    Several(Vec<usize>),
}

/// Chooses by the state of each candidate's last landing.
fn choose(landings: &[Landing]) -> UndoChoice {
    let mut standing = Vec::new();
    for (index, landing) in landings.iter().enumerate() {
        if matches!(landing, Landing::Landed | Landing::Merged) {
            standing.push(index);
        }
    }
    match standing.as_slice() {
        [] => UndoChoice::Earlier,
        [one] => UndoChoice::Only(*one),
        _ => UndoChoice::Several(standing),
    }
}

/// The named candidate, or the only one of the run that landed.
fn landed(session: &Session, selection: &Selection) -> Result<Candidate> {
    let Selection { run, candidate: named, iteration } = selection;
    if iteration.is_some() {
        return Err(Error::usage("a landing is undone whole, whichever iteration it was")
            .hint("name the candidate"));
    }
    let names = named.as_ref().map_or(run.candidates.as_slice(), std::slice::from_ref);
    let mut candidates = Vec::new();
    for name in names {
        candidates.push(session.store.candidate(run, name).record()?);
    }
    let landings: Vec<Landing> = candidates.iter().map(|candidate| candidate.landing).collect();
    match choose(&landings) {
        UndoChoice::Only(index) => Ok(candidates.swap_remove(index)),
        UndoChoice::Several(indexes) => {
            let names: Vec<String> = indexes.iter().map(|at| candidates[*at].address()).collect();
            Err(Error::usage(format!(
                "several candidates of run {} landed: {}",
                run.run,
                names.join(", ")
            ))
            .hint(format!("name one: `git frites apply --undo {}`", names[0])))
        }
        UndoChoice::Earlier => {
            for undone in candidates.iter().filter(|c| c.landing == Landing::Undone) {
                if let Some(merged) = earlier_merge(session, undone)? {
                    return Ok(merged);
                }
            }
            let what = match named {
                Some(name) => format!("{}/{name}", run.run),
                None => format!("run {}", run.run),
            };
            for name in names {
                if let Some(left) = session.store.left_conflicts(&run.run, name)? {
                    return Err(unresolved(run, name, &left.branch));
                }
            }
            let why = if landings.contains(&Landing::Undone) {
                "was undone already"
            } else {
                "has not landed"
            };
            Err(Error::no(format!("{what} {why}"))
                .hint(format!("`git frites status {}` shows what landed", run.run)))
        }
    }
}

/// A merge of a candidate, or the revert of one, in a branch's log.
struct LoggedMerge {
    commit: Oid,
    /// The branch that it was made on.
    branch: RefName,
    /// True if the commit reverts a merge.
    reverts: bool,
}

/// The candidate as of an earlier merge that is still in effect. Its record has only the last
/// landing; the branches have all.
fn earlier_merge(session: &Session, undone: &Candidate) -> Result<Option<Candidate>> {
    let mut seen = BTreeSet::new();
    for LoggedMerge { branch, .. } in logged_merges(session, undone, "--branches")? {
        if !seen.insert(branch.clone()) || session.repo.read_ref(&branch)?.is_none() {
            continue;
        }
        let mut log = logged_merges(session, undone, &branch)?;
        log.retain(|merge| merge.branch == branch);
        if let Some(merge) = standing_merge(&log) {
            return Ok(Some(Candidate {
                landing: Landing::Merged,
                landing_commit: Some(merge),
                landing_branch: Some(branch),
                ..undone.clone()
            }));
        }
    }
    Ok(None)
}

/// The newest merge that no revert has taken back. `log` is one branch's, newest first.
fn standing_merge(log: &[LoggedMerge]) -> Option<Oid> {
    let mut reverted = 0;
    for merge in log {
        if merge.reverts {
            reverted += 1;
        } else if reverted == 0 {
            return Some(merge.commit);
        } else {
            reverted -= 1;
        }
    }
    None
}

/// The merges of a candidate and their reverts in `revisions`, newest first.
fn logged_merges(
    session: &Session,
    candidate: &Candidate,
    revisions: &str,
) -> Result<Vec<LoggedMerge>> {
    let value =
        |trailer: Trailer| format!("%(trailers:key={},valueonly,separator=%x20)", trailer.key());
    let format = format!("--format=%H%x09{}%x09{}", value(Trailer::Into), value(Trailer::Undone));
    let grep = [Trailer::Run, Trailer::Undone].map(|trailer| {
        format!("--grep={}", trailer.line(format_args!("{}@", candidate.address())))
    });
    let log = session.repo.git().call("log");
    let call = log.args(["-F", "--first-parent", "--no-show-signature", &format]).args(grep);
    let answer = call.args([revisions, "--"]).bytes()?;
    let mut merges = Vec::new();
    for line in String::from_utf8_lossy(&answer).lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [commit, into, undone] = fields.as_slice() else { continue };
        let (Some(commit), false) = (Oid::parse(commit), into.is_empty()) else { continue };
        merges.push(LoggedMerge {
            commit,
            branch: RefName::of_branch(into),
            reverts: !undone.is_empty(),
        });
    }
    Ok(merges)
}

/// Reverts the merge, as `git revert -m 1` does, but in memory: conflicts leave nothing half done.
fn revert(session: &Session, candidate: Candidate) -> Result<UndoneLanding> {
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
    // A person's commit, which resolves conflicts, has one parent.
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
                "undoing {address} conflicts with what came after it in {}; nothing was changed",
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
    refuse_overwrite_in(session, &target, &tree, "move them away and undo again")?;
    let (commit, iteration) = commit_revert(session, &candidate, &target, &merge, &tree)?;
    let intent = MoveIntent {
        run: candidate.run.clone(),
        candidate: candidate.candidate.clone(),
        iteration,
        landing: Landing::Undone,
        target: branch.clone(),
        old: target.tip,
        new: commit,
        files: *target.state(),
        verified: false,
        killed_after: None,
        holder: target.holder(),
    };
    execute(session, &target, &intent, &format!("revert: {address}"))?;
    let details =
        MoveDetails { merge: Some(merge), later: Some(later.clone()), ..MoveDetails::default() };
    record_move(store, &intent, details)?;
    Ok(UndoneLanding { candidate, branch, commit: Some(commit), later })
}

/// Makes the commit that reverts `merge` to the tree of `before`; gives the commit and the
/// iteration that had landed.
fn commit_revert(
    session: &Session,
    candidate: &Candidate,
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
            let left = session.store.left_conflicts(&candidate.run, &candidate.candidate)?;
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
        // As `git revert`: the hooks that `--no-verify` skips are for the commits of people.
        verify: false,
    };
    let parent = committed_state(session, target)?;
    let request = CommitRequest { tree, parent: &parent, merged: None, message: &message };
    Ok((make_commit(session, &request)?, iteration))
}

/// The branch as a target: a candidate's worktree, if the branch is a candidate's and that worktree
/// exists.
fn resolve(session: &Session, branch: &RefName) -> Result<ResolvedTarget> {
    if let Some((run, name)) =
        branch.strip_prefix("refs/heads/frites/run/").and_then(|rest| rest.split_once('/'))
        && let (Ok(run), Ok(name)) = (run.parse(), name.parse::<Name>())
        && let Some(run) = session.store.run(&run)?
        && session.store.candidate(&run, &name).worktree().exists()
    {
        return ResolvedTarget::candidate(session, session.store.candidate(&run, &name));
    }
    ResolvedTarget::branch(session, branch)
}

/// The addresses of what landed on a branch after a merge and has not been undone since, newest
/// first.
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

/// Deletes the fresh branch, unless somebody has worked on it.
fn delete_branch(session: &Session, run: &Run, candidate: Candidate) -> Result<UndoneLanding> {
    let Session { repo, store, .. } = session;
    let address = candidate.address();
    let intent = store.landed(&candidate);
    let recorded = match &intent {
        Some(intent) => Some(intent.branch.clone()),
        None => candidate.landing_branch.clone(),
    };
    let branch = recorded.clone().unwrap_or_else(|| refs::apply_branch(&run.run));
    let short = branch.short().to_owned();
    let Some(tip) = repo.read_ref(&branch)? else {
        if let (None, Some(commit)) = (&recorded, &candidate.landing_commit) {
            refuse_unknown_branch(session, &address, commit)?;
        }
        session.ui.note(format!("the branch '{short}' is gone already"));
        record_rollback(store, &candidate, &branch)?;
        return Ok(UndoneLanding { candidate, branch, commit: None, later: Vec::new() });
    };
    let landed_at = candidate.landing_commit.or(intent.as_ref().map(|intent| intent.from.commit));
    if landed_at.is_none() {
        return Err(Error::no(format!("no record says at which commit '{short}' was made")).hint(
            format!("look at it with `git log {short}`; `git branch -D {short}` deletes it"),
        ));
    }
    if landed_at != Some(tip) {
        return Err(Error::no(format!("'{short}' has commits that {address} did not bring")).hint(
            format!(
                "look at them with `git log {short}`; `git branch -D {short}` deletes it with them"
            ),
        ));
    }
    let here = repo.work_tree().is_some() && repo.head_branch().as_ref() == Some(&branch);
    refuse_checked_out_elsewhere(session, &branch, here)?;
    if let Some(left) = store.left_conflicts(&run.run, &candidate.candidate)? {
        keep_resolution(repo, run, &left.from, &tip)?;
        session.ui.note(format!("your resolution of the conflicts is kept: {}", tip.short()));
    }
    match intent {
        Some(intent) if here => go_back(session, intent, &address)?,
        None if here => {
            return Err(Error::no(format!(
                "your checkout is on '{short}', and no record says where it came from"
            ))
            .hint("switch to another branch and undo again"));
        }
        intent => {
            repo.update_ref(&branch, None, Some(&tip), "undo")?;
            if let Some(intent) = intent {
                tell_what_stays(session, &intent, &address)?;
            }
        }
    }
    record_rollback(store, &candidate, &branch)?;
    Ok(UndoneLanding { candidate, branch, commit: None, later: Vec::new() })
}

/// Says what of a landing the checkout still has staged, because a switch took it along.
fn tell_what_stays(session: &Session, intent: &LandingIntent, address: &str) -> Result<()> {
    let stays = carried_along(&session.repo, intent)?;
    if stays.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = stays.iter().map(|path| path.quoted()).collect();
    session.ui.warn(format!(
        "the change of {address} was not committed, and a switch took it along: it stays staged here ({})",
        some_of(&names)
    ));
    let place = "git restore --source=HEAD --staged --worktree --";
    session.ui.hint(match stays.as_slice() {
        few if few.len() <= FEW => {
            let paths = few.iter().map(|path| String::from_utf8_lossy(path).into_owned());
            let paths: Vec<String> =
                paths.map(|path| shell_words::quote(&path).into_owned()).collect();
            format!("take it back, too: `{place} {}`", paths.join(" "))
        }
        _ => "put it aside with `git stash`".to_owned(),
    });
    Ok(())
}

/// The most paths that a command to type names.
const FEW: usize = 5;

/// Refuses to delete a branch that another checkout is on. `here` is true if this checkout is on
/// it.
fn refuse_checked_out_elsewhere(session: &Session, branch: &RefName, here: bool) -> Result<()> {
    let repo = &session.repo;
    let own = here.then(|| repo.git_dir());
    let Some(holder) = worktree::holder_of(repo, branch, own)? else { return Ok(()) };
    if here && Some(holder.as_path()) == repo.work_tree() {
        return Ok(());
    }
    let short = branch.short();
    Err(Error::no(format!("the branch '{short}' is checked out in '{}'", holder.display()))
        .hint("undo it there, or switch to another branch there"))
}

/// Refuses to record an undo if no record names the branch and some branch still holds the commit.
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
        "no record says on which branch {address} landed, and '{short}' holds it"
    ))
    .hint(format!("look at it with `git log {short}`; `git branch -D {short}` deletes it")))
}

/// Goes back to where the checkout was before the landing. Fails if the checkout holds more than
/// what landed.
fn go_back(session: &Session, intent: LandingIntent, address: &str) -> Result<()> {
    let Session { repo, store, .. } = session;
    let git = writer::begin(&repo.checkout())?;
    git.call("update-index").args(["-q", "--refresh"]).output()?;
    let staged = git.call("write-tree").oid().ok();
    // The files in a submodule stay as they are, as they did when the change landed.
    let compare = git.call("diff-files").args(["--quiet", "--ignore-submodules=all"]);
    if staged != Some(intent.tree) || compare.output()?.code != 0 {
        return Err(Error::no(format!(
            "'{}' holds more than {address} brought",
            intent.branch.short()
        ))
        .hint("commit it or put it aside with `git stash`, and switch to another branch"));
    }
    // Files that the landing deleted come back. An untracked file may be there by now.
    let hint = "move them away and undo again";
    refuse_overwrite(session, repo.need_work_tree()?, &intent.tree, &intent.from.commit, hint)?;
    let intent = LandingIntent { undoing: true, unlocked: false, ..intent };
    store.begin_landing(&intent)?;
    let keep = refs::withdrawn(&intent.run);
    fresh_branch::roll_back(repo, &intent.fresh_branch(&git, &keep))?;
    store.end_landing()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undo_takes_the_only_landing_that_stands() {
        use Landing::{Landed, Merged, Undone};
        assert_eq!(choose(&[]), UndoChoice::Earlier);
        assert_eq!(choose(&[Undone, Undone]), UndoChoice::Earlier);
        assert_eq!(choose(&[Undone, Landed]), UndoChoice::Only(1));
        assert_eq!(choose(&[Merged, Undone]), UndoChoice::Only(0));
        assert_eq!(choose(&[Merged, Undone, Landed]), UndoChoice::Several(vec![0, 2]));
    }

    #[test]
    fn each_revert_takes_back_the_newest_merge_before_it() {
        let log = |text: &str| -> Option<usize> {
            let entry = |(at, kind): (usize, char)| LoggedMerge {
                commit: Oid::parse(&format!("{at:040}")).expect("full"),
                branch: RefName::of_branch("main"),
                reverts: kind == 'r',
            };
            let entries: Vec<LoggedMerge> = text.chars().enumerate().map(entry).collect();
            standing_merge(&entries)?.as_str().parse().ok()
        };
        // Newest first: `m` merges, `r` reverts.
        assert_eq!(log(""), None);
        assert_eq!(log("m"), Some(0));
        assert_eq!(log("rm"), None);
        assert_eq!(log("rmm"), Some(2));
        assert_eq!(log("rrmm"), None);
        assert_eq!(log("mrm"), Some(0));
        assert_eq!(log("rmrmm"), Some(4));
    }
}
