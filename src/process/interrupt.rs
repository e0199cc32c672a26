//! Signals from outside. The first Ctrl-C ends commands politely and keeps their work, the second kills
//! them, and the third ends git-frites. Ctrl-Z stops the commands with git-frites, and `fg` lets both go
//! on.
use std::collections::BTreeMap;
use std::io::{PipeWriter, Write};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use crate::process::descendants::read_proc;
use crate::process::protocol::order;

/// `git frites` is two processes. The terminal sends a signal to both, and git passes its own on to
/// git-frites. If the same signal comes again within this time, git has passed it on.
const PASSED_ON: Duration = Duration::from_millis(100);

/// The first signal that asked git-frites to end; 0 before it.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// The number of such signals, without those that git only passed on.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The connections to the supervisors, by the numbers of their [`Listener`]s.
static LINES: Mutex<BTreeMap<u64, Line>> = Mutex::new(BTreeMap::new());
/// The last signal that asked git-frites to end, and its time.
static LAST: Mutex<Option<(i32, Instant)>> = Mutex::new(None);
/// The function that [`on_request`] was given.
static TELL: OnceLock<Box<dyn Fn(usize) + Send + Sync>> = OnceLock::new();

/// The connection to one supervisor.
struct Line {
    pipe: PipeWriter,
    supervisor: Pid,
}

impl Line {
    /// Sends an order. If a command has stopped the supervisor, lets it go on, so that it reads the order.
    fn send(&mut self, order: u8) {
        let _ = self.pipe.write_all(&[order]);
        let _ = rustix::process::kill_process(self.supervisor, Signal::CONT);
    }
}

fn lines() -> MutexGuard<'static, BTreeMap<u64, Line>> {
    LINES.lock()
}

/// The signal that asked us to stop, if any did.
pub fn signal() -> Option<i32> {
    Some(FIRST.load(Ordering::SeqCst)).filter(|n| *n != 0)
}

/// From now on calls `tell` at each request to end, before anything is ended, with the number of the
/// request, from 1. Only the first call of this function counts.
pub fn on_request(tell: impl Fn(usize) + Send + Sync + 'static) {
    let _ = TELL.set(Box::new(tell));
}

/// The number of requests to end so far.
pub fn requests() -> usize {
    COUNT.load(Ordering::SeqCst)
}

/// From now on SIGINT, SIGTERM and SIGHUP end the running commands, not git-frites itself, and
/// SIGTSTP stops the commands with git-frites. SIGINT, SIGHUP and SIGTSTP stay ignored if they were
/// ignored from the start.
pub fn listen() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // `nohup` ignores SIGHUP, so that the command goes on when the terminal is gone. A shell without
        // job control ignores SIGINT for commands that it starts with `&`.
        let ignored = IgnoredSignals::now();
        let optional = [SIGINT, SIGHUP, SIGTSTP];
        let optional = optional.into_iter().filter(|signal| !ignored.contain(*signal));
        let wanted = [SIGTERM, SIGCONT].into_iter().chain(optional);
        let Ok(mut signals) = Signals::new(wanted) else { return };
        std::thread::spawn(move || signals.forever().for_each(received));
    });
}

/// Lets this process learn how its children end, even if its parent process ignored SIGCHLD: then the
/// system would throw away their exit codes. Children get the default action, so they learn the
/// same of theirs.
pub fn keep_exit_codes_of_children() {
    if IgnoredSignals::now().contain(SIGCHLD) {
        let _ = signal_hook::flag::register(SIGCHLD, Arc::default());
    }
}

/// The signals that this process ignores. At its start these are the signals that the parent process
/// ignored. None on systems without `/proc`.
pub(super) struct IgnoredSignals(u64);

impl IgnoredSignals {
    /// The signals that this process ignores now. The system lists the whole state of the process for this,
    /// so ask only once.
    pub(super) fn now() -> IgnoredSignals {
        let status = read_proc("self/status").unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        let mask = status
            .lines()
            .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
        IgnoredSignals(mask.unwrap_or_default())
    }

    /// True for a signal that is ignored.
    pub(super) fn contain(&self, signal: i32) -> bool {
        self.0 >> (signal - 1) & 1 == 1
    }
}

fn received(signal: i32) {
    match signal {
        SIGTSTP => {
            send_to_all(order::STOP);
            // Does what SIGTSTP does by default, which our handler replaced. SIGCONT lets the process go
            // on.
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        }
        SIGCONT => send_to_all(order::CONTINUE),
        _ => end_requested(signal),
    }
}

/// True if git passed on a signal that has been received already.
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
        // After the third request git-frites ends at once. Supervisors see the end of their pipes.
        _ => std::process::exit(128 + signal),
    };
    send_to_all(byte);
}

fn send_to_all(byte: u8) {
    lines().values_mut().for_each(|line| line.send(byte));
}

/// Ends jobs whose results do not matter any more, independently of signals.
#[derive(Debug, Default)]
pub struct Cancel(Mutex<Cancelling>);

#[derive(Debug, Default)]
struct Cancelling {
    order: Option<u8>,
    listeners: Vec<u64>,
}

impl Cancel {
    /// Kills the jobs that were included, and those that are included later. They have nothing to
    /// save.
    pub fn cancel(&self) {
        self.send(order::KILL);
    }

    /// Ends the same jobs in the way of a first Ctrl-C: they may have something to save.
    pub fn end_politely(&self) {
        self.send(order::TERMINATE);
    }

    fn send(&self, order: u8) {
        let mut state = self.0.lock();
        state.order = Some(order);
        let mut lines = lines();
        for key in state.listeners.drain(..) {
            if let Some(line) = lines.get_mut(&key) {
                line.send(order);
            }
        }
    }

    /// True once the jobs were ordered to end.
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().order.is_some()
    }

    /// Includes a job. If an order came before, the job gets it at once.
    pub(super) fn include(&self, listener: &Listener) {
        let mut state = self.0.lock();
        match (state.order, lines().get_mut(&listener.0)) {
            (None, _) => state.listeners.push(listener.0),
            (Some(order), Some(line)) => line.send(order),
            (Some(_), None) => {}
        }
    }
}

/// The registration of a supervisor's pipe. Until it is dropped, the pipe gets orders.
pub struct Listener(u64);

impl Listener {
    /// Registers the pipe of a supervisor. An earlier request to end is passed on at once.
    pub fn add(pipe: PipeWriter, supervisor: Pid) -> Listener {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let key = NEXT.fetch_add(1, Ordering::SeqCst) as u64;
        let mut line = Line { pipe, supervisor };
        let mut lines = lines();
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
        lines().remove(&self.0);
    }
}
