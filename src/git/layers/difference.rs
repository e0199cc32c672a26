//! The layer between a base and another tree: the files that differ, and marks for those that are
//! gone.
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use gix::bstr::ByteSlice;
use rustix::fs::{CWD, FileType, Mode};

use crate::error::{IoContext, Result};
use crate::git::cli::{Git, nul_separated};
use crate::git::layers::base::BaseLayer;
use crate::git::layers::read_index;
use crate::git::seed::find::Seeds;
use crate::model::oid::Oid;
use crate::model::path::{TreePath, file_name};

/// A path that differs between two trees.
struct Difference {
    path: TreePath,
    is_deleted: bool,
    is_submodule: bool,
}

/// Writes the difference from a base to a commit into the directory `into`, with the present time,
/// and the commit's index to the file `index`.
///
/// False if a difference cannot stand above the base's files: with other attributes git would write
/// the same blobs differently, and a submodule is a tree of its own. Then nothing is written.
pub fn write(
    git: &Git,
    layer: &BaseLayer,
    [base, commit]: [&Oid; 2],
    seeds: &Seeds,
    into: &Path,
    index: &Path,
) -> Result<bool> {
    let differences = between(git, base, commit)?;
    let bends_others = |difference: &Difference| {
        difference.is_submodule
            || [&b".gitattributes"[..], b".gitmodules"]
                .contains(&file_name(difference.path.as_bytes()))
    };
    if differences.iter().any(bends_others) {
        return Ok(false);
    }
    let failed = || format!("could not write '{}'", into.display());
    fs::create_dir_all(into).context(failed)?;
    fs::copy(layer.index(), index).context(failed)?;
    // The base's checkout has the attributes by which git writes the files.
    let git = git.clone().work_tree(&layer.sources()).index(index);
    git.call("-c")
        .args(["core.sparseCheckout=false", "read-tree", "--reset"])
        .arg(commit.as_str())
        .run()?;
    let written = differences.iter().filter(|d| !d.is_deleted).map(|d| &d.path);
    let list = TreePath::nul_terminated(written);
    if !list.is_empty() {
        let mut option = OsString::from("--prefix=");
        option.push(into);
        option.push("/");
        git.call("checkout-index").args(["-f", "-z", "--stdin"]).arg(option).stdin(list).run()?;
    }
    let index = read_index(index)?;
    let deleted = differences.iter().filter(|d| d.is_deleted).map(|d| &d.path);
    for place in gone(deleted, &index, seeds) {
        mark_as_deleted(into, &place).context(failed)?;
    }
    Ok(true)
}

fn between(git: &Git, base: &Oid, commit: &Oid) -> Result<Vec<Difference>> {
    let list = git
        .call("diff-tree")
        .args(["-r", "-z", "--raw", "--no-renames", "--no-abbrev"])
        .args([base.as_str(), commit.as_str()])
        .bytes()?;
    let mut fields = nul_separated(&list);
    let mut found = Vec::new();
    // `:MODE MODE ID ID STATUS`, then the path (git-diff-tree(1), "Raw output format").
    while let (Some(meta), Some(path)) = (fields.next(), fields.next()) {
        let words: Vec<&[u8]> = meta.split(|byte| *byte == b' ').collect();
        found.push(Difference {
            path: TreePath::new(path),
            is_deleted: words.last() == Some(&&b"D"[..]),
            is_submodule: words.iter().take(2).any(|mode| mode.ends_with(b"160000")),
        });
    }
    Ok(found)
}

/// The paths to mark as deleted, for deleted files: where nothing is left of a directory, the
/// directory, because git removes it, too.
fn gone<'a>(
    deleted: impl Iterator<Item = &'a TreePath>,
    index: &gix::index::File,
    seeds: &Seeds,
) -> BTreeSet<TreePath> {
    let is_kept = |directory: &TreePath| {
        index.path_is_directory(directory.as_bytes().as_bstr()) || seeds.hold(directory)
    };
    let is_file = |path: &TreePath| index.entry_by_path(path.as_bytes().as_bstr()).is_some();
    let mut marks = BTreeSet::new();
    for path in deleted {
        let parents: Vec<TreePath> = path.parents().collect();
        // A file or a directory in its place hides it.
        if is_kept(path) || parents.iter().any(is_file) {
            continue;
        }
        let outermost = parents.into_iter().find(|parent| !is_kept(parent));
        marks.insert(outermost.unwrap_or_else(|| path.clone()));
    }
    marks
}

/// Makes a whiteout: a device file with the number 0:0, which needs no privileges.
fn mark_as_deleted(layer: &Path, path: &TreePath) -> std::io::Result<()> {
    let full = path.on_disk(layer);
    if let Some(parent) = full.parent() {
        fs::create_dir_all(parent)?;
    }
    let number = rustix::fs::makedev(0, 0);
    Ok(rustix::fs::mknodat(CWD, full, FileType::CharacterDevice, Mode::empty(), number)?)
}
