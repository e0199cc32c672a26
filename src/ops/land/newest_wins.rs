//! `--strategy newest-file-wins`: each conflicted file is taken as a whole from the side that wrote it later.
//! If both sides wrote it at the same time, `merge.tie` says from which side it is taken. No file gets
//! conflict markers or parts of both sides.
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::config::value::Tie;
use crate::error::Result;
use crate::git::diff;
use crate::git::index::{IndexEdits, edited_tree};
use crate::git::merge::{self, ConflictGroup, Conflicts};
use crate::git::mode::EntryMode;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::ops::land::sides::{BySide, Side, SideTimes, Sides};
use crate::ui::json::put_path;

/// The side from which a conflicted file was taken, and the times that decided this.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The path in the merged tree.
    pub path: TreePath,
    /// The names of the file on both sides.
    pub names: BySide<TreePath>,
    /// The side that won.
    pub winner: Side,
    /// The times at which the sides wrote the file, in seconds since 1970; `None` if unknown.
    pub times: BySide<Option<i64>>,
}

impl Choice {
    /// A line for the terminal and for commit messages.
    pub fn in_words(&self) -> String {
        let loser = self.winner.other();
        let of_winner = in_words(*self.times.on(self.winner));
        let of_loser = in_words(*self.times.on(loser));
        let from = match self.winner {
            Side::Landing => "what lands",
            Side::Target => "what was there",
        };
        let name = self.names.on(loser);
        let other = if *name == self.path {
            "the other".to_owned()
        } else {
            format!("the other as {}", name.quoted())
        };
        format!("{} from {from} ({of_winner}, {other} {of_loser})", self.path.quoted())
    }
}

fn in_words(seconds: Option<i64>) -> String {
    let time = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "unknown".to_owned(), |time| time.to_string())
}

/// The choices of `newest-file-wins` as JSON, for the event log and for `--json`.
pub fn choices_as_json(choices: &[Choice]) -> Value {
    let mut list = Vec::new();
    for Choice { path, names, winner, times } in choices {
        let side = match winner {
            Side::Landing => "child",
            Side::Target => "parent",
        };
        let mut object = json!({
            "side": side, "child_time": times.landing, "parent_time": times.target,
            "tie": times.landing == times.target,
        });
        put_path(&mut object, "path", path);
        for (key, name) in [("child_path", &names.landing), ("parent_path", &names.target)] {
            if name != path {
                put_path(&mut object, key, name);
            }
        }
        list.push(object);
    }
    Value::Array(list)
}

/// The mode and the object of a path in a tree.
type Entry = (EntryMode, Oid);

/// A path and its new entry in the merged tree; with `None`, the path is removed.
type PathEdit = (TreePath, Option<Entry>);

/// Resolves every conflict. Returns the merged tree and the choices.
///
/// Each conflicted file comes from the tree of one side, never from git's attempt to merge it. git also
/// reports conflicts in files that only one side has changed, for example in a new file in a directory that
/// the other side has renamed. Such a file comes from the side that has changed it.
pub fn resolve(sides: &Sides<'_>, conflicts: &Conflicts, tie: Tie) -> Result<(Oid, Vec<Choice>)> {
    let times = SideTimes::of(sides)?;
    let renames = RenamedFiles::of(sides)?;
    let mut choices = Vec::new();
    let mut edits: Vec<PathEdit> = Vec::new();
    for group in &conflicts.groups {
        let in_stages = group.paths.iter().filter(|path| conflicts.stages.contains_key(*path));
        edits.extend(in_stages.map(|path| (path.clone(), None)));
        let mut disputed = Vec::new();
        for file in renames.files(sides, &original_names(sides, group)?)? {
            match file.changed_by_one_side() {
                Some(side) => edits.extend(file.edit(side)),
                None => disputed.push(file),
            }
        }
        let written = BySide::new(|side| {
            let mut newest = None;
            for file in &disputed {
                let time = times.of_path(sides, side, file.names.by_side.on(side))?;
                newest = newest.max(time);
            }
            Ok(newest)
        })?;
        let winner = newer(&written, tie);
        for file in disputed {
            edits.extend(file.edit(winner));
            choices.extend(choices_in_lost_directory(sides, &times, &file, winner)?);
            choices.push(Choice {
                path: file.names.merged(winner).clone(),
                names: file.names.by_side,
                winner,
                times: written.clone(),
            });
        }
    }
    // Removals come first, because a new file may have the path of a directory whose files are removed.
    edits.sort_by_key(|(_, entry)| entry.is_some());
    let tree = edit_tree(&sides.session.repo, &conflicts.tree, &edits)?;
    Ok((tree, choices))
}

