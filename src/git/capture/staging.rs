//! Brings the private index up to date in process, and makes its tree.
//!
//! Only plain files and links are read here. A worktree in which a changed path needs a filter, a
//! conversion or anything else that git does with content goes through git.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode, Stat};
use gix::index::extension::Tree;
use gix::objs::Kind;
use gix::worktree::stack::state::attributes::Source;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::error::{IoContext, Result};
use crate::fs::regular;
use crate::git::capture::scan::Scan;
use crate::git::capture::source::CaptureSource;
use crate::git::index::encoded;
use crate::git::mode::EntryMode;
use crate::git::objects::NewObjects;
use crate::git::repo::{Repo, to_oid};
use crate::git::stat::entry_stat;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The most files that are read in process: git syncs many new objects at once.
const MOST_FILES: usize = 500;

/// The largest file that is read in process.
const LARGEST: u64 = 16 << 20;

/// The attributes by which git changes the content of a file that it stores.
const CONVERTING: [&str; 3] = ["filter", "ident", "working-tree-encoding"];

/// The attributes by which git changes the ends of lines.
const ENDING: [&str; 3] = ["text", "crlf", "eol"];

/// A file as it is stored.
struct Content {
    mode: Mode,
    stat: Stat,
    bytes: Vec<u8>,
}

/// Reads the changed files of a scan into `index`, and stores its tree; `None`, and no effect, if git
/// must do that.
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
    let Some(cached) = index.tree().cloned() else { return Ok(None) };
    if contents.is_empty() && scan.removed.is_empty() && cached.num_entries.is_some() {
        return Ok(Some(to_oid(cached.id)));
    }
    let touched = scan.staged.iter().chain(&scan.removed).flat_map(|path| path.parents());
    let mut trees = NewTrees { touched: touched.collect(), objects: repo.new_objects() };
    update(index, &mut trees.objects, contents, &scan.removed)?;
    let Some(tree) = trees.tree_of(index, &mut 0, b"", Some(cached))? else { return Ok(None) };
    let id = to_oid(tree.id);
    trees.objects.keep()?;
    if let Some(there) = index.tree_mut() {
        *there = tree;
    }
    let bytes = encoded(index, index.tree())?;
    let lock = source.index.with_extension("lock");
    regular::create_own(&lock)
        .and_then(|mut file| file.write_all(&bytes))
        .and_then(|()| fs::rename(&lock, source.index))
        .context(|| format!("could not write '{}'", source.index.display()))?;
    Ok(Some(id))
}

/// True if git may refuse a path, or take it for another: names like `.git` on other systems.
fn is_refused(path: &TreePath) -> bool {
    path.split(|b| *b == b'/').any(|name| {
        let lower = name.to_ascii_lowercase();
        let rest = lower.strip_prefix(b".git");
        lower.starts_with(b"git~")
            || lower.starts_with(b"gi7eba~")
            || name.contains(&b'\\')
            || rest.is_some_and(|rest| {
                !rest.iter().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(b))
                    || rest.is_empty()
                    || lower == b".gitmodules"
            })
            || (!name.is_ascii() && lower.first() == Some(&b'.'))
    })
}

