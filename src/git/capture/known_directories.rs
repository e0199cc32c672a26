//! The directories whose names an earlier capture has compared with the index. As long as the change time
//! (ctime) of a directory stays the same, no name was added or removed there, because no program can choose a
//! change time. If the change time of a directory is unchanged, the directory is not listed again, but its
//! files are still compared.
//!
//! If all directories are listed, the rows "capture of 8" and "judge again" of `make bench` with 10,000 files
//! take 1.13 and 1.11 times the processor time.
use std::collections::HashMap;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::fs::disk;
use crate::fs::regular;
use crate::model::layout::listed_beside;

/// A change time of at least this age can be relied on. The kernel's clock ticks every few milliseconds, so a
/// directory that changes again at once may keep its change time.
const SETTLED: Duration = Duration::from_millis(100);

/// A directory, with the time at which its names changed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DirectoryState {
    device: u64,
    inode: u64,
    seconds: i64,
    nanoseconds: u64,
}

impl DirectoryState {
    /// The state of an open directory; `None` if it cannot be read.
    pub fn of(directory: &OwnedFd) -> Option<DirectoryState> {
        let stat = rustix::fs::fstat(directory).ok()?;
        Some(DirectoryState {
            device: stat.st_dev,
            inode: stat.st_ino,
            seconds: stat.st_ctime,
            nanoseconds: stat.st_ctime_nsec as u64,
        })
    }

    /// True if any change after `now` leads to another state. This is never true on a file system whose
    /// times are whole seconds.
    fn is_settled(&self, now: SystemTime) -> bool {
        let seconds = u64::try_from(self.seconds).ok().map(Duration::from_secs);
        let changed = seconds.map(|seconds| seconds + Duration::from_nanos(self.nanoseconds));
        let changed = changed.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        self.nanoseconds != 0 && changed.is_some_and(|changed| changed + SETTLED < now)
    }
}

/// Directories in which every name was in the index, each with the number of its names. If the state of a
/// directory is unchanged, and the index still has that number of names there, then every name in the
/// directory is in the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ListedDirectories(HashMap<DirectoryState, usize>);

impl ListedDirectories {
    /// The directories that an earlier capture has listed. Empty if there was no earlier capture, or if the
    /// file with the directories cannot be read.
    pub fn beside(index: &Path) -> ListedDirectories {
        let text = regular::read_own(&listed_beside(index)).unwrap_or_default();
        let text = String::from_utf8(text).unwrap_or_default();
        ListedDirectories(text.split_inclusive('\n').filter_map(from_line).collect())
    }

    /// Writes the directories for the next capture, unless `earlier` has all of them. If the file cannot be
    /// written, the next capture only takes longer.
    pub fn keep_beside(&self, index: &Path, earlier: &ListedDirectories) {
        if self.0.keys().all(|directory| earlier.0.contains_key(directory)) {
            return;
        }
        let text: String = self.0.iter().map(as_line).collect();
        let file = listed_beside(index);
        if let Err(reason) =
            regular::create_own(&file).and_then(|mut file| file.write_all(text.as_bytes()))
        {
            tracing::debug!(%reason, "'{}' is not written", file.display());
        }
    }
}

#[cfg(test)]
impl ListedDirectories {
    /// The number of directories.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Extend<(DirectoryState, usize)> for ListedDirectories {
    fn extend<T: IntoIterator<Item = (DirectoryState, usize)>>(&mut self, listed: T) {
        self.0.extend(listed);
    }
}

/// The line about a directory. [`from_line`] ignores a line that was cut off: it does not end in a newline.
fn as_line((directory, names): (&DirectoryState, &usize)) -> String {
    let DirectoryState { device, inode, seconds, nanoseconds } = directory;
    format!("{device} {inode} {seconds} {nanoseconds} {names}\n")
}

fn from_line(line: &str) -> Option<(DirectoryState, usize)> {
    let mut words = line.strip_suffix('\n')?.split(' ');
    let directory = DirectoryState {
        device: words.next()?.parse().ok()?,
        inode: words.next()?.parse().ok()?,
        seconds: words.next()?.parse().ok()?,
        nanoseconds: words.next()?.parse().ok()?,
    };
    Some((directory, words.next()?.parse().ok()?))
}

/// The directories that a walk over a worktree need not list.
pub(super) struct KnownNames<'a> {
    earlier: &'a ListedDirectories,
    began: SystemTime,
    /// The device of the worktree; `None` if this kernel does not set the change times there, as on a network
    /// file system.
    device: Option<u64>,
}

impl<'a> KnownNames<'a> {
    /// For a walk over the worktree at `root` that begins now.
    pub fn new(root: &OwnedFd, earlier: &'a ListedDirectories) -> KnownNames<'a> {
        let began = SystemTime::now();
        let device = if disk::has_times_of_kernel(root.as_fd()) {
            DirectoryState::of(root).map(|root| root.device)
        } else {
            None
        };
        KnownNames { earlier, began, device }
    }

    /// The number of names in a directory, if an earlier capture found all these names in the index. `None`
    /// if the directory must be listed.
    pub fn of(&self, directory: &DirectoryState) -> Option<usize> {
        if self.may_tell(directory) { self.earlier.0.get(directory).copied() } else { None }
    }

    /// True if every later change of a directory also changes its state. The caller must have read the state
    /// `directory` before it listed the names.
    pub fn may_tell(&self, directory: &DirectoryState) -> bool {
        self.device == Some(directory.device) && directory.is_settled(self.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_tells_later_changes_only_once_the_clock_has_ticked_since() {
        let state = |nanoseconds| DirectoryState { device: 1, inode: 2, seconds: 50, nanoseconds };
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        assert!(state(1).is_settled(at(50_101)));
        assert!(!state(1).is_settled(at(50_100)), "too young");
        assert!(!state(1).is_settled(at(49_000)), "in the future");
        assert!(!state(0).is_settled(at(60_000)), "whole seconds");
        assert!(!DirectoryState { seconds: -1, ..state(1) }.is_settled(at(60_000)));
    }

    #[test]
    fn directories_read_back_without_a_line_that_was_cut_off() {
        let room = tempfile::tempdir().expect("a directory");
        let index = room.path().join("index");
        let none = ListedDirectories::default();
        assert_eq!(ListedDirectories::beside(&index), none);
        let state = |inode| DirectoryState { device: 1, inode, seconds: 50, nanoseconds: 7 };
        let two = ListedDirectories(HashMap::from([(state(1), 10), (state(2), 200)]));
        two.keep_beside(&index, &none);
        assert_eq!(ListedDirectories::beside(&index), two);
        let file = listed_beside(&index);
        let text = std::fs::read_to_string(&file).expect("written");
        std::fs::write(&file, text.trim_end()).expect("written");
        assert_eq!(ListedDirectories::beside(&index).0.len(), 1);
        // `two` already has this directory, so the file is not written again.
        ListedDirectories(HashMap::from([(state(1), 10)])).keep_beside(&index, &two);
        assert_eq!(ListedDirectories::beside(&index).0.len(), 1);
    }
}
