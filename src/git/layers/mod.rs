//! Layers of a file system overlay with trees of git: a base, the difference to another tree, and what
//! commands wrote above them (GIT-FACTS, "Worlds").
pub mod base;
pub mod difference;
pub mod inherited;
pub mod written;

use std::io;
use std::path::Path;

use rustix::io::Errno;

/// The mark of a directory in an upper layer that hides those below it (overlayfs, `userxattr`).
const OPAQUE: &str = "user.overlay.opaque";

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
