//! The differences between a worktree and its private index.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::index::entry::Mode;

use crate::error::Result;
use crate::fs::tree;
use crate::git::capture::attempt::{AttemptPaths, CaptureInputs};
use crate::git::capture::omitted::{self, ONLY_ITS_ID, Omissions};
use crate::git::capture::private_index::{edit_index, remove_from_index, sparse_aware};
use crate::git::capture::source::CaptureSource;
use crate::git::capture::{dirty, walk};
use crate::git::cli::{Git, nul_separated};
use crate::git::index::IndexEdits;
use crate::git::mode::EntryMode;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

#[derive(Default)]
pub(super) struct Scan {
    /// The paths to read into the index.
    pub staged: BTreeSet<TreePath>,
    /// The paths to remove from the index.
    pub removed: BTreeSet<TreePath>,
    /// The submodules that are not checked out and whose commit differs from the index.
    submodules: BTreeMap<TreePath, ObjectId>,
    /// The files that a sparse checkout leaves out of the worktree and that differ from the index.
    left_out: BTreeMap<TreePath, (Mode, ObjectId)>,
    /// The paths that git cannot hold.
    pub omissions: Omissions,
    /// The paths that git ignores, from [`walk::Listing`]; empty for a scan by git.
    pub ignored: Vec<TreePath>,
}

impl Scan {
    /// Compares the worktree with `private`, the private index, which `git` uses.
    pub fn new(
        inputs: &CaptureInputs<'_>,
        git: &Git,
        private: Option<&gix::index::File>,
    ) -> Result<Scan> {
        let source = inputs.source;
        let tracked = inputs.tracked_paths(private)?;
        let listing = sparse_aware(git).words("ls-files -z -t -o -m -d --exclude-standard");
        let listing = listing.bytes()?;
        let mut scan = Scan::default();
        for record in nul_separated(&listing) {
            let path = record.get(2..).unwrap_or_default();
            if record.first() == Some(&b'?') {
                scan.add_untracked(source, path, &tracked);
            } else {
                scan.add_changed(source, TreePath::new(path));
            }
        }
        if let Some(private) = private {
            let git = sparse_aware(git);
            for path in dirty::untouched(source.worktree, &git, private, &scan.staged)? {
                scan.staged.remove(&path);
            }
        }
        scan.keep_left_out(source, inputs.left_out()?, private);
        Ok(scan.completed(source, tracked, private))
    }

    /// Compares the worktree with `private`, the private index, without git. Returns `None` if
    /// something is unusual: then git must compare them.
    pub fn in_process(
        inputs: &CaptureInputs<'_>,
        private: &gix::index::File,
    ) -> Result<Option<Scan>> {
        let source = inputs.source;
        let listing = walk::list(inputs.repo, source.worktree, private)?;
        let Some(listing) = listing else { return Ok(None) };
        let tracked = inputs.tracked_paths(Some(private))?;
        let mut scan = Scan::default();
        for path in listing.changed.into_iter().chain(listing.deleted) {
            scan.add_changed(source, path);
        }
        for path in &listing.untracked {
            scan.add_untracked(source, path, &tracked);
        }
        scan.keep_left_out(source, inputs.left_out()?, Some(private));
        let scan = scan.completed(source, tracked, Some(private));
        let scan = Scan { ignored: listing.ignored, ..scan };
        let is_usual = scan.omissions.unholdable.is_empty()
            && scan.submodules.is_empty()
            && scan.left_out.is_empty()
            && !scan.touches(b".gitattributes");
        Ok(is_usual.then_some(scan))
    }

    /// Keeps files that are missing only because the attempt made its checkout sparse. Such a file
    /// is captured as it is in the attempt's index.
    fn keep_left_out(
        &mut self,
        source: &CaptureSource<'_>,
        left_out: BTreeMap<TreePath, (Mode, ObjectId)>,
        private: Option<&gix::index::File>,
    ) {
        for (path, (mode, id)) in left_out {
            if !is_absent(source.worktree, &path) {
                continue;
            }
            self.staged.remove(&path);
            let entry = private.and_then(|index| index.entry_by_path(path.as_bstr()));
            if entry.is_none_or(|entry| (entry.mode, entry.id) != (mode, id)) {
                self.left_out.insert(path, (mode, id));
            }
        }
    }

    /// Adds the paths that no listing of the worktree shows: restored seeds, tracked files that are
    /// ignored, and submodules.
    fn completed(
        mut self,
        source: &CaptureSource<'_>,
        tracked: AttemptPaths,
        private: Option<&gix::index::File>,
    ) -> Scan {
        let scan = &mut self;
        if let Some(private) = private {
            scan.remove_restored_seeds(source, private);
        }
        if tracked.lacks_head {
            let why = "the tree of this commit is damaged or too large: ignored files that only it tracks are left out";
            scan.omissions.unholdable.insert(TreePath::new("HEAD"), why);
        }
        // Two kinds of ignored files are captured:
        //
        // - files that the attempt tracks (`git add -f`);
        // - files of the base that an earlier capture found deleted, and that exist again.
        for path in tracked.files {
            if !holds_file(source.worktree, &path)
                || source.seeds.still_hold(source.worktree, &path)
            {
                continue;
            }
            match source.hidden.outermost(&path) {
                Some(hidden) => scan.omissions.excluded.insert(hidden),
                None => scan.staged.insert(path),
            };
        }
        // The directory of a submodule that is not checked out is empty. Only the attempt's index
        // or HEAD names its commit.
        scan.submodules = tracked.submodules;
        scan.submodules.retain(|path, id| {
            let entry = private.and_then(|index| index.entry_by_path(path.as_bstr()));
            entry.is_none_or(|entry| entry.id != *id) && is_empty_directory(source.worktree, path)
        });
        self
    }

