//! The commands that run at this moment, for the progress lines of this process and for `status` in
//! another.
//!
//! While a command runs, there is a locked file beside its log. The file's time is the command's
//! start. If no process holds the lock, git-frites was killed and nothing runs.
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::fs::regular;
use crate::process::capped;

const ENDING: &str = "log.running";

/// The file that marks the command which writes `log`. It holds the processes that would have to be
/// ended if git-frites were killed.
pub(super) fn mark_of(log: &Path) -> PathBuf {
    log.with_extension(ENDING)
}

/// The marks in a directory, each with the name of its command's log.
pub(super) fn marks(directory: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.file_name().to_str()?.strip_suffix(ENDING)?.strip_suffix('.')?.to_owned();
        Some((name, entry.path()))
    });
    named.collect()
}

/// The mark of a running command. Dropping it removes the file.
pub struct Mark {
    path: PathBuf,
    _locked: File,
}

impl Mark {
    /// Marks the command that writes `log`.
    pub fn put(log: &Path) -> io::Result<Mark> {
        let path = mark_of(log);
        let file = regular::create_own(&path)?; // there may be one of a process that was killed
        file.lock()?;
        Ok(Mark { path, _locked: file })
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A command that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The name of the command's log: `agent`, `setup`, `build`, `lint` or `test`.
    pub what: String,
    /// The time since its start.
    pub elapsed: Duration,
    /// The last line of its output.
    pub last_line: Option<String>,
}

/// True if a command runs that writes this log.
pub fn is_written(log: &Path) -> bool {
    regular::open_own(&mark_of(log)).is_ok_and(|file| is_held(&file))
}

/// True if a process holds the lock of a mark.
fn is_held(mark: &File) -> bool {
    matches!(mark.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// The command that runs and writes a log in this directory; none if nothing runs.
pub fn running(directory: &Path) -> Option<Running> {
    marks(directory).into_iter().find_map(|(what, mark)| {
        let file = regular::open_own(&mark).ok()?;
        if !is_held(&file) {
            return None;
        }
        let began = file.metadata().and_then(|m| m.modified()).ok()?;
        let elapsed = SystemTime::now().duration_since(began).unwrap_or_default();
        let last_line = capped::last_lines(&directory.join(format!("{what}.log")), 1).pop();
        Some(Running { what, elapsed, last_line })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_seen_while_its_mark_is_held_and_a_left_over_mark_means_nothing() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let log = dir.path().join("test.log");
        fs::write(&log, "half\nway").expect("written");
        assert_eq!(running(dir.path()), None);
        let mark = Mark::put(&log).expect("marked");
        let seen = running(dir.path()).expect("it runs");
        assert_eq!((seen.what.as_str(), seen.last_line.as_deref()), ("test", Some("way")));
        drop(mark);
        assert_eq!(running(dir.path()), None);
        fs::write(dir.path().join("test.log.running"), "").expect("written");
        assert_eq!(running(dir.path()), None, "nobody holds it");
    }
}
