//! Directories that are opened name by name, so that no link leads elsewhere.
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// The flags that open a real directory and nothing else.
pub const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory in `parent`, and makes it if there is none. Follows no link.
pub fn open_or_make(parent: impl AsFd, name: impl Arg + Copy) -> io::Result<OwnedFd> {
    let open = || rustix::fs::openat(&parent, name, DIRECTORY, Mode::empty());
    match open() {
        Err(Errno::NOENT) => match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
            // Somebody else has made it.
            Ok(()) | Err(Errno::EXIST) => Ok(open()?),
            Err(e) => Err(e.into()),
        },
        opened => Ok(opened?),
    }
}
