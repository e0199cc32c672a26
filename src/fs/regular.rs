//! Reading a file that others may have put there: one that is no file is an error, not a wait without end.
use std::fs;
use std::io;
use std::path::Path;

/// The bytes of a file, links followed. A pipe or a device in its place is [`io::ErrorKind::InvalidData`]: the one
/// would be waited for, the other may have no end.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let meta = fs::metadata(path)?;
    if !meta.is_file() && !meta.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no file"));
    }
    fs::read(path)
}

/// The same as text.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}
