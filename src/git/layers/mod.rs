//! The layers of an overlay file system in which a tree is judged (GIT-FACTS, "Worlds"). From the
//! bottom:
//!
//! * the files of the base ([`base`]);
//! * the files that the commands wrote on an ancestor of the base ([`inherited`]), and on the base;
//! * the files in which the judged tree differs from the base ([`difference`]);
//! * the files that commands write when the tree is judged ([`written`]).
pub mod base;
pub mod difference;
pub mod inherited;
pub mod written;

use std::io;
use std::path::Path;

use rustix::io::Errno;

/// The extended attribute that marks a directory in an upper layer as opaque (overlayfs,
/// `userxattr`). An opaque directory hides the same directory in lower layers.
const OPAQUE: &str = "user.overlay.opaque";

/// Removes the opaque mark of a directory in an upper layer. Then the files of the same directory
/// in lower layers are visible.
fn forget_opaque(dir: &Path) -> io::Result<()> {
    match rustix::fs::lremovexattr(dir, OPAQUE) {
        Err(Errno::NODATA | Errno::NOTSUP | Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}

/// True if this directory of an upper layer hides the same directory in lower layers.
pub(super) fn is_opaque(dir: &Path) -> bool {
    let mut value = [0; 1];
    rustix::fs::lgetxattr(dir, OPAQUE, &mut value[..]).is_ok_and(|n| n == 1 && value == *b"y")
}
