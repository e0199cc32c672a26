//! Reads files that an attempt may have replaced: a FIFO is an error, not a wait without end.
use std::fs;
use std::io;
use std::path::Path;

/// Reads the bytes of a file, through links. A FIFO or a device is [`io::ErrorKind::InvalidData`]:
/// to read one could block for ever or never end.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let meta = fs::metadata(path)?;
    if !meta.is_file() && !meta.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no file"));
    }
    fs::read(path)
}

/// Reads a file with [`read`] as UTF-8; other bytes are [`io::ErrorKind::InvalidData`].
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}
