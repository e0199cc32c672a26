//! Ends processes that outlived git-frites. A process can outlive git-frites if git-frites was killed while
//! the supervisor was stopped, or if git-frites and the supervisor were killed. The mark of a running command
//! (see `running`) lists the command's processes, so that a later git-frites can end them.
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use strum::{Display, EnumString};

use crate::fs::{lock, regular};
use crate::process::descendants::{self, Process};
use crate::process::running;

/// The time that a supervisor has to end its processes, and then the time that we have to kill them.
const PATIENCE: Duration = Duration::from_secs(2);

/// The largest number of bytes that are read from a mark: an attempt can write to it.
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

/// Adds a process to a mark, if the mark still exists. Errors are ignored; a later git-frites then cannot
/// find the process.
pub fn note(mark: &Path, role: Role, pid: Pid) {
    let id = pid.as_raw_nonzero().get();
    let start = descendants::process(id).map(|process| process.start);
    let (Some(start), Some(boot)) = (start, boot()) else { return };
    // This must not make the file: no process would hold its lock, so another git-frites would think that the
    // processes in it are survivors.
    if let Ok(mut mark) = regular::open_own_to_append(mark) {
        let _ = mark.write_all(format!("{role} {id} {start} {boot}\n").as_bytes());
    }
}

/// Ends the survivors of the commands whose marks are in `directory`. Returns the name of each command that
/// had survivors. The flag is false if some of them are still alive.
pub fn end(directory: &Path) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (what, mark) in running::marks(directory) {
        // The mark is locked until it is removed, so that no process uses the same name in between.
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

/// The processes in the text of a mark: role, id and start. Lines from before the machine was last booted are
/// left out.
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

/// The named processes that are still alive. A new process with the same id has another start, and is left
/// out.
fn living(named: &[(Role, i32, u64)]) -> Vec<(Role, Process)> {
    named
        .iter()
        .filter_map(|(role, id, start)| {
            let process = descendants::process(*id).filter(|p| p.start == *start)?;
            Some((*role, process))
        })
        .collect()
}

/// Ends the named processes and their descendants. Returns false if some of the named processes are still
/// alive.
fn end_all(named: &[(Role, i32, u64)]) -> bool {
    let send = |process: &Process, signal| {
        Pid::from_raw(process.id)
            .is_some_and(|pid| rustix::process::kill_process(pid, signal).is_ok())
    };
    // If a supervisor is continued, it sees that git-frites is gone, and ends its whole tree.
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
        let first = running::Mark::put(&log).expect("marked");
        let second = running::Mark::put(&log).expect("marked");
        drop(first);
        note(&second.path, Role::Command, pid);
        assert_eq!(end(dir.path()), []);
        // The same is true while other marks are made and removed.
        thread::scope(|scope| {
            let coming = || {
                for _ in 0..300 {
                    let mark = running::Mark::put(&log).expect("marked");
                    note(&mark.path, Role::Command, pid);
                }
            };
            let workers = [scope.spawn(coming), scope.spawn(coming)];
            while workers.iter().any(|worker| !worker.is_finished()) {
                assert_eq!(end(dir.path()), []);
            }
        });
        assert!(child.try_wait().expect("a child").is_none(), "it runs");
        // Now the mark is no longer locked, as if its git-frites were gone.
        let text = fs::read(&second.path).expect("a mark");
        drop(second);
        fs::write(log.with_extension("log.running.7"), text).expect("written");
        let reaper = thread::spawn(move || child.wait());
        assert_eq!(end(dir.path()), [("test".to_owned(), true)]);
        assert!(!reaper.join().expect("a thread").expect("a child").success());
        assert_eq!(running::marks(dir.path()), []);
    }

    #[test]
    fn a_process_with_another_start_is_another_process() {
        let us = rustix::process::getpid().as_raw_nonzero().get();
        let Some(Process { start, .. }) = descendants::process(us) else { return };
        assert_eq!(living(&[(Role::Command, us, start)]).len(), 1);
        assert!(living(&[(Role::Command, us, start + 1)]).is_empty());
    }
}
