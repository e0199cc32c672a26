//! Finds the user's files that a landing would overwrite. Also inspects a checkout in which a
//! landing stopped halfway.
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::walk::visit_readable;
use crate::fs::{regular, tree};
use crate::git::cli::Git;
use crate::git::diff::{self, ChangeStatus};
use crate::git::index::ScratchIndex;
use crate::git::mode::EntryMode;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The untracked or ignored files that would be overwritten if the checkout moved from one tree to
/// another. `root` is the checkout's directory.
///
/// git overwrites an ignored file such as `.env` without a warning. So this checks every path that
/// the landing creates, and every directory above such a path. git also deletes the directory of a
/// submodule, with all its files, to put a file in its place.
pub fn overwritten_files(repo: &Repo, root: &Path, from: &Oid, to: &Oid) -> Result<Vec<TreePath>> {
    let changes = diff::since(repo, from, to).changes()?;
    let deleted: BTreeSet<&TreePath> =
        changes.iter().filter(|c| c.status == ChangeStatus::Deleted).map(|c| &c.path).collect();
    let mut found = BTreeSet::new();
    let replaced = changes.iter().filter(|change| {
        change.status == ChangeStatus::TypeChanged && change.old_mode == EntryMode::Submodule
    });
    for submodule in replaced {
        let directory = submodule.path.on_disk(root);
        if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
            found.insert(submodule.path.clone());
        }
    }
    for change in changes.iter().filter(|c| c.status == ChangeStatus::Added) {
        // A file or a link may be where the landing needs a directory.
        let above = change.path.parents().filter(|above| is_no_directory(root, above));
        found.extend(above.filter(|above| !deleted.contains(above)));
        let full = change.path.on_disk(root);
        match fs::symlink_metadata(&full) {
            // The landing replaces a directory by a file.
            Ok(meta) if meta.is_dir() => visit_readable(&full, &mut |below, state| {
                let below = change.path.join(below);
                if !state.is_dir() && !deleted.contains(&below) {
                    found.insert(below);
                }
            }),
            Ok(_) if tree::is_real_directory(root, full.parent().unwrap_or(root)) => {
                found.insert(change.path.clone());
            }
            _ => {}
        }
    }
    Ok(found.into_iter().collect())
}

/// The state of a checkout in which a move from one tree to another was stopped.
pub struct PartialCheckout {
    /// The paths that somebody has edited since the move was stopped. Such a file is neither the
    /// old version nor the new one. Nor is it a beginning of the new version, which a killed git
    /// may leave. A missing file does not count as edited.
    pub edited: Vec<TreePath>,
    /// True if some other path no longer has its old version.
    pub begun: bool,
}

impl PartialCheckout {
    /// Looks at the file of every path that differs between two trees, in the checkout of `git`.
    pub fn inspect(repo: &Repo, git: &Git, from: &Oid, to: &Oid) -> Result<PartialCheckout> {
        let root = root_of(git)?;
        let landing = diff::since(repo, from, to).changes()?;
        let before = differing_files(git, from)?;
        let after = differing_files(git, to)?;
        let made = landing.iter().filter(|change| change.status != ChangeStatus::Deleted);
        let made: BTreeSet<&TreePath> = made.map(|change| &change.path).collect();
        let mut edited = Vec::new();
        let mut begun = false;
        for change in &landing {
            let path = change.path.on_disk(root);
            let as_before = match change.status {
                // If a directory is at the path, it is the old one: the new file has not replaced
                // it yet.
                ChangeStatus::Added => {
                    !path.parent().is_some_and(|directory| tree::is_real_directory(root, directory))
                        || fs::symlink_metadata(&path).map_or(true, |meta| meta.is_dir())
                }
                _ => !before.contains(&change.path),
            };
            if as_before {
                continue;
            }
            // Behind a link, git sees no file of the checkout.
            let held = held_at(root, &change.path);
            let as_landed = made.contains(&held) && !after.contains(&held);
            if !as_landed && is_foreign(git, root, &held, to)? {
                edited.push(held);
                continue;
            }
            begun = true;
        }
        Ok(PartialCheckout { edited, begun })
    }
}

/// The directory of the checkout that `git` works in.
pub fn root_of(git: &Git) -> Result<&Path> {
    git.root().ok_or_else(|| Error::internal("this repository has no checkout here: it is bare"))
}

/// The path of the entry that the checkout at `root` has in place of a tracked file. This is the
/// file's own path, or that of a link or file which replaces a directory above it.
pub fn held_at(root: &Path, path: &TreePath) -> TreePath {
    let above = path.parents().find(|above| is_no_directory(root, above));
    above.unwrap_or_else(|| path.clone())
}

/// True if something is at a path and is not a directory.
fn is_no_directory(root: &Path, path: &TreePath) -> bool {
    fs::symlink_metadata(path.on_disk(root)).is_ok_and(|meta| !meta.is_dir())
}

/// True if the file or link at a path is not the beginning of the file that the tree `to` has
/// there. A link is never such a beginning, because git makes a link in one step. A file that
/// cannot be read is foreign, too, because its content would be lost. A missing file and a
/// directory are not foreign.
fn is_foreign(git: &Git, root: &Path, path: &TreePath, to: &Oid) -> Result<bool> {
    let full = path.on_disk(root);
    if full.is_symlink() {
        return Ok(true);
    }
    let Ok(found) = regular::read_own(&full) else {
        return Ok(fs::symlink_metadata(&full).is_ok_and(|meta| !meta.is_dir()));
    };
    let name = [to.as_str().as_bytes(), b":", path].concat();
    let whole = git.call("cat-file").arg("--filters").arg(OsStr::from_bytes(&name)).output()?;
    Ok(whole.code != 0 || !whole.stdout.starts_with(&found))
}

/// The paths of a tree whose files in the checkout are missing or different.
fn differing_files(git: &Git, tree: &Oid) -> Result<BTreeSet<TreePath>> {
    let scratch = ScratchIndex::from_tree(git, tree)?;
    scratch.git().refresh()?;
    scratch.git().modified("untracked")
}
