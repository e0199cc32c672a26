//! Finds the ancestors and descendants of this process. Ends descendants that have lost their
//! supervisor.
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal};

use crate::process::protocol::VERB;

/// From now on, this process becomes the parent of every descendant that loses its own parent. Only
/// Linux can do that.
#[cfg(target_os = "linux")]
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Does nothing. Other systems give orphans to the init process.
#[cfg(not(target_os = "linux"))]
pub fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Most files of a process in `/proc` are shorter than this number of bytes.
const USUAL: usize = 4 << 10;

/// Reads a file of `/proc`, such as `self/status`, with four system calls. `std::fs::read` needs
/// more. It asks for the length, which is 0 for such a file, and so begins with a buffer of 32
/// bytes.
pub(super) fn read_proc(name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL);
    File::open(format!("/proc/{name}"))?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A living process.
#[derive(Clone, Copy)]
pub(super) struct Process {
    pub id: i32,
    pub parent: i32,
    pub group: i32,
    /// The time at which the process started, in clock ticks since the machine was booted.
    pub start: u64,
}

/// Every living process; empty on systems without `/proc`.
pub(super) fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The living process with this id; `None` if there is no such process, or no `/proc`.
pub(super) fn process(id: i32) -> Option<Process> {
    let (process, is_living) = read_stat(id)?;
    is_living.then_some(process)
}

/// The parent of a process, even if its first thread has ended.
pub(super) fn parent_of(id: i32) -> Option<i32> {
    read_stat(id).map(|(process, _)| process.parent)
}

/// Reads the state of a process. The flag is false if the process or its first thread has ended.
fn read_stat(id: i32) -> Option<(Process, bool)> {
    let stat = read_proc(&format!("{id}/stat")).ok()?;
    // The name in parentheses may have a `)` in it, so the fields begin after the last `)`.
    let after = stat.iter().rposition(|b| *b == b')').map_or(0, |at| at + 1);
    let fields = String::from_utf8_lossy(&stat[after..]).into_owned();
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    let mut number = |skip: usize| fields.nth(skip).and_then(|n| n.parse::<u64>().ok());
    // These are the fields 4, 5 and 22 of proc_pid_stat(5).
    let parent = number(0)?;
    let group = number(0)?;
    let start = number(16)?;
    let raw = |n: u64| i32::try_from(n).unwrap_or(0);
    let process = Process { id, parent: raw(parent), group: raw(group), start };
    Some((process, !matches!(state, "Z" | "X")))
}

/// The living descendants of a process.
pub(super) fn below(processes: &[Process], ancestor: i32) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut wanted = vec![ancestor];
    while let Some(parent) = wanted.pop() {
        for process in processes.iter().filter(|p| p.parent == parent) {
            wanted.push(process.id);
            found.extend(Pid::from_raw(process.id));
        }
    }
    found
}

/// Every living descendant of this process; empty on systems without `/proc`.
pub(super) fn descendants() -> Vec<Pid> {
    below(&processes(), rustix::process::getpid().as_raw_nonzero().get())
}

/// The ids of the supervisors that this process has started, without those that it knows to have
/// ended. A thread that starts a supervisor holds the lock until the new process is in the list.
/// Otherwise [`end_strays`] could kill it.
pub(super) static SUPERVISORS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Kills the processes that a killed supervisor has left behind. Because of [`adopt_orphans`], they
/// are our children. Unlike our other children, they have their own process group and are not in
/// the list of supervisors.
pub(super) fn end_strays() {
    let supervisors = SUPERVISORS.lock();
    let us = rustix::process::getpid();
    let group = rustix::process::getpgrp();
    let raw = |pid: Pid| pid.as_raw_nonzero().get();
    // A process may fork before it is killed, so this is repeated until none is left.
    for _ in 0..100 {
        let all = processes();
        let strays = all.iter().filter(|p| {
            p.parent == raw(us) && p.group != raw(group) && !supervisors.contains(&p.id)
        });
        let strays: Vec<i32> = strays.map(|p| p.id).collect();
        if strays.is_empty() {
            return;
        }
        for pid in
            strays.iter().flat_map(|id| below(&all, *id).into_iter().chain(Pid::from_raw(*id)))
        {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The logs of the commands inside of which this process runs, the innermost first. The supervisors
/// of these commands are ancestors of this process. Empty on systems without `/proc`.
///
/// A command can change its environment variables, but it always has its supervisor as an ancestor.
/// A process that loses its parent becomes a child of the supervisor.
pub fn surrounding_logs() -> &'static [PathBuf] {
    static LOGS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
        let mut found = Vec::new();
        let mut next = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
        while let Some(id) = next.filter(|id| *id > 0) {
            let words = read_proc(&format!("{id}/cmdline")).unwrap_or_default();
            let mut words = words.split(|b| *b == 0).skip(1);
            if words.next() == Some(VERB.as_bytes()) {
                found.extend(words.next().map(|log| PathBuf::from(OsStr::from_bytes(log))));
            }
            next = parent_of(id);
        }
        found
    });
    &LOGS
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_longer_than_usual_is_read_whole() {
        let maps = read_proc("self/maps").expect("it is ours");
        assert!(maps.len() > USUAL, "{}", maps.len());
        let last = String::from_utf8_lossy(&maps);
        assert!(last.contains("[stack]") && last.ends_with('\n'), "{last}");
    }
}
