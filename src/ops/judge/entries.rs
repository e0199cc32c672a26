//! The entries of a verdict before judging: each candidate as it is now, without its changes to
//! protected paths, with its size, flags and agreement.
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
use crate::ops::capture::Captured;
use crate::ops::session::Session;
use crate::process;

/// Captures a run's candidates and makes an entry for each, in spawn order, without results.
pub fn of_run(
    session: &Session,
    run: &Run,
    oracle: &[OracleCommand],
    settings: &JudgeSettings,
) -> Result<Vec<Entry>> {
    let candidates = session.capture_all(run)?;
    for captured in &candidates {
        session.print_omissions(captured);
    }
    from_captured(session, run, oracle, settings, &candidates)
}

/// An entry for each of these candidates, without results.
pub fn from_captured(
    session: &Session,
    run: &Run,
    oracle: &[OracleCommand],
    settings: &JudgeSettings,
    candidates: &[Captured],
) -> Result<Vec<Entry>> {
    let scripts = scripts_of(&session.repo, &run.base, oracle)?;
    let made = process::in_parallel(process::processors(), candidates, |captured| {
        entry_of(session, run, captured, settings, &scripts)
    })?;
    let (mut entries, changes): (Vec<Entry>, Vec<Vec<ChangedFile>>) = made.into_iter().unzip();
    set_agreement(&mut entries, &changes);
    Ok(entries)
}

/// A change to one path, with the content of both sides.
struct ChangedFile {
    path: TreePath,
    before: FileContent,
    after: FileContent,
    /// True if lines of an existing file are removed.
    loses: bool,
}

/// The content of a path on one side of a change.
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
        // A submodule's commit cannot be read as a blob.
        match repo.blob(oid) {
            Ok(bytes) if !binary => FileContent::Text(bytes),
            _ => FileContent::Binary(*oid),
        }
    }

    fn text(&self) -> Option<&[u8]> {
        match self {
            FileContent::Missing => None,
            FileContent::Text(bytes) => Some(bytes),
            FileContent::Binary(_) => Some(b""),
        }
    }

    fn as_agreement(&self) -> Content<'_> {
        match self {
            FileContent::Missing => Content::Missing,
            FileContent::Text(bytes) => Content::Text(bytes),
            FileContent::Binary(oid) => Content::Binary(oid.as_str()),
        }
    }
}

fn entry_of(
    session: &Session,
    run: &Run,
    captured: &Captured,
    settings: &JudgeSettings,
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
        let (judged, dropped) = protected(repo, &run.base, &tree, &settings.protect)?;
        if judged != tree {
            changes = diff::changes(repo, &run.base, &run.base, &judged)?;
            entry.blast = diff::blast(repo, &run.base, &run.base, &judged, &changes)?;
            entry.judged_tree = Some(judged);
            entry.dropped =
                dropped.iter().map(|p| String::from_utf8_lossy(p).into_owned()).collect();
        }
    }
    let files: Vec<ChangedFile> = changes.iter().map(|change| changed_file(repo, change)).collect();
    entry.flags = flags(&changes, &files, scripts);
    Ok((entry, files))
}

fn changed_file(repo: &Repo, change: &Change) -> ChangedFile {
    let binary = change.lines.is_none();
    ChangedFile {
        path: change.path.clone(),
        before: FileContent::of(repo, &change.old, binary),
        after: FileContent::of(repo, &change.new, binary),
        loses: change.lines.is_none_or(|(_, deleted)| deleted > 0)
            && change.status != ChangeStatus::Added,
    }
}

/// The flags of a candidate, sorted.
fn flags(changes: &[Change], files: &[ChangedFile], scripts: &BTreeSet<String>) -> Vec<Flag> {
    let path = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // A test that was only moved is still there.
    let was_moved = |change: &Change| {
        change.status == ChangeStatus::Deleted
            && changes.iter().any(|c| {
                c.status == ChangeStatus::Added
                    && c.new == change.old
                    && flags::is_test_path(&path(&c.path))
            })
    };
    let mut found: Vec<Flag> = Vec::new();
    for (change, file) in changes.iter().zip(files) {
        let name = path(&file.path);
        let touched = TouchedPath {
            path: &name,
            before: file.before.text(),
            after: file.after.text(),
            loses: file.loses,
        };
        let mut flags = flags::flags(touched, scripts);
        if was_moved(change) {
            flags.retain(|flag| !matches!(flag, Flag::TestsDeleted { .. }));
        }
        found.append(&mut flags);
        if change.mode == EntryMode::Link
            && let Some(target) = file.after.text()
            && flags::leads_outside(&name, &String::from_utf8_lossy(target))
        {
            found.push(Flag::LinksOutside { path: name });
        }
    }
    found.sort();
    found
}

/// Sets the agreement of each usable candidate with the others. Equal trees count once.
fn set_agreement(entries: &mut [Entry], files: &[Vec<ChangedFile>]) {
    let mut words = Vocabulary::default();
    let mut distinct: BTreeMap<Oid, Edit> = BTreeMap::new();
    for (entry, files) in entries.iter().zip(files).filter(|(entry, _)| entry.usable()) {
        let Some(tree) = entry.judged() else { continue };
        distinct.entry(*tree).or_insert_with(|| {
            let mut edit = Edit::default();
            for file in files {
                edit.add(
                    &mut words,
                    &file.path,
                    file.before.as_agreement(),
                    file.after.as_agreement(),
                );
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

/// Sets the agreement of entries that come from several judgings.
pub fn set_agreement_of_judged(session: &Session, run: &Run, entries: &mut [Entry]) -> Result<()> {
    let repo = &session.repo;
    let files = entries.iter().map(|entry| {
        let Some(tree) = entry.judged() else { return Ok(Vec::new()) };
        if !entry.usable() {
            return Ok(Vec::new());
        }
        let changes = diff::changes(repo, &run.base, &run.base, tree)?;
        Ok(changes.iter().map(|change| changed_file(repo, change)).collect())
    });
    let files = files.collect::<Result<Vec<Vec<ChangedFile>>>>()?;
    set_agreement(entries, &files);
    Ok(())
}

/// Drops the names of passing tests. They matter only for the base, to tell which tests a candidate
/// broke.
pub fn forget_passing_tests(results: &mut [StageResult]) {
    for report in results.iter_mut().filter_map(|r| r.tests.as_mut()) {
        report.passing.clear();
    }
}
