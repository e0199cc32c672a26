//! Ctrl-C: once ends commands politely and keeps what they did, twice kills them, three times us.
use std::collections::BTreeMap;
use std::io::{PipeWriter, Write};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::process::supervisor::order;

static FIRST: AtomicI32 = AtomicI32::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static PIPES: Mutex<BTreeMap<u64, PipeWriter>> = Mutex::new(BTreeMap::new());

/// The signal that asked us to stop, if any did.
pub fn signal() -> Option<i32> {
    Some(FIRST.load(Ordering::SeqCst)).filter(|n| *n != 0)
}

/// From now on SIGINT, SIGTERM and SIGHUP end the commands that run, not git-frites itself. A SIGHUP that was to be
/// ignored from the start stays so.
pub fn listen() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // `nohup` is how one asks to go on when the terminal is gone.
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup)) else {
            return;
        };
        std::thread::spawn(move || signals.forever().for_each(received));
    });
}

/// Whether whoever started us has a signal ignored, by `/proc`; false where there is no such thing.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn received(signal: i32) {
    let _ = FIRST.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    let byte = match COUNT.fetch_add(1, Ordering::SeqCst) {
        0 => order::TERMINATE,
        1 => order::KILL,
        // Whatever we still do is not worth a third wait; the pipes end with us.
        _ => std::process::exit(128 + signal),
    };
    for pipe in PIPES.lock().unwrap_or_else(PoisonError::into_inner).values_mut() {
        let _ = pipe.write_all(&[byte]);
    }
}

/// Ends jobs from outside, whatever signals say: what they would tell does not matter any more.
#[derive(Debug, Default)]
pub struct Cancel(Mutex<Cancelling>);

#[derive(Debug, Default)]
struct Cancelling {
    ordered: bool,
    listeners: Vec<u64>,
}

impl Cancel {
    /// Kills the jobs that run under this, and those that begin later. They have nothing to save.
    pub fn cancel(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.ordered = true;
        let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
        for key in state.listeners.drain(..) {
            if let Some(pipe) = pipes.get_mut(&key) {
                let _ = pipe.write_all(&[order::KILL]);
            }
        }
    }

    /// Whether it was.
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ordered
    }

    /// Lets this end a job, too; one that is late is killed at once.
    pub(super) fn include(&self, listener: &Listener) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.ordered {
            state.listeners.push(listener.0);
            return;
        }
        if let Some(pipe) =
            PIPES.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&listener.0)
        {
            let _ = pipe.write_all(&[order::KILL]);
        }
    }
}

/// A supervisor's pipe, sent what signals order for as long as this lives.
pub struct Listener(u64);

impl Listener {
    /// Adds a pipe. A signal that came before is passed on at once.
    pub fn add(mut pipe: PipeWriter) -> Listener {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let key = NEXT.fetch_add(1, Ordering::SeqCst) as u64;
        let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
        match COUNT.load(Ordering::SeqCst) {
            0 => {}
            1 => drop(pipe.write_all(&[order::TERMINATE])),
            _ => drop(pipe.write_all(&[order::KILL])),
        }
        pipes.insert(key, pipe);
        Listener(key)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        PIPES.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}
