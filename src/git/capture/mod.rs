//! Capture: stores the files of a worktree as a tree, whatever the attempt did with git, and that
//! tree as a commit from which everything that the attempt committed is reachable.
//!
//! A capture uses a private index, copied when the worktree was made. The attempt's own index may
//! hold assume-unchanged bits or half-staged content, and its `.git` file may be gone. So every
//! call gets GIT_DIR, GIT_WORK_TREE and GIT_INDEX_FILE as absolute paths: without a `.git` file
//! `git add` would climb up and stage into the user's index.
mod attempt;
pub mod dirty;
pub mod excludes;
pub mod mtimes;
pub mod omitted;
mod scan;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gix::index::entry::{Flags, Mode};

use crate::error::{IoContext, Result};
use crate::git::capture::attempt::AttemptGit;
use crate::git::capture::excludes::Excludes;
use crate::git::capture::omitted::Omissions;
use crate::git::capture::scan::Scan;
use crate::git::cli::{Call, Git};
use crate::git::index::IndexEdits;
use crate::git::repo::{Commit, Repo};
use crate::git::seed::placed::PlacedSeeds;
use crate::model::candidate::Capture;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::refname::RefName;

/// The candidate to capture.
pub struct CaptureSource<'a> {
    /// The worktree's directory.
    pub worktree: &'a Path,
    /// The candidate's branch.
    pub branch: &'a RefName,
    /// The commit that the candidate started from.
    pub base: &'a Oid,
    /// The private index.
    pub index: &'a Path,
    /// The previous capture, if any.
    pub previous: Option<&'a Capture>,
    /// `diff.exclude`.
    pub excludes: &'a Excludes,
    /// The seeds that the worktree was given before the attempt began.
    pub seeds: &'a PlacedSeeds,
}

/// The state of a worktree at one moment.
pub struct WorktreeSnapshot {
    /// The files.
    pub tree: Oid,
    /// The attempt's commits that neither the base nor the previous capture reaches. None of them
    /// is an ancestor of another.
    pub heads: Vec<Oid>,
    /// The paths that the tree lacks, with the reasons.
    pub omissions: Omissions,
}

/// Reads the worktree into a tree. Writes objects and the private index, but no ref.
pub fn snapshot(repo: &Repo, source: &CaptureSource<'_>) -> Result<WorktreeSnapshot> {
    // The caller holds the candidate's lock, so a killed capture left this file.
    let _ = fs::remove_file(source.index.with_extension("lock"));
    let git = repo.git().work_tree(source.worktree).index(source.index);
    let private = match trustworthy_index(repo, source.index) {
        Some(index) => {
            forget_racy_entries(&git, source, &index)?;
            Some(index)
        }
        None => read_tree(repo, source, source.base)?,
    };
    let attempt = AttemptGit::read(repo, source)?;
    let mut scan = Scan::new(repo, source, &git, &attempt, private.as_ref())?;
    if scan.touches(b".gitattributes") {
        // Changed attributes can turn an untouched file into another blob, and git only reads
        // touched files. An index without times makes it read all of them.
        let last = source.previous.map_or(source.base, |p| &p.commit);
        let private = read_tree(repo, source, last)?;
        scan = Scan::new(repo, source, &git, &attempt, private.as_ref())?;
    }
    scan.stage(&git, source.base)?;
    // Neither the modes that are set now nor `git write-tree` change what is read of it below.
    let captured = open_index(repo, source.index);
    if let Some(captured) = &captured {
        edit_index(&git, attempt.other_modes(repo, captured))?;
    }
    let tree = git.call("write-tree").oid()?;

    let base = repo.index_of(source.base)?;
    let mut omissions = scan.omissions;
    if let Some(captured) = &captured {
        omitted::add_refused_names(source, captured, &scan.staged, &mut omissions);
    }
    omitted::add_unlisted_files(repo, source, captured.as_ref(), &mut omissions)?;
    if captured.as_ref().is_some_and(|captured| omitted::ignore_rules_differ(&base, captured)) {
        omissions.newly_ignored = omitted::newly_ignored(repo, &git, source)?;
    }
    let mut heads = attempt.unsaved_commits(repo, source)?;
    if let Some(captured) = &captured {
        heads.extend(attempt.unsaved_staging(repo, source, captured)?);
    }
    Ok(WorktreeSnapshot { tree, heads, omissions })
}

