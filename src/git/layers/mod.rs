//! Layers of a file system overlay: a base, the difference to another tree, and the files that commands
//! wrote over them (GIT-FACTS, "Worlds").
pub mod base;
pub mod difference;
pub mod inherited;
pub mod written;

use std::io;
use std::path::Path;

use rustix::io::Errno;

/// The mark of a directory in an upper layer that hides the same directory in lower layers (overlayfs,
/// `userxattr`).
const OPAQUE: &str = "user.overlay.opaque";

/// Lets a directory of an upper layer show the same directory in lower layers.
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
