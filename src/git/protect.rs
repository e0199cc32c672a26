//! Makes trees in which the base's version replaces some of a candidate's changes. These are
//! changes to protected paths, and changes that decide how the candidate is judged.
use std::collections::BTreeSet;

use crate::error::Result;
use crate::git::cli::nul_separated;
use crate::git::index::{IndexEdits, edited_tree};
use crate::git::mode::EntryMode;
use crate::git::repo::{Repo, to_oid};
use crate::git::trees::{self, TreeDifference};
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The treatment of a changed path.
pub enum Restore {
    Keep,
    /// Put the base's version back. If the base does not have the path, remove the path.
    Base,
    /// Replace the content of the file by this text, and its mode by the base's.
    Text(Vec<u8>),
    /// Replace the mode of the file by the base's.
    Mode,
}

/// A tree in which changes were put back, and the paths of these changes.
pub struct RestoredTree {
    pub tree: Oid,
    /// The paths whose content or mode was put back, wholly or in part.
    pub put_back: Vec<TreePath>,
    /// The added paths that were removed from the tree.
    pub taken_out: Vec<TreePath>,
}

/// Restores the paths of `tree` that match the pathspecs `protect` to their state in `base`. An
/// added path is removed only if it is the new name of a protected file, or if `decides` returns
/// true for its path and content.
pub fn protected(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    protect: &[String],
    decides: impl Fn(&TreePath, &[u8]) -> bool,
) -> Result<RestoredTree> {
    if protect.is_empty() {
        return Ok(RestoredTree { tree: *tree, put_back: Vec::new(), taken_out: Vec::new() });
    }
    let hint = "protected paths are pathspecs from the root: see `git help glossary`, pathspec";
    let diff = || repo.git().call("diff-tree").args(["-r", "-z", "--ignore-submodules=none"]);
    let renames = diff().args(["--find-renames", "--diff-filter=R", "--name-only"]);
    let renames = renames.args([base.as_str(), tree.as_str(), "--"]).args(protect).bytes();
    let renames = renames.map_err(|e| e.hint(hint))?;
    let new_names: BTreeSet<&[u8]> = nul_separated(&renames).collect();
    let changes = diff().args(["--no-renames", base.as_str(), tree.as_str(), "--"]).args(protect);
    let changes = trees::of_diff_tree(&changes.bytes()?)?;
    restored(repo, base, tree, &changes, |change| match change {
        TreeDifference { path, old: None, new: Some((_, id)) }
            if !new_names.contains(path.as_bytes())
                && !decides(path, &repo.blob(&to_oid(*id)).unwrap_or_default()) =>
        {
            Restore::Keep
        }
        _ => Restore::Base,
    })
}

/// Calls `choose` for each path that differs between `base` and `tree`, and applies the returned
/// [`Restore`] to the path.
pub fn put_back(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    mut choose: impl FnMut(&TreePath) -> Restore,
) -> Result<RestoredTree> {
    let changes = trees::changed_paths(repo, base, tree)?;
    restored(repo, base, tree, &changes, |change| choose(&change.path))
}

fn restored(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    changes: &[TreeDifference],
    mut choose: impl FnMut(&TreeDifference) -> Restore,
) -> Result<RestoredTree> {
    let mut edits = IndexEdits::default();
    for change in changes {
        let mode = match (change.old, change.new) {
            (Some((mode @ (EntryMode::File | EntryMode::Executable), _)), _) => mode,
            (_, new) => new.map_or(EntryMode::Absent, |(mode, _)| mode),
        };
        match (choose(change), change.old, change.new) {
            (Restore::Base, None, _) => edits.remove(&change.path, base),
            (Restore::Base, Some((mode, id)), _) => edits.set(mode, id, &change.path),
            (Restore::Text(text), _, Some(_)) => {
                edits.set(mode, repo.store_blob(text)?, &change.path);
            }
            (Restore::Mode, _, Some((_, id))) => edits.set(mode, id, &change.path),
            (Restore::Keep, ..) | (Restore::Text(_) | Restore::Mode, _, None) => {}
        }
    }
    let restored = edited_tree(repo, tree, edits)?;
    // The trees are compared again. A restored path may also have replaced an added file or
    // directory.
    let mut put_back = Vec::new();
    let mut taken_out = Vec::new();
    for TreeDifference { path, new, .. } in trees::changed_paths(repo, tree, &restored)? {
        if new.is_some() { put_back.push(path) } else { taken_out.push(path) }
    }
    Ok(RestoredTree { tree: restored, put_back, taken_out })
}
