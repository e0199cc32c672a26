//! Three-way merges that write only objects, and touch no checkout and no index.
use std::collections::BTreeMap;

use gix::bstr::ByteSlice;

use crate::error::{Error, Result};
use crate::git::cli::Git;
use crate::git::mode::EntryMode;
use crate::git::repo::{Repo, to_oid};
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The result of a three-way merge.
#[derive(Clone, Debug)]
pub enum MergeResult {
    /// The merged tree.
    Clean(Oid),
    /// The conflicts that prevent a clean merge.
    Conflicts(Conflicts),
}

impl MergeResult {
    /// The merged tree, with conflict markers where there are conflicts.
    pub fn tree(&self) -> &Oid {
        match self {
            MergeResult::Clean(tree) => tree,
            MergeResult::Conflicts(conflicts) => &conflicts.tree,
        }
    }
}

/// Conflicts that a person or a strategy has to resolve.
#[derive(Clone, Debug)]
pub struct Conflicts {
    /// The tree that git would leave in the checkout, with conflict markers in files.
    pub tree: Oid,
    /// The index stages of each conflicted path.
    pub stages: BTreeMap<TreePath, Vec<IndexStage>>,
    /// The groups of paths that are in conflict with each other.
    pub groups: Vec<ConflictGroup>,
}

/// One side's version of a conflicted path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexStage {
    pub mode: EntryMode,
    pub blob: Oid,
    /// 1 for the base, 2 for the merge's first side, 3 for the side that is merged into it.
    pub number: u8,
}

/// Paths that are in one conflict with each other, e.g. both new names of a file that each side has
/// renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictGroup {
    /// The group's paths, sorted.
    pub paths: Vec<TreePath>,
    /// The kinds of conflict: `contents`, `modify/delete`, `binary`, ….
    pub kinds: Vec<String>,
}

/// Merges `theirs` into `ours` over `base` without touching any checkout. `ours` and `theirs` can
/// be any revisions. Conflict markers show them as they are given.
pub fn merge(git: &Git, base: &Oid, ours: &str, theirs: &str) -> Result<MergeResult> {
    let call = git.call("merge-tree").args(["--write-tree", "-z", "--messages"]);
    let output = call.arg(format!("--merge-base={base}")).args([ours, theirs]).output()?;
    let end = output.stdout.iter().position(|b| *b == 0).unwrap_or(output.stdout.len());
    let tree = std::str::from_utf8(&output.stdout[..end]).ok().and_then(|t| Oid::parse(t.trim()));
    match (output.code, tree) {
        (0, Some(tree)) => Ok(MergeResult::Clean(tree)),
        (1, Some(tree)) => {
            let rest = output.stdout.get(end + 1..).unwrap_or_default();
            let unknown = || Error::internal("git merge-tree gave an answer of an unknown form");
            Ok(MergeResult::Conflicts(parse(tree, rest).ok_or_else(unknown)?))
        }
        _ => Err(output.error("merge-tree")),
    }
}

/// Parses the output of `git merge-tree` after the tree: the entries of conflicted paths, an empty
/// record, and the messages.
fn parse(tree: Oid, answer: &[u8]) -> Option<Conflicts> {
    let mut records = answer.split(|b| *b == 0);
    let mut stages: BTreeMap<TreePath, Vec<IndexStage>> = BTreeMap::new();
    for record in records.by_ref().take_while(|r| !r.is_empty()) {
        let tab = record.iter().position(|b| *b == b'\t')?;
        let mut fields = std::str::from_utf8(&record[..tab]).ok()?.split(' ');
        let mode = fields.next()?.parse().ok()?;
        let blob = Oid::parse(fields.next()?)?;
        let number = fields.next()?.parse().ok()?;
        let path = TreePath::new(&record[tab + 1..]);
        stages.entry(path).or_default().push(IndexStage { mode, blob, number });
    }
    let mut groups: Vec<ConflictGroup> = Vec::new();
    while let Some(count) =
        records.next().and_then(|n| std::str::from_utf8(n).ok()?.parse::<usize>().ok())
    {
        let mut paths: Vec<TreePath> = records.by_ref().take(count).map(TreePath::new).collect();
        let kind = records.next()?;
        let message = records.next()?;
        // The kind in the message is more precise. The kind in the record is `contents` even for
        // `add/add`.
        let within = |text: &[u8]| {
            let text = String::from_utf8_lossy(text).into_owned();
            Some(text.strip_prefix("CONFLICT (")?.split(')').next()?.to_owned())
        };
        let Some(kind) = within(kind).map(|kind| within(message).unwrap_or(kind)) else { continue };
        // Groups that share a path with the new group become part of it.
        let (same, others): (Vec<ConflictGroup>, _) =
            groups.into_iter().partition(|g| g.paths.iter().any(|p| paths.contains(p)));
        let mut kinds: Vec<String> =
            same.iter().flat_map(|g| g.kinds.clone()).chain([kind]).collect();
        paths.extend(same.into_iter().flat_map(|g| g.paths));
        paths.sort();
        paths.dedup();
        kinds.sort();
        kinds.dedup();
        groups = others;
        groups.push(ConflictGroup { paths, kinds });
    }
    // A conflicted path that no message names gets a group of its own.
    for path in stages.keys() {
        if !groups.iter().any(|g| g.paths.contains(path)) {
            groups.push(ConflictGroup { paths: vec![path.clone()], kinds: Vec::new() });
        }
    }
    groups.sort_by(|a, b| a.paths.cmp(&b.paths));
    Some(Conflicts { tree, stages, groups })
}

impl Conflicts {
    /// A line for people, with each path and its kinds of conflict.
    pub fn in_words(&self) -> String {
        self.groups
            .iter()
            .map(|group| {
                let paths: Vec<String> = group.paths.iter().map(TreePath::quoted).collect();
                match group.kinds.as_slice() {
                    [] => paths.join(", "),
                    kinds => format!("{} ({})", paths.join(", "), kinds.join(", ")),
                }
            })
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Each conflicted path with its kinds of conflict, for JSON output.
    pub fn as_pairs(&self) -> impl Iterator<Item = (&[u8], &[String])> {
        self.groups.iter().flat_map(|g| g.paths.iter().map(|p| (p.as_bytes(), g.kinds.as_slice())))
    }
}

/// The mode and object of a path in `tree`, a tree or a commit. `None` if `tree` does not have the
/// path.
pub fn entry(repo: &Repo, tree: &Oid, path: &TreePath) -> Result<Option<(EntryMode, Oid)>> {
    let found = repo.entry(tree, path.as_bstr())?;
    Ok(found.map(|(mode, id)| (mode, to_oid(id))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_conflicted_path_is_in_one_group_whatever_the_messages_say(
            parts in prop::collection::vec(prop::sample::select(vec![
                "100644 0123456789abcdef0123456789abcdef01234567 1\ta", "100644 0123456789abcdef0123456789abcdef01234567 2\tb\tc",
                "1", "2", "99999999999999999999", "a", "b\tc", "CONFLICT (contents)", "CONFLICT (", "Auto-merging", "\t", "é", "",
            ]), 0..16),
        ) {
            let tree = Oid::parse(&"0".repeat(40)).expect("full");
            if let Some(read) = parse(tree, parts.join("\0").as_bytes()) {
                for path in read.stages.keys() {
                    let groups = read.groups.iter().filter(|g| g.paths.contains(path)).count();
                    prop_assert_eq!(groups, 1, "{:?}", read.groups);
                }
                let words = read.in_words();
                prop_assert!(!words.contains(char::is_control), "{words:?}");
            }
        }
    }
}
