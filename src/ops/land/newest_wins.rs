//! `--strategy newest-file-wins`: each conflicted file is taken as a whole from the side that wrote
//! it later. If both sides wrote it at the same time, `merge.tie` says from which side it is taken.
//! No file gets conflict markers or parts of both sides. A conflict about more than one path is not
//! resolved.
use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::config::value::Tie;
use crate::error::Result;
use crate::git::diff;
use crate::git::index::{IndexEdits, edited_tree};
use crate::git::merge::{self, Conflicts};
use crate::git::mode::EntryMode;
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

/// The hint after [`resolve`] has found a conflict that it does not resolve.
pub const WHY_REFUSED: &str = "newest-file-wins takes no side where both sides renamed a file, one deleted a file \
                               that the other renamed, one renamed a directory, or one has a directory or a link in \
                               the place of a file";

/// Resolves every conflict. Returns the merged tree and the choices. `None` in these cases:
/// * A conflict is about more than one path. For example, both sides renamed a file, or one side
///   has a file where the other has a directory.
/// * git has found a rename that [`names_before_renames`] has not.
///
/// Each conflicted file comes from the tree of one side, never from git's attempt to merge it.
pub fn resolve(
    sides: &Sides<'_>,
    conflicts: &Conflicts,
    tie: Tie,
) -> Result<Option<(Oid, Vec<Choice>)>> {
    let times = SideTimes::of(sides)?;
    let renamed = names_before_renames(sides)?;
    let mut edits = IndexEdits::default();
    let mut choices = Vec::new();
    for group in &conflicts.groups {
        let [path] = group.paths.as_slice() else { return Ok(None) };
        let before = renamed.get(path).unwrap_or(path);
        let Some(file) = conflicted_file(sides, conflicts, path, before)? else { return Ok(None) };
        let ConflictedFile { names, entries } = file;
        let written = BySide::new(|side| times.of_path(sides, side, names.on(side)))?;
        let winner = newer(&written, tie);
        match entries.on(winner) {
            Some((mode, blob)) => edits.set(mode, blob, path),
            None => edits.remove(path, &conflicts.tree),
        }
        choices.push(Choice { path: path.clone(), names, winner, times: written });
    }
    Ok(Some((edited_tree(&sides.session.repo, &conflicts.tree, edits)?, choices)))
}

/// The files that one of the sides has renamed since the base: from the new name to the name in the
/// base.
fn names_before_renames(sides: &Sides<'_>) -> Result<BTreeMap<TreePath, TreePath>> {
    let mut renamed = BTreeMap::new();
    for side in [Side::Landing, Side::Target] {
        let since = diff::since(&sides.session.repo, sides.base, sides.tree(side));
        let renames = since.renames()?.into_iter();
        renamed.extend(renames.map(|rename| (rename.change.path, rename.from)));
    }
    Ok(renamed)
}

/// A conflicted file: its names and its entries on both sides.
struct ConflictedFile {
    names: BySide<TreePath>,
    entries: BySide<Option<(EntryMode, Oid)>>,
}

/// The conflicted file at `path` in the merged tree. A side that has not renamed the file has it at
/// `before`, as the base has. `None` if git's three versions of the file are not those of the base
/// and of both sides.
fn conflicted_file(
    sides: &Sides<'_>,
    conflicts: &Conflicts,
    path: &TreePath,
    before: &TreePath,
) -> Result<Option<ConflictedFile>> {
    let entry = |tree: &Oid, path: &TreePath| merge::entry(&sides.session.repo, tree, path);
    let names = BySide::new(|side| {
        let has_it = entry(sides.tree(side), path)?.is_some();
        Ok(if has_it { path } else { before }.clone())
    })?;
    let entries = BySide::new(|side| entry(sides.tree(side), names.on(side)))?;
    let versions = [entry(sides.base, before)?, entries.target, entries.landing];
    let stages = conflicts.stages.get(path).map_or(&[][..], Vec::as_slice);
    let staged = [1, 2, 3].map(|number| {
        let stage = stages.iter().find(|stage| stage.number == number);
        stage.map(|stage| (stage.mode, stage.blob))
    });
    Ok((staged == versions).then_some(ConflictedFile { names, entries }))
}

/// The side that wrote last. A side whose time is unknown loses.
fn newer(times: &BySide<Option<i64>>, tie: Tie) -> Side {
    match (times.landing.cmp(&times.target), tie) {
        (Ordering::Greater, _) | (Ordering::Equal, Tie::Child) => Side::Landing,
        (Ordering::Less, _) | (Ordering::Equal, Tie::Parent) => Side::Target,
    }
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
