//! Marks the commands that run at this moment. So progress lines can show them, and so can
//! `status`, which is another process.
//!
//! While a command runs, there is a locked file, the mark, beside the command's log. The file's
//! mtime is the start of the command. If no process holds the lock, git-frites was killed, and the
//! mark is ignored.
//!
//! The file lists the command's processes. They can outlive git-frites if it was killed together
//! with the supervisor, or while the supervisor was stopped. Then a later git-frites ends them.
use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::CWD;
use rustix::process::{Pid, Signal};
use strum::{Display, EnumString};

use crate::error::{Error, Result};
use crate::fs::directory;
use crate::fs::lock::{self, Lock};
use crate::fs::regular;
use crate::model::layout::{AGENT, log_name};
use crate::process::capped;
use crate::process::descendants::{self, Process};

/// The ending of a mark's file name. A dot and a number may follow it.
const ENDING: &str = "log.running";

/// The largest number of names that are tried for a mark.
const MOST: u32 = 100;

/// The marks in a directory. Each has the name of the command's log (without `.log`), and the path
/// of the mark.
pub(super) fn marks(directory: &Path) -> Vec<(String, PathBuf)> {
    let listed = directory::open_to_list(CWD, directory);
    let entries = listed.and_then(directory::entries);
    let named = entries.iter().flatten().filter_map(|(name, _)| {
        let name = name.to_str().ok()?;
        let (what, number) = name.split_once(ENDING)?;
        let is_mark = number.is_empty() || number.starts_with('.');
        is_mark.then(|| Some((what.strip_suffix('.')?.to_owned(), directory.join(name))))?
    });
    named.collect()
}

/// The mark of a running command. It lists the processes that a later git-frites must end if this
/// git-frites is killed. Dropping the mark removes the file.
pub struct Mark {
    /// The path of the file.
    pub path: PathBuf,
    _lock: Lock,
}

impl Mark {
    /// Marks the command that writes `log`. If two processes judge one candidate at the same time,
    /// each makes its own mark. No other process writes, replaces or removes that file.
    pub fn put(log: &Path) -> Result<Mark> {
        let mut path = log.with_extension(ENDING);
        for number in 1..=MOST {
            // If a file is not empty, a killed process has left it. It is kept, because
            // [`end_survivors`] reads it.
            match lock::attempt(&path) {
                Ok(Some(lock)) if fs::symlink_metadata(&path).is_ok_and(|meta| meta.len() == 0) => {
                    return Ok(Mark { path, _lock: lock });
                }
                // An attempt may have put e.g. a directory there. So the next name is tried.
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

/// A supervisor gets this time to end its processes. After that, we get the same time to kill them.
const PATIENCE: Duration = Duration::from_secs(2);

/// The largest number of bytes that are read from a mark. An attempt can write to it.
const LONGEST_MARK: u64 = 4096;

/// The kind of a process in a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// The supervisor.
    Supervisor,
    /// The command itself. It leads a process group.
    Command,
}

/// Adds a process to a mark, if the mark still exists. Errors are ignored. Then a later git-frites
/// cannot find the process.
pub fn note_process(mark: &Path, role: Role, pid: Pid) {
    let id = pid.as_raw_nonzero().get();
    let start = descendants::process(id).map(|process| process.start);
    let (Some(start), Some(boot)) = (start, boot()) else { return };
    // This must not make the file. No process would hold its lock, so another git-frites would take
    // the processes in it for survivors.
    if let Ok(mut mark) = regular::open_own_to_append(mark) {
        let _ = mark.write_all(format!("{role} {id} {start} {boot}\n").as_bytes());
    }
}

/// Ends the survivors of the commands whose marks are in `directory`. Returns the name of each
/// command that had survivors. The flag is false if some of them are still alive.
pub fn end_survivors(directory: &Path) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (what, mark) in marks(directory) {
        // The mark is locked until it is removed. So no process uses the same name in between.
        let Ok(Some(_lock)) = lock::attempt(&mark) else {
            continue; // the git-frites of this mark is alive
        };
        let Ok(file) = regular::open_own(&mark) else { continue };
        let mut text = String::new();
        let _ = file.take(LONGEST_MARK).read_to_string(&mut text);
        let named = named(&text);
        if !living(&named).is_empty() {
            found.push((what, end_all(&named)));
        }
        let _ = fs::remove_file(&mark);
    }
    found
}

/// The processes in the text of a mark: role, id and start. Lines from before the last boot of the
/// machine are left out.
fn named(text: &str) -> Vec<(Role, i32, u64)> {
    let boot = boot();
    text.lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let role = words.next()?.parse().ok()?;
            let id = words.next()?.parse().ok()?;
            let start = words.next()?.parse().ok()?;
            (words.next() == boot.as_deref() && id > 1).then_some((role, id, start))
        })
        .collect()
}

