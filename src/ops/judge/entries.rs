//! What is to be judged: each candidate as it is now, without the changes to protected paths, with what a
//! reviewer should know of it.
use std::collections::{BTreeMap, BTreeSet};

use crate::ecosystems::flags::{self, TouchedPath};
use crate::ecosystems::scripts::scripts_of;
use crate::error::Result;
use crate::git::diff::{self, Change, ChangeStatus};
use crate::git::mode::EntryMode;
use crate::git::protect::protected;
use crate::git::repo::Repo;
use crate::model::agreement::{self, Content, Edit, Vocabulary};
use crate::model::flag::Flag;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::StageResult;
use crate::model::path::TreePath;
use crate::model::run::Run;
use crate::model::verdict::{Entry, JudgeSettings};
use crate::ops::session::{Captured, Session};
use crate::process;

/// Captures a run's candidates and makes an entry for each, in spawn order, without results.
pub fn of_run(
    session: &Session,
    run: &Run,
    oracle: &[OracleCommand],
    terms: &JudgeSettings,
) -> Result<Vec<Entry>> {
    let candidates = session.capture_all(run)?;
    for captured in &candidates {
        session.tell_notes(captured);
    }
    from_captured(session, run, oracle, terms, &candidates)
}

/// An entry for each of these candidates, without results.
pub fn from_captured(
    session: &Session,
    run: &Run,
    oracle: &[OracleCommand],
    terms: &JudgeSettings,
    candidates: &[Captured],
) -> Result<Vec<Entry>> {
    let scripts = scripts_of(&session.repo, &run.base, oracle)?;
    let looked = process::in_parallel(process::processors(), candidates, |captured| {
        look(session, run, captured, terms, &scripts)
    })?;
    let (mut entries, changes): (Vec<Entry>, Vec<Vec<ChangedFile>>) = looked.into_iter().unzip();
    compare(&mut entries, &changes);
    Ok(entries)
}

/// How one path changes, with its content.
struct ChangedFile {
    path: TreePath,
    before: FileContent,
    after: FileContent,
    loses: bool,
}

/// What a path holds on one side.
enum FileContent {
    Missing,
    Text(Vec<u8>),
    Binary(Oid),
}

impl FileContent {
    fn of(repo: &Repo, oid: &Oid, binary: bool) -> FileContent {
        if oid.is_null() {
            return FileContent::Missing;
        }
        // A submodule's commit is no blob.
        match repo.blob(oid).ok().filter(|_| !binary) {
            Some(bytes) => FileContent::Text(bytes),
            None => FileContent::Binary(*oid),
        }
    }

    fn text(&self) -> Option<&[u8]> {
        match self {
            FileContent::Missing => None,
            FileContent::Text(bytes) => Some(bytes),
            FileContent::Binary(_) => Some(b""),
        }
    }

    fn content(&self) -> Content<'_> {
        match self {
            FileContent::Missing => Content::Missing,
            FileContent::Text(bytes) => Content::Text(bytes),
            FileContent::Binary(oid) => Content::Binary(oid.as_str()),
        }
    }
}

fn look(
    session: &Session,
    run: &Run,
    captured: &Captured,
    terms: &JudgeSettings,
    scripts: &BTreeSet<String>,
) -> Result<(Entry, Vec<ChangedFile>)> {
    let repo = &session.repo;
    let tree = captured.capture.as_ref().map(|c| c.tree);
    let mut entry = Entry {
        candidate: captured.candidate.candidate.clone(),
        index: captured.candidate.index,
        state: captured.candidate.state,
        iteration: captured.capture.as_ref().map(|c| c.iteration),
        tree,
        judged_tree: None,
        blast: captured.blast,
        agreement: None,
        problem: captured.problem.clone(),
        same_as: None,
        drew_on: run
            .synthesis
            .get(&captured.candidate.candidate)
            .map(|s| s.drew_on.clone())
            .unwrap_or_default(),
        dropped: Vec::new(),
        flags: Vec::new(),
        results: Vec::new(),
    };
    if !captured.usable() {
        return Ok((entry, Vec::new()));
    }
    let mut changes = captured.changes.clone();
    if let Some(tree) = tree {
        let (judged, dropped) = protected(repo, &run.base, &tree, &terms.protect)?;
        if judged != tree {
            changes = diff::changes(repo, &run.base, &run.base, &judged)?;
            entry.blast = diff::blast(repo, &changes);
            entry.judged_tree = Some(judged);
            entry.dropped =
                dropped.iter().map(|p| String::from_utf8_lossy(p).into_owned()).collect();
        }
    }
    let touches: Vec<ChangedFile> = changes.iter().map(|change| touch(repo, change)).collect();
    entry.flags = flags(&changes, &touches, scripts);
    Ok((entry, touches))
}

