//! `apply --undo`: undoes a merge by a commit that reverts it, and a landing on a fresh branch by deleting
//! the branch.
use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::model::candidate::{Candidate, Landing};
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::trailer::Trailer;
use crate::ops::land::by_hand::unresolved;
use crate::ops::land::undo_branch::delete_branch;
use crate::ops::land::undo_merge::revert;
use crate::ops::session::Session;
use crate::process::interrupt;
use crate::store::select::Selection;

/// An undone landing.
pub struct UndoneLanding {
    /// The candidate that had landed.
    pub candidate: Candidate,
    /// The branch that the candidate had landed on.
    pub branch: RefName,
    /// The commit that reverts the merge; `None` if the branch was deleted.
    pub commit: Option<Oid>,
    /// The addresses of candidates that landed on the branch later, newest first.
    pub later: Vec<String>,
}

/// Undoes the selected landing. Waits for other landings to end.
pub fn undo(session: &Session, selection: &Selection) -> Result<UndoneLanding> {
    let _landing = session.store.lock_landing()?;
    interrupt::listen();
    let candidate = landed(session, selection)?;
    if candidate.landing == Landing::Merged {
        let (branch, commit, later) = revert(session, &selection.run, &candidate)?;
        return Ok(UndoneLanding { candidate, branch, commit: Some(commit), later });
    }
    let branch = delete_branch(session, &selection.run, &candidate)?;
    Ok(UndoneLanding { candidate, branch, commit: None, later: Vec::new() })
}

/// The candidate that the user named, or else the only candidate of the run that has landed.
fn landed(session: &Session, selection: &Selection) -> Result<Candidate> {
    let Selection { run, candidate: named, .. } = selection;
    let names = named.as_ref().map_or(run.candidates.as_slice(), std::slice::from_ref);
    let mut candidates = Vec::new();
    for name in names {
        candidates.push(session.store.candidate(run, name).record()?);
    }
    let mut standing: Vec<&Candidate> = candidates.iter().collect();
    standing.retain(|candidate| has_landed(candidate));
    match standing.as_slice() {
        [] => {}
        [one] => return Ok((*one).clone()),
        [first, ..] => {
            let names: Vec<String> = standing.iter().map(|candidate| candidate.address()).collect();
            return Err(Error::usage(format!(
                "several candidates of run {} landed: {}",
                run.run,
                names.join(", ")
            ))
            .hint(format!("name one: `git frites apply --undo {}`", first.address())));
        }
    }
    // The last landing was undone, but an earlier merge of the same candidate may still be in effect.
    let mut why = "has not landed";
    for undone in candidates.iter().filter(|c| c.landing == Landing::Undone) {
        if let Some(merged) = earlier_merge(session, undone)? {
            return Ok(merged);
        }
        why = "was undone already";
    }
    for name in names {
        if let Some(left) = session.store.left_conflicts(&run.run, name)? {
            return Err(unresolved(run, name, &left.branch));
        }
    }
    let what = match named {
        Some(name) => format!("{}/{name}", run.run),
        None => format!("run {}", run.run),
    };
    let error = Error::no(format!("{what} {why}"));
    Err(match last_landed(session)? {
        Some(other) => error.hint(format!("{other} landed: `git frites apply --undo {other}`")),
        None => error.hint("`git frites status` shows what landed"),
    })
}

/// The address of a candidate whose landing is in effect, from the newest run that has one.
fn last_landed(session: &Session) -> Result<Option<String>> {
    for run in session.store.runs()?.iter().rev() {
        for candidate in session.store.candidates(run) {
            let record = candidate.record()?;
            if has_landed(&record) {
                return Ok(Some(record.address()));
            }
        }
    }
    Ok(None)
}

fn has_landed(candidate: &Candidate) -> bool {
    matches!(candidate.landing, Landing::Landed | Landing::Merged)
}

/// A merge of a candidate, or the revert of such a merge, in a branch's log.
struct LoggedMerge {
    commit: Oid,
    /// The branch that the commit was made on, according to its trailer.
    branch: RefName,
    /// True if the commit reverts a merge.
    reverts: bool,
}

/// An earlier merge of `undone` that is still in effect: the candidate with this merge as its landing; `None`
/// if there is none. The candidate's record has only the last landing, but the branches have the commits of
/// all landings.
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

/// The newest merge that was not reverted. `log` has the merges and reverts on one branch, newest first.
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

/// The merges of a candidate and their reverts that `git log` finds in `revisions`, newest first.
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

#[cfg(test)]
mod tests {
    use super::*;

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
        // Each letter is a commit, newest first: `m` is a merge, `r` is a revert.
        assert_eq!(log(""), None);
        assert_eq!(log("m"), Some(0));
        assert_eq!(log("rm"), None);
        assert_eq!(log("rmm"), Some(2));
        assert_eq!(log("rrmm"), None);
        assert_eq!(log("mrm"), Some(0));
        assert_eq!(log("rmrmm"), Some(4));
    }
}
