//! Handles signals. The first Ctrl-C ends the running commands politely and keeps their work. The
//! second kills them, and the third ends git-frites. Ctrl-Z stops git-frites and the commands, and
//! `fg` continues both.
use std::collections::BTreeMap;
use std::io::{PipeWriter, Write};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Once, OnceLock};
use std::thread::Builder;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use crate::process::descendants::read_proc;
use crate::process::protocol::order;

/// `git frites` is two processes: git, and git-frites. The terminal sends a signal to both, and git
/// then passes the signal on to git-frites. If git-frites receives the same signal again within
/// this time, git has passed it on.
const PASSED_ON: Duration = Duration::from_millis(100);

/// The first signal that asked git-frites to end; 0 if there was none.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// The number of signals that asked git-frites to end, without those that git only passed on.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The connections to the supervisors, by the numbers of their [`Listener`]s.
static LINES: Mutex<BTreeMap<u64, Line>> = Mutex::new(BTreeMap::new());
/// The last signal that asked git-frites to end, and its time.
static LAST: Mutex<Option<(i32, Instant)>> = Mutex::new(None);
/// The function that [`on_request`] was given.
static TELL: OnceLock<Box<dyn Fn(usize) + Send + Sync>> = OnceLock::new();

/// The connection to one supervisor, over which the supervisor gets orders.
struct Line {
    pipe: PipeWriter,
    supervisor: Pid,
}

impl Line {
    /// Sends an order to the supervisor. A command may have stopped the supervisor, so that it
    /// reads no order. So this also continues the supervisor.
    fn send(&mut self, order: u8) {
        let _ = self.pipe.write_all(&[order]);
        let _ = rustix::process::kill_process(self.supervisor, Signal::CONT);
    }
}

/// The first signal that asked git-frites to end; `None` if there was none.
pub fn signal() -> Option<i32> {
    Some(FIRST.load(Ordering::SeqCst)).filter(|n| *n != 0)
}

/// From now on, each request to end calls `tell` before any command is ended. The argument of
/// `tell` is the number of the request, from 1. Only the first call of this function has an effect.
pub fn on_request(tell: impl Fn(usize) + Send + Sync + 'static) {
    let _ = TELL.set(Box::new(tell));
}

/// The number of requests to end so far.
pub fn requests() -> usize {
    COUNT.load(Ordering::SeqCst)
}

/// From now on, SIGINT, SIGTERM and SIGHUP end the running commands and not git-frites itself.
/// SIGTSTP stops git-frites and the commands. If this process ignores SIGINT, SIGHUP or SIGTSTP
/// from its start, it still ignores that signal.
pub fn listen() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // `nohup` makes a command ignore SIGHUP, so that it goes on when the terminal is gone. A
        // shell without job control makes the commands that it starts with `&` ignore SIGINT.
        let ignored = IgnoredSignals::now();
        let optional = [SIGINT, SIGHUP, SIGTSTP];
        let optional = optional.into_iter().filter(|signal| !ignored.contain(*signal));
        let wanted = [SIGTERM, SIGCONT].into_iter().chain(optional);
        // If the thread cannot start, the signals keep their actions. Then they end git-frites like
        // a kill.
        let (sender, signals) = channel::<Signals>();
        let listen = move || signals.iter().for_each(|mut all| all.forever().for_each(received));
        if Builder::new().spawn(listen).is_ok()
            && let Ok(signals) = Signals::new(wanted)
        {
            let _ = sender.send(signals);
        }
    });
}

/// Makes this process get the exit codes of its children even if its parent process ignored
/// SIGCHLD. A process that ignores SIGCHLD does not get them. The children have the default action
/// for SIGCHLD, so they get the exit codes of their own children.
pub fn keep_exit_codes_of_children() {
    if IgnoredSignals::now().contain(SIGCHLD) {
        let _ = signal_hook::flag::register(SIGCHLD, Arc::default());
    }
}

/// The signals that this process ignores, as a bit mask. A process starts with the ignored signals
/// of its parent process. Empty on systems without `/proc`.
pub(super) struct IgnoredSignals(u64);

impl IgnoredSignals {
    /// The signals that this process ignores now. The system must list the whole state of the
    /// process for this, so callers should ask only once.
    pub(super) fn now() -> IgnoredSignals {
        let status = read_proc("self/status").unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        let mask = status
            .lines()
            .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
        IgnoredSignals(mask.unwrap_or_default())
    }

