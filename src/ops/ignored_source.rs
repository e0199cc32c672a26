//! Finds ignored files that look like source code of the project. An attempt may have written them
//! as part of its work, but captures do not contain them.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::ecosystems::languages::source_extension;
use crate::git::capture::omitted::Omissions;
use crate::git::capture::{self, CaptureSource};
use crate::model::path::{TreePath, directory_of};

/// Directories at the root of a worktree that hold output of tools, not an attempt's work.
const OUTPUTS: [&[u8]; 4] = [b"build/", b"dist/", b"node_modules/", b"target/"];

/// The ignored source files in an attempt's worktree, for [`Omissions`]. Leaves out the paths that
/// `others`, the omissions found so far, already have.
pub fn left_by_attempt(
    source: &CaptureSource<'_>,
    ignored: &[TreePath],
    others: &Omissions,
) -> BTreeMap<TreePath, Vec<TreePath>> {
    let mut found = find(source.worktree, source.index, ignored);
    found.retain(|path, files| {
        files.retain(|file| !source.seeds.has(file));
        !files.is_empty() && !others.newly_ignored.contains(path) && !source.hidden.hides(path)
    });
    found
}

/// The ignored source files in languages that the project uses in the same directory, i.e. the
/// index has a file in this language there. If the directory is itself ignored, its parent
/// directory decides. The keys of the result are the ignored paths. The path of an ignored
/// directory ends in a slash.
pub fn find(
    worktree: &Path,
    index: &Path,
    ignored: &[TreePath],
) -> BTreeMap<TreePath, Vec<TreePath>> {
    let mut found = BTreeMap::new();
    let mut directories = BTreeSet::new();
    for path in ignored {
        let above = directory_of(path.strip_suffix(b"/").unwrap_or(path));
        let files = source_at(worktree, path);
        if !files.is_empty() {
            directories.extend([above, directory_of(path)].map(TreePath::new));
            found.insert(path.clone(), (TreePath::new(above), files));
        }
    }
    if found.is_empty() {
        return BTreeMap::new();
    }
    let tracked = capture::files_in(index, &directories);
    let languages: BTreeSet<(&[u8], &str)> =
        tracked.iter().filter_map(|path| Some((directory_of(path), language_of(path)?))).collect();
    let mut left = BTreeMap::new();
    for (path, (above, mut files)) in found {
        // A tracked file is captured even if an ignore rule matches it.
        files.retain(|file| {
            let is_known = language_of(file).is_some_and(|own| languages.contains(&(&above, own)));
            is_known && !tracked.contains(file)
        });
        if !files.is_empty() {
            left.insert(path, files);
        }
    }
    left
}

/// The source files at an ignored path: the file itself, or the files directly in the directory.
fn source_at(worktree: &Path, path: &TreePath) -> Vec<TreePath> {
    let Some(directory) = path.strip_suffix(b"/").map(TreePath::new) else {
        return if language_of(path).is_some() { vec![path.clone()] } else { Vec::new() };
    };
    if OUTPUTS.contains(&path.as_bytes()) {
        return Vec::new();
    }
    let entries = fs::read_dir(directory.on_disk(worktree)).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let files = files.map(|entry| directory.join(entry.file_name().as_bytes()));
    files.filter(|file| language_of(file).is_some()).collect()
}

fn language_of(path: &TreePath) -> Option<&'static str> {
    source_extension(&path.lossy())
}
