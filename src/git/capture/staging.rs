//! Brings the private index up to date in process, and makes its tree.
//!
//! Only plain files and links are read here. If a changed path needs a filter, a conversion or
//! anything else that git does with content, git reads the whole worktree instead.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode, Stat};
use gix::index::extension::Tree;
use gix::objs::Kind;
use gix::objs::tree::{Editor, EntryKind};
use gix::prelude::FindExt;
use gix::validate::path::component;
use gix::worktree::stack::state::attributes::Source;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::error::{IoContext, Result};
use crate::fs::regular;
use crate::git::capture::scan::Scan;
use crate::git::capture::source::CaptureSource;
use crate::git::index::{encoded, entry_stat};
use crate::git::objects::NewObjects;
use crate::git::repo::{Repo, to_oid};
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The largest number of changed files that are read in process. git is better with many files,
/// because it syncs many new objects at once.
const MOST_FILES: usize = 500;

/// The largest file that is read in process.
const LARGEST: u64 = 16 << 20;

/// The attributes that can make git change the content of a file when it stores the file.
const CONVERTING: [&str; 3] = ["filter", "ident", "working-tree-encoding"];

/// The attributes that can make git change the ends of lines.
const ENDING: [&str; 3] = ["text", "crlf", "eol"];

/// A file or link as the index and the object database store it.
pub(super) struct StoredFile {
    mode: Mode,
    stat: Stat,
    /// The bytes of the file, or the target of the link.
    pub bytes: Vec<u8>,
}

/// Reads the changed files of a scan into `index`, and stores the tree of the index. If git must do
/// that, returns `None` and leaves the index file unchanged.
pub(super) fn stage(
    repo: &Repo,
    source: &CaptureSource<'_>,
    scan: &Scan,
    index: &mut gix::index::File,
) -> Result<Option<Oid>> {
    if scan.staged.len() > MOST_FILES || scan.staged.iter().any(is_refused) {
        return Ok(None);
    }
    let Some(contents) = read_all(repo, source, scan, index) else { return Ok(None) };
    let Some(before) = index.tree().filter(|tree| tree.num_entries.is_some()) else {
        return Ok(None);
    };
    let before = before.id;
    if contents.is_empty() && scan.removed.is_empty() {
        return Ok(Some(to_oid(before)));
    }
    let gix = repo.gix();
    let mut buffer = Vec::new();
    // A garbage collection may have deleted the tree.
    let Ok(root) = gix.objects.find_tree(&before, &mut buffer) else { return Ok(None) };
    let mut tree = Editor::new(root.into(), &gix.objects, before.kind());
    let mut objects = repo.new_objects();
    if !update(index, &mut tree, &mut objects, contents, &scan.removed)? {
        return Ok(None);
    }
    let id = tree.write(|changed| objects.add_tree(changed))?;
    objects.keep()?;
    let num_entries = u32::try_from(index.entries().len()).ok();
    if let Some(cached) = index.tree_mut() {
        // The cache tree gets no entries for directories: git makes them again when it needs them.
        *cached = Tree { name: Default::default(), id, num_entries, children: Vec::new() };
    }
    let bytes = encoded(index, index.tree())?;
    let lock = source.index.with_extension("lock");
    regular::create_own(&lock)
        .and_then(|mut file| file.write_all(&bytes))
        .and_then(|()| fs::rename(&lock, source.index))
        .could_not("write", source.index)?;
    Ok(Some(to_oid(id)))
}

/// True if git may refuse a path, or may treat it as another path. For example, a name in it may
/// mean `.git` on macOS.
fn is_refused(path: &TreePath) -> bool {
    let options = component::Options { protect_windows: false, ..Default::default() };
    path.split_str("/").any(|name| {
        // git refuses some names only for links.
        let checked = component(name.as_bstr(), Some(component::Mode::Symlink), options);
        checked.is_err() || name.contains(&b'\\')
    })
}

