//! Opens and lists directories relative to an open parent directory.
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// The flags to open a directory. With these flags, opening anything else fails, even a link to a directory.
pub const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory to list its entries. Follows links. Callers should open an entry by its name in
/// `Dir::fd`, so that the system need not look up the directory again.
pub fn open_to_list(parent: impl AsFd, name: impl Arg) -> rustix::io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Dir::new(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

/// The entries of an open directory, without `.` and `..`.
pub fn entries(directory: &mut Dir) -> rustix::io::Result<Vec<DirEntry>> {
    let is_inside = |entry: &DirEntry| entry.file_name() != c"." && entry.file_name() != c"..";
    directory.filter(|entry| entry.as_ref().map_or(true, is_inside)).collect()
}

/// The kind of an entry of an open directory. Some file systems do not list the kinds; then this asks for the
/// entry's stat data.
pub fn kind(directory: &Dir, entry: &DirEntry) -> rustix::io::Result<FileType> {
    match entry.file_type() {
        FileType::Unknown => {
            let name = entry.file_name();
            let stat = rustix::fs::statat(directory.fd()?, name, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok(FileType::from_raw_mode(stat.st_mode))
        }
        kind => Ok(kind),
    }
}

/// Opens a directory in `parent`. Makes it if it does not exist. Follows no link.
pub fn open_or_make(parent: impl AsFd, name: impl Arg + Copy) -> io::Result<OwnedFd> {
    let open = || rustix::fs::openat(&parent, name, DIRECTORY, Mode::empty());
    match open() {
        Err(Errno::NOENT) => match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
            // If the error is `EXIST`, another process has made the directory.
            Ok(()) | Err(Errno::EXIST) => Ok(open()?),
            Err(e) => Err(e.into()),
        },
        opened => Ok(opened?),
    }
}
