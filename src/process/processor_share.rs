//! The share of the processor that a command gets while others want it, too.
use std::io;
use std::thread;
use std::time::Duration;

/// The share of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessorShare {
    /// The share of any other command.
    #[default]
    Whole,
    /// About a third of the share of any other command.
    Third,
}

/// The niceness that gives a third: each step takes away about a fifth of the remaining share (sched(7)).
/// The priority for the disk follows it. An idle class for the disk would let commands time out when
/// others use the disk.
const NICENESS: i32 = 5;

/// The most tries, because the system lets unprivileged processes change only one autogroup in a tenth of a
/// second.
const TRIES: u32 = 5;

impl ProcessorShare {
    /// The word for it among the arguments of a supervisor.
    pub(super) fn word(self) -> &'static str {
        match self {
            ProcessorShare::Whole => "whole",
            ProcessorShare::Third => "third",
        }
    }

    /// Limits this process, and everything that it starts, to the share that `word` names.
    pub(super) fn take(word: &std::ffi::OsStr) -> io::Result<()> {
        if word == ProcessorShare::Third.word() {
            rustix::process::nice(NICENESS)?;
        }
        Ok(())
    }
}

/// Gives the niceness of this process to the session that it has just begun. If each session has an
/// autogroup (sched(7)), the niceness of a process counts only within its session.
///
/// A failure is no error: the commands then get a larger share.
pub fn pass_on_to_session() {
    let niceness = rustix::process::getpriority_process(None).unwrap_or_default();
    if niceness <= 0 {
        return;
    }
    for _ in 0..TRIES {
        match std::fs::write("/proc/self/autogroup", niceness.to_string()) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(100));
            }
            _ => return,
        }
    }
}
