//! Directory trees on disk: links in paths, deletion, sizes and times.
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{IoContext, Result};

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

/// Deletes a directory with its content, never through a link, and also where directories are
/// read-only (Go's module cache). Succeeds if there is no such directory.
pub fn delete_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(path)?;
            fs::remove_dir_all(path)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn make_writable(dir: &Path) -> io::Result<()> {
    let mode = fs::symlink_metadata(dir)?.permissions().mode();
    fs::set_permissions(dir, fs::Permissions::from_mode(mode | 0o700))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}

/// The size of a directory on disk, in bytes; a file with several names counts once.
pub fn disk_usage(path: &Path) -> u64 {
    fn walk(path: &Path, seen: &mut std::collections::HashSet<(u64, u64)>) -> u64 {
        let Ok(meta) = fs::symlink_metadata(path) else { return 0 };
        if meta.nlink() > 1 && !meta.is_dir() && !seen.insert((meta.dev(), meta.ino())) {
            return 0;
        }
        let below: u64 = if meta.is_dir() {
            fs::read_dir(path).into_iter().flatten().flatten().map(|e| walk(&e.path(), seen)).sum()
        } else {
            0
        };
        // st_blocks counts units of 512 bytes on every Unix.
        meta.blocks() * 512 + below
    }
    walk(path, &mut std::collections::HashSet::new())
}

/// The time of the last write below a path, or of the last creation or removal of a file.
pub fn last_written(path: &Path) -> Option<SystemTime> {
    let meta = fs::symlink_metadata(path).ok()?;
    let entries = meta.is_dir().then(|| fs::read_dir(path).into_iter().flatten().flatten());
    let below = entries.into_iter().flatten().filter_map(|e| last_written(&e.path())).max();
    meta.modified().ok().max(below)
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
