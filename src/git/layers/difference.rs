//! The layer between a base and another tree: the files that differ, and marks for those that are
//! gone.
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode, Stat};
use gix::index::write::Options;
use rustix::fs::{CWD, FileType};

use crate::error::{IoContext, Result};
use crate::git::index::read_index;
use crate::git::layers::base::BaseLayer;
use crate::git::mode::EntryMode;
use crate::git::repo::Repo;
use crate::git::seed::find::Seeds;
use crate::git::trees::{self, TreeDifference};
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// Writes the difference from a base to a commit into the directory `into`, with the present time,
/// and the commit's index to the file `index`.
///
/// False if a difference cannot stand above the base's files: with other attributes git would write
/// the same blobs differently, and a submodule is a tree of its own. Also false if the trees cannot
/// be read in process. Then nothing is written.
pub fn write(
    repo: &Repo,
    layer: &BaseLayer,
    [base, commit]: [&Oid; 2],
    seeds: &Seeds,
    into: &Path,
    index: &Path,
) -> Result<bool> {
    let Some(differences) = trees::differences(repo, base, commit) else { return Ok(false) };
    if differences.iter().any(bends_others) {
        return Ok(false);
    }
    let Some(mut own) = changed_index(read_index(&layer.index())?, &differences) else {
        return Ok(false);
    };
    let failed = || format!("could not write '{}'", into.display());
    fs::create_dir_all(into).context(failed)?;
    own.set_path(index);
    own.write(Options::default())
        .map_err(io::Error::other)
        .context(|| format!("could not write '{}'", index.display()))?;
    // The base's checkout has the attributes by which git writes the files.
    let git = repo.git().work_tree(&layer.sources()).index(index);
    let written = differences.iter().filter(|d| d.new.is_some()).map(|d| &d.path);
    let list = TreePath::nul_terminated(written);
    if !list.is_empty() {
        let mut option = OsString::from("--prefix=");
        option.push(into);
        option.push("/");
        git.call("checkout-index").args(["-f", "-z", "--stdin"]).arg(option).stdin(list).run()?;
    }
    let deleted = differences.iter().filter(|d| d.new.is_none()).map(|d| &d.path);
    for place in gone(deleted, &own, seeds) {
        mark_as_deleted(into, &place).context(failed)?;
    }
    Ok(true)
}

/// The base's index with these differences, which have no stat data; none if one is no file. git
/// would read all trees for it, once for each tree that is judged.
fn changed_index(
    mut index: gix::index::File,
    differences: &[TreeDifference],
) -> Option<gix::index::File> {
    let paths: BTreeSet<&[u8]> = differences.iter().map(|d| d.path.as_bytes()).collect();
    index.remove_entries(|_, path, _| paths.contains(path.as_bytes()));
    for TreeDifference { path, new, .. } in differences {
        let Some((mode, id)) = new else { continue };
        let mode = match mode {
            EntryMode::File => Mode::FILE,
            EntryMode::Executable => Mode::FILE_EXECUTABLE,
            EntryMode::Link => Mode::SYMLINK,
            EntryMode::Absent | EntryMode::Directory | EntryMode::Submodule => return None,
        };
        let path = path.as_bytes().as_bstr();
        index.dangerously_push_entry(Stat::default(), *id, Flags::empty(), mode, path);
    }
    index.sort_entries();
    index.remove_tree();
    Some(index)
}

/// True if a difference at this path changes how others are checked out, or is a tree of its own.
fn bends_others(difference: &TreeDifference) -> bool {
    let TreeDifference { path, old, new } = difference;
    let is_submodule = old.iter().chain(new).any(|(mode, _)| *mode == EntryMode::Submodule);
    is_submodule || [&b".gitattributes"[..], b".gitmodules"].contains(&path.file_name())
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
fn mark_as_deleted(layer: &Path, path: &TreePath) -> io::Result<()> {
    let full = path.on_disk(layer);
    if let Some(parent) = full.parent() {
        fs::create_dir_all(parent)?;
    }
    let number = rustix::fs::makedev(0, 0);
    Ok(rustix::fs::mknodat(
        CWD,
        full,
        FileType::CharacterDevice,
        rustix::fs::Mode::empty(),
        number,
    )?)
}
