//! Writes files atomically: a reader sees either the old bytes or the new ones, even after a crash.
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::error::{Error, IoContext, Result};
use crate::fs::disk;

/// The beginning of the names of temporary files.
const PREFIX: &str = ".tmp";

/// A temporary file of at least this age was left by a killed process: a write takes milliseconds.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Writes `bytes` to a temporary file in the same directory, and renames the file to `path`. Waits
/// for the disk after each of these two steps. If writing fails, the old file is unchanged.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = || format!("could not write '{}'", path.display());
    let directory = path.parent().ok_or_else(|| Error::internal(failed()))?;
    let name = path.file_name().ok_or_else(|| Error::internal(failed()))?;
    write_all(directory, &[(name, bytes)])
}

/// Writes several files of one directory like [`write()`], and renames them in this order. Waits
/// for the disk only twice: for the contents of all files, and for the directory.
pub fn write_all(directory: &Path, files: &[(&OsStr, &[u8])]) -> Result<()> {
    let failed = |name: &OsStr| format!("could not write '{}'", directory.join(name).display());
    let Some((first, _)) = files.first() else { return Ok(()) };
    fs::create_dir_all(directory).context(|| failed(first))?;
    let mut written = Vec::new();
    for (name, bytes) in files {
        let mut file = NamedTempFile::with_prefix_in(PREFIX, directory).context(|| failed(name))?;
        file.write_all(bytes).context(|| failed(name))?;
        written.push((name, file));
    }
    disk::sync(&written.iter().map(|(_, file)| file.path()).collect::<Vec<_>>())?;
    for (name, file) in written {
        file.persist(directory.join(name)).map_err(|e| e.error).context(|| failed(name))?;
    }
    File::open(directory).and_then(|f| f.sync_all()).context(|| failed(first))
}

/// Writes a file like [`write()`], but does not wait for the disk. This is for files that are not
/// needed after a power cut.
pub fn write_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = NamedTempFile::with_prefix_in(PREFIX, directory)?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|e| e.error)
}

/// Replaces a file of the user like [`write()`]. The new file has the mode of the old file. If
/// possible, it also has the owner of the old file.
pub fn replace(path: &Path, bytes: &[u8], old: &Metadata) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = NamedTempFile::with_prefix_in(PREFIX, directory)?;
    file.write_all(bytes)?;
    // Only root can change the owner, so an error is ignored.
    let _ = std::os::unix::fs::fchown(file.as_file(), Some(old.uid()), Some(old.gid()));
    file.as_file().set_permissions(old.permissions())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    File::open(directory)?.sync_all()
}

/// Removes the temporary files that killed processes left in a directory.
pub fn remove_abandoned(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if entry.file_name().as_bytes().starts_with(PREFIX.as_bytes())
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && age().is_some_and(|age| age > ABANDONED)
        {
            // If the file cannot be removed, the next cleaning tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}