    /// True if the scan reads or removes a file of this name.
    pub fn touches(&self, file_name: &[u8]) -> bool {
        self.staged.iter().chain(&self.removed).any(|path| path.file_name() == file_name)
    }

    /// Brings the private index, which `git` uses, up to date with the worktree. `any` can be any
    /// object id of the repository.
    pub fn stage(&self, git: &Git, any: &Oid) -> Result<()> {
        remove_from_index(git, any, &self.removed)?;
        if !self.staged.is_empty() {
            let call = sparse_aware(git).words("update-index -z --add --remove --replace --stdin");
            call.stdin(TreePath::nul_terminated(&self.staged)).run()?;
        }
        let mut edits = IndexEdits::default();
        for (path, id) in &self.submodules {
            edits.set(EntryMode::Submodule, id, path);
        }
        for (path, (mode, id)) in &self.left_out {
            edits.set(format_args!("{:o}", mode.bits()), id, path);
        }
        edit_index(git, edits)
    }

    /// Adds a path of the index that is modified or deleted in the worktree.
    fn add_changed(&mut self, source: &CaptureSource<'_>, path: TreePath) {
        if is_beyond_link(source.worktree, &path) {
            // A link has replaced a directory above the path, and `git update-index` does not
            // follow links.
            self.removed.insert(path);
        } else if let Some(why) = omitted::why_unholdable(source.worktree, &path) {
            self.omissions.unholdable.insert(path.clone(), why);
            self.removed.insert(path);
        } else {
            self.staged.insert(path);
        }
    }

    /// Adds an untracked path; a directory that is itself a repository ends in a slash.
    fn add_untracked(&mut self, source: &CaptureSource<'_>, path: &[u8], tracked: &AttemptPaths) {
        if source.seeds.still_hold(source.worktree, path) {
            // The path is an unmodified seed, i.e. a file of the user and not of the attempt.
            return;
        }
        let hidden = source.hidden.outermost(path);
        if let Some(directory) = path.strip_suffix(b"/") {
            let directory = TreePath::new(directory);
            if tracked.submodules.contains_key(&directory) {
                self.staged.insert(directory.clone());
                self.omissions.unholdable.insert(directory, ONLY_ITS_ID);
            } else if let Some(hidden) = hidden {
                self.omissions.excluded.insert(hidden);
            } else {
                self.omissions.unholdable.insert(directory, "a nested repository");
            }
        } else if let Some(hidden) = hidden {
            self.omissions.excluded.insert(hidden);
        } else {
            self.staged.insert(TreePath::new(path));
        }
    }

    /// Removes from the private index the seeds that the attempt edited and later restored. A
    /// capture in between has added them. The base tracks no seed.
    fn remove_restored_seeds(&mut self, source: &CaptureSource<'_>, private: &gix::index::File) {
        for path in source.seeds.paths() {
            if private.entry_by_path(path.as_bstr()).is_some()
                && source.seeds.still_hold(source.worktree, path)
            {
                self.staged.remove(path);
                self.removed.insert(path.clone());
            }
        }
    }
}

/// True if a directory above a path is a link.
fn is_beyond_link(worktree: &Path, path: &TreePath) -> bool {
    path.parents().any(|directory| directory.on_disk(worktree).is_symlink())
}

/// True if there is nothing at a path, and nothing but directories above it.
fn is_absent(worktree: &Path, path: &TreePath) -> bool {
    let is_directory = |directory: TreePath| {
        let meta = fs::symlink_metadata(directory.on_disk(worktree));
        meta.map_or(true, |meta| meta.is_dir())
    };
    fs::symlink_metadata(path.on_disk(worktree)).is_err() && path.parents().all(is_directory)
}

/// True if a path is an empty directory, and no directory above it is a link.
fn is_empty_directory(worktree: &Path, path: &TreePath) -> bool {
    let full = path.on_disk(worktree);
    tree::is_real_directory(worktree, &full) && tree::is_empty(&full)
}

/// True if a path is a file or a link, and no directory above it is a link.
fn holds_file(worktree: &Path, path: &TreePath) -> bool {
    let full = path.on_disk(worktree);
    let directory_is_real = full.parent().is_some_and(|p| tree::is_real_directory(worktree, p));
    directory_is_real && fs::symlink_metadata(&full).is_ok_and(|m| m.is_file() || m.is_symlink())
}
