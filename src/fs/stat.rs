//! The state of a file on disk, kept to see later whether somebody wrote the file since.
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, OFlags};

/// The granularity of timestamps: two writes within this span may get equal times.
const TIMESTAMP_GRANULARITY: Duration = Duration::from_millis(20);

/// The time at which a file, or its metadata, was last changed. No program can choose it.
pub fn change_time(meta: &Metadata) -> SystemTime {
    let seconds = u64::try_from(meta.ctime()).unwrap_or_default();
    let nanos = u32::try_from(meta.ctime_nsec()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos)
}

/// A function that names bytes by their content.
pub type Digest = fn(&[u8]) -> String;

/// The state of a file. Whoever writes the file changes it: a program can set a file's mtime, but
/// not its ctime.
#[derive(Clone)]
pub struct FileState {
    stat: FileStat,
    /// The content of a young file, which can be written again without a change of its times.
    content: Option<String>,
    digest: Digest,
}

/// The stat data that a write changes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileStat {
    inode: u64,
    mode: rustix::fs::RawMode,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileState {
    /// Reads the state of the file at `path` in the directory `root`; fails if it cannot be read.
    ///
    /// `now` is a time at or after the file's last write, from the clock of the same file system:
    /// some store whole seconds only.
    pub fn read(
        root: &File,
        path: &[u8],
        now: SystemTime,
        digest: Digest,
    ) -> io::Result<FileState> {
        let stat = FileStat::read(root, path)?;
        let content = if stat.is_young(now) { stat.content(root, path, digest)? } else { None };
        Ok(FileState { stat, content, digest })
    }

    /// This state at the later time `now`, without the content once the file is no longer young.
    #[must_use]
    pub fn aged(&self, now: SystemTime) -> FileState {
        let content = if self.stat.is_young(now) { self.content.clone() } else { None };
        FileState { content, ..self.clone() }
    }

    /// True if the file at `path` in `root` still has this state.
    pub fn holds(&self, root: &File, path: &[u8]) -> bool {
        if !FileStat::read(root, path).is_ok_and(|now| now == self.stat) {
            return false;
        }
        let Some(content) = &self.content else { return true };
        let now = self.stat.content(root, path, self.digest);
        now.is_ok_and(|now| now.as_ref() == Some(content))
    }
}

impl FileStat {
    fn read(root: &File, path: &[u8]) -> io::Result<FileStat> {
        let stat = rustix::fs::statat(root, OsStr::from_bytes(path), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileStat {
            inode: stat.st_ino,
            mode: stat.st_mode,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        })
    }

    /// True if the file can be written again at `now` without a change of its times.
    fn is_young(&self, now: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.modified;
        let modified =
            Duration::new(seconds.try_into().unwrap_or(0), nanoseconds.try_into().unwrap_or(0));
        SystemTime::UNIX_EPOCH + modified + TIMESTAMP_GRANULARITY >= now
    }

    /// A name for the content of a file or a link; none for anything else, because reading a FIFO
    /// would never end.
    fn content(&self, root: &File, path: &[u8], digest: Digest) -> io::Result<Option<String>> {
        let path = OsStr::from_bytes(path);
        let bytes = match FileType::from_raw_mode(self.mode) {
            FileType::Symlink => rustix::fs::readlinkat(root, path, Vec::new())?.into_bytes(),
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mut file =
                    File::from(rustix::fs::openat(root, path, flags, rustix::fs::Mode::empty())?);
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                bytes
            }
            _ => return Ok(None),
        };
        Ok(Some(digest(&bytes)))
    }
}

/// The size and the mtime of a file, which a copy that keeps times shares with its original.
pub fn size_and_mtime(meta: &Metadata) -> (u64, Option<SystemTime>) {
    (meta.len(), meta.modified().ok())
}
