//! Finds in process what changed in a worktree: one pass over its files, which are compared with
//! the private index and, where they are new, with git's ignore rules.
//!
//! Whatever is unusual is left to git: then there is no answer.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode};
use gix::worktree::stack::state::ignore::Source;

use crate::error::Result;
use crate::fs::parallel;
use crate::git::capture::dirty;
use crate::git::repo::Repo;
use crate::model::path::TreePath;

/// The longest path that is read in process. git leaves out those that the system refuses.
const LONGEST_PATH: usize = 3000;

/// The deepest directory that is read in process.
const DEEPEST: usize = 100;

/// Files whose content tells git what to do with others.
const RULES: [&[u8]; 3] = [b".gitignore", b".gitattributes", b".gitmodules"];

/// The differences between a worktree and its private index, as `git ls-files` would list them.
#[derive(Default)]
pub(super) struct Listing {
    /// The paths of the index whose files may have another content or mode.
    pub changed: Vec<TreePath>,
    /// The paths of the index that have no file any more.
    pub deleted: Vec<TreePath>,
    /// The files that are neither in the index nor ignored.
    pub untracked: Vec<TreePath>,
}

/// What is directly in one directory.
#[derive(Default)]
struct Contents {
    /// The places in the index of the files that are there.
    seen: Vec<usize>,
    /// Those of them that may have changed.
    changed: Vec<usize>,
    /// The files that the index does not have.
    files: Vec<(TreePath, Mode)>,
    /// The directories of which the index has no file.
    directories: Vec<TreePath>,
}

/// Lists the differences; none if git must do it.
pub(super) fn list(
    repo: &Repo,
    worktree: &Path,
    index: &gix::index::File,
) -> Result<Option<Listing>> {
    if !is_usual(index) || !fs::symlink_metadata(worktree.join(".git")).is_ok_and(|m| m.is_file()) {
        return Ok(None);
    }
    let mut members: BTreeMap<TreePath, Vec<usize>> =
        dirty::directories(index).into_iter().map(|directory| (directory, Vec::new())).collect();
    let mut last: Option<(&[u8], &mut Vec<usize>)> = None;
    for (at, entry) in index.entries().iter().enumerate() {
        let path: &[u8] = entry.path(index);
        let directory = path.rfind_byte(b'/').map_or(&b""[..], |at| &path[..at]);
        match &mut last {
            Some((of, list)) if *of == directory => list.push(at),
            _ => {
                let Some(list) = members.get_mut(directory) else { return Ok(None) };
                list.push(at);
                last = Some((directory, list));
            }
        }
    }
    let known: BTreeSet<&TreePath> = members.keys().collect();
    let directories: Vec<(&TreePath, &Vec<usize>)> = members.iter().collect();
    let found = parallel::map(&directories, |(directory, entries)| {
        Ok(contents(worktree, directory, entries, index, &known))
    })?;
    let Some(found) = found.into_iter().collect::<Option<Vec<Contents>>>() else { return Ok(None) };
    let path_of = |at: usize| TreePath::new(index.entries()[at].path(index));
    let mut listing = Listing::default();
    let mut is_there = vec![false; index.entries().len()];
    let mut new = Contents::default();
    for one in found {
        one.seen.iter().for_each(|at| is_there[*at] = true);
        listing.changed.extend(one.changed.into_iter().map(path_of));
        new.files.extend(one.files);
        new.directories.extend(one.directories);
    }
    let gone = is_there.iter().enumerate().filter(|(_, there)| !**there);
    listing.deleted.extend(gone.map(|(at, _)| path_of(at)));
    match untracked(repo, worktree, index, new) {
        Some(untracked) => listing.untracked = untracked,
        None => return Ok(None),
    }
    Ok(Some(listing))
}

/// True if an index has nothing but files and links, without a bit that hides an edit.
fn is_usual(index: &gix::index::File) -> bool {
    let odd = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE | Flags::INTENT_TO_ADD | Flags::STAGE_MASK;
    let is_file = |mode| matches!(mode, Mode::FILE | Mode::FILE_EXECUTABLE | Mode::SYMLINK);
    index.link().is_none()
        && index.entries().iter().all(|e| !e.flags.intersects(odd) && is_file(e.mode))
}

