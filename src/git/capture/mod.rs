//! Captures a worktree: stores its files as a tree, whatever the attempt did with git. The tree is
//! stored as a commit that also reaches everything that the attempt committed.
//!
//! A capture uses a private index. The private index begins as a copy of the new worktree's index.
//! The attempt's own index is not used, because it may have assume-unchanged bits or half-staged
//! content.
//!
//! The worktree's `.git` file may be gone. Then `git add` would search the directories above, and
//! stage into the user's index. So every call gets GIT_DIR, GIT_WORK_TREE and GIT_INDEX_FILE as
//! absolute paths.
mod attempt;
pub mod dirty;
pub mod excludes;
pub mod mtimes;
pub mod omitted;
mod peek;
mod private_index;
mod scan;
mod source;
mod staging;
mod walk;

pub use peek::lines_changed;
pub use private_index::{copy_index, files_in, size_of_new_worktree};
pub use source::CaptureSource;

use std::fs;
use std::io;

use gix::index::entry::Stat;

use crate::error::{Error, Result};
use crate::fs::regular;
use crate::git::capture::attempt::CaptureInputs;
use crate::git::capture::mtimes::NewTimes;
use crate::git::capture::omitted::Omissions;
use crate::git::capture::private_index::{
    edit_index, forget_touched_entries, read_tree, remove_from_index, trustworthy_index,
};
use crate::git::capture::scan::Scan;
use crate::git::gc::WholeMove;
use crate::git::index::open_index;
use crate::git::repo::{Commit, Repo, from_oid, to_oid};
use crate::git::worktree;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::refname::RefName;

/// The state of a worktree at one moment.
pub struct WorktreeSnapshot {
    /// The tree of the worktree's files.
    pub tree: Oid,
    /// The attempt's commits that neither the base nor the previous capture reaches, except
    /// ancestors of others. If only the attempt's index or administrative entry names an object, a
    /// commit that contains the object is here, too.
    pub heads: Vec<Oid>,
    /// The attempt's HEAD; `None` if it cannot be read.
    pub head: Option<Oid>,
    /// The paths that the tree lacks, with the reasons.
    pub omissions: Omissions,
    /// The paths that git ignores. A directory ends in a slash, and stands for all paths in it.
    pub ignored: Vec<TreePath>,
    /// The disk space of the captured files, in bytes.
    pub bytes: u64,
}

/// Reads the worktree into a tree. Writes objects and the private index, but no ref.
pub fn snapshot(repo: &Repo, source: &CaptureSource<'_>) -> Result<WorktreeSnapshot> {
    // The caller holds the candidate's lock. So if there is a lock file of the private index, a
    // killed capture has left it.
    let _ = fs::remove_file(source.index.with_extension("lock"));
    let inputs = CaptureInputs::read(repo, source)?;
    let read = read_in_process(&inputs)?;
    complete(&inputs, read.map_or_else(|| read_by_git(&inputs), Ok)?)
}

/// The files of a worktree, as the private index has them now.
struct ReadFiles {
    tree: Oid,
    index: Option<gix::index::File>,
    omissions: Omissions,
    ignored: Vec<TreePath>,
}

/// Reads the worktree without git. Returns `None` if something in the worktree or its index is
/// unusual: then git must read the worktree.
fn read_in_process(inputs: &CaptureInputs<'_>) -> Result<Option<ReadFiles>> {
    let CaptureInputs { repo, source, .. } = inputs;
    if !repo.reads_files_as_they_are() || repo.overrides().has_other_rules() {
        return Ok(None);
    }
    let Some(mut index) = trustworthy_index(source.index) else { return Ok(None) };
    for position in dirty::doubtful_entries(&index, source, &inputs.base)? {
        index.entries_mut()[position].stat = Stat::default();
    }
    let Some(scan) = Scan::in_process(inputs, &index)? else { return Ok(None) };
    let tree = staging::stage(repo, source, &scan, &mut index)?;
    let Scan { omissions, ignored, .. } = scan;
    Ok(tree.map(|tree| ReadFiles { tree, index: Some(index), omissions, ignored }))
}

