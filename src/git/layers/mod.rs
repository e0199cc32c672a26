//! Layers of a file system overlay with trees of git: a base, the difference to another tree, and what
//! commands wrote above them (GIT-FACTS, "Worlds").
pub mod base;
pub mod copied;
pub mod difference;
pub mod given;
pub mod inherited;
pub mod placed;
pub mod written;

use std::io;
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