fn touch(repo: &Repo, change: &Change) -> ChangedFile {
    let binary = change.lines.is_none();
    ChangedFile {
        path: change.path.clone(),
        before: FileContent::of(repo, &change.old, binary),
        after: FileContent::of(repo, &change.new, binary),
        loses: change.lines.is_none_or(|(_, deleted)| deleted > 0)
            && change.status != ChangeStatus::Added,
    }
}

fn flags(changes: &[Change], touches: &[ChangedFile], scripts: &BTreeSet<String>) -> Vec<Flag> {
    let path = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // A test that is merely at another place now is still there.
    let arrived = |change: &Change| {
        let same = |c: &&Change| {
            c.status == ChangeStatus::Added
                && c.new == change.old
                && flags::is_test_path(&path(&c.path))
        };
        changes.iter().any(|c| same(&c))
    };
    let mut found: Vec<Flag> = Vec::new();
    for (change, touch) in changes.iter().zip(touches) {
        let name = path(&touch.path);
        let touched = TouchedPath {
            path: &name,
            before: touch.before.text(),
            after: touch.after.text(),
            loses: touch.loses,
        };
        let moved = change.status == ChangeStatus::Deleted && arrived(change);
        let flags = flags::flags(touched, scripts);
        found.extend(
            flags.into_iter().filter(|f| !(moved && matches!(f, Flag::TestsDeleted { .. }))),
        );
        let target = touch.after.text().filter(|_| change.mode == EntryMode::Link);
        if target
            .is_some_and(|target| flags::leads_outside(&name, &String::from_utf8_lossy(target)))
        {
            found.push(Flag::LinksOutside { path: name });
        }
    }
    found.sort();
    found
}

/// Gives each usable candidate its agreement with the others; copies count once.
fn compare(entries: &mut [Entry], touches: &[Vec<ChangedFile>]) {
    let mut words = Vocabulary::default();
    let mut distinct: BTreeMap<Oid, Edit> = BTreeMap::new();
    for (entry, touches) in entries.iter().zip(touches).filter(|(entry, _)| entry.usable()) {
        let Some(tree) = entry.judged() else { continue };
        distinct.entry(*tree).or_insert_with(|| {
            let mut edit = Edit::default();
            for touch in touches {
                edit.add(&mut words, &touch.path, touch.before.content(), touch.after.content());
            }
            edit
        });
    }
    let (trees, edits): (Vec<Oid>, Vec<Edit>) = distinct.into_iter().unzip();
    let scores: BTreeMap<Oid, Option<f64>> =
        trees.into_iter().zip(agreement::scores(&edits)).collect();
    for entry in entries.iter_mut().filter(|e| e.usable()) {
        entry.agreement = entry.judged().and_then(|tree| scores.get(tree).copied().flatten());
    }
}

/// Gives agreement anew to entries that came from several judgings.
pub fn compare_judged(session: &Session, run: &Run, entries: &mut [Entry]) -> Result<()> {
    let repo = &session.repo;
    let touches = entries.iter().map(|entry| {
        let Some(tree) = entry.judged().filter(|_| entry.usable()) else { return Ok(Vec::new()) };
        let changes = diff::changes(repo, &run.base, &run.base, tree)?;
        Ok(changes.iter().map(|change| touch(repo, change)).collect())
    });
    let touches = touches.collect::<Result<Vec<Vec<ChangedFile>>>>()?;
    compare(entries, &touches);
    Ok(())
}

/// The names of passing tests matter for the base alone, to tell what was broken.
pub fn forget_passing_tests(results: &mut [StageResult]) {
    for report in results.iter_mut().filter_map(|r| r.tests.as_mut()) {
        report.passing.clear();
    }
}