/// Finds what a capture would omit, without writing anything: for the dry run of a removal.
pub fn uncapturable(repo: &Repo, source: &CaptureSource<'_>) -> Result<Omissions> {
    let git = repo.git().work_tree(source.worktree).index(source.index);
    let attempt = AttemptGit::read(repo, source)?;
    let private = open_index(repo, source.index);
    let scan = Scan::new(repo, source, &git, &attempt, private.as_ref())?;
    let mut omissions = scan.omissions;
    omitted::add_unlisted_files(repo, source, private.as_ref(), &mut omissions)?;
    let base = repo.index_of(source.base)?;
    if scan.staged.iter().any(|path| omitted::is_ignore_file(path))
        || private.is_some_and(|private| omitted::ignore_rules_differ(&base, &private))
    {
        omissions.newly_ignored = omitted::newly_ignored(repo, &git, source)?;
    }
    Ok(omissions)
}

/// True if a worktree holds exactly the files of its last capture (or of the base, if there is
/// none), and the attempt has no other work: then a capture would add nothing and omit nothing.
pub fn is_unchanged(repo: &Repo, source: &CaptureSource<'_>) -> Result<bool> {
    let tree = match source.previous {
        Some(capture) => capture.tree,
        None => repo.commit(source.base)?.tree,
    };
    // The index's own checksum is skipped: every entry is compared with its file anyway.
    let hash = repo.gix().object_hash();
    let Ok(private) = gix::index::File::at(source.index, hash, true, Default::default()) else {
        return Ok(false);
    };
    if !dirty::is_clean(source.worktree, &private, &tree)? {
        return Ok(false);
    }
    let attempt = AttemptGit::read(repo, source)?;
    Ok(attempt.other_modes(repo, &private).is_empty()
        && attempt.unsaved_staging(repo, source, &private)?.is_none()
        && attempt.unsaved_commits(repo, source)?.is_empty())
}

/// The state of the candidate's branch, for a worktree that is gone; none if the captures have all
/// its commits.
pub fn branch_snapshot(
    repo: &Repo,
    source: &CaptureSource<'_>,
) -> Result<Option<WorktreeSnapshot>> {
    let Some(tip) = repo.read_ref(source.branch)? else { return Ok(None) };
    let heads = AttemptGit::default().unsaved_commits(repo, source)?;
    if heads.is_empty() {
        return Ok(None);
    }
    let mut tree = repo.commit(&tip)?.tree;
    if !source.seeds.is_empty() {
        let seeds = seeds_in(source, &*repo.index_of(&tip)?);
        if !seeds.is_empty() {
            let git = repo.git().index(source.index);
            git.call("read-tree").arg(tree.as_str()).run()?;
            remove_from_index(&git, source.base, &seeds)?;
            tree = git.call("write-tree").oid()?;
        }
    }
    Ok(Some(WorktreeSnapshot { tree, heads, omissions: Omissions::default() }))
}

/// Stores a snapshot as the next iteration: a commit by git-frites whose first parent is the
/// previous capture (or the base) and whose other parents are the attempt's own commits.
///
/// Moves `refname` from the previous capture only. Fails if an object that the commit needs is
/// gone.
pub fn store(
    repo: &Repo,
    source: &CaptureSource<'_>,
    snapshot: &WorktreeSnapshot,
    refname: &RefName,
    message: &str,
) -> Result<Oid> {
    let parent = source.previous.map_or(source.base, |p| &p.commit);
    let mut call =
        repo.git().call("commit-tree").arg(snapshot.tree.as_str()).args(["-p", parent.as_str()]);
    for head in snapshot.heads.iter().filter(|h| *h != parent) {
        call = call.args(["-p", head.as_str()]);
    }
    let commit = call.args(["-F", "-"]).stdin(message).oid()?;
    let previous = source.previous.map(|p| &p.commit);
    repo.set_ref_whole(refname, &commit, previous, parent, "capture").inspect_err(|_| {
        // The private index may list blobs that are gone. Without it the next try starts afresh.
        let _ = fs::remove_file(source.index);
    })?;
    Ok(commit)
}

