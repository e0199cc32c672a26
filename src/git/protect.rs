//! Trees in which some of a candidate's changes are put back to the base's version: those to
//! protected paths, and those that decide how it is judged.
use std::collections::BTreeSet;

use crate::error::Result;
use crate::git::cli::nul_separated;
use crate::git::index::{IndexEdits, ScratchIndex};
use crate::git::mode::EntryMode;
use crate::git::repo::{Repo, to_oid};
use crate::git::trees::{self, TreeDifference, TreeEntry};
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// A changed path, as `git diff-tree --raw` shows it.
pub struct RawChange<'a> {
    /// The path from the root.
    pub path: &'a [u8],
    /// The object now; null if the path is gone.
    pub new: Oid,
    /// The mode now.
    new_mode: &'a [u8],
    old_mode: &'a [u8],
    old: Oid,
}

impl RawChange<'_> {
    /// True if the base has no such path.
    pub fn is_added(&self) -> bool {
        self.old.is_null()
    }
}

/// The thing to do with a change.
pub enum Restore {
    /// Leave it.
    Keep,
    /// Put the base's version back; take the path out if the base has none.
    Base,
    /// Put a file with this text in its place.
    Text(Vec<u8>),
}

/// A tree in which changes were put back.
pub struct RestoredTree {
    /// The tree.
    pub tree: Oid,
    /// The paths that are as in the base now, or partly so.
    pub put_back: Vec<TreePath>,
    /// The added paths that are not in it.
    pub taken_out: Vec<TreePath>,
}

/// Restores in `tree` the paths that the pathspecs `protect` match to their state in `base`. An
/// added path stays, unless `decides` is true of it and its content, or it is the new name of a
/// protected file.
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
    let diff = || repo.git().call("diff-tree").args(["-r", "-z"]);
    let renames = diff().args(["--find-renames", "--diff-filter=R", "--name-only"]);
    let renames = renames.args([base.as_str(), tree.as_str(), "--"]).args(protect).bytes();
    let renames = renames.map_err(|e| e.hint(hint))?;
    let new_names: BTreeSet<&[u8]> = nul_separated(&renames).collect();
    let changes = diff().args(["--no-renames", base.as_str(), tree.as_str(), "--"]).args(protect);
    restored(repo, base, tree, &changes.bytes()?, |change| {
        let decides_now = || {
            let content = repo.blob(&change.new).unwrap_or_default();
            decides(&TreePath::new(change.path), &content)
        };
        let stays = change.is_added() && !new_names.contains(change.path) && !decides_now();
        if stays { Restore::Keep } else { Restore::Base }
    })
}

/// Applies `choose` to each change from `base` to `tree`.
pub fn put_back(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    choose: impl FnMut(&RawChange<'_>) -> Restore,
) -> Result<RestoredTree> {
    restored(repo, base, tree, &raw(repo, base, tree)?, choose)
}

/// The records of `git diff-tree -z` for two trees (or commits).
fn raw(repo: &Repo, from: &Oid, to: &Oid) -> Result<Vec<u8>> {
    let Some(differences) = trees::differences(repo, from, to) else {
        let call = repo.git().call("diff-tree").args(["-r", "-z", "--no-renames"]);
        return call.args([from.as_str(), to.as_str()]).bytes();
    };
    let mut bytes = Vec::new();
    for TreeDifference { path, old, new } in differences {
        let parts = |entry: Option<TreeEntry>| {
            entry.map_or((EntryMode::Absent, from.null()), |(mode, id)| (mode, to_oid(id)))
        };
        let ((old_mode, old), (new_mode, new)) = (parts(old), parts(new));
        bytes.extend(format!(":{old_mode} {new_mode} {old} {new} X\0").into_bytes());
        bytes.extend([path.as_bytes(), b"\0"].concat());
    }
    Ok(bytes)
}

fn restored(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    changes: &[u8],
    mut choose: impl FnMut(&RawChange<'_>) -> Restore,
) -> Result<RestoredTree> {
    let mut edits = IndexEdits::default();
    for change in raw_changes(changes) {
        match choose(&change) {
            Restore::Keep => {}
            Restore::Base if change.is_added() => edits.remove(change.path, base),
            Restore::Base => {
                edits.set(String::from_utf8_lossy(change.old_mode), change.old, change.path);
            }
            Restore::Text(text) => {
                let mode = String::from_utf8_lossy(change.new_mode);
                edits.set(mode, repo.store_blob(text)?, change.path);
            }
        }
    }
    if edits.is_empty() {
        return Ok(RestoredTree { tree: *tree, put_back: Vec::new(), taken_out: Vec::new() });
    }
    let scratch = ScratchIndex::from_tree(&repo.git(), tree)?;
    scratch.edit(edits)?;
    let restored = scratch.write_tree()?;
    // A path that is put back takes the place of a file or a directory of its name.
    let bytes = raw(repo, tree, &restored)?;
    let (taken_out, put_back): (Vec<_>, Vec<_>) =
        raw_changes(&bytes).into_iter().partition(|change| change.new.is_null());
    let paths = |changes: Vec<RawChange<'_>>| {
        changes.iter().map(|change| TreePath::new(change.path)).collect()
    };
    Ok(RestoredTree { tree: restored, put_back: paths(put_back), taken_out: paths(taken_out) })
}

/// The records of `git diff-tree -z`. One that cannot be read is left out.
fn raw_changes(bytes: &[u8]) -> Vec<RawChange<'_>> {
    let mut records = nul_separated(bytes);
    let mut found = Vec::new();
    while let (Some(head), Some(path)) = (records.next(), records.next()) {
        let fields: Vec<&[u8]> =
            head.strip_prefix(b":").unwrap_or(head).split(|b| *b == b' ').collect();
        let [old_mode, new_mode, old, new, ..] = fields[..] else { continue };
        let id = |bytes| std::str::from_utf8(bytes).ok().and_then(Oid::parse);
        let (Some(old), Some(new)) = (id(old), id(new)) else { continue };
        found.push(RawChange { path, new, new_mode, old_mode, old });
    }
    found
}
