//! Reflogs: the values that a branch or a checkout's HEAD had, and git's words for each move.
use std::path::Path;

use crate::error::Result;
use crate::fs::regular;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// One move of a ref.
pub struct ReflogEntry {
    /// The new value.
    pub new: Oid,
    /// git's words for the move, such as `commit: TITLE`.
    pub message: String,
}

impl ReflogEntry {
    /// True if `git commit` made the new value, or `git rebase` rewrote it.
    pub fn is_commit(&self) -> bool {
        self.message.starts_with("commit") || self.message.starts_with("rebase")
    }
}

/// The reflog of a ref, oldest entry first; empty if there is none. `git_dir` is the common git
/// directory, or for `HEAD` that of a checkout.
pub fn read(git_dir: &Path, name: &RefName) -> Vec<ReflogEntry> {
    let log = regular::read(&git_dir.join("logs").join(name.as_str())).unwrap_or_default();
    String::from_utf8_lossy(&log).lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<ReflogEntry> {
    let (head, message) = line.split_once('\t')?;
    let new = Oid::parse(head.split(' ').nth(1)?)?;
    Some(ReflogEntry { new, message: message.to_owned() })
}

/// The branch that `branch` was renamed to since it was made at `start`; none if it was deleted.
pub fn renamed(repo: &Repo, branch: &RefName, start: &Oid) -> Result<Option<RefName>> {
    let renamed = format!("Branch: renamed {branch} to ");
    let is_renamed = |name: &RefName| {
        let log = read(repo.common_dir(), name);
        log.first().is_some_and(|entry| entry.new == *start)
            && log.iter().any(|entry| entry.message.starts_with(&renamed))
    };
    Ok(repo.ref_names("refs/heads/")?.into_iter().find(is_renamed))
}

/// A branch in the reflog of a checkout's HEAD.
#[derive(Debug, PartialEq, Eq)]
pub struct BranchInReflog {
    /// The branch's name now, if it was renamed there.
    pub branch: RefName,
    /// The commits that were made in that checkout while it was on the branch, oldest first.
    pub made: Vec<Oid>,
}

/// Finds the commits that were made on a branch since it was last at `start`, by the reflog of a
/// checkout's HEAD: that log stays when the branch is deleted.
pub fn made_on(log: &[ReflogEntry], branch: &RefName, start: &Oid) -> BranchInReflog {
    let mut found = BranchInReflog { branch: branch.clone(), made: Vec::new() };
    let mut is_on_branch = false;
    for ReflogEntry { new, message } in log {
        if let Some(moving) = message.strip_prefix("checkout: moving from ") {
            is_on_branch = moving.rsplit_once(" to ").is_some_and(|m| m.1 == found.branch.short());
            if is_on_branch && new == start {
                found.made.clear();
            }
        } else if let Some(back) = message.strip_prefix("rebase (finish): returning to ") {
            is_on_branch = back == found.branch.as_str();
        } else if let Some((old, new)) =
            message.strip_prefix("Branch: renamed ").and_then(|names| names.split_once(" to "))
        {
            // HEAD's log has the renames of the current branch only.
            if old == found.branch.as_str() {
                found.branch = RefName::new(new);
                is_on_branch = true;
            }
        } else if is_on_branch && message.starts_with("commit") {
            found.made.push(*new);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oid(digit: char) -> Oid {
        Oid::parse(&digit.to_string().repeat(40)).expect("full")
    }

    /// Reads lines such as `3 commit: x`, whose digit is the new value.
    fn log(lines: &[&str]) -> Vec<ReflogEntry> {
        let line = |line: &&str| {
            let (new, message) = line.split_at(1);
            parse(&format!("{} {} A <a> 1 +0000\t{}", oid('0'), new.repeat(40), message.trim()))
        };
        lines.iter().map(|text| line(text).expect("an entry")).collect()
    }

    #[test]
    fn commits_on_a_branch_are_found_after_it_was_renamed_and_left() {
        let start = oid('1');
        let branch = RefName::of_branch("b");
        let lines = [
            "1 commit (initial): a",
            "1 checkout: moving from main to b",
            "2 commit: earlier",
            "1 checkout: moving from b to main",
            "1 checkout: moving from main to b",
            "3 commit: resolved",
            "4 commit (amend): resolved",
            "0 Branch: renamed refs/heads/b to refs/heads/c",
            "4 Branch: renamed refs/heads/b to refs/heads/c",
            "1 checkout: moving from c to main",
            "5 commit: on main",
            "4 checkout: moving from main to c",
            "6 commit: more",
            "5 rebase (start): checkout main",
            "8 rebase (pick): more",
            "8 rebase (finish): returning to refs/heads/c",
            "9 commit: on top",
            "7 merge main: Fast-forward",
        ];
        let found = made_on(&log(&lines), &branch, &start);
        assert_eq!(found.branch, RefName::of_branch("c"));
        assert_eq!(found.made, ['3', '4', '6', '9'].map(oid));
        let found = made_on(&log(&lines[..4]), &branch, &start);
        assert_eq!((found.branch, found.made), (branch, vec![oid('2')]));
    }
}
