//! Opens files that an attempt may have replaced. Only regular files can be opened. A FIFO or a
//! device at the path is an error. It does not make the caller wait.
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::error::IfExists;

/// With these flags, opening a file never makes the caller wait, whatever kind of file it is.
const SAFE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A file with fewer bytes than this is read with one call.
const SMALL: u64 = 64 << 10;

/// A file with this many bytes or more is not read. An attempt can make a file of any length
/// without disk space, but our memory is limited.
const TOO_LONG: u64 = 1 << 30;

/// Opens a file to read it. Follows links. For a FIFO or a device, the error is
/// [`io::ErrorKind::InvalidData`], because reading such a file could wait for ever or never end.
pub fn open(path: &Path) -> io::Result<File> {
    open_in(CWD, path, OFlags::RDONLY)
}

/// Opens a file of our own to read it. Fails if the path is a link.
pub fn open_own(path: &Path) -> io::Result<File> {
    open_in(CWD, path, OFlags::RDONLY | OFlags::NOFOLLOW)
}

/// Reads the bytes of a file that [`open_own`] opens.
pub fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    read_all(open_with_metadata(CWD, path, OFlags::RDONLY | OFlags::NOFOLLOW)?)
}

/// Reads a file of our own in an open directory. Fails if it is a link.
pub fn read_own_in(directory: impl AsFd, name: &Path) -> io::Result<Vec<u8>> {
    read_all(open_with_metadata(directory, name, OFlags::RDONLY | OFlags::NOFOLLOW)?)
}

/// Opens a file of our own in an open directory to read it. Fails if it is a link.
pub fn open_own_in(directory: impl AsFd, name: &Path) -> io::Result<File> {
    open_in(directory, name, OFlags::RDONLY | OFlags::NOFOLLOW)
}

/// Opens a file of our own to write to it, without truncating it. Makes the file if it does not
/// exist. With `append`, every write goes to the end of the file.
pub fn open_own_to_write(path: &Path, append: bool) -> io::Result<File> {
    let append = if append { OFlags::APPEND } else { OFlags::empty() };
    open_in(CWD, path, OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | append)
}

/// Opens an existing file of our own to append to it.
pub fn open_own_to_append(path: &Path) -> io::Result<File> {
    open_in(CWD, path, OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::APPEND)
}

/// Makes an empty file of our own. Replaces a file, a link, a FIFO or the like at the path.
pub fn create_own(path: &Path) -> io::Result<File> {
    create_own_in(CWD, path)
}

/// Makes an empty file of our own in an open directory. Replaces a file, a link, a FIFO or the like
/// with this name.
pub fn create_own_in(directory: impl AsFd, name: &Path) -> io::Result<File> {
    let mut tries = 0;
    loop {
        rustix::fs::unlinkat(&directory, name, AtFlags::empty()).if_exists()?;
        tries += 1;
        match open_in(&directory, name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
            // Another process has made a file after ours was removed. For example, two processes
            // that judge the same candidate both make its log.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries < MOST_TRIES => {}
            made => return made,
        }
    }
}

/// The largest number of tries to make a file that other processes also make.
const MOST_TRIES: u32 = 100;

fn open_in(directory: impl AsFd, path: &Path, flags: OFlags) -> io::Result<File> {
    open_with_metadata(directory, path, flags).map(|(file, _)| file)
}

/// Opens a regular file, and returns it with its metadata.
fn open_with_metadata(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
) -> io::Result<(File, Metadata)> {
    let not_regular = || io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file");
    let mode = Mode::from_raw_mode(0o666);
    let file = match rustix::fs::openat(directory, path, flags | SAFE, mode) {
        Ok(file) => File::from(file),
        // The path is a FIFO without a reader, a socket, or a link although `flags` has NOFOLLOW.
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
    Ok((file, meta))
}

/// Opens a file as [`open`] does, and reads its bytes. If the file is too long, the error is
/// [`io::ErrorKind::InvalidData`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_all(open_with_metadata(CWD, path, OFlags::RDONLY)?)
}

/// Reads a file as [`read`] does, and also returns the metadata that the file had before it was
/// read.
pub fn read_with_metadata(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    let (file, meta) = open_with_metadata(CWD, path, OFlags::RDONLY)?;
    Ok((read_all((file, meta.clone()))?, meta))
}

/// Reads a file that [`open_own`] opens. Fails if the file has more than `most` bytes.
pub fn read_own_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_at_most(open_own(path)?, most)
}

fn read_all((file, meta): (File, Metadata)) -> io::Result<Vec<u8>> {
    read_to_end(file, meta.len())
}

/// Reads a file to its end. A small file is read with one system call. The standard library would
/// also ask for the length, for the position, and for more bytes.
fn read_to_end(mut file: impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if length < SMALL {
        // The buffer has one byte more than the file. So it shows whether the file has grown.
        bytes = vec![0; length as usize + 1];
        let read = file.read(&mut bytes)?;
        bytes.truncate(read);
        if read as u64 == length {
            return Ok(bytes);
        }
    }
    // There is a limit, because another process may append to the file all the time.
    if length < TOO_LONG {
        bytes.reserve(length as usize);
        file.take(TOO_LONG).read_to_end(&mut bytes)?;
    }
    if length >= TOO_LONG || bytes.len() as u64 >= TOO_LONG {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
    }
    Ok(bytes)
}

/// Reads an open file to its end. Fails without reading if the file has more than `most` bytes.
pub fn read_at_most(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The length alone is not enough. Another process may append to the file during the read.
    if file.metadata()?.len() > most || file.take(most + 1).read_to_end(&mut bytes)? as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Reads a file as [`read`] does, as UTF-8. If it is not UTF-8, the error is
/// [`io::ErrorKind::InvalidData`].
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn all(mut file: File) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    }

    #[test]
    fn files_are_read_whole_whatever_their_length_and_that_of_proc_is_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("file");
        for length in [0, 1, 4096, SMALL - 1, SMALL, SMALL + 1] {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
            fs::write(&file, &bytes).expect("written");
            assert!(read(&file).expect("regular") == bytes, "{length}");
            // The given length is wrong, as if the file's length had changed after it was read.
            for other in [length.saturating_sub(1), length + 1, length + SMALL] {
                let opened = File::open(&file).expect("there");
                assert!(read_to_end(opened, other).expect("regular") == bytes, "{length} {other}");
            }
        }
        #[cfg(target_os = "linux")]
        assert!(read_text(Path::new("/proc/self/status")).expect("regular").contains("SigIgn:"));
    }

    #[test]
    fn files_that_are_too_long_are_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("file");
        File::create(&file).and_then(|file| file.set_len(TOO_LONG)).expect("a file without blocks");
        assert_eq!(read(&file).map_err(|e| e.kind()), Err(io::ErrorKind::InvalidData));
        assert_eq!(read_text(&file).map_err(|e| e.kind()), Err(io::ErrorKind::InvalidData));
    }

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
        assert_eq!(open_own_to_write(&at("new"), true).and_then(all).expect("made"), b"");
        create_own(&at("fifo")).expect("a file in place of the FIFO");
        create_own(&at("link")).expect("a file in place of the link");
        assert_eq!(fs::read(at("file")).expect("still there"), b"text");
        assert_eq!(open_own(&at("link")).and_then(all).expect("regular"), b"");
    }
}
