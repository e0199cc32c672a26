//! What tells that a file was written since, whatever was done to hide it: a change time cannot be set by a program.
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime};

use gix::bstr::BStr;
use rustix::fs::{AtFlags, FileType, OFlags};

use crate::git::repo::digest;

/// How much younger than a file the clock of a file system may make it look.
pub const TICK: Duration = Duration::from_millis(20);

/// What a command cannot leave as it was when it changes a file.
#[derive(Clone)]
pub struct Stamp {
    meta: Meta,
    /// For young files: what they hold.
    content: Option<String>,
}

/// What a file system tells of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Meta {
    inode: u64,
    mode: rustix::fs::RawMode,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Of what lies at `path` in `root`, and was written before `now`. That is a time of the same file system: some
    /// know whole seconds only. Fails where nothing can be read.
    pub fn of(root: &File, path: &BStr, now: SystemTime) -> io::Result<Stamp> {
        let meta = Meta::of(root, path)?;
        let content = if meta.young(now) { meta.content(root, path)? } else { None };
        Ok(Stamp { meta, content })
    }

    /// The same as it is known `now`, if it still holds.
    #[must_use]
    pub fn at(&self, now: SystemTime) -> Stamp {
        Stamp { meta: self.meta, content: self.content.clone().filter(|_| self.meta.young(now)) }
    }

    /// Whether that is still the same.
    pub fn holds(&self, root: &File, path: &BStr) -> bool {
        let same = |content: &String| {
            self.meta.content(root, path).is_ok_and(|now| now.as_ref() == Some(content))
        };
        Meta::of(root, path).is_ok_and(|now| now == self.meta)
            && self.content.as_ref().is_none_or(same)
    }
}

impl Meta {
    fn of(root: &File, path: &BStr) -> io::Result<Meta> {
        let stat = rustix::fs::statat(root, OsStr::from_bytes(path), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(Meta {
            inode: stat.st_ino,
            mode: stat.st_mode,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        })
    }

    /// Whether it may be written again and look the same.
    fn young(&self, now: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.modified;
        let modified =
            Duration::new(seconds.try_into().unwrap_or(0), nanoseconds.try_into().unwrap_or(0));
        SystemTime::UNIX_EPOCH + modified + TICK >= now
    }

    /// A name for what it holds, if it is a file or a link; a FIFO would never end.
    fn content(&self, root: &File, path: &BStr) -> io::Result<Option<String>> {
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
