//! Opens files that an attempt may have replaced. Only regular files open: a FIFO or a device is an
//! error, not a wait without end.
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// The flags with which no kind of file makes the caller wait.
const SAFE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens a file to be read, through links. A FIFO, a device or a directory is
/// [`io::ErrorKind::InvalidData`]: to read one could block for ever or never end.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::RDONLY)
}

/// Opens a file of our own to be read; a link in its place is no file of ours.
pub fn open_own(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::RDONLY | OFlags::NOFOLLOW)
}

/// Reads the bytes of a file that [`open_own`] opens.
pub fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    read_all(open_own(path)?)
}

/// Reads a file of our own in an open directory.
pub fn read_own_in(directory: impl AsFd, name: &Path) -> io::Result<Vec<u8>> {
    read_all(open_in(directory, name, OFlags::RDONLY | OFlags::NOFOLLOW)?)
}

/// Opens a file of our own to be written, and makes it if there is none. Its content stays. With
/// `append`, every write goes to its end.
pub fn open_own_to_write(path: &Path, append: bool) -> io::Result<File> {
    let append = if append { OFlags::APPEND } else { OFlags::empty() };
    open_with(path, OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | append)
}

/// Opens a file of our own that is there, to be written at its end.
pub fn open_own_to_append(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::APPEND)
}

/// Makes an empty file of our own, in place of whatever is there.
pub fn create_own(path: &Path) -> io::Result<File> {
    create_own_in(CWD, path)
}

/// Makes an empty file of our own in an open directory, in place of whatever is there.
pub fn create_own_in(directory: impl AsFd, name: &Path) -> io::Result<File> {
    match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(e) => return Err(e.into()),
    }
    open_in(directory, name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
}

fn open_with(path: &Path, flags: OFlags) -> io::Result<File> {
    open_in(CWD, path, flags)
}

fn open_in(directory: impl AsFd, path: &Path, flags: OFlags) -> io::Result<File> {
    let not_regular = || io::Error::new(io::ErrorKind::InvalidData, "it is no regular file");
    let mode = Mode::from_raw_mode(0o666);
    let file = match rustix::fs::openat(directory, path, flags | SAFE, mode) {
        Ok(file) => File::from(file),
        // A FIFO that nobody reads, a socket, or a link of which we follow none.
        Err(Errno::NXIO | Errno::LOOP) => return Err(not_regular()),
        Err(e) => return Err(e.into()),
    };
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    if !meta.is_file() {
        return Err(not_regular());
    }
    Ok(file)
}

/// Reads the bytes of a file that [`open`] opens.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_all(open(path)?)
}

fn read_all(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file with [`read`] as UTF-8; other bytes are [`io::ErrorKind::InvalidData`].
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_regular_files_open_and_nothing_waits() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "text").expect("written");
        std::os::unix::fs::symlink("file", at("link")).expect("a link");
        std::os::unix::fs::symlink("/dev/zero", at("device")).expect("a link");
        rustix::fs::mknodat(
            CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a FIFO");
        assert_eq!(read(&at("file")).expect("regular"), b"text");
        assert_eq!(read(&at("link")).expect("through the link"), b"text");
        for name in ["fifo", "device"] {
            assert_eq!(read(&at(name)).map_err(|e| e.kind()), Err(io::ErrorKind::InvalidData));
        }
        for name in ["fifo", "device", "link"] {
            let refused = open_own(&at(name)).map(drop).map_err(|e| e.kind());
            assert_eq!(refused, Err(io::ErrorKind::InvalidData));
            assert!(open_own_to_write(&at(name), false).is_err(), "{name}");
        }
        assert_eq!(open_own_to_write(&at("new"), true).and_then(read_all).expect("made"), b"");
        create_own(&at("fifo")).expect("a file in place of the FIFO");
        create_own(&at("link")).expect("a file in place of the link");
        assert_eq!(fs::read(at("file")).expect("still there"), b"text");
        assert_eq!(open_own(&at("link")).and_then(read_all).expect("regular"), b"");
    }
}
