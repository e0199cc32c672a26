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
    /// About a third of that.
    Third,
}

/// The niceness of a third: each step takes about a fifth of the rest (sched(7)).
const NICENESS: i32 = 5;

/// The system lets unprivileged processes change one autogroup in a tenth of a second.
const TRIES: u32 = 5;

impl ProcessorShare {
    /// The word for it among the arguments of a supervisor.
    pub(super) fn word(self) -> &'static str {
        match self {
            ProcessorShare::Whole => "whole",
            ProcessorShare::Third => "third",
        }
    }

    /// Takes no more than this share from now on, with everything that this process starts.
    pub(super) fn take(word: &std::ffi::OsStr) -> io::Result<()> {
        if word == ProcessorShare::Third.word() {
            rustix::process::nice(NICENESS)?;
        }
        Ok(())
    }
}

/// Gives the niceness of this process to the session that it has just begun. Where each session has an
/// autogroup (sched(7)), the niceness of a process counts within its session alone.
///
/// It is not an error that this fails: the commands then get a larger share.
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
