//! Layers of a file system overlay with trees of git: a base, the difference to another tree, and what
//! commands wrote above them (GIT-FACTS, "Worlds").
pub mod base;
pub mod copied;
pub mod difference;
pub mod given;
pub mod inherited;
pub mod placed;
pub mod written;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::io::Errno;

use crate::error::Result;
use crate::git::cli::Git;
use crate::model::oid::Oid;

/// The mark of a directory in an upper layer that hides those below it (overlayfs, `userxattr`).
const OPAQUE: &str = "user.overlay.opaque";

/// Checks all files of a commit out into a directory, and writes its index, in the version that
/// [`crate::git::index_bytes`] reads. A sparse checkout is the user's own.
pub fn check_out(git: &Git, commit: &Oid, into: &Path, index: &Path) -> Result<()> {
    let git = git.clone().work_tree(into).index(index);
    let call = git.call("-c").args(["core.sparseCheckout=false", "-c", "index.version=2"]);
    call.args(["read-tree", "--reset", "-u", commit.as_str()]).run()
}

/// Calls `each` for everything below a directory, in a fixed order, with its path from there. A
/// directory that may not be read is passed over: to write there, somebody has to change its mode
/// first, which shows in its change time.
pub(super) fn visit(dir: &Path, each: &mut dyn FnMut(&[u8], &fs::Metadata)) -> io::Result<()> {
    let mut waiting = vec![Vec::new()];
    while let Some(below) = waiting.pop() {
        let here = dir.join(OsStr::from_bytes(&below));
        let listing = match fs::read_dir(here) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied && !below.is_empty() => continue,
            other => other?,
        };
        let mut entries = listing.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let meta = entry.metadata()?;
            let slash: &[u8] = if below.is_empty() { b"" } else { b"/" };
            let path = [&below, slash, entry.file_name().as_bytes()].concat();
            each(&path, &meta);
            if meta.is_dir() {
                waiting.push(path);
            }
        }
    }
    Ok(())
}

/// Lets a directory of an upper layer show those below it.
fn forget_opaque(dir: &Path) -> io::Result<()> {
    match rustix::fs::lremovexattr(dir, OPAQUE) {
        Err(Errno::NODATA | Errno::NOTSUP | Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}

/// True if an upper layer hides everything below this directory.
pub(super) fn is_opaque(dir: &Path) -> bool {
    let mut value = [0; 1];
    rustix::fs::lgetxattr(dir, OPAQUE, &mut value[..]).is_ok_and(|n| n == 1 && value == *b"y")
}

/// True for the mark of a deletion in an upper layer: a device file with the number 0:0.
pub(super) fn is_whiteout(meta: &fs::Metadata) -> bool {
    meta.file_type().is_char_device() && meta.rdev() == 0
}