/// The content of each changed path, or `None` as its value if the file is gone. Returns `None` if
/// git must read one of the files.
fn read_all(
    repo: &Repo,
    source: &CaptureSource<'_>,
    scan: &Scan,
    index: &gix::index::File,
) -> Option<BTreeMap<TreePath, Option<StoredFile>>> {
    let mut contents = BTreeMap::new();
    if scan.staged.is_empty() {
        return Some(contents);
    }
    let mut gix = repo.gix();
    gix.set_workdir(source.worktree.to_owned()).ok()?;
    let mut rules = gix.attributes_only(index, Source::WorktreeThenIdMapping).ok()?;
    let all: Vec<&str> = CONVERTING.into_iter().chain(ENDING).collect();
    let mut found = rules.selected_attribute_matches(all);
    for path in &scan.staged {
        let Some(content) = read(source.worktree, path, LARGEST)? else {
            contents.insert(path.clone(), None);
            continue;
        };
        if content.mode != Mode::SYMLINK {
            let place = rules.at_entry(path.as_bstr(), Some(content.mode)).ok()?;
            place.matching_attributes(&mut found);
            let has_carriage_return = content.bytes.contains(&b'\r');
            let is_left_alone = found.iter_selected().all(|attribute| {
                let name = attribute.assignment.name.as_str();
                attribute.assignment.state.is_unspecified()
                    || (ENDING.contains(&name) && !has_carriage_return)
            });
            if !is_left_alone {
                return None;
            }
        }
        contents.insert(path.clone(), Some(content));
    }
    Some(contents)
}

/// Reads a file or a link. Returns `Some(None)` if nothing is at the path. Returns `None` if the
/// path is something else, cannot be read, or has more than `most` bytes.
pub(super) fn read(worktree: &Path, path: &TreePath, most: u64) -> Option<Option<StoredFile>> {
    let full = path.on_disk(worktree);
    // The stat data are read before the content. If a program writes to the file in between, the
    // file no longer has these times, so the next capture reads it again.
    let stat = match rustix::fs::lstat(&full) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Some(None),
        Err(_) => return None,
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    let (mode, bytes) = if kind == FileType::Symlink {
        (Mode::SYMLINK, fs::read_link(&full).ok()?.as_os_str().as_bytes().to_vec())
    } else if kind == FileType::RegularFile && stat.st_size as u64 <= most {
        // Without the limit, reading would never end if the attempt appends to the file all the
        // time.
        let bytes = regular::read_at_most(regular::open_own(&full).ok()?, most).ok()?;
        let mode = if stat.st_mode & 0o100 == 0 { Mode::FILE } else { Mode::FILE_EXECUTABLE };
        (mode, bytes)
    } else {
        return None;
    };
    Some(Some(StoredFile { mode, stat: entry_stat(&stat), bytes }))
}

/// Puts these files into the index and its tree, and removes the files that are gone. Returns false
/// if a tree cannot be read.
fn update(
    index: &mut gix::index::File,
    tree: &mut Editor<'_>,
    objects: &mut NewObjects,
    contents: BTreeMap<TreePath, Option<StoredFile>>,
    removed: &BTreeSet<TreePath>,
) -> Result<bool> {
    let gone = contents.iter().filter(|(_, content)| content.is_none()).map(|(path, _)| path);
    let gone: BTreeSet<TreePath> = gone.chain(removed).cloned().collect();
    for path in &gone {
        if tree.remove_if_leaf(path.as_bstr().split_str("/")).is_err() {
            return Ok(false);
        }
    }
    // `remove_entries` looks at every entry, so it is not called for nothing.
    if !gone.is_empty() {
        index.remove_entries(|_, path, _| gone.contains(path.as_bytes()));
    }
    let mut new = Vec::new();
    for (path, content) in contents {
        let Some(StoredFile { mode, stat, bytes }) = content else { continue };
        let there = index.entry_index_by_path(path.as_bstr()).ok();
        let same = there.map(|at| index.entries()[at].id).filter(|id| {
            let now = gix::objs::compute_hash(id.kind(), Kind::Blob, &bytes);
            now.is_ok_and(|now| now == *id)
        });
        let id = same.map_or_else(|| objects.add(Kind::Blob, &bytes), Ok)?;
        let kind = mode.to_tree_entry_mode().map_or(EntryKind::Blob, |mode| mode.kind());
        if tree.upsert(path.as_bstr().split_str("/"), kind, id).is_err() {
            return Ok(false);
        }
        match there {
            Some(at) => {
                let entry = &mut index.entries_mut()[at];
                (entry.mode, entry.stat, entry.id) = (mode, stat, id);
            }
            None => new.push((stat, id, mode, path)),
        }
    }
    if new.is_empty() {
        return Ok(true);
    }
    // New entries are added after the loop, because a path cannot be looked up in an index that is
    // not sorted.
    for (stat, id, mode, path) in new {
        index.dangerously_push_entry(stat, id, Flags::empty(), mode, path.as_bstr());
    }
    index.sort_entries();
    Ok(true)
}
