//! `--strategy newest-file-wins`: each conflicted file is taken as a whole from the side that wrote
//! it later. If both sides wrote it at the same time, it is taken from the side that `merge.tie`
//! names. No file gets conflict markers or parts of both sides.
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::config::value::Tie;
use crate::error::Result;
use crate::git::diff;
use crate::git::index::{IndexEdits, edited_tree};
use crate::git::merge::{self, ConflictGroup, Conflicts};
use crate::git::mode::EntryMode;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::ops::land::sides::{Side, SideTimes, Sides};
use crate::ops::session::Session;
use crate::ui::json::put_path;

/// The side from which a conflicted path was taken, and the times that decided.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The path in the merged tree.
    pub path: TreePath,
    /// The name of the file in the landing change.
    pub landing_name: TreePath,
    /// The name of the file in the target.
    pub target_name: TreePath,
    /// The side that won.
    pub side: Side,
    /// The time at which the landing change wrote the path, in seconds since 1970; `None` if unknown.
    pub landing_time: Option<i64>,
    /// The time at which the target wrote the path, in seconds since 1970; `None` if unknown.
    pub target_time: Option<i64>,
}

impl Choice {
    /// True if both sides wrote the file at the same time, or neither time is known.
    fn is_tie(&self) -> bool {
        self.landing_time == self.target_time
    }

    /// A line for people and for commit messages.
    pub fn in_words(&self) -> String {
        let landing = in_words(self.landing_time);
        let target = in_words(self.target_time);
        let path = self.path.quoted();
        match self.side {
            Side::Landing => {
                let other = self.other(&self.target_name);
                format!("{path} from what lands ({landing}, {other} {target})")
            }
            Side::Target => {
                let other = self.other(&self.landing_name);
                format!("{path} from what was there ({target}, {other} {landing})")
            }
        }
    }

    /// The losing version in words, with its name if it differs.
    fn other(&self, name: &TreePath) -> String {
        if *name == self.path {
            "the other".into()
        } else {
            format!("the other as {}", name.quoted())
        }
    }
}

fn in_words(seconds: Option<i64>) -> String {
    let time = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "unknown".to_owned(), |time| time.to_string())
}

/// The choices of `newest-file-wins` as JSON, for the event log and documents.
pub fn choices_as_json(choices: &[Choice]) -> Value {
    let mut list = Vec::new();
    for choice in choices {
        let side = match choice.side {
            Side::Landing => "child",
            Side::Target => "parent",
        };
        let mut object = json!({
            "side": side, "child_time": choice.landing_time, "parent_time": choice.target_time,
            "tie": choice.is_tie(),
        });
        put_path(&mut object, "path", &choice.path);
        if choice.landing_name != choice.path {
            put_path(&mut object, "child_path", &choice.landing_name);
        }
        if choice.target_name != choice.path {
            put_path(&mut object, "parent_path", &choice.target_name);
        }
        list.push(object);
    }
    Value::Array(list)
}

/// The mode and the object of a path in a tree.
type Entry = (EntryMode, Oid);

/// A path and its new entry in the tree; `None` removes the path.
type PathEdit = (TreePath, Option<Entry>);

/// Resolves every conflict; gives the tree and the choices.
///
/// Each file comes from the tree of one side, never from git's attempt to merge it. A file that
/// only one side has changed comes from that side, for example a new file in a directory that the
/// other side has renamed.
pub fn resolve(
    session: &Session,
    sides: &Sides<'_>,
    conflicts: &Conflicts,
    tie: Tie,
) -> Result<(Oid, Vec<Choice>)> {
    let times = SideTimes::of(session, sides)?;
    let renames = RenamedFiles::of(session, sides)?;
    let mut choices = Vec::new();
    let mut edits: Vec<PathEdit> = Vec::new();
    for group in &conflicts.groups {
        let in_stages = group.paths.iter().filter(|path| conflicts.stages.contains_key(*path));
        edits.extend(in_stages.map(|path| (path.clone(), None)));
        let mut disputed = Vec::new();
        for file in renames.files(session, sides, &original_names(session, sides, group)?)? {
            match file.changed_by_one_side() {
                Some(side) => edits.extend(file.edit(side)),
                None => disputed.push(file),
            }
        }
        let mut written = [None, None];
        for file in &disputed {
            for (time, side) in written.iter_mut().zip([Side::Landing, Side::Target]) {
                *time = (*time).max(times.of_path(session, sides, side, file.names.on(side))?);
            }
        }
        let [landing_time, target_time] = written;
        let side = newer(landing_time, target_time, tie);
        for file in disputed {
            edits.extend(file.edit(side));
            choices.extend(choices_in_lost_directory(session, sides, &times, &file, side)?);
            choices.push(Choice {
                path: file.names.merged(side).clone(),
                landing_name: file.names.landing,
                target_name: file.names.target,
                side,
                landing_time,
                target_time,
            });
        }
    }
    // Removals come first, because a file may take the place of a directory.
    edits.sort_by_key(|(_, entry)| entry.is_some());
    let tree = edit_tree(session, &conflicts.tree, &edits)?;
    Ok((tree, choices))
}