    /// True if the signal is ignored.
    pub(super) fn contain(&self, signal: i32) -> bool {
        self.0 >> (signal - 1) & 1 == 1
    }
}

fn received(signal: i32) {
    match signal {
        SIGTSTP => {
            send_to_all(order::STOP);
            // Our handler has replaced the default action of SIGTSTP, so this stops the process
            // here. SIGCONT continues it.
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        }
        SIGCONT => send_to_all(order::CONTINUE),
        _ => end_requested(signal),
    }
}

/// True if this signal was received just before, and git has only passed it on.
fn is_passed_on(signal: i32) -> bool {
    let now = Instant::now();
    let last = LAST.lock().replace((signal, now));
    let is_same = last.is_some_and(|(before, then)| before == signal && now - then < PASSED_ON);
    // git sets this variable for programs that it starts.
    is_same && std::env::var_os("GIT_EXEC_PATH").is_some()
}

fn end_requested(signal: i32) {
    if is_passed_on(signal) {
        return;
    }
    let _ = FIRST.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    let before = COUNT.fetch_add(1, Ordering::SeqCst);
    if let Some(tell) = TELL.get() {
        tell(before + 1);
    }
    let byte = match before {
        0 => order::TERMINATE,
        1 => order::KILL,
        // The third request ends git-frites at once. Supervisors see the end of their pipes.
        _ => std::process::exit(128 + signal),
    };
    send_to_all(byte);
}

fn send_to_all(byte: u8) {
    LINES.lock().values_mut().for_each(|line| line.send(byte));
}

/// Ends jobs whose results are no longer needed, independently of signals.
#[derive(Debug, Default)]
pub struct Cancel(Mutex<Cancelling>);

#[derive(Debug, Default)]
struct Cancelling {
    order: Option<u8>,
    listeners: Vec<u64>,
}

impl Cancel {
    /// Kills the jobs that were included, and those that are included later. This is for jobs that
    /// have nothing to save.
    pub fn cancel(&self) {
        self.send(order::KILL);
    }

    /// Ends the jobs that were included, and those that are included later, as a first Ctrl-C does.
    /// This is for jobs that may have something to save.
    pub fn end_politely(&self) {
        self.send(order::TERMINATE);
    }

    fn send(&self, order: u8) {
        let mut state = self.0.lock();
        state.order = Some(order);
        let mut lines = LINES.lock();
        for key in &state.listeners {
            if let Some(line) = lines.get_mut(key) {
                line.send(order);
            }
        }
    }

    /// True if the jobs were ordered to end.
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().order.is_some()
    }

    /// Includes a job. If there was an order already, the job gets it at once.
    pub(super) fn include(&self, listener: &Listener) {
        let mut state = self.0.lock();
        state.listeners.push(listener.0);
        if let (Some(order), Some(line)) = (state.order, LINES.lock().get_mut(&listener.0)) {
            line.send(order);
        }
    }
}

/// The registration of a supervisor's pipe. Until this is dropped, orders are written to the pipe.
pub struct Listener(u64);

impl Listener {
    /// Registers the pipe of a supervisor. If there was a request to end already, the supervisor
    /// gets an order at once.
    pub fn add(pipe: PipeWriter, supervisor: Pid) -> Listener {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let key = NEXT.fetch_add(1, Ordering::SeqCst) as u64;
        let mut line = Line { pipe, supervisor };
        let mut lines = LINES.lock();
        match COUNT.load(Ordering::SeqCst) {
            0 => {}
            1 => line.send(order::TERMINATE),
            _ => line.send(order::KILL),
        }
        lines.insert(key, line);
        Listener(key)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        LINES.lock().remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn jobs_that_were_ended_politely_can_still_be_killed() {
        let cancel = Cancel::default();
        let own = rustix::process::getpid();
        let [mut before, mut after] = [(), ()].map(|()| {
            let (read, write) = std::io::pipe().expect("a pipe");
            let listener = Listener::add(write, own);
            cancel.include(&listener);
            cancel.end_politely();
            (read, listener)
        });
        cancel.cancel();
        for (orders, listener) in [&mut before, &mut after] {
            LINES.lock().remove(&listener.0);
            let mut bytes = Vec::new();
            orders.read_to_end(&mut bytes).expect("orders");
            assert_eq!(
                (bytes.first(), bytes.last()),
                (Some(&order::TERMINATE), Some(&order::KILL))
            );
        }
    }
}
