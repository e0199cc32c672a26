//! Opens and lists directories relative to an open parent directory.
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// The flags to open a directory. With them, opening anything else fails, even a link to a
/// directory.
pub const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory to list its entries. Follows links. Callers should open an entry by its name
/// in the open directory. Then the system need not look up the directory again.
pub fn open_to_list(parent: impl AsFd, name: impl Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// The names and kinds of the entries of a directory, without `.` and `..`. An open directory can
/// be listed only once, so it must be opened for this call.
pub fn entries(directory: impl AsFd) -> rustix::io::Result<Vec<(CString, FileType)>> {
    let mut entries = Vec::new();
    for_each_entry(directory, &mut |name, kind| {
        entries.push((name.to_owned(), kind));
        true
    })?;
    Ok(entries)
}

/// Calls `each` with the name and the kind of each entry that [`entries`] lists. Stops when `each`
/// returns false.
pub fn for_each_entry(
    directory: impl AsFd,
    each: &mut dyn FnMut(&CStr, FileType) -> bool,
) -> rustix::io::Result<()> {
    // The entries of most projects' directories fit into this buffer. The one of rustix has room
    // for about 24 names.
    #[cfg(target_os = "linux")]
    let mut buffer = Vec::with_capacity(32 << 10);
    #[cfg(target_os = "linux")]
    let mut listing = rustix::fs::RawDir::new(&directory, buffer.spare_capacity_mut());
    #[cfg(not(target_os = "linux"))]
    let mut listing = rustix::fs::Dir::read_from(&directory)?;
    while let Some(entry) = listing.next() {
        let entry = match entry {
            // The directory was removed after it was opened.
            Err(Errno::NOENT) => break,
            Err(Errno::INTR) => continue,
            entry => entry?,
        };
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not list the kinds.
            FileType::Unknown => {
                match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => continue,
                    stat => FileType::from_raw_mode(stat?.st_mode),
                }
            }
            kind => kind,
        };
        if !each(name, kind) {
            break;
        }
    }
    Ok(())
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
