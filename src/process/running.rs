//! Marks the commands that run at this moment, so that progress lines and `status`, which is another process,
//! can show them.
//!
//! While a command runs, there is a locked file, the mark, beside the command's log. The file's mtime is the
//! start of the command. If no process holds the lock, git-frites was killed, and the mark is ignored.
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

/// The ending of a mark's file name. A dot and a number may follow it.
const ENDING: &str = "log.running";

/// The largest number of names that are tried for a mark.
const MOST: u32 = 100;

/// The marks in a directory. Each has the name of the command's log (without `.log`), and the path of the
/// mark.
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

/// The mark of a running command. The file lists the processes that a later git-frites must end if this
/// git-frites is killed (see `survivors`). Dropping the mark removes the file.
pub struct Mark {
    /// The path of the file.
    pub path: PathBuf,
    _lock: Lock,
}

impl Mark {
    /// Marks the command that writes `log`. If two processes judge one candidate at the same time, each makes
    /// its own mark, and no other process writes, replaces or removes that file.
    pub fn put(log: &Path) -> Result<Mark> {
        let mut path = log.with_extension(ENDING);
        for number in 1..=MOST {
            // If a file is not empty, a killed process has left it. It is kept for `survivors`, which reads
            // it.
            match lock::attempt(&path) {
                Ok(Some(lock)) if fs::symlink_metadata(&path).is_ok_and(|meta| meta.len() == 0) => {
                    return Ok(Mark { path, _lock: lock });
                }
                // An attempt may have put e.g. a directory there, so the next name is tried.
                Err(e) if number == MOST => return Err(e),
                _ => path = log.with_extension(format!("{ENDING}.{number}")),
            }
        }
        Err(Error::fatal(format!("too many processes write '{}'", log.display())))
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
    /// The time since the command started.
    pub elapsed: Duration,
    /// The last line of the command's output.
    pub last_line: Option<String>,
}

/// True if a running command writes this log.
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

/// The running command whose log is in this directory; `None` if no command runs.
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
