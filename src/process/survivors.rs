//! Processes that outlived git-frites: somebody killed it while their supervisor was stopped, or
//! killed both. The mark of a running command names its processes; a later git-frites ends them.
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::fs::regular;
use crate::process::descendants::{self, Process};
use crate::process::progress;

/// The time that a supervisor has to end its tree by itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most of a mark that is read: an attempt can write to it.
const LONGEST_MARK: u64 = 4096;

/// A process in a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The supervisor.
    Supervisor,
    /// The command itself, which leads a process group.
    Command,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Role::Supervisor => "supervisor",
            Role::Command => "command",
        }
    }
}

/// Adds a process to the mark of the command that writes `log`. If that fails, nobody will find the
/// process; the command runs all the same.
pub fn note(log: &Path, role: Role, pid: Pid) {
    let id = pid.as_raw_nonzero().get();
    let start = descendants::processes().into_iter().find(|p| p.id == id).map(|p| p.start);
    let (Some(start), Some(boot)) = (start, boot()) else { return };
    if let Ok(mut mark) = regular::open_own_to_write(&progress::mark_of(log), true) {
        let _ = mark.write_all(format!("{} {id} {start} {boot}\n", role.word()).as_bytes());
    }
}

/// Ends the survivors of the commands whose marks lie in `directory`. Gives the name of each such
/// command, and false if some of its processes are still there.
pub fn end(directory: &Path) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (what, mark) in progress::marks(directory) {
        let Ok(file) = regular::open_own(&mark) else { continue };
        if file.try_lock().is_err() {
            continue; // its git-frites is alive
        }
        let mut text = String::new();
        let _ = (&file).take(LONGEST_MARK).read_to_string(&mut text);
        let named = named(&text);
        if !living(&named).is_empty() {
            found.push((what, end_all(&named)));
        }
        let _ = fs::remove_file(&mark);
    }
    found
}

/// The processes that a mark names, if it was written since the machine started.
fn named(text: &str) -> Vec<(Role, i32, u64)> {
    let boot = boot();
    text.lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let role = match words.next()? {
                "supervisor" => Role::Supervisor,
                "command" => Role::Command,
                _ => return None,
            };
            let (id, start) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            (words.next() == boot.as_deref() && id > 1).then_some((role, id, start))
        })
        .collect()
}

/// Those of the named processes that live: another process may have got the same id since.
fn living(named: &[(Role, i32, u64)]) -> Vec<(Role, Process)> {
    let all = descendants::processes();
    let same = |(role, id, start): &(Role, i32, u64)| {
        let process = all.iter().find(|p| p.id == *id && p.start == *start)?;
        Some((*role, *process))
    };
    named.iter().filter_map(same).collect()
}

/// Ends the named processes with all that is below them; false if that does not succeed.
fn end_all(named: &[(Role, i32, u64)]) -> bool {
    let send = |process: &Process, signal| {
        Pid::from_raw(process.id)
            .is_some_and(|pid| rustix::process::kill_process(pid, signal).is_ok())
    };
    // A supervisor ends its whole tree once it runs and sees that git-frites is gone.
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

/// A name for the time since the machine's start; none where the system gives none.
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
    fn a_process_with_another_start_is_another_process() {
        let us = rustix::process::getpid().as_raw_nonzero().get();
        let start = descendants::processes().iter().find(|p| p.id == us).map(|p| p.start);
        let Some(start) = start else { return };
        assert_eq!(living(&[(Role::Command, us, start)]).len(), 1);
        assert!(living(&[(Role::Command, us, start + 1)]).is_empty());
    }
}
