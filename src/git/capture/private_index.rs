//! The private index of a worktree, from which a capture makes its tree.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gix::index::entry::{Flags, Mode};

use crate::error::{IoContext, Result};
use crate::fs::regular;
use crate::git::capture::dirty;
use crate::git::capture::source::CaptureSource;
use crate::git::cli::{Call, Git};
use crate::git::index::{IndexEdits, open_index};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::{TreePath, directory_of};

/// Copies the index of a freshly checked out worktree to the place of the private index.
pub fn copy_index(index: &Path, copy: &Path) -> Result<()> {
    let copied = regular::open(index).and_then(|_| fs::copy(index, copy));
    copied.map(drop).could_not("copy", index)
}

/// Opens the private index. Returns `None` if it is not readable, or if an entry has the
/// assume-unchanged bit, which would hide an edit. A candidate can set that bit, because it can
/// write to every file of git-frites.
pub fn trustworthy_index(file: &Path) -> Option<gix::index::File> {
    let index = open_index(file)?;
    let hides = index.entries().iter().any(|e| e.flags.contains(Flags::ASSUME_VALID));
    (!hides).then_some(index)
}

/// Fills the private index from a commit, and opens it.
pub fn read_tree(
    repo: &Repo,
    source: &CaptureSource<'_>,
    commit: &Oid,
) -> Result<Option<gix::index::File>> {
    repo.git().index(source.index).call("read-tree").arg(commit.as_str()).run()?;
    Ok(open_index(source.index))
}

/// The disk space of a worktree that has only the files of its index, without its directories. The
/// worktree is not walked.
pub fn size_of_new_worktree(index: &Path) -> u64 {
    BLOCK + open_index(index).map_or(0, |index| bytes_of_files(&index))
}

/// The files that an index has directly in one of these directories, not deeper. The empty path is
/// the root. Returns no files if the index cannot be read.
pub fn files_in(index: &Path, directories: &BTreeSet<TreePath>) -> BTreeSet<TreePath> {
    let Some(index) = open_index(index) else { return BTreeSet::new() };
    let paths = index.entries().iter().map(|entry| entry.path(&index));
    let inside = paths.filter(|path| directories.contains(directory_of(path)));
    inside.map(TreePath::new).collect()
}

/// The disk space of the smallest file, such as the `.git` of a worktree.
const BLOCK: u64 = 4096;

/// The disk space of the files in an index, in bytes. Each file takes whole blocks.
pub fn bytes_of_files(index: &gix::index::File) -> u64 {
    index.entries().iter().map(|e| u64::from(e.stat.size).next_multiple_of(BLOCK)).sum()
}

/// Makes git read the files of touched and doubtful entries again.
pub(super) fn forget_touched_entries(
    git: &Git,
    source: &CaptureSource<'_>,
    base: &gix::index::File,
    index: &gix::index::File,
) -> Result<()> {
    let mut edits = IndexEdits::default();
    let doubtful = dirty::doubtful_entries(index, source, base)?;
    let doubtful = doubtful.into_iter().map(|position| index.entries()[position].clone());
    for entry in dirty::touched_entries(source.worktree, index)?.into_iter().chain(doubtful) {
        // `git update-index` gives this entry no times, so git reads its file.
        set_mode(&mut edits, entry.mode, &entry, index);
    }
    edit_index(git, edits)
}

/// Adds an edit that sets the mode of an index entry and keeps its object.
pub fn set_mode(
    edits: &mut IndexEdits,
    mode: Mode,
    entry: &gix::index::Entry,
    index: &gix::index::File,
) {
    edits.set(format_args!("{:o}", mode.bits()), entry.id, entry.path(index));
}

/// Removes paths from an index. `any` can be any object id of the repository. It only shows how
/// long ids are.
pub fn remove_from_index(git: &Git, any: &Oid, paths: &BTreeSet<TreePath>) -> Result<()> {
    let mut edits = IndexEdits::default();
    for path in paths {
        edits.remove(path, any);
    }
    edit_index(git, edits)
}

/// Edits an index, including entries outside of a sparse checkout's cone.
pub fn edit_index(git: &Git, edits: IndexEdits) -> Result<()> {
    if edits.is_empty() {
        return Ok(());
    }
    edits.apply(sparse_aware(git).arg("update-index"))
}

/// A call that also sees files outside of a sparse checkout's cone. If an entry is marked
/// skip-worktree but its file exists, the file counts as edited.
pub fn sparse_aware(git: &Git) -> Call {
    git.call("-c").arg("core.sparseCheckout=true")
}
