//! Walks over directory trees that commands wrote. The trees may have any depth. Links are not
//! followed.
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use crate::fs::directory::{DIRECTORY, entries};

/// The longest path in bytes that is passed to one system call. All systems accept at least 1024
/// (`PATH_MAX`).
const LONGEST_PIECE: usize = 1000;

/// Linux refuses a path of this many bytes or more (`PATH_MAX`).
const LONGEST_PATH: usize = 4096;

/// At most this many of the directories above the current directory stay open.
const MOST_OPEN: usize = 64;

/// The stat data of a file or directory, or of a link itself.
#[derive(Clone, Copy)]
pub struct EntryState(Stat);

impl EntryState {
    /// The stat data of what is at a path.
    pub fn of(path: &Path) -> io::Result<EntryState> {
        Ok(EntryState(rustix::fs::lstat(path)?))
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.0.st_mode)
    }

    pub fn is_dir(&self) -> bool {
        self.kind() == FileType::Directory
    }

    pub fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    pub fn is_symlink(&self) -> bool {
        self.kind() == FileType::Symlink
    }

    /// True for a whiteout: a character device with the number 0:0. It marks a deleted file in an
    /// upper layer of an overlay.
    pub fn is_whiteout(&self) -> bool {
        self.kind() == FileType::CharacterDevice && self.0.st_rdev == 0
    }

    /// The kind and the permissions (`st_mode`).
    pub fn mode(&self) -> u32 {
        self.0.st_mode
    }

    /// The permissions alone.
    pub fn permissions(&self) -> fs::Permissions {
        fs::Permissions::from_mode(self.0.st_mode & 0o7777)
    }

    /// The device and the inode.
    pub fn identity(&self) -> (u64, u64) {
        (self.0.st_dev, self.0.st_ino)
    }

    /// The number of names (hard links).
    pub fn names(&self) -> u64 {
        self.0.st_nlink
    }

    pub fn size(&self) -> u64 {
        self.0.st_size.try_into().unwrap_or_default()
    }

    /// The disk space, in bytes.
    pub fn disk_usage(&self) -> u64 {
        // st_blocks counts units of 512 bytes on every Unix.
        u64::try_from(self.0.st_blocks).unwrap_or_default() * 512
    }

    /// The time of the last write.
    pub fn modified(&self) -> SystemTime {
        time(self.0.st_mtime, self.0.st_mtime_nsec)
    }

    /// The change time (ctime): when the content or the stat data last changed. No program can
    /// choose it.
    pub fn changed(&self) -> SystemTime {
        time(self.0.st_ctime, self.0.st_ctime_nsec)
    }

    /// Sets the access time and the mtime of what is at a path to those of this state.
    pub fn set_times(&self, path: &Path) -> io::Result<()> {
        let at = |tv_sec, tv_nsec: u64| Timespec { tv_sec, tv_nsec: tv_nsec as _ };
        let times = Timestamps {
            last_access: at(self.0.st_atime, self.0.st_atime_nsec),
            last_modification: at(self.0.st_mtime, self.0.st_mtime_nsec),
        };
        Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

fn time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let seconds = u64::try_from(seconds).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds.try_into().unwrap_or_default())
}

/// True if the path is short enough for the system.
pub fn is_nameable(path: &Path) -> bool {
    path.as_os_str().len() < LONGEST_PATH
}

/// Calls `each` for everything below a directory, in a fixed order. The path is relative to the
/// directory, and may be longer than the system accepts.
///
/// The content of a directory that may not be read or searched is skipped. A program must change
/// the directory's mode before it can write there, and that also changes the directory's change
/// time.
pub fn visit(root: &Path, each: &mut dyn FnMut(&[u8], &EntryState)) -> io::Result<()> {
    walk(root, each, &|e| e == Errno::ACCESS)
}

