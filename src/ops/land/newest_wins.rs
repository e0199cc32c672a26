//! `--strategy newest-file-wins`: each conflicted file comes whole from the side that wrote it
//! later; if both wrote it at the same time, from the side that `merge.tie` names. No file gets conflict
//! markers or parts of both sides.
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::config::value::Tie;
use crate::error::Result;
use crate::git::capture;
use crate::git::capture::mtimes;
use crate::git::commit::STAGED;
use crate::git::diff;
use crate::git::index::{IndexEdits, ScratchIndex};
use crate::git::merge::{self, ConflictGroup, Conflicts, OURS, THEIRS};
use crate::git::mode::EntryMode;
use crate::git::refs;
use crate::model::candidate::Capture;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::ops::land::target::ResolvedTarget;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;
use crate::ui::json::put_path;

/// One side of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The change that lands.
    Landing,
    /// The target as it was.
    Target,
}

/// The side that a conflicted path was taken from, and the times that decided.
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
    /// The time at which the landing change wrote the path, in seconds since 1970; none if unknown.
    pub landing_time: Option<i64>,
    /// The time at which the target wrote the path, in seconds since 1970; none if unknown.
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

    /// The version that lost, with its name if that is another one.
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

/// The choices of `newest-file-wins`, as the event log and documents hold them.
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

/// The sides of a merge whose conflicts are to be resolved.
pub struct Sides<'a> {
    /// The candidate that lands.
    pub candidate: CandidateRef<'a>,
    /// The capture that lands.
    pub capture: &'a Capture,
    /// The commit that is merged: the capture, perhaps without changes to protected paths.
    pub landing: &'a Oid,
    /// The target of the merge.
    pub target: &'a ResolvedTarget,
    /// The commit that both sides come from.
    pub base: &'a Oid,
}

/// A path, and the mode and object that the tree is to have there; none to remove the path.
type PathEdit = (TreePath, Option<(EntryMode, Oid)>);

/// Resolves every conflict; gives the tree and the choices.
pub fn resolve(
    session: &Session,
    sides: &Sides<'_>,
    conflicts: &Conflicts,
    tie: Tie,
) -> Result<(Oid, Vec<Choice>)> {
    let landing = WriteTimes::of(session, sides.candidate, sides.capture)?;
    let target = target_times(session, sides.target)?;
    let files = RenamedFiles::of(session, sides)?;
    let mut choices = Vec::new();
    let mut edits: Vec<PathEdit> = Vec::new();
    for group in &conflicts.groups {
        let names = original_names(session, sides, group)?;
        let paths: BTreeSet<&TreePath> = names.values().collect();
        let named = files.names(session, sides, &paths)?;
        let mut landing_time = None;
        let mut target_time = None;
        for file in &named {
            landing_time = landing_time.max(landing.of_path(session, &file.landing)?);
            target_time = target_time.max(match &target {
                Some(times) => times.of_path(session, &file.target)?,
                None => mtimes::last_touched(&session.repo, &sides.target.tip, &file.target)?,
            });
        }
        let side = newer(landing_time, target_time, tie);
        let wanted = match side {
            Side::Landing => THEIRS,
            Side::Target => OURS,
        };
        for path in &group.paths {
            let Some(stages) = conflicts.stages.get(path) else { continue };
            edits.push((path.clone(), None));
            if let Some(stage) = stages.iter().find(|stage| stage.number == wanted) {
                edits.push((names[path].clone(), Some((stage.mode, stage.blob))));
            }
        }
        choices.extend(named.into_iter().map(|file| Choice {
            path: file.merged(side).clone(),
            landing_name: file.landing,
            target_name: file.target,
            side,
            landing_time,
            target_time,
        }));
    }
    // Removals first: they make space where a file takes the place of a directory.
    edits.sort_by_key(|(_, entry)| entry.is_some());
    let tree = edit_tree(session, &conflicts.tree, &edits)?;
    Ok((tree, choices))
}