/// The choices for files that are lost because the winning side has a file where the losing side has a
/// directory: one for each file that the losing side has changed in that directory. Empty in other cases.
fn choices_in_lost_directory(
    sides: &Sides<'_>,
    times: &SideTimes,
    file: &ConflictedFile,
    winner: Side,
) -> Result<Vec<Choice>> {
    let loser = winner.other();
    if !is_directory(file.entries.on(loser)) || is_directory(file.entries.on(winner)) {
        return Ok(Vec::new());
    }
    let tree = sides.tree(loser);
    let below = merge::files_below(&sides.session.repo, tree, file.names.by_side.on(loser))?;
    let before = merge::entries(&sides.session.repo, sides.base, &below)?;
    let after = merge::entries(&sides.session.repo, tree, &below)?;
    let of_file = times.of_path(sides, winner, file.names.by_side.on(winner))?;
    let mut lost = Vec::new();
    for path in below.into_iter().filter(|path| before.get(path) != after.get(path)) {
        let of_lost = times.of_path(sides, loser, &path)?;
        let times = BySide::new(|side| Ok(if side == winner { of_file } else { of_lost }))?;
        let names = BySide { landing: path.clone(), target: path.clone() };
        lost.push(Choice { path, names, winner, times });
    }
    Ok(lost)
}

fn is_directory(entry: &Option<Entry>) -> bool {
    matches!(entry, Some((EntryMode::Directory, _)))
}

/// One conflicted file, with its entries in the trees of the base and of both sides.
struct ConflictedFile {
    names: FileNames,
    base: Option<Entry>,
    entries: BySide<Option<Entry>>,
}

impl ConflictedFile {
    /// The only side that has changed or renamed the file; `None` if both sides have.
    fn changed_by_one_side(&self) -> Option<Side> {
        let FileNames { base, by_side } = &self.names;
        let unchanged = |side| *self.entries.on(side) == self.base && by_side.on(side) == base;
        [Side::Landing, Side::Target].into_iter().find(|side| unchanged(side.other()))
    }

    /// The edit that puts one side's version of the file into the merged tree. `None` if this version is a
    /// directory: git has already put the directory's files into the merged tree.
    fn edit(&self, side: Side) -> Option<PathEdit> {
        let entry = self.entries.on(side).filter(|(mode, _)| *mode != EntryMode::Directory)?;
        Some((self.names.merged(side).clone(), Some(entry)))
    }
}

/// For each side, the files that it has renamed since the base: from the name in the base to the new name.
struct RenamedFiles(BySide<BTreeMap<TreePath, TreePath>>);

/// The names of one file in the base and on both sides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileNames {
    base: TreePath,
    by_side: BySide<TreePath>,
}

impl RenamedFiles {
    fn of(sides: &Sides<'_>) -> Result<RenamedFiles> {
        let base = sides.base;
        Ok(RenamedFiles(BySide::new(|side| {
            let renames = diff::since(&sides.session.repo, base, sides.tree(side))
                .renames(diff::MOST_MERGED)?;
            Ok(renames.into_iter().map(|rename| (rename.from, rename.change.path)).collect())
        })?))
    }

    /// The files that have one of these conflicted paths in any of the three trees, without duplicates.
    fn files(&self, sides: &Sides<'_>, paths: &BTreeSet<TreePath>) -> Result<Vec<ConflictedFile>> {
        let entries =
            |tree: &Oid, paths: &[TreePath]| merge::entries(&sides.session.repo, tree, paths);
        let list: Vec<TreePath> = paths.iter().cloned().collect();
        let there = BySide::new(|side| entries(sides.tree(side), &list))?;
        let mut names = BTreeSet::new();
        for path in &list {
            let base = self.name_in_base(path);
            let by_side = BySide::new(|side| {
                let renamed = self.0.on(side).get(base).unwrap_or(base);
                Ok(if there.on(side).contains_key(path) { path } else { renamed }.clone())
            })?;
            names.insert(FileNames { base: base.clone(), by_side });
        }
        let in_base: Vec<TreePath> = names.iter().map(|names| names.base.clone()).collect();
        let base = entries(sides.base, &in_base)?;
        let found = BySide::new(|side| {
            let paths: Vec<TreePath> =
                names.iter().map(|names| names.by_side.on(side).clone()).collect();
            entries(sides.tree(side), &paths)
        })?;
        let mut files = Vec::new();
        for names in names {
            let entry = |side| Ok(found.on(side).get(names.by_side.on(side)).copied());
            let base = base.get(&names.base).copied();
            files.push(ConflictedFile { base, entries: BySide::new(entry)?, names });
        }
        Ok(files)
    }

