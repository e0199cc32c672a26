//! Makes the entries of a verdict before judging: the present state of each candidate without its
//! changes to protected paths, and its size, flags and agreement.
use std::collections::{BTreeMap, BTreeSet};

use crate::ecosystems::base_project::BaseProject;
use crate::ecosystems::documents;
use crate::ecosystems::flags;
use crate::ecosystems::put_back;
use crate::ecosystems::touched::is_test_path;
use crate::error::{Error, Result};
use crate::git::commit::neutral_commit;
use crate::git::diff::{self, Change, ChangeStatus};
use crate::git::ignored::ignored;
use crate::git::mode::EntryMode;
use crate::git::protect::{RestoredTree, protected};
use crate::git::repo::Repo;
use crate::model::agreement::{self, Edit};
use crate::model::base_tests::{BaseTests, BaseTestsResult};
use crate::model::candidate::{Candidate, State};
use crate::model::changed_file::{ChangedFile, FileContent};
use crate::model::flag::{Flag, FlagKind, LARGE};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::run::Run;
use crate::model::terms::{JudgeSettings, Terms};
use crate::model::usage::UsageSum;
use crate::model::verdict::{Entry, GONE};
use crate::ops::capture::Captured;
use crate::ops::judge::base_tests;
use crate::ops::judge::changed_file::{changed_files, files_of};
use crate::ops::kept_commits;
use crate::ops::session::Session;
use crate::process;
use crate::store::candidate::CandidateRef;

