//! The share of the processor that a command gets if other commands also want it.
use std::io;
use std::thread;
use std::time::Duration;

/// The share of one command, compared with other commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessorShare {
    /// The same share as any other command.
    #[default]
    Whole,
    /// About a third of the share of any other command.
    Third,
}

/// The niceness for about a third of the share. Each step takes away about a fifth of the share
/// that is left (sched(7)). The niceness also lowers the priority for the disk. The idle class for
/// the disk is not used, because commands would time out while other programs use the disk.
const NICENESS: i32 = 5;

/// The largest number of tries in [`pass_on_to_session`]. The system lets unprivileged processes
/// change only one autogroup in a tenth of a second. So a try can fail.
const TRIES: u32 = 5;

impl ProcessorShare {
    /// The niceness of a command with this share.
    pub(super) fn niceness(self) -> i32 {
        match self {
            ProcessorShare::Whole => 0,
            ProcessorShare::Third => NICENESS,
        }
    }
}

/// Gives the niceness of this process to the session that this process has just begun. If each
/// session has an autogroup (sched(7)), the niceness of a process counts only within its session.
/// So the session needs it, too.
///
/// A failure is ignored; the commands then get a larger share.
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