/// Lets git read the worktree.
fn read_by_git(inputs: &CaptureInputs<'_>) -> Result<ReadFiles> {
    let CaptureInputs { repo, source, .. } = inputs;
    omitted::require_readable_rules(source)?;
    let git = repo.git().work_tree(source.worktree).index(source.index);
    let private = match trustworthy_index(source.index) {
        Some(index) => {
            forget_touched_entries(&git, source, &inputs.base, &index)?;
            Some(index)
        }
        None => read_tree(repo, source, source.base)?,
    };
    let mut scan = Scan::new(inputs, &git, private.as_ref())?;
    if scan.touches(b".gitattributes") {
        // If attributes have changed, git may make another blob from an untouched file. But git
        // reads only touched files. An index without times makes git read all files.
        let last = source.previous.map_or(source.base, |p| &p.commit);
        let private = read_tree(repo, source, last)?;
        scan = Scan::new(inputs, &git, private.as_ref())?;
    }
    scan.stage(&git, source.base)?;
    // The index file is read for the last time here. Below, modes are set in the file and
    // `git write-tree` adds trees, but `captured` need not have these changes.
    let captured = open_index(source.index);
    if let Some(captured) = &captured {
        edit_index(&git, inputs.mode_edits(captured))?;
    }
    let tree = git.call("write-tree").oid()?;

    let mut omissions = scan.omissions;
    if let Some(captured) = &captured {
        omitted::add_refused_names(source, captured, &scan.staged, &mut omissions);
    }
    omitted::add_unlisted_files(repo, source, captured.as_ref(), &mut omissions)?;
    let ignored = omitted::ignored(&git)?;
    Ok(ReadFiles { tree, index: captured, omissions, ignored })
}

/// Completes a capture after its files were read: adds the newly ignored paths, the unsaved commits
/// and the size.
fn complete(inputs: &CaptureInputs<'_>, read: ReadFiles) -> Result<WorktreeSnapshot> {
    let CaptureInputs { repo, source, base, .. } = inputs;
    let ReadFiles { tree, index: captured, mut omissions, ignored } = read;
    let git = repo.git().work_tree(source.worktree).index(source.index);
    if captured.as_ref().is_some_and(|captured| omitted::ignore_rules_differ(base, captured)) {
        omissions.newly_ignored = omitted::newly_ignored(repo, &git, source)?;
    }
    let heads = inputs.unsaved(captured.as_ref().unwrap_or(base))?;
    let bytes = captured.as_ref().map_or(0, private_index::bytes_of_files);
    Ok(WorktreeSnapshot { tree, heads, head: inputs.head, omissions, ignored, bytes })
}

/// Finds what a capture would omit, without writing anything: for the dry run of a removal.
pub fn uncapturable(repo: &Repo, source: &CaptureSource<'_>) -> Result<Omissions> {
    omitted::require_readable_rules(source)?;
    if regular::open(source.index).is_err_and(|e| e.kind() == io::ErrorKind::InvalidData) {
        return Err(Error::fatal(format!("'{}' is not a regular file", source.index.display()))
            .hint("the next capture replaces it: `git frites diff`"));
    }
    let git = repo.git().work_tree(source.worktree).index(source.index);
    let inputs = CaptureInputs::read(repo, source)?;
    let private = open_index(source.index);
    let scan = Scan::new(&inputs, &git, private.as_ref())?;
    let mut omissions = scan.omissions;
    omitted::add_unlisted_files(repo, source, private.as_ref(), &mut omissions)?;
    if scan.staged.iter().any(|path| omitted::is_ignore_file(path))
        || private.is_some_and(|private| omitted::ignore_rules_differ(&inputs.base, &private))
    {
        omissions.newly_ignored = omitted::newly_ignored(repo, &git, source)?;
    }
    Ok(omissions)
}

/// True if a worktree has exactly the files of its last capture (or else of the base), and the
/// attempt has no other work. Then a capture would add nothing and omit nothing.
pub fn is_unchanged(repo: &Repo, source: &CaptureSource<'_>) -> Result<bool> {
    let tree = match source.previous {
        Some(capture) => capture.tree,
        None => repo.commit(source.base)?.tree,
    };
    let Some(private) = trustworthy_index(source.index) else { return Ok(false) };
    let is_of_tree = private.tree().is_some_and(|cached| {
        cached.num_entries.is_some() && from_oid(&tree).is_ok_and(|id| cached.id == id)
    });
    if !is_of_tree || repo.overrides().has_other_rules() {
        return Ok(false);
    }
    let inputs = CaptureInputs::read(repo, source)?;
    let Some(scan) = Scan::in_process(&inputs, &private)? else { return Ok(false) };
    Ok(scan.staged.is_empty()
        && scan.removed.is_empty()
        && scan.omissions == Omissions::default()
        && inputs.mode_edits(&private).is_empty()
        && inputs.unsaved(&private)?.is_empty())
}