/// The content of each changed path, or `None` for one that is gone. `None` for all of them if git
/// must read one.
fn read_all(
    repo: &Repo,
    source: &CaptureSource<'_>,
    scan: &Scan,
    index: &gix::index::File,
) -> Option<BTreeMap<TreePath, Option<Content>>> {
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
        let Some(content) = read(source.worktree, path)? else {
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

/// Reads a file or a link: `Some(None)` if there is nothing, `None` if it cannot be read, or is
/// anything else.
fn read(worktree: &Path, path: &TreePath) -> Option<Option<Content>> {
    let full = path.on_disk(worktree);
    // Before the content: a file that is written meanwhile has another time than this.
    let stat = match rustix::fs::lstat(&full) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Some(None),
        Err(_) => return None,
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    let (mode, bytes) = if kind == FileType::Symlink {
        (Mode::SYMLINK, fs::read_link(&full).ok()?.as_os_str().as_bytes().to_vec())
    } else if kind == FileType::RegularFile && stat.st_size as u64 <= LARGEST {
        let mut bytes = Vec::new();
        let file = regular::open_own(&full).ok()?;
        file.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > LARGEST {
            return None;
        }
        let mode = if stat.st_mode & 0o100 == 0 { Mode::FILE } else { Mode::FILE_EXECUTABLE };
        (mode, bytes)
    } else {
        return None;
    };
    Some(Some(Content { mode, stat: entry_stat(&stat), bytes }))
}

/// Gives the index these files, and takes out those that are gone.
fn update(
    index: &mut gix::index::File,
    objects: &mut NewObjects,
    contents: BTreeMap<TreePath, Option<Content>>,
    removed: &BTreeSet<TreePath>,
) -> Result<()> {
    let is_gone =
        |path: &[u8]| removed.contains(path) || contents.get(path).is_some_and(Option::is_none);
    // It looks at every entry.
    if !removed.is_empty() || contents.values().any(Option::is_none) {
        index.remove_entries(|_, path, _| is_gone(path));
    }
    let mut new = Vec::new();
    for (path, content) in contents {
        let Some(Content { mode, stat, bytes }) = content else { continue };
        let Ok(at) = index.entry_index_by_path(path.as_bstr()) else {
            new.push((stat, objects.add(Kind::Blob, &bytes)?, mode, path));
            continue;
        };
        let entry = &mut index.entries_mut()[at];
        let same = gix::objs::compute_hash(entry.id.kind(), Kind::Blob, &bytes);
        if same.ok() != Some(entry.id) {
            entry.id = objects.add(Kind::Blob, &bytes)?;
        }
        (entry.mode, entry.stat) = (mode, stat);
    }
    if new.is_empty() {
        return Ok(());
    }
    // Only now: an index that is not sorted finds no path.
    for (stat, id, mode, path) in new {
        index.dangerously_push_entry(stat, id, Flags::empty(), mode, path.as_bstr());
    }
    index.sort_entries();
    Ok(())
}

/// The trees of an index of which the files in some directories have changed.
struct NewTrees {
    /// The directories with a path that was read again or removed, with those that they are in.
    touched: BTreeSet<TreePath>,
    objects: NewObjects,
}

impl NewTrees {
    /// The tree of the directory `prefix` (empty, or with a slash at its end), whose entries begin
    /// at `at`, which moves behind them. `cached` is its tree before, which is stored. `None` if an
    /// entry is neither a file nor a link.
    fn tree_of(
        &mut self,
        index: &gix::index::File,
        at: &mut usize,
        prefix: &[u8],
        cached: Option<Tree>,
    ) -> Result<Option<Tree>> {
        let begin = *at;
        let mut cached = cached.filter(|tree| tree.num_entries.is_some());
        if let Some(tree) = cached.take_if(|tree| self.is_untouched(index, begin, prefix, tree)) {
            *at += tree.num_entries.unwrap_or_default() as usize;
            return Ok(Some(tree));
        }
        let old = cached.as_ref().map(|tree| tree.id);
        let below = cached.into_iter().flat_map(|tree| tree.children);
        let mut below: BTreeMap<_, _> = below.map(|child| (child.name.clone(), child)).collect();
        let mut entries: Vec<(EntryMode, ObjectId, Vec<u8>)> = Vec::new();
        let mut children = Vec::new();
        while let Some(entry) = index.entries().get(*at) {
            let path: &[u8] = entry.path(index);
            let Some(rest) = path.strip_prefix(prefix) else { break };
            let Some(end) = rest.find_byte(b'/') else {
                let mode = match entry.mode {
                    Mode::FILE => EntryMode::File,
                    Mode::FILE_EXECUTABLE => EntryMode::Executable,
                    Mode::SYMLINK => EntryMode::Link,
                    _ => return Ok(None),
                };
                entries.push((mode, entry.id, rest.to_vec()));
                *at += 1;
                continue;
            };
            let name = &rest[..end];
            let inside = &path[..prefix.len() + end + 1];
            let Some(mut child) = self.tree_of(index, at, inside, below.remove(name))? else {
                return Ok(None);
            };
            child.name = name.into();
            entries.push((EntryMode::Directory, child.id, name.to_vec()));
            children.push(child);
        }
        let count = u32::try_from(*at - begin).ok();
        let id = self.objects.add_tree_unless(entries, old)?;
        // git sorts the directories of this extension by length first.
        children.sort_by(|a: &Tree, b: &Tree| {
            (a.name.len(), &a.name[..]).cmp(&(b.name.len(), &b.name[..]))
        });
        Ok(Some(Tree { name: Default::default(), id, num_entries: count, children }))
    }

    /// True if the directory `prefix`, whose entries begin at `begin`, still has the tree `cached`.
    fn is_untouched(
        &self,
        index: &gix::index::File,
        begin: usize,
        prefix: &[u8],
        cached: &Tree,
    ) -> bool {
        let count = cached.num_entries.unwrap_or_default() as usize;
        let is_inside = |at: usize| {
            index.entries().get(at).is_some_and(|entry| entry.path(index).starts_with(prefix))
        };
        let Some(directory) = prefix.strip_suffix(b"/") else { return false };
        count > 0
            && !self.touched.contains(directory)
            && is_inside(begin + count - 1)
            && !is_inside(begin + count)
    }
}
