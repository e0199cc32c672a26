//! Reads reflogs: the values that a branch or a checkout's HEAD had, and the message for each move.
use std::path::Path;

use crate::fs::regular;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// One move of a ref.
pub struct ReflogEntry {
    pub new: Oid,
    /// git's message for the move, such as `commit: TITLE`.
    pub message: String,
}

impl ReflogEntry {
    /// True if `git commit` made the new value.
    pub fn is_commit(&self) -> bool {
        self.message.starts_with("commit")
    }
}

/// The reflog of a ref, oldest entry first; empty if there is no reflog. `git_dir` is the common
/// git directory, or the git directory of a checkout if the ref is its `HEAD`.
pub fn read(git_dir: &Path, name: &RefName) -> Vec<ReflogEntry> {
    let log = regular::read(&git_dir.join("logs").join(name.as_str())).unwrap_or_default();
    String::from_utf8_lossy(&log).lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<ReflogEntry> {
    let (head, message) = line.split_once('\t')?;
    let new = Oid::parse(head.split(' ').nth(1)?)?;
    Some(ReflogEntry { new, message: message.to_owned() })
}

/// The commits that were made on a branch, oldest first. They were made after a checkout last
/// switched to the branch while the branch was at `start`. `log` is the reflog of the checkout's
/// HEAD. Unlike the branch's own reflog, it stays when the branch is deleted.
pub fn made_on(log: &[ReflogEntry], branch: &RefName, start: &Oid) -> Vec<Oid> {
    let mut made = Vec::new();
    let mut is_on_branch = false;
    for entry in log {
        if let Some(moving) = entry.message.strip_prefix("checkout: moving from ") {
            is_on_branch = moving.rsplit_once(" to ").is_some_and(|m| m.1 == branch.short());
            if is_on_branch && entry.new == *start {
                made.clear();
            }
        } else if is_on_branch && entry.is_commit() {
            made.push(entry.new);
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oid(digit: char) -> Oid {
        Oid::parse(&digit.to_string().repeat(40)).expect("full")
    }

    /// Reads lines such as `3 commit: x`. The digit, 40 times, is the new value.
    fn log(lines: &[&str]) -> Vec<ReflogEntry> {
        let line = |line: &&str| {
            let (new, message) = line.split_at(1);
            parse(&format!("{} {} A <a> 1 +0000\t{}", oid('0'), new.repeat(40), message.trim()))
        };
        lines.iter().map(|text| line(text).expect("an entry")).collect()
    }

    #[test]
    fn commits_on_a_branch_are_found_after_it_was_left() {
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
            "1 checkout: moving from b to main",
            "5 commit: on main",
            "4 checkout: moving from main to b",
            "6 commit: more",
            "7 merge main: Fast-forward",
        ];
        assert_eq!(made_on(&log(&lines), &branch, &start), ['3', '4', '6'].map(oid));
        assert_eq!(made_on(&log(&lines[..4]), &branch, &start), [oid('2')]);
    }
}