/// Reads one directory. `entries` are the places in the index of the files directly in it, sorted;
/// `known` are the directories of the index.
fn contents(
    worktree: &Path,
    directory: &TreePath,
    entries: &[usize],
    index: &gix::index::File,
    known: &BTreeSet<&TreePath>,
) -> Option<Contents> {
    let mut found = Contents::default();
    if directory.iter().filter(|b| **b == b'/').count() > DEEPEST {
        return None;
    }
    let listing = match fs::symlink_metadata(directory.on_disk(worktree)) {
        // A file, a link or nothing is in its place: its files are gone.
        Ok(meta) if !meta.is_dir() => return Some(found),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Some(found),
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => return Some(found),
        Err(_) => return None,
        Ok(_) => fs::read_dir(directory.on_disk(worktree)).ok()?,
    };
    if !entries.is_empty() && is_beyond_link(worktree, directory) {
        return Some(found);
    }
    if directory.len() > LONGEST_PATH {
        return None;
    }
    let name_of = |at: usize| file_name_of(index.entries()[at].path(index));
    for entry in listing {
        let entry = entry.ok()?;
        let name = entry.file_name();
        let name = name.as_bytes();
        if name == b".git" {
            if directory.is_empty() {
                continue;
            }
            return None; // a repository in the worktree
        }
        let kind = entry.file_type().ok()?;
        let is_rule = RULES.contains(&name);
        if is_rule && !kind.is_file() {
            return None; // git could wait for it, or not follow it
        }
        if kind.is_dir() {
            let path = directory.join(name);
            if !known.contains(&path) {
                found.directories.push(path);
            }
            continue;
        }
        if !kind.is_file() && !kind.is_symlink() {
            return None; // git cannot hold it
        }
        match entries.binary_search_by(|at| name_of(*at).cmp(name)) {
            Ok(place) => {
                let at = entries[place];
                let indexed = &index.entries()[at];
                let meta = entry.metadata().ok()?;
                if !dirty::is_clean_file(indexed.mode, &indexed.stat, &meta, index) {
                    found.changed.push(at);
                }
                found.seen.push(at);
            }
            Err(_) => {
                let mode = if kind.is_symlink() { Mode::SYMLINK } else { Mode::FILE };
                found.files.push((directory.join(name), mode));
            }
        }
    }
    Some(found)
}

fn file_name_of(path: &gix::bstr::BStr) -> &[u8] {
    path.rfind_byte(b'/').map_or(path, |at| path[at + 1..].as_bstr())
}

/// True if a directory above this one is a link.
fn is_beyond_link(worktree: &Path, directory: &TreePath) -> bool {
    directory.parents().any(|above| above.on_disk(worktree).is_symlink())
}

/// The files among `new`, and below the directories in it, that git's rules do not ignore; none if
/// git must look.
fn untracked(
    repo: &Repo,
    worktree: &Path,
    index: &gix::index::File,
    new: Contents,
) -> Option<Vec<TreePath>> {
    let Contents { mut files, directories: mut waiting, .. } = new;
    if files.is_empty() && waiting.is_empty() {
        return Some(Vec::new());
    }
    let mut gix = repo.gix();
    gix.set_workdir(worktree.to_owned()).ok()?;
    let mut rules = gix.excludes(index, None, Source::WorktreeThenIdMappingIfNotSkipped).ok()?;
    let mut is_ignored = |path: &TreePath, mode: Mode| {
        Some(rules.at_entry(path.as_bstr(), Some(mode)).ok()?.is_excluded())
    };
    let mut found = Vec::new();
    let known = BTreeSet::new();
    loop {
        for (path, mode) in files.drain(..) {
            if !is_ignored(&path, mode)? {
                found.push(path);
            }
        }
        let Some(directory) = waiting.pop() else { break };
        if is_ignored(&directory, Mode::DIR)? {
            continue;
        }
        let inside = contents(worktree, &directory, &[], index, &known)?;
        files.extend(inside.files);
        waiting.extend(inside.directories);
    }
    found.sort();
    Some(found)
}