/// If the winning side has a file in place of the losing side's directory: the choices for the
/// files that the losing side has changed in that directory.
fn choices_in_lost_directory(
    session: &Session,
    sides: &Sides<'_>,
    times: &SideTimes,
    file: &ConflictedFile,
    winner: Side,
) -> Result<Vec<Choice>> {
    let loser = winner.other();
    if !is_directory(file.on(loser)) || is_directory(file.on(winner)) {
        return Ok(Vec::new());
    }
    let tree = sides.tree(loser);
    let below = merge::files_below(&session.repo, tree, file.names.on(loser))?;
    let before = merge::entries(&session.repo, sides.base, &below)?;
    let after = merge::entries(&session.repo, tree, &below)?;
    let of_file = times.of_path(session, sides, winner, file.names.on(winner))?;
    let mut lost = Vec::new();
    for path in below.into_iter().filter(|path| before.get(path) != after.get(path)) {
        let of_lost = times.of_path(session, sides, loser, &path)?;
        let (landing_time, target_time) = match winner {
            Side::Landing => (of_file, of_lost),
            Side::Target => (of_lost, of_file),
        };
        lost.push(Choice {
            landing_name: path.clone(),
            target_name: path.clone(),
            path,
            side: winner,
            landing_time,
            target_time,
        });
    }
    Ok(lost)
}

fn is_directory(entry: Option<&Entry>) -> bool {
    entry.is_some_and(|(mode, _)| *mode == EntryMode::Directory)
}

/// One conflicted file, with its entries in the base and on both sides.
struct ConflictedFile {
    names: FileNames,
    base: Option<Entry>,
    landing: Option<Entry>,
    target: Option<Entry>,
}

impl ConflictedFile {
    fn on(&self, side: Side) -> Option<&Entry> {
        match side {
            Side::Landing => self.landing.as_ref(),
            Side::Target => self.target.as_ref(),
        }
    }

    /// The side that has changed or renamed the file if the other side has not; `None` if both
    /// have.
    fn changed_by_one_side(&self) -> Option<Side> {
        let unchanged =
            |side| self.on(side) == self.base.as_ref() && *self.names.on(side) == self.names.base;
        [Side::Landing, Side::Target].into_iter().find(|side| unchanged(side.other()))
    }

    /// The edit that puts a side's version into the merged tree. `None` for a directory, whose
    /// files git has already put there.
    fn edit(&self, side: Side) -> Option<PathEdit> {
        let entry = self.on(side).filter(|(mode, _)| *mode != EntryMode::Directory)?;
        Some((self.names.merged(side).clone(), Some(*entry)))
    }
}

/// The new names of the files that a side has renamed since the base, by their names in the base.
struct RenamedFiles {
    landing: BTreeMap<TreePath, TreePath>,
    target: BTreeMap<TreePath, TreePath>,
}

/// The names of one file in the base and on both sides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileNames {
    base: TreePath,
    landing: TreePath,
    target: TreePath,
}

impl RenamedFiles {
    fn of(session: &Session, sides: &Sides<'_>) -> Result<RenamedFiles> {
        let since_base = |side: &Oid| -> Result<BTreeMap<TreePath, TreePath>> {
            let repo = &session.repo;
            let base = sides.base;
            let renames = diff::renames(repo, base, base, side, diff::MOST_MERGED)?;
            Ok(renames.into_iter().map(|rename| (rename.from, rename.change.path)).collect())
        };
        Ok(RenamedFiles {
            landing: since_base(sides.landing)?,
            target: since_base(sides.target.state())?,
        })
    }

