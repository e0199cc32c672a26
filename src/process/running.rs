//! The commands that run at this moment, for the progress lines of this process and for `status` in another
//! process.
//!
//! While a command runs, there is a locked file beside its log. The file's time is the command's
//! start. If no process holds the lock, git-frites was killed and nothing runs.
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::CWD;

use crate::error::{Error, Result};
use crate::fs::directory;
use crate::fs::lock::{self, Lock};
use crate::fs::regular;
use crate::model::layout::{AGENT, log_name};
use crate::process::capped;

/// The ending of a mark's file name, which a number may follow.
const ENDING: &str = "log.running";

/// The most names that are tried for a mark.
const MOST: u32 = 100;

/// The marks in a directory, each with the name of its command's log.
pub(super) fn marks(directory: &Path) -> Vec<(String, PathBuf)> {
    let listed = directory::open_to_list(CWD, directory);
    let entries = listed.and_then(|mut opened| directory::entries(&mut opened));
    let named = entries.iter().flatten().filter_map(|entry| {
        let name = entry.file_name().to_str().ok()?;
        let (what, number) = name.split_once(ENDING)?;
        let is_mark = number.is_empty() || number.starts_with('.');
        is_mark.then(|| Some((what.strip_suffix('.')?.to_owned(), directory.join(name))))?
    });
    named.collect()
}

/// The mark of a running command. Its file names the processes that must be ended if git-frites is killed.
/// Dropping the mark removes the file.
pub struct Mark {
    path: PathBuf,
    _lock: Lock,
}

impl Mark {
    /// Marks the command that writes `log`. Two processes may judge one candidate at the same time: each
    /// has a mark of its own, which no other process writes, replaces or removes.
    pub fn put(log: &Path) -> Result<Mark> {
        let mut path = log.with_extension(ENDING);
        for number in 1..=MOST {
            // A file that a killed process left is kept, because the recovery reads it.
            match lock::attempt(&path) {
                Ok(Some(lock)) if fs::symlink_metadata(&path).is_ok_and(|meta| meta.len() == 0) => {
                    return Ok(Mark { path, _lock: lock });
                }
                // An attempt may have put something else in the place of the file.
                Err(e) if number == MOST => return Err(e),
                _ => path = log.with_extension(format!("{ENDING}.{number}")),
            }
        }
        Err(Error::fatal(format!("too many processes write '{}'", log.display())))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
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
    let directory = log.parent().unwrap_or(Path::new("."));
    let marks =
        marks(directory).into_iter().filter(|(what, _)| log.file_stem() == Some(what.as_ref()));
    marks.filter_map(|(_, mark)| regular::open_own(&mark).ok()).any(|file| is_held(&file))
}

/// True if a process holds the lock of a mark.
fn is_held(mark: &File) -> bool {
    matches!(mark.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// The command that runs and writes a log in this directory; `None` if nothing runs.
pub fn running(directory: &Path) -> Option<Running> {
    marks(directory).into_iter().find_map(|(what, mark)| {
        let file = regular::open_own(&mark).ok()?;
        if !is_held(&file) {
            return None;
        }
        let began = file.metadata().and_then(|m| m.modified()).ok()?;
        let elapsed = SystemTime::now().duration_since(began).unwrap_or_default();
        let log = directory.join(log_name(&what));
        let last_line = match what.as_str() {
            AGENT => capped::last_word_line(&log),
            _ => capped::last_lines(&log, 1).pop(),
        };
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