/// Fails if the run's verdict, terms or outcomes name a capture that does not exist here. Without
/// the capture, the candidate would seem unchanged, and another one would win. A candidate with a
/// worktree here needs no old capture, because it is captured again.
pub fn require_captures(session: &Session, run: &Run) -> Result<()> {
    let store = &session.store;
    let mut missing: Vec<CandidateRef<'_>> = Vec::new();
    for candidate in store.candidates(run) {
        if candidate.latest()?.is_none() && !candidate.worktree().is_dir() {
            missing.push(candidate);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let verdict = store.verdict(&run.run)?;
    let terms = store.terms(&run.run)?;
    let parts = store.parts(run)?;
    missing.retain(|candidate| {
        let name = candidate.name;
        let judged = verdict.as_ref().and_then(|verdict| verdict.entry(name));
        let mut alone = parts.iter().filter_map(|(_, part)| part.candidate.as_ref());
        let found = alone.find(|entry| entry.candidate == *name);
        let mut trees = terms.iter().flat_map(|terms| &terms.trees);
        judged.into_iter().chain(found).any(|entry| entry.iteration.is_some())
            || trees.any(|tree| tree.is_judged_for(name))
    });
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(Error::fatal(format!("captures are not here: {}", names.join(", "))).hint(format!(
        "fetch the whole run: `git fetch REMOTE 'refs/frites/{0}/*:refs/frites/{0}/*'`, or decide with `git frites shard collect --remote REMOTE {0}`",
        run.run
    )))
}

/// Captures a run's candidates, and makes an entry without results for each of them, in spawn
/// order.
pub fn of_run(session: &Session, run: &Run, terms: &Terms) -> Result<Vec<Entry>> {
    let candidates = session.capture_all(run)?;
    for captured in &candidates {
        session.print_omissions(captured);
    }
    from_captured(session, run, terms, &candidates)
}

/// Makes an entry without results for each of these candidates.
pub fn from_captured(
    session: &Session,
    run: &Run,
    terms: &Terms,
    candidates: &[Captured],
) -> Result<Vec<Entry>> {
    let base = run.root();
    let project = session.project(base, terms)?;
    if terms.settings.base_tests != BaseTests::Never {
        let usable = candidates.iter().filter(|captured| captured.usable());
        let changes = usable.flat_map(|captured| &captured.changes);
        project.look_for(changes.map(|c| (c.path.lossy(), c.status == ChangeStatus::Added)))?;
    }
    let made = process::in_parallel(process::processors(), candidates, |captured| {
        // No ref reaches the new trees yet, so a garbage collection may delete them. Then they are
        // made again.
        session.repo.retry_during_gc(|| entry_of(session, run, captured, &terms.settings, &project))
    })?;
    let (mut entries, changes): (Vec<Entry>, Vec<Vec<ChangedFile>>) = made.into_iter().unzip();
    set_agreement(&mut entries, &changes);
    Ok(entries)
}

fn entry_of(
    session: &Session,
    run: &Run,
    captured: &Captured,
    settings: &JudgeSettings,
    project: &BaseProject<'_>,
) -> Result<(Entry, Vec<ChangedFile>)> {
    let repo = &session.repo;
    let tree = captured.capture.as_ref().map(|c| c.tree);
    let Candidate { candidate, index, state, end, usage, access, .. } = &captured.candidate;
    let is_lost = captured.gone
        && captured.capture.is_none()
        && matches!(state, State::Open | State::Succeeded);
    let mut entry = Entry {
        candidate: candidate.clone(),
        index: *index,
        state: *state,
        maker: captured.candidate.maker.clone().or_else(|| run.maker(candidate)),
        end: end.clone(),
        not_started: captured.candidate.was_never_started(),
        stopped: captured.candidate.is_stopped(),
        iteration: captured.capture.as_ref().map(|c| c.iteration),
        tree,
        blast: captured.blast,
        problem: captured.problem.clone().or_else(|| is_lost.then(|| GONE.to_owned())),
        usage: UsageSum::of(usage),
        separation: access.as_ref().map(|access| access.separation),
        drew_on: run.synthesis.get(candidate).map(|s| s.drew_on.clone()).unwrap_or_default(),
        ..Entry::default()
    };
    if !captured.usable() {
        return Ok((entry, Vec::new()));
    }
    let mut changes = captured.changes.clone();
    if let Some(tree) = tree {
        let restored = with_protected(repo, run.root(), &tree, settings, project)?;
        if restored.tree != tree {
            kept_commits::keep_beside_housekeeping(session, run, &restored.tree)?;
            (changes, entry.blast) =
                diff::since(repo, &run.base, &restored.tree).changes_and_blast()?;
            entry.judged_tree = Some(restored.tree);
            let dropped = restored.put_back.iter().chain(&restored.taken_out);
            entry.dropped = dropped.map(TreePath::lossy).collect();
            entry.dropped.sort();
        }
    }
    let own_files = files_of(repo, &changes);
    // If the run continues an attempt, the changes of both are checked, as if one attempt had made
    // them all.
    let since_root = match entry.judged() {
        Some(judged) if run.root() != &run.base => {
            Some(diff::since(repo, run.root(), judged).changes()?)
        }
        _ => None,
    };
    let files_since_root = since_root.as_deref().map(|changes| files_of(repo, changes));
    let changes = since_root.as_ref().unwrap_or(&changes);
    let files = files_since_root.as_ref().unwrap_or(&own_files);
    entry.flags = all_flags(repo, run.root(), changes, files, project)?;
    entry.untested = untested(files, project)?;
    entry.base_tests = plan_of_base_tests(session, run, &entry, files, (settings, project))?;
    Ok((entry, own_files))
}

/// If one of these files lies in a project that the test commands do not enter: the manifest of
/// that project. Documents and tests do not count.
fn untested(files: &[ChangedFile], project: &BaseProject<'_>) -> Result<Option<String>> {
    for path in files.iter().map(|file| file.path.lossy()) {
        if !documents::is_document_by_name(&path)
            && !is_test_path(&path)
            && let Some(manifest) = project.untested_project(&path)?
        {
            return Ok(Some(manifest));
        }
    }
    Ok(None)
}

/// The flags of these changes, including those for files that a patch does not show well.
fn all_flags(
    repo: &Repo,
    base: &Oid,
    changes: &[Change],
    files: &[ChangedFile],
    project: &BaseProject<'_>,
) -> Result<Vec<Flag>> {
    let mut found = flags(changes, files, project)?;
    found.extend(changes.iter().zip(files).flat_map(|(c, f)| unseen(repo, c, f)));
    let added = changes.iter().filter(|change| change.status == ChangeStatus::Added);
    let ignored = ignored(repo, base, added.map(|change| &change.path))?;
    let paths: BTreeSet<_> = ignored.into_values().collect();
    found.extend(paths.iter().map(|path| FlagKind::IgnoredAdded.at(path.lossy())));
    found.sort();
    Ok(found)
}

/// The second judging of an entry with the base's tests; `None` if there is none. `files` are the
/// files that differ from the base of the first run.
fn plan_of_base_tests(
    session: &Session,
    run: &Run,
    entry: &Entry,
    files: &[ChangedFile],
    (settings, project): (&JudgeSettings, &BaseProject<'_>),
) -> Result<Option<BaseTestsResult>> {
    let Session { repo, .. } = session;
    let Some(judged) = entry.judged().filter(|_| entry.usable()) else { return Ok(None) };
    let planned = base_tests::plan(repo, run.root(), judged, files, project, settings.base_tests)?;
    for tree in planned.iter().flat_map(BaseTestsResult::trees) {
        kept_commits::keep_beside_housekeeping(session, run, tree)?;
    }
    Ok(planned)
}

/// The captured tree without its changes to protected paths.
fn with_protected(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    settings: &JudgeSettings,
    project: &BaseProject<'_>,
) -> Result<RestoredTree> {
    protected(repo, base, tree, &settings.protect, |path, content| {
        put_back::decides_by_being_there(&path.lossy(), content, &project.scripts)
    })
}

/// The flags of an added file whose content a patch does not show, e.g. a binary file.
fn unseen(repo: &Repo, change: &Change, file: &ChangedFile) -> Vec<Flag> {
    let is_file = matches!(change.mode, EntryMode::File | EntryMode::Executable);
    if change.status != ChangeStatus::Added || !is_file {
        return Vec::new();
    }
    let (path, bytes) = (file.path.lossy(), repo.size(&change.new));
    let mut found = Vec::new();
    if matches!(file.after, FileContent::Binary(..)) {
        found.push(FlagKind::BinaryAdded.at(&path));
    }
    if bytes > LARGE {
        found.push(FlagKind::LargeAdded { bytes }.at(path));
    }
    found
}

/// The flags of a candidate's changed files.
fn flags(
    changes: &[Change],
    files: &[ChangedFile],
    project: &BaseProject<'_>,
) -> Result<Vec<Flag>> {
    // A test that was only moved is not a deleted test.
    let was_moved = |change: &Change| {
        change.status == ChangeStatus::Deleted
            && changes.iter().any(|c| {
                c.status == ChangeStatus::Added
                    && c.new == change.old
                    && is_test_path(&c.path.lossy())
            })
    };
    let mut found: Vec<Flag> = Vec::new();
    for (change, file) in changes.iter().zip(files) {
        let name = file.path.lossy();
        let of_name = |name: &str| flags::flags(file, name, &project.scripts);
        let mut flags = of_name(&name);
        let decides = |flags: &[Flag]| flags.iter().any(|f| f.kind == FlagKind::OracleChanged);
        if !decides(&flags) && project.names_by_links(&name)?.iter().any(|n| decides(&of_name(n))) {
            flags.push(FlagKind::OracleChanged.at(&name));
        }
        if was_moved(change) {
            flags.retain(|flag| flag.kind != FlagKind::TestsDeleted);
        }
        found.append(&mut flags);
        if change.mode == EntryMode::Link
            && let Some(target) = file.after.bytes()
            && flags::leads_outside(&name, &String::from_utf8_lossy(target))
        {
            found.push(FlagKind::LinksOutside.at(name));
        }
    }
    Ok(found)
}

/// The files that decide which commands run and that differ between `tree` and the commit on which
/// the run lands. Links count, because such a file may be reached through them.
pub fn changed_deciders(
    session: &Session,
    run: &Run,
    terms: &Terms,
    tree: &Oid,
) -> Result<Vec<String>> {
    let base = run.root();
    let changes = diff::since(&session.repo, base, tree).changes()?;
    let files = files_of(&session.repo, &changes);
    let found = flags(&changes, &files, &session.project(base, terms)?)?;
    let deciders = found.into_iter().filter(|flag| flag.kind == FlagKind::OracleChanged);
    let links = files.iter().filter(|file| file.is_link).map(|file| file.path.lossy());
    let paths: BTreeSet<String> = deciders.map(|flag| flag.path).chain(links).collect();
    Ok(paths.into_iter().collect())
}

/// Sets the agreement of each usable candidate with the other candidates. Candidates with the same
/// tree are counted as one.
fn set_agreement(entries: &mut [Entry], files: &[Vec<ChangedFile>]) {
    let mut distinct: BTreeMap<Oid, Edit> = BTreeMap::new();
    for (entry, files) in entries.iter().zip(files).filter(|(entry, _)| entry.usable()) {
        let Some(tree) = entry.judged() else { continue };
        distinct.entry(*tree).or_insert_with(|| Edit::of(files));
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
    let mut files = Vec::new();
    for entry in entries.iter() {
        files.push(match entry.judged() {
            Some(tree) if entry.usable() => changed_files(&session.repo, &run.base, tree)?,
            _ => Vec::new(),
        });
    }
    set_agreement(entries, &files);
    Ok(())
}

/// Gives each entry without results the results of an entry with the same tree. Each tree is judged
/// only under the name of one candidate.
pub fn share_equal_trees(entries: &mut [Entry]) {
    let judged: Vec<Entry> =
        entries.iter().filter(|e| e.usable() && !e.not_run()).cloned().collect();
    for entry in entries.iter_mut().filter(|e| e.not_run()) {
        let mut twins = judged.iter().filter(|e| e.judged() == entry.judged());
        if let Some(twin) = twins.find(|e| e.second_judging() == entry.second_judging()) {
            entry.results.clone_from(&twin.results);
            entry.base_tests.clone_from(&twin.base_tests);
        }
    }
}

/// Sets `same_as` of each entry with results to the first entry with the same tree. The commands
/// ran only for that entry.
pub fn name_twins(entries: &mut [Entry]) {
    let mut first_of: BTreeMap<Oid, Name> = BTreeMap::new();
    for entry in entries {
        entry.same_as = None;
        let tree = match entry.judged() {
            Some(tree) if entry.usable() && !entry.results.is_empty() => *tree,
            _ => continue,
        };
        match first_of.get(&tree) {
            Some(first) => entry.same_as = Some(first.clone()),
            None => drop(first_of.insert(tree, entry.candidate.clone())),
        }
    }
}

/// Keeps the trees of these entries and of their second judging until the judging ends.
pub fn keep_trees(session: &Session, run: &Run, terms: &Terms, entries: &[Entry]) -> Result<()> {
    let repo = &session.repo;
    let mut is_first_try = true;
    repo.retry_during_gc(|| {
        let mut commits = Vec::new();
        for entry in entries {
            if let (false, Some(captured)) = (is_first_try, &entry.tree) {
                // A garbage collection may have deleted the trees that were made only for judging.
                let project = session.project(run.root(), terms)?;
                let settings = &terms.settings;
                let judged = with_protected(repo, run.root(), captured, settings, &project)?.tree;
                base_tests::plan_for(session, run.root(), &judged, terms)?;
            }
            for tree in judged_trees(entry) {
                commits.push(neutral_commit(repo, tree, &run.base)?);
            }
        }
        is_first_try = false;
        kept_commits::keep(session, run, &commits, &run.base)
    })
}

/// The trees that are judged for an entry: its own, and those of its second judging.
fn judged_trees(entry: &Entry) -> impl Iterator<Item = &Oid> {
    let second = entry.base_tests.iter().flat_map(BaseTestsResult::trees);
    entry.judged().into_iter().chain(second)
}