/// Copies the index of a freshly checked out worktree, to be the private one.
pub fn copy_index(index: &Path, copy: &Path) -> Result<()> {
    fs::copy(index, copy).map(drop).context(|| format!("could not copy '{}'", index.display()))
}

/// A chain of captures from `tip` back to `base`, without the base; newest first.
pub fn chain(repo: &Repo, tip: &Oid, base: &Oid) -> Result<Vec<(Oid, Commit)>> {
    let mut found = Vec::new();
    let mut at = *tip;
    while at != *base {
        let commit = repo.commit(&at)?;
        let first = commit.parents.first().copied();
        found.push((at, commit));
        match first {
            Some(parent) => at = parent,
            None => break,
        }
    }
    Ok(found)
}

/// Opens the private index if it is readable and no entry has a bit that hides an edit: a candidate
/// can write to every file of ours.
fn trustworthy_index(repo: &Repo, file: &Path) -> Option<gix::index::File> {
    let index = open_index(repo, file)?;
    let hides = index.entries().iter().any(|e| e.flags.contains(Flags::ASSUME_VALID));
    (!hides).then_some(index)
}

/// Fills the private index from a commit, and opens it.
fn read_tree(
    repo: &Repo,
    source: &CaptureSource<'_>,
    commit: &Oid,
) -> Result<Option<gix::index::File>> {
    repo.git().index(source.index).call("read-tree").arg(commit.as_str()).run()?;
    Ok(open_index(repo, source.index))
}

fn open_index(repo: &Repo, path: &Path) -> Option<gix::index::File> {
    gix::index::File::at(path, repo.gix().object_hash(), false, Default::default()).ok()
}

/// Makes git read the files of racy entries again.
fn forget_racy_entries(
    git: &Git,
    source: &CaptureSource<'_>,
    index: &gix::index::File,
) -> Result<()> {
    let mut edits = IndexEdits::default();
    for entry in dirty::racy_entries(source.worktree, index)? {
        // An entry that is set in this way has no times.
        set_mode(&mut edits, entry.mode, &entry, index);
    }
    edit_index(git, edits)
}

/// Sets an entry of an index again, with this mode.
fn set_mode(
    edits: &mut IndexEdits,
    mode: Mode,
    entry: &gix::index::Entry,
    index: &gix::index::File,
) {
    edits.set(format_args!("{:o}", mode.bits()), entry.id, entry.path(index));
}

/// The paths of an index whose entries are seeds.
fn seeds_in(source: &CaptureSource<'_>, index: &gix::index::File) -> BTreeSet<TreePath> {
    if source.seeds.is_empty() {
        return BTreeSet::new();
    }
    let entries = index.entries().iter();
    let seeds = entries.filter(|e| source.seeds.is_seed(e.path(index), &e.id));
    seeds.map(|e| TreePath::new(e.path(index))).collect()
}

/// Removes paths from an index. `any` is any object id.
fn remove_from_index(git: &Git, any: &Oid, paths: &BTreeSet<TreePath>) -> Result<()> {
    let mut edits = IndexEdits::default();
    for path in paths {
        edits.remove(path, any);
    }
    edit_index(git, edits)
}

/// Edits an index, also outside a sparse checkout's cone.
fn edit_index(git: &Git, edits: IndexEdits) -> Result<()> {
    if edits.is_empty() {
        return Ok(());
    }
    edits.apply(sparse_aware(git).arg("update-index"))
}

/// A call that sees files outside a sparse checkout's cone, too: where the file of an entry marked
/// skip-worktree exists, it is an edit.
fn sparse_aware(git: &Git) -> Call {
    git.call("-c").arg("core.sparseCheckout=true")
}