/// The named processes that are still alive. A new process with the same id has another start. It
/// is left out.
fn living(named: &[(Role, i32, u64)]) -> Vec<(Role, Process)> {
    named
        .iter()
        .filter_map(|(role, id, start)| {
            let process = descendants::process(*id).filter(|p| p.start == *start)?;
            Some((*role, process))
        })
        .collect()
}

/// Ends the named processes and their descendants. Returns false if some of the named processes are
/// still alive.
fn end_all(named: &[(Role, i32, u64)]) -> bool {
    let send = |process: &Process, signal| {
        Pid::from_raw(process.id)
            .is_some_and(|pid| rustix::process::kill_process(pid, signal).is_ok())
    };
    // A supervisor that is continued sees that git-frites is gone. Then it ends its whole tree.
    let has_supervisor =
        |living: &[(Role, Process)]| living.iter().any(|(role, _)| *role == Role::Supervisor);
    for (_, process) in living(named).iter().filter(|(role, _)| *role == Role::Supervisor) {
        send(process, Signal::CONT);
    }
    let patience = Instant::now() + PATIENCE;
    loop {
        let left = living(named);
        if left.is_empty() {
            return true;
        }
        if Instant::now() > patience + PATIENCE {
            return false;
        }
        if !has_supervisor(&left) || Instant::now() > patience {
            let all = descendants::processes();
            for (_, process) in &left {
                let below = descendants::below(&all, process.id);
                let group =
                    all.iter().filter(|p| p.group == process.group && process.group == process.id);
                let ids =
                    group.map(|p| p.id).chain(below.iter().map(|pid| pid.as_raw_nonzero().get()));
                let ids: Vec<i32> = ids.chain([process.id]).collect();
                for other in all.iter().filter(|p| ids.contains(&p.id)) {
                    send(other, Signal::KILL);
                }
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The boot id of the machine; `None` if the system has none.
fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
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

    #[test]
    fn a_mark_names_processes_of_this_boot_only() {
        let Some(boot) = boot() else { return };
        let text = format!(
            "supervisor 12 345 {boot}\ncommand 13 346 {boot}\ncommand 14 347 other\njunk\ncommand 1 2 {boot}\n"
        );
        assert_eq!(named(&text), [(Role::Supervisor, 12, 345), (Role::Command, 13, 346)]);
    }

    #[test]
    fn a_command_is_no_survivor_while_its_git_frites_lives_whoever_else_writes_its_log() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let log = dir.path().join("test.log");
        let mut child = std::process::Command::new("cat");
        let mut child = child.stdin(std::process::Stdio::piped()).spawn().expect("started");
        let (pid, _open) = (Pid::from_child(&child), child.stdin.take());
        let first = Mark::put(&log).expect("marked");
        let second = Mark::put(&log).expect("marked");
        drop(first);
        note_process(&second.path, Role::Command, pid);
        assert_eq!(end_survivors(dir.path()), []);
        // The same is true while other marks are made and removed.
        thread::scope(|scope| {
            let coming = || {
                for _ in 0..300 {
                    let mark = Mark::put(&log).expect("marked");
                    note_process(&mark.path, Role::Command, pid);
                }
            };
            let workers = [scope.spawn(coming), scope.spawn(coming)];
            while workers.iter().any(|worker| !worker.is_finished()) {
                assert_eq!(end_survivors(dir.path()), []);
            }
        });
        assert!(child.try_wait().expect("a child").is_none(), "it runs");
        // Now the mark is no longer locked, as if its git-frites were gone.
        let text = fs::read(&second.path).expect("a mark");
        drop(second);
        fs::write(log.with_extension("log.running.7"), text).expect("written");
        let reaper = thread::spawn(move || child.wait());
        assert_eq!(end_survivors(dir.path()), [("test".to_owned(), true)]);
        assert!(!reaper.join().expect("a thread").expect("a child").success());
        assert_eq!(marks(dir.path()), []);
    }

    #[test]
    fn a_process_with_another_start_is_another_process() {
        let us = rustix::process::getpid().as_raw_nonzero().get();
        let Some(Process { start, .. }) = descendants::process(us) else { return };
        assert_eq!(living(&[(Role::Command, us, start)]).len(), 1);
        assert!(living(&[(Role::Command, us, start + 1)]).is_empty());
    }
}