/// A snapshot of a candidate whose worktree is gone. It has the files of the candidate's HEAD or
/// branch, or those of the last capture if the capture already contains HEAD. `None` if the last
/// capture has everything that the branch and the administrative entry name.
pub fn branch_snapshot(
    repo: &Repo,
    source: &CaptureSource<'_>,
) -> Result<Option<WorktreeSnapshot>> {
    let tip = repo.read_ref(source.branch)?;
    if tip.is_none() && worktree::admin_of(repo, source.worktree)?.is_none() {
        return Ok(None);
    }
    let inputs = CaptureInputs::read(repo, source)?;
    let heads = inputs.unsaved(&inputs.base)?;
    if heads.is_empty() {
        return Ok(None);
    }
    let head = inputs.head.filter(|head| repo.is_commit(head)).or(tip);
    let saved = source.previous.map_or(source.base, |p| &p.commit);
    let mut tree = repo.commit(saved)?.tree;
    if let Some(head) = head
        && !repo.is_ancestor(&head, saved)?
    {
        tree = repo.commit(&head)?.tree;
        let seeds = source.seeds_in(&*repo.index_of(&head)?);
        if !seeds.is_empty() {
            let git = repo.git().index(source.index);
            git.call("read-tree").arg(tree.as_str()).run()?;
            remove_from_index(&git, source.base, &seeds)?;
            tree = git.call("write-tree").oid()?;
        }
    }
    let omissions = Omissions::default();
    let ignored = Vec::new();
    Ok(Some(WorktreeSnapshot { tree, heads, head, omissions, ignored, bytes: 0 }))
}

/// Stores a snapshot and the times of its files as the next iteration. The commit's author is
/// git-frites. Its first parent is the previous capture (or the base); the other parents are the
/// attempt's own commits.
///
/// Fails if `refname` does not point to the previous capture, or if an object that the commit needs
/// is gone.
pub fn store(
    repo: &Repo,
    source: &CaptureSource<'_>,
    snapshot: &WorktreeSnapshot,
    refname: &RefName,
    message: &str,
    times: Option<&NewTimes>,
) -> Result<Oid> {
    let previous = source.previous.map(|p| &p.commit);
    let parent = previous.unwrap_or(source.base);
    let heads = snapshot.heads.iter().filter(|head| *head != parent);
    let parents: Vec<&Oid> = [parent].into_iter().chain(heads).collect();
    let (commit, commit_of_times) = repo.store_all(|objects| {
        let commit = objects.add_commit(&snapshot.tree, parents.iter().copied(), message)?;
        let of_times = times.map(|times| times.add(objects)).transpose()?;
        Ok((to_oid(commit), of_times.map(to_oid)))
    })?;
    let known_to_times: Vec<&Oid> =
        [source.base].into_iter().chain(times.and_then(|times| times.previous.as_ref())).collect();
    let of_times = times.zip(commit_of_times.as_ref()).map(|(times, new)| WholeMove {
        name: &times.refname,
        new,
        old: times.old.as_ref(),
        known: &known_to_times,
    });
    let capture = WholeMove { name: refname, new: &commit, old: previous, known: &[parent] };
    let moves: Vec<WholeMove<'_>> = of_times.into_iter().chain([capture]).collect();
    repo.set_refs_whole(&moves, "capture").inspect_err(|_| {
        // The private index may list blobs that are gone. Without the index, the next capture reads
        // all files.
        let _ = fs::remove_file(source.index);
    })?;
    Ok(commit)
}

/// A chain of captures from `tip` back to `base`, without the base; newest first.
pub fn chain(repo: &Repo, tip: &Oid, base: &Oid) -> Result<Vec<(Oid, Commit)>> {
    let mut found = Vec::new();
    let mut next = Some(*tip);
    while let Some(at) = next.filter(|at| at != base) {
        let commit = repo.commit(&at)?;
        next = commit.parents.first().copied();
        found.push((at, commit));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