    /// The name in the base of the file that a side has at this path.
    fn name_in_base<'a>(&'a self, path: &'a TreePath) -> &'a TreePath {
        let mut renames = self.0.landing.iter().chain(&self.0.target);
        renames.find(|(_, new)| *new == path).map_or(path, |(old, _)| old)
    }
}

impl FileNames {
    /// The name of the file in the merged tree. If only one side has renamed the file, it is the new name. If
    /// both have, it is the winning side's name.
    fn merged(&self, winner: Side) -> &TreePath {
        let BySide { landing, target } = &self.by_side;
        if *landing == self.base {
            target
        } else if *target == self.base {
            landing
        } else {
            self.by_side.on(winner)
        }
    }
}

/// The side that wrote last. A side whose time is unknown loses.
fn newer(times: &BySide<Option<i64>>, tie: Tie) -> Side {
    match (times.landing.cmp(&times.target), tie) {
        (Ordering::Greater, _) | (Ordering::Equal, Tie::Child) => Side::Landing,
        (Ordering::Less, _) | (Ordering::Equal, Tie::Parent) => Side::Target,
    }
}

/// The names that a group's paths have in the three trees. If one side has a file where the other has a
/// directory, git calls the file `path~SIDE` in the merged tree; in the tree of its side, the file is called
/// `path`.
fn original_names(sides: &Sides<'_>, group: &ConflictGroup) -> Result<BTreeSet<TreePath>> {
    let mut existing = BTreeMap::new();
    for tree in [sides.target.state(), sides.landing, sides.base] {
        existing.extend(merge::entries(&sides.session.repo, tree, &group.paths)?);
    }
    Ok(group
        .paths
        .iter()
        .map(|path| match path.iter().rposition(|byte| *byte == b'~') {
            Some(at) if !existing.contains_key(path) => TreePath::new(&path[..at]),
            _ => path.clone(),
        })
        .collect())
}

/// A copy of the tree with some entries replaced or removed. A file can replace a directory.
fn edit_tree(repo: &Repo, tree: &Oid, edits: &[PathEdit]) -> Result<Oid> {
    let mut index = IndexEdits::default();
    for (path, entry) in edits {
        match entry {
            Some((mode, blob)) => index.set(mode, blob, path),
            None => index.remove(path, tree),
        }
    }
    edited_tree(repo, tree, index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_that_wrote_last_wins_and_a_tie_goes_to_the_configured_side() {
        let cases = [
            (Some(2), Some(1), Side::Landing),
            (Some(1), Some(2), Side::Target),
            (Some(1), Some(1), Side::Landing),
            (None, Some(1), Side::Target),
            (Some(1), None, Side::Landing),
            (None, None, Side::Landing),
        ];
        for (landing, target, expected) in cases {
            let times = BySide { landing, target };
            assert_eq!(newer(&times, Tie::Child), expected, "{times:?}");
            let expected = if landing == target { Side::Target } else { expected };
            assert_eq!(newer(&times, Tie::Parent), expected, "{times:?}");
        }
    }

    #[test]
    fn a_choice_says_which_side_won_and_when_each_wrote() {
        let choice = |winner| Choice {
            path: TreePath::new("a"),
            names: BySide { landing: TreePath::new("a"), target: TreePath::new("b") },
            winner,
            times: BySide { landing: Some(0), target: None },
        };
        assert_eq!(
            choice(Side::Landing).in_words(),
            "a from what lands (1970-01-01T00:00:00Z, the other as b unknown)"
        );
        assert_eq!(
            choice(Side::Target).in_words(),
            "a from what was there (unknown, the other 1970-01-01T00:00:00Z)"
        );
    }
}
