//! Functions on paths and directory trees: resolving links, sizes, times, and free space.
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{IoContext, Result};
pub use crate::fs::delete::delete_tree;
use crate::fs::walk::{self, EntryState};

/// True if `path` is `root` or lies below it, and no component of `path` is a link. Every
/// component, from the file system's root on, must be a directory.
///
/// Callers check this before they delete, because `git worktree remove --force` would empty the
/// target of a link.
pub fn is_real_directory(root: &Path, path: &Path) -> bool {
    let Ok(below) = path.strip_prefix(root) else { return false };
    if root.canonicalize().ok().as_deref() != Some(root) {
        return false;
    }
    let mut at = root.to_owned();
    below.components().all(|component| {
        at.push(component);
        fs::symlink_metadata(&at).is_ok_and(|m| m.is_dir())
    })
}

/// The path with all links resolved. The end of the path need not exist.
pub fn nearest_real(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => nearest_real(parent).join(name),
        _ => path.to_owned(),
    }
}

/// The links through which an absolute path leads, in order. Each is given as a path in which the
/// links above it are resolved. The last item is the path with all links resolved. The end of the
/// path need not exist.
pub fn links_and_real(path: &Path) -> Vec<PathBuf> {
    follow(path, |at| Ok(fs::read_link(at).ok())).unwrap_or_default()
}

/// Does the same as [`links_and_real`] for any kind of links (path_resolution(7)). `target` returns
/// the target of the link at a path, or `None` if there is no link.
pub fn follow(
    path: &Path,
    target: impl Fn(&Path) -> Result<Option<PathBuf>>,
) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut at = PathBuf::new();
    let mut left: Vec<OsString> = words_of(path);
    while let Some(word) = left.pop() {
        if word == ".." {
            at.pop();
            continue;
        }
        at.push(word);
        if found.len() < MOST_LINKS
            && let Some(target) = target(&at)?
        {
            found.push(at.clone());
            at.pop();
            left.extend(words_of(&target));
        }
    }
    found.push(at);
    Ok(found)
}

/// The paths to which the words of `command` lead from the absolute path `dir`, and the links on
/// the way. The words of scripts (`sh -c 'SCRIPT'`) count, and so does the whole text. Most of
/// these paths do not exist.
pub fn named_files(command: &[u8], dir: &Path) -> Vec<PathBuf> {
    // Paths need not be UTF-8. Each byte becomes one character here, and a byte again below.
    let mut words: Vec<String> = vec![command.iter().copied().map(char::from).collect()];
    for word in shell_words::split(&words[0]).unwrap_or_default() {
        words.extend(shell_words::split(&word).unwrap_or_default());
        words.push(word);
    }
    let bytes = |word: &String| word.chars().filter_map(|c| u8::try_from(c).ok()).collect();
    let paths = words.iter().map(|word| dir.join(OsString::from_vec(bytes(word))));
    paths.flat_map(|path| links_and_real(&path)).collect()
}

/// The number of links after which the system gives up (path_resolution(7)).
pub const MOST_LINKS: usize = 40;

/// The components of a path, the last one first.
fn words_of(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .filter(|part| *part != Component::CurDir)
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

/// Removes the empty directories above a path, from the innermost on, up to the directory `root`,
/// which stays.
pub fn remove_empty_above(path: &Path, root: &Path) {
    let above = path.ancestors().skip(1);
    let mut below_root = above.take_while(|at| at.starts_with(root) && *at != root);
    let _ = below_root.try_for_each(fs::remove_dir);
}

/// True if the path is a directory that can be read and has no entries.
pub fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

/// The disk space of a file or of a directory with its content, in bytes. A file with several names
/// (hard links) counts once.
pub fn disk_usage(path: &Path) -> u64 {
    disk_usage_and_files(path)[0]
}

/// The size of a directory on disk, in bytes, and the number of its files and directories. A file
/// with several names counts once.
pub fn disk_usage_and_files(path: &Path) -> [u64; 2] {
    let mut seen = std::collections::HashSet::new();
    let [mut bytes, mut files] = [0, 0];
    everything_at(path, &mut |state| {
        if state.names() == 1 || state.is_dir() || seen.insert(state.identity()) {
            bytes += state.disk_usage();
            files += 1;
        }
    });
    [bytes, files]
}

/// The latest mtime of a path and everything below it. `None` if the path does not exist. If a file
/// is made or removed, the mtime of its directory changes.
pub fn last_written(path: &Path) -> Option<SystemTime> {
    let mut last = None;
    everything_at(path, &mut |state| last = last.max(Some(state.modified())));
    last
}

/// Calls `each` for a path and, if it is a directory, for everything below it.
fn everything_at(path: &Path, each: &mut dyn FnMut(&EntryState)) {
    let Ok(state) = EntryState::of(path) else { return };
    each(&state);
    if state.is_dir() {
        walk::visit_readable(path, &mut |_, state| each(state));
    }
}

/// A span of time in which files may have been changed.
pub type TimeSpan = RangeInclusive<SystemTime>;

/// The time at which a file, or its metadata, was last changed. No program can choose this time.
pub fn change_time(meta: &Metadata) -> SystemTime {
    let seconds = u64::try_from(meta.ctime()).unwrap_or_default();
    let nanos = u32::try_from(meta.ctime_nsec()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos)
}

/// The size and the mtime of a file. A copy that keeps the times has the same values as its
/// original.
pub fn size_and_mtime(meta: &Metadata) -> (u64, Option<SystemTime>) {
    (meta.len(), meta.modified().ok())
}

/// The free space for this user on the file system of `path`, in bytes. If `path` does not exist,
/// its nearest existing parent counts.
pub fn free_space(path: &Path) -> Result<u64> {
    let there = path.ancestors().find(|p| p.exists()).unwrap_or(path);
    let stat = rustix::fs::statvfs(there).map_err(io::Error::from);
    let stat =
        stat.context(|| format!("could not ask how full the disk of '{}' is", there.display()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The bytes of a path.
pub fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_and_last_write_are_those_of_files_at_any_depth() {
        let dir = tempfile::tempdir().expect("a directory");
        walk::tests::nested(dir.path(), 20_000);
        assert!(disk_usage(dir.path()) >= 8192);
        assert!(last_written(dir.path()).is_some());
        delete_tree(&dir.path().join("d")).expect("deleted");
    }
}
