//! Settling conflicts by the newer file: each conflicted file comes whole from the side that wrote it
//! later, the landing one if neither did. Never markers, never a mixture.
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::error::Result;
use crate::git::capture;
use crate::git::capture::mtimes;
use crate::git::commit::STAGED;
use crate::git::index::{IndexEdits, ScratchIndex};
use crate::git::merge::{self, Conflicts, Group};
use crate::git::mode::EntryMode;
use crate::git::refs;
use crate::model::candidate::Capture;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::run::Run;
use crate::ops::land::plan::{Onto, Plan};
use crate::ops::session::Session;
use crate::ui::json::put_path;

/// Which side a conflicted path was taken from, and why.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The path.
    pub path: TreePath,
    /// Whether from what lands.
    pub child: bool,
    /// When what lands wrote it, in seconds since 1970.
    pub child_time: Option<i64>,
    /// When the other side did.
    pub parent_time: Option<i64>,
}

impl Choice {
    /// For people, and for a commit message.
    pub fn in_words(&self) -> String {
        let time = |seconds: Option<i64>| {
            let time = seconds.and_then(|s| jiff::Timestamp::from_second(s).ok());
            time.map_or_else(|| "unknown".to_owned(), |t| t.to_string())
        };
        let (child, parent) = (time(self.child_time), time(self.parent_time));
        let (side, first, other) = if self.child {
            ("what lands", child, parent)
        } else {
            ("what was there", parent, child)
        };
        format!("{} from {side} ({first}, the other {other})", self.path.quoted())
    }

    /// For documents and the event log.
    pub fn as_json(&self) -> Value {
        let mut object = json!({
            "side": if self.child { "child" } else { "parent" },
            "child_time": self.child_time, "parent_time": self.parent_time,
        });
        put_path(&mut object, "path", &self.path);
        object
    }
}

/// A path, and the mode and object that it is to have; none if it is to go.
type Entry = (TreePath, Option<(EntryMode, Oid)>);

/// The tree with every conflict settled, and how.
pub fn newest_file_wins(
    session: &Session,
    plan: &Plan,
    onto: &Onto<'_>,
    conflicts: &Conflicts,
) -> Result<(Oid, Vec<Choice>)> {
    let repo = &session.repo;
    let child = History::of(session, &plan.run, &plan.candidate, &plan.capture)?;
    let parent = match onto.candidate {
        Some((run, name)) => {
            let latest = session.store.candidate(run, name).latest()?;
            latest.map(|capture| History::of(session, run, name, &capture)).transpose()?
        }
        None => None,
    };
    let mut choices = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    for group in &conflicts.groups {
        let names = originals(session, plan, onto, group)?;
        let mut paths: Vec<&TreePath> = names.values().collect();
        paths.sort();
        paths.dedup();
        let (mut child_time, mut parent_time) = (None, None);
        for path in paths.iter().copied() {
            child_time = child_time.max(child.time(session, path)?);
            let time = match &parent {
                Some(parent) => parent.time(session, path)?,
                None => mtimes::last_touched(repo, onto.tip, path)?,
            };
            parent_time = parent_time.max(time);
        }
        let takes_child = child_time >= parent_time;
        let wanted = if takes_child { 3 } else { 2 };
        for path in &group.paths {
            let Some(stages) = conflicts.stages.get(path) else { continue };
            entries.push((path.clone(), None));
            if let Some(stage) = stages.iter().find(|s| s.number == wanted) {
                entries.push((names[path].clone(), Some((stage.mode, stage.blob))));
            }
        }
        choices.extend(paths.into_iter().map(|path| Choice {
            path: path.clone(),
            child: takes_child,
            child_time,
            parent_time,
        }));
    }
    // What goes first makes room for what comes.
    entries.sort_by_key(|(_, entry)| entry.is_some());
    let tree = with_entries(session, &conflicts.tree, &entries)?;
    Ok((tree, choices))
}

/// The names that a group's paths have on the sides: git puts a file aside as `path~SIDE` where a directory
/// has its name.
fn originals(
    session: &Session,
    plan: &Plan,
    onto: &Onto<'_>,
    group: &Group,
) -> Result<BTreeMap<TreePath, TreePath>> {
    let mut known = BTreeMap::new();
    for tree in [onto.state, &plan.judged.commit, onto.base] {
        known.extend(merge::entries(&session.repo, tree, &group.paths)?);
    }
    let original = |path: &TreePath| match path.iter().rposition(|b| *b == b'~') {
        Some(at) if !known.contains_key(path) => TreePath::new(&path[..at]),
        _ => path.clone(),
    };
    Ok(group.paths.iter().map(|path| (path.clone(), original(path))).collect())
}

/// A tree with some entries replaced or taken out; a file takes the place of a directory.
fn with_entries(session: &Session, tree: &Oid, entries: &[Entry]) -> Result<Oid> {
    let mut edits = IndexEdits::default();
    for (path, entry) in entries {
        match entry {
            Some((mode, blob)) => edits.set(mode, blob, path),
            None => edits.remove(path, tree),
        }
    }
    let scratch = ScratchIndex::from_tree(&session.repo.git(), tree)?;
    scratch.edit(edits)?;
    scratch.write_tree()
}

/// What is known of when a candidate wrote its files.
struct History {
    base: Oid,
    /// The attempt's own commits.
    heads: Vec<Oid>,
    /// The captures, newest first: their commits and times.
    captures: Vec<(Oid, i64)>,
    /// When the files were written that the newest holds.
    written: BTreeMap<TreePath, i64>,
}

impl History {
    fn of(session: &Session, run: &Run, name: &Name, newest: &Capture) -> Result<History> {
        let chain = capture::chain(&session.repo, &newest.commit, &run.base)?;
        // What was only staged says nothing of when.
        let dated = |oid: &Oid| {
            session.repo.commit(oid).is_ok_and(|commit| commit.message.trim_end() != STAGED)
        };
        let heads = chain.iter().flat_map(|(_, commit)| commit.parents.iter().skip(1).cloned());
        let heads = heads.filter(dated).collect();
        let written = match chain.first() {
            Some((_, commit)) => {
                mtimes::of_capture(&session.repo, &refs::mtimes(&run.run, name), commit)?
            }
            None => BTreeMap::new(),
        };
        let captures = chain.into_iter().map(|(oid, commit)| (oid, commit.time)).collect();
        Ok(History { base: run.base, heads, captures, written })
    }

    /// When the attempt gave a path what its newest capture holds: by its own commit, else by the file's
    /// time; a file that is gone, by the first capture that has it no more.
    fn time(&self, session: &Session, path: &TreePath) -> Result<Option<i64>> {
        let repo = &session.repo;
        let at = |commit: &Oid| -> Result<Option<(EntryMode, Oid)>> {
            Ok(merge::entries(repo, commit, std::slice::from_ref(path))?.into_values().next())
        };
        let Some((newest, _)) = self.captures.first() else { return Ok(None) };
        let entry = at(newest)?;
        if entry.as_ref().is_some_and(|(mode, _)| *mode == EntryMode::Directory) {
            // A directory where the other side has a file: as new as the newest in it.
            let mut time = None;
            for file in merge::files_below(repo, newest, path)? {
                time = time.max(self.time(session, &file)?);
            }
            return Ok(time);
        }
        let blob = entry.as_ref().map(|(_, blob)| blob);
        if let Some(time) = mtimes::committed(repo, &self.heads, &self.base, path, blob)? {
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