/// The files that one side or both have renamed since the base, by their names in the base.
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
            let (repo, base) = (&session.repo, sides.base);
            let renames = diff::renames(repo, base, base, side, diff::MOST_MERGED)?;
            Ok(renames.into_iter().map(|rename| (rename.from, rename.change.path)).collect())
        };
        Ok(RenamedFiles {
            landing: since_base(sides.landing)?,
            target: since_base(sides.target.state())?,
        })
    }

    /// The files that these conflicted paths stand for, each once.
    fn names(
        &self,
        session: &Session,
        sides: &Sides<'_>,
        paths: &BTreeSet<&TreePath>,
    ) -> Result<BTreeSet<FileNames>> {
        let list: Vec<TreePath> = paths.iter().map(|path| (*path).clone()).collect();
        let in_landing = merge::entries(&session.repo, sides.landing, &list)?;
        let in_target = merge::entries(&session.repo, sides.target.state(), &list)?;
        let names = list.into_iter().map(|path| {
            let base = self.name_in_base(&path);
            let landing =
                if in_landing.contains_key(&path) { &path } else { renamed(&self.landing, base) };
            let target =
                if in_target.contains_key(&path) { &path } else { renamed(&self.target, base) };
            FileNames { base: base.clone(), landing: landing.clone(), target: target.clone() }
        });
        Ok(names.collect())
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
    /// The name of the file in the merged tree: the new one if one side renamed it, and that of the
    /// winning side if both did.
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

/// The times at which a candidate wrote its files, if the target is a candidate; none otherwise, because the branch's commits give the times.
fn target_times(session: &Session, target: &ResolvedTarget) -> Result<Option<WriteTimes>> {
    let Some((run, name)) = &target.candidate else { return Ok(None) };
    let candidate = session.store.candidate(run, name);
    candidate.latest()?.map(|capture| WriteTimes::of(session, candidate, &capture)).transpose()
}

/// The names that a group's paths have in the trees: where a directory has a file's name, git puts
/// the file aside as `path~SIDE`.
fn original_names(
    session: &Session,
    sides: &Sides<'_>,
    group: &ConflictGroup,
) -> Result<BTreeMap<TreePath, TreePath>> {
    let mut existing = BTreeMap::new();
    for tree in [sides.target.state(), sides.landing, sides.base] {
        existing.extend(merge::entries(&session.repo, tree, &group.paths)?);
    }
    let mut names = BTreeMap::new();
    for path in &group.paths {
        let original = match path.iter().rposition(|byte| *byte == b'~') {
            Some(at) if !existing.contains_key(path) => TreePath::new(&path[..at]),
            _ => path.clone(),
        };
        names.insert(path.clone(), original);
    }
    Ok(names)
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
    let scratch = ScratchIndex::from_tree(&session.repo.git(), tree)?;
    scratch.edit(index)?;
    scratch.write_tree()
}

/// The times at which a candidate wrote its files.
struct WriteTimes {
    base: Oid,
    /// The attempt's own commits.
    heads: Vec<Oid>,
    /// The captures, newest first: commit and time in seconds since 1970.
    captures: Vec<(Oid, i64)>,
    /// The times at which the files of the newest capture were written, in seconds since 1970.
    written: BTreeMap<TreePath, i64>,
}

impl WriteTimes {
    fn of(session: &Session, candidate: CandidateRef<'_>, newest: &Capture) -> Result<WriteTimes> {
        let run = candidate.run;
        let chain = capture::chain(&session.repo, &newest.commit, &run.base)?;
        // A commit of staged files has the time of the capture, not of the files.
        let dated = |oid: &Oid| {
            session.repo.commit(oid).is_ok_and(|commit| commit.message.trim_end() != STAGED)
        };
        let heads = chain.iter().flat_map(|(_, commit)| commit.parents.iter().skip(1).cloned());
        let heads = heads.filter(dated).collect();
        let written = match chain.first() {
            Some((_, commit)) => {
                mtimes::of_capture(&session.repo, &refs::mtimes(&run.run, candidate.name), commit)?
            }
            None => BTreeMap::new(),
        };
        let captures = chain.into_iter().map(|(oid, commit)| (oid, commit.time)).collect();
        Ok(WriteTimes { base: run.base, heads, captures, written })
    }

    /// The time at which the attempt gave a path the content of the newest capture: that of the
    /// attempt's commit, else the file's own time; for a deleted file, the time of the first
    /// capture without it.
    fn of_path(&self, session: &Session, path: &TreePath) -> Result<Option<i64>> {
        let repo = &session.repo;
        let at = |commit: &Oid| -> Result<Option<(EntryMode, Oid)>> {
            Ok(merge::entries(repo, commit, std::slice::from_ref(path))?.into_values().next())
        };
        let Some((newest, _)) = self.captures.first() else { return Ok(None) };
        let entry = at(newest)?;
        if entry.as_ref().is_some_and(|(mode, _)| *mode == EntryMode::Directory) {
            // A directory where the other side has a file is as new as its newest file.
            let mut time = None;
            for file in merge::files_below(repo, newest, path)? {
                time = time.max(self.of_path(session, &file)?);
            }
            return Ok(time);
        }
        let blob = entry.as_ref().map(|(_, blob)| blob);
        if let Some(time) = mtimes::commit_time(repo, &self.heads, &self.base, path, blob)? {
            return Ok(Some(time));
        }
        if let Some(time) = self.written.get(path) {
            return Ok(Some(*time));
        }
        let mut since = None;
        for (commit, time) in &self.captures {
            if at(commit)? != entry {
                break;
            }
            since = Some(*time);
        }
        Ok(since)
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
