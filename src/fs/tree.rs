//! Directory trees on disk: links in paths, sizes and times.
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{IoContext, Result};
pub use crate::fs::delete::delete_tree;

/// True if every component of `path`, from the file system's root through `root`, is a real
/// directory and not a link.
///
/// `git worktree remove --force` would empty a link's target.
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

/// A path in which the part that exists is resolved.
pub fn nearest_real(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => nearest_real(parent).join(name),
        _ => path.to_owned(),
    }
}

/// True for a directory that can be read and has nothing in it.
pub fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

/// The size of a directory on disk, in bytes; a file with several names counts once.
pub fn disk_usage(path: &Path) -> u64 {
    let mut seen = std::collections::HashSet::new();
    let sizes = everything_below(path).map(|meta| {
        let counted = meta.nlink() > 1 && !meta.is_dir() && !seen.insert((meta.dev(), meta.ino()));
        // st_blocks counts units of 512 bytes on every Unix.
        if counted { 0 } else { meta.blocks() * 512 }
    });
    sizes.sum()
}

/// The time of the last write below a path, or of the last creation or removal of a file.
pub fn last_written(path: &Path) -> Option<SystemTime> {
    everything_below(path).filter_map(|meta| meta.modified().ok()).max()
}

/// The metadata of a file, and of everything below it if it is a directory. Nothing is recursive:
/// an attempt decides how deep directories are nested.
fn everything_below(path: &Path) -> impl Iterator<Item = fs::Metadata> {
    let mut waiting = vec![path.to_owned()];
    std::iter::from_fn(move || {
        loop {
            let path = waiting.pop()?;
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            if meta.is_dir() {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                waiting.extend(entries.map(|entry| entry.path()));
            }
            return Some(meta);
        }
    })
}

/// The free space for this user on the file system of `path`, in bytes. The path need not exist
/// yet.
pub fn free_space(path: &Path) -> Result<u64> {
    let there = path.ancestors().find(|p| p.exists()).unwrap_or(path);
    let stat = rustix::fs::statvfs(there).map_err(io::Error::from);
    let stat =
        stat.context(|| format!("could not ask how full the disk of '{}' is", there.display()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The bytes of a path, for git's lists.
pub fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}