/// Does the same as [`visit`], but skips everything that cannot be read. Entries that are made or
/// deleted during the call may be left out.
pub fn visit_readable(root: &Path, each: &mut dyn FnMut(&[u8], &EntryState)) {
    // Every error is ignored.
    let _ = walk(root, each, &|_| true);
}

fn walk(
    root: &Path,
    each: &mut dyn FnMut(&[u8], &EntryState),
    is_passed_over: &dyn Fn(Errno) -> bool,
) -> io::Result<()> {
    let top = rustix::fs::open(root, DIRECTORY, Mode::empty())?;
    let mut above = OpenDirectories { top, open: Vec::new() };
    // An attempt can nest directories to any depth. So the walk is not recursive, and a waiting
    // directory does not have its whole path. This is the current path.
    let mut path = Vec::new();
    // The directories that were found but not yet listed. Each has the length of the parent's path,
    // and the name.
    let mut waiting: Vec<(usize, std::ffi::CString)> = Vec::new();
    loop {
        match sorted_names(above.last()) {
            Err(e) if is_passed_over(e) && !path.is_empty() => {}
            Err(e) => return Err(e.into()),
            Ok(names) => {
                let parent = path.len();
                for name in names {
                    let state = rustix::fs::statat(above.last(), &*name, AtFlags::SYMLINK_NOFOLLOW);
                    let state = match state {
                        Err(e) if is_passed_over(e) => continue,
                        other => EntryState(other?),
                    };
                    push(&mut path, name.to_bytes());
                    each(&path, &state);
                    path.truncate(parent);
                    if state.is_dir() {
                        waiting.push((parent, name));
                    }
                }
            }
        }
        loop {
            let Some((parent, name)) = waiting.pop() else { return Ok(()) };
            path.truncate(parent);
            push(&mut path, name.to_bytes());
            match above.enter(&path) {
                Ok(()) => break,
                Err(e) if is_passed_over(e) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

fn push(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

/// The names in an open directory, sorted.
fn sorted_names(directory: &OwnedFd) -> Result<Vec<std::ffi::CString>, Errno> {
    let mut names: Vec<_> = entries(directory)?.into_iter().map(|(name, _)| name).collect();
    names.sort();
    Ok(names)
}

/// The open directories of a walk: the top, the current directory, and some in between.
struct OpenDirectories {
    top: OwnedFd,
    /// The open directories below the top, with the lengths of their paths; the current one is the
    /// last.
    open: Vec<(usize, OwnedFd)>,
}

impl OpenDirectories {
    fn last(&self) -> &OwnedFd {
        self.open.last().map_or(&self.top, |(_, directory)| directory)
    }

    /// Enters the directory with this path. Its parent was entered earlier in the walk, but may be
    /// closed again.
    fn enter(&mut self, path: &[u8]) -> Result<(), Errno> {
        let parent = path.iter().rposition(|byte| *byte == b'/').unwrap_or_default();
        while self.open.last().is_some_and(|(length, _)| *length > parent) {
            self.open.pop();
        }
        loop {
            let begin = self.open.last().map_or(0, |(length, _)| length + 1);
            let end = end_of_piece(path, begin);
            let piece = OsStr::from_bytes(&path[begin..end]);
            let opened = rustix::fs::openat(self.last(), piece, DIRECTORY, Mode::empty())?;
            self.open.push((end, opened));
            if self.open.len() > MOST_OPEN {
                self.open.remove(0);
            }
            if end == path.len() {
                return Ok(());
            }
        }
    }
}

/// The end of the longest piece of a path, from `begin` on, that can be passed to one system call.
fn end_of_piece(path: &[u8], begin: usize) -> usize {
    if path.len() - begin <= LONGEST_PIECE {
        return path.len();
    }
    let slash = path[begin..begin + LONGEST_PIECE].iter().rposition(|byte| *byte == b'/');
    // If there is no slash, the rest is one name, and names are shorter than a piece.
    slash.map_or(path.len(), |slash| begin + slash)
}

/// The paths of everything below a directory, relative to `dir`. Each directory comes before its
/// content. Links are not followed. If `leaves_out` is true for a path, it is skipped with
/// everything below it.
pub fn list(dir: &Path, leaves_out: impl Fn(&Path) -> bool) -> Vec<(PathBuf, fs::FileType)> {
    list_readable(dir, leaves_out, &mut Vec::new())
}

/// As [`list`]. Adds the paths of directories that exist and cannot be read to `unread`.
pub fn list_readable(
    dir: &Path,
    leaves_out: impl Fn(&Path) -> bool,
    unread: &mut Vec<PathBuf>,
) -> Vec<(PathBuf, fs::FileType)> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(above) = waiting.pop() {
        let at = dir.join(&above);
        let entries = fs::read_dir(&at);
        // Other programs remove directories at any time.
        if entries.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::NotFound) {
            unread.push(at);
        }
        for entry in entries.into_iter().flatten().flatten() {
            let path = above.join(entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            if leaves_out(&path) {
                continue;
            }
            if kind.is_dir() {
                waiting.push(path.clone());
            }
            found.push((path, kind));
        }
    }
    found
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use rustix::fs::OFlags;

    use super::*;
    use crate::fs::delete::delete_tree;

    /// Makes `depth` directories, each in the one before, and a file of 8 KiB in the last one.
    pub fn nested(root: &Path, depth: usize) {
        let mut at = rustix::fs::open(root, DIRECTORY, Mode::empty()).expect("opened");
        for _ in 0..depth {
            rustix::fs::mkdirat(&at, c"d", Mode::RWXU).expect("made");
            at = rustix::fs::openat(&at, c"d", DIRECTORY, Mode::empty()).expect("opened");
        }
        let flags = OFlags::CREATE | OFlags::WRONLY;
        let file = rustix::fs::openat(&at, c"file", flags, Mode::RUSR).expect("made");
        fs::File::from(file).write_all(&[1; 8192]).expect("written");
    }

    #[test]
    fn everything_is_visited_once_whatever_its_depth_and_nothing_through_a_link() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().join("tree");
        for path in ["a/b/c", "a.d/x", "d/d/z"] {
            fs::create_dir_all(root.join(path)).expect("made");
        }
        std::os::unix::fs::symlink(dir.path(), root.join("a/link")).expect("a link");
        rustix::fs::mkdirat(CWD, root.join("z"), Mode::RWXU).expect("made");
        nested(&root.join("z"), 20_000);
        let mut found = Vec::new();
        let mut files = Vec::new();
        visit(&root, &mut |path, state| {
            if state.is_file() {
                files.push(path.len());
            }
            if path.len() < 8 && !path.starts_with(b"z/") {
                found.push(String::from_utf8_lossy(path).into_owned());
            }
        })
        .expect("readable");
        assert_eq!(files, [1 + 2 * 20_000 + 5]);
        let first = ["a", "a.d", "d", "z", "d/d", "d/d/z", "a.d/x", "a/b", "a/link", "a/b/c"];
        assert_eq!(found, first);
        delete_tree(&root).expect("deleted");
    }

    #[test]
    fn directory_with_a_sibling_at_each_depth_is_left_by_the_way_it_was_entered() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().join("tree");
        fs::create_dir(&root).expect("made");
        let mut at = rustix::fs::open(&root, DIRECTORY, Mode::empty()).expect("opened");
        for _ in 0..3_000 {
            for name in [c"a", c"z"] {
                rustix::fs::mkdirat(&at, name, Mode::RWXU).expect("made");
            }
            rustix::fs::mkdirat(&at, c"a/in", Mode::RWXU).expect("made");
            at = rustix::fs::openat(&at, c"z", DIRECTORY, Mode::empty()).expect("opened");
        }
        let mut found = 0;
        visit(&root, &mut |_, _| found += 1).expect("readable");
        assert_eq!(found, 9_000);
        delete_tree(&root).expect("deleted");
    }
}
