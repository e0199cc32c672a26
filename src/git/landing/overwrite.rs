//! What lies in the way of a landing in a checkout: files of the user's that it would write over.
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::tree;
use crate::git::cli::{Git, nul_separated};
use crate::git::diff::{self, ChangeStatus};

use crate::git::index::ScratchIndex;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The untracked or ignored files that going from one tree to another would write over.
///
/// git overwrites an ignored file such as `.env` without a word, so every path that the landing
/// creates is looked at, and every directory above it. `root` is the checkout's directory.
pub fn obstacles(repo: &Repo, root: &Path, from: &Oid, to: &Oid) -> Result<Vec<TreePath>> {
    let changes = diff::changes(repo, from, from, to)?;
    let leaves: BTreeSet<&TreePath> =
        changes.iter().filter(|c| c.status == ChangeStatus::Deleted).map(|c| &c.path).collect();
    let mut found = BTreeSet::new();
    for change in changes.iter().filter(|c| c.status == ChangeStatus::Added) {
        // A file or a link where a directory must go.
        for above in change.path.parents() {
            let blocked = fs::symlink_metadata(above.on_disk(root)).is_ok_and(|m| !m.is_dir());
            if blocked && !leaves.contains(&above) {
                found.insert(above);
            }
        }
        let full = change.path.on_disk(root);
        match fs::symlink_metadata(&full) {
            Ok(meta) if meta.is_dir() => files_below(root, &full, &leaves, &mut found),
            Ok(_) if tree::is_real_directory(root, full.parent().unwrap_or(root)) => {
                found.insert(change.path.clone());
            }
            _ => {}
        }
    }
    Ok(found.into_iter().collect())
}

/// What lies in a directory that a file is to replace, and does not leave with the landing.
fn files_below(
    root: &Path,
    dir: &Path,
    leaves: &BTreeSet<&TreePath>,
    found: &mut BTreeSet<TreePath>,
) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            files_below(root, &path, leaves, found);
        } else if let Ok(below) = path.strip_prefix(root) {
            let below = TreePath::new(tree::path_bytes(below));
            if !leaves.contains(&below) {
                found.insert(below);
            }
        }
    }
}

/// How far a landing has come in the files of a worktree.
pub struct Halfway {
    /// The paths that are there neither as before nor as landed, nor a beginning of what was to land (git was
    /// killed writing it), nor missing.
    pub edited: Vec<TreePath>,
    /// Whether any other path is not as before.
    pub begun: bool,
}

/// Looks at every path that differs between two trees. `git` is in that worktree.
pub fn halfway(repo: &Repo, git: &Git, from: &Oid, to: &Oid) -> Result<Halfway> {
    let root = git
        .root()
        .ok_or_else(|| Error::internal("this repository has no checkout here: it is bare"))?;
    let landing = diff::changes(repo, from, from, to)?;
    let differing = |source: &Oid| -> Result<BTreeSet<TreePath>> {
        let scratch = ScratchIndex::from_tree(git, source)?;
        let git = scratch.git();
        git.call("update-index").args(["-q", "--refresh"]).output()?;
        Ok(nul_separated(&git.call("diff-files").args(["-z", "--name-only"]).bytes()?)
            .map(TreePath::new)
            .collect())
    };
    let (before, after) = (differing(from)?, differing(to)?);
    let (mut edited, mut begun) = (Vec::new(), false);
    for change in &landing {
        let path = change.path.on_disk(root);
        let as_before = match change.status {
            // A directory there is one of before that it was to replace.
            ChangeStatus::Added => {
                !path.parent().is_some_and(|directory| tree::is_real_directory(root, directory))
                    || fs::symlink_metadata(&path).map_or(true, |meta| meta.is_dir())
            }
            _ => !before.contains(&change.path),
        };
        if as_before {
            continue;
        }
        let as_landed = change.status != ChangeStatus::Deleted && !after.contains(&change.path);
        if let (false, Ok(found)) = (as_landed, fs::read(&path)) {
            let name = [to.as_str().as_bytes(), b":", &change.path].concat();
            let whole =
                git.call("cat-file").arg("--filters").arg(OsStr::from_bytes(&name)).output()?;
            if whole.code != 0 || !whole.stdout.starts_with(&found) {
                edited.push(change.path.clone());
                continue;
            }
        }
        begun = true;
    }
    Ok(Halfway { edited, begun })
}