    /// The distinct files that have these conflicted paths as their names.
    fn files(
        &self,
        session: &Session,
        sides: &Sides<'_>,
        paths: &BTreeSet<TreePath>,
    ) -> Result<Vec<ConflictedFile>> {
        let entries = |tree: &Oid, paths: &[TreePath]| merge::entries(&session.repo, tree, paths);
        let list: Vec<TreePath> = paths.iter().cloned().collect();
        let in_landing = entries(sides.landing, &list)?;
        let in_target = entries(sides.target.state(), &list)?;
        let names = list.into_iter().map(|path| {
            let base = self.name_in_base(&path);
            let landing =
                if in_landing.contains_key(&path) { &path } else { renamed(&self.landing, base) };
            let target =
                if in_target.contains_key(&path) { &path } else { renamed(&self.target, base) };
            FileNames { base: base.clone(), landing: landing.clone(), target: target.clone() }
        });
        let names: BTreeSet<FileNames> = names.collect();
        let versions = |tree: &Oid, name: fn(&FileNames) -> &TreePath| {
            let paths: Vec<TreePath> = names.iter().map(|names| name(names).clone()).collect();
            entries(tree, &paths)
        };
        let base = versions(sides.base, |names| &names.base)?;
        let landing = versions(sides.landing, |names| &names.landing)?;
        let target = versions(sides.target.state(), |names| &names.target)?;
        let file = |names: FileNames| ConflictedFile {
            base: base.get(&names.base).copied(),
            landing: landing.get(&names.landing).copied(),
            target: target.get(&names.target).copied(),
            names,
        };
        Ok(names.into_iter().map(file).collect())
    }

    /// The name in the base of a file that one side has at this path.
    fn name_in_base<'a>(&'a self, path: &'a TreePath) -> &'a TreePath {
        let mut renames = self.landing.iter().chain(&self.target);
        renames.find(|(_, new)| *new == path).map_or(path, |(old, _)| old)
    }
}

fn renamed<'a>(renames: &'a BTreeMap<TreePath, TreePath>, name: &'a TreePath) -> &'a TreePath {
    renames.get(name).unwrap_or(name)
}

impl FileNames {
    fn on(&self, side: Side) -> &TreePath {
        match side {
            Side::Landing => &self.landing,
            Side::Target => &self.target,
        }
    }

    /// The name of the file in the merged tree. If only one side renamed it, this is the new name;
    /// if both did, it is the winning side's name.
    fn merged(&self, winner: Side) -> &TreePath {
        match winner {
            _ if self.landing == self.base => &self.target,
            _ if self.target == self.base => &self.landing,
            Side::Landing => &self.landing,
            Side::Target => &self.target,
        }
    }
}

/// The side that wrote last. A side without a time loses.
fn newer(landing_time: Option<i64>, target_time: Option<i64>, tie: Tie) -> Side {
    match (landing_time.cmp(&target_time), tie) {
        (Ordering::Greater, _) | (Ordering::Equal, Tie::Child) => Side::Landing,
        (Ordering::Less, _) | (Ordering::Equal, Tie::Parent) => Side::Target,
    }
}

/// The names that a group's paths have in the trees. They differ where a file and a directory have
/// the same name: git then names the file `path~SIDE`.
fn original_names(
    session: &Session,
    sides: &Sides<'_>,
    group: &ConflictGroup,
) -> Result<BTreeSet<TreePath>> {
    let mut existing = BTreeMap::new();
    for tree in [sides.target.state(), sides.landing, sides.base] {
        existing.extend(merge::entries(&session.repo, tree, &group.paths)?);
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

/// A tree with some entries replaced or removed; a file may take the place of a directory.
fn edit_tree(session: &Session, tree: &Oid, edits: &[PathEdit]) -> Result<Oid> {
    let mut index = IndexEdits::default();
    for (path, entry) in edits {
        match entry {
            Some((mode, blob)) => index.set(mode, blob, path),
            None => index.remove(path, tree),
        }
    }
    edited_tree(&session.repo, tree, index)
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
            assert_eq!(newer(landing, target, Tie::Child), expected, "{landing:?} {target:?}");
            let expected = if landing == target { Side::Target } else { expected };
            assert_eq!(newer(landing, target, Tie::Parent), expected, "{landing:?} {target:?}");
        }
    }

    #[test]
    fn a_choice_says_which_side_won_and_when_each_wrote() {
        let choice = |side| Choice {
            path: TreePath::new("a"),
            landing_name: TreePath::new("a"),
            target_name: TreePath::new("b"),
            side,
            landing_time: Some(0),
            target_time: None,
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
