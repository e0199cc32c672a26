//! The removal of directories while the process goes on.
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;

/// Removals that nobody waits for until this is dropped, one at a time.
#[derive(Debug, Default)]
pub struct Removals(Mutex<Option<JoinHandle<()>>>);

impl Removals {
    /// Does this work in a thread of its own. If one is at work already, it is done at once: what
    /// is to be removed must not pile up.
    pub fn start(&self, remove: impl FnOnce() + Send + 'static) {
        let mut last = self.0.lock();
        if last.as_ref().is_none_or(JoinHandle::is_finished) {
            *last = Some(thread::spawn(remove));
        } else {
            drop(last);
            remove();
        }
    }
}

impl Drop for Removals {
    fn drop(&mut self) {
        let last = self.0.get_mut().take();
        // A removal that failed is done again by the next command.
        let _ = last.map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn caller_goes_on_while_one_thing_is_removed_and_the_end_waits_for_it() {
        let (go, may_go) = mpsc::channel::<()>();
        let (done, is_done) = mpsc::channel();
        let removals = Removals::default();
        let first = done.clone();
        removals.start(move || {
            let _ = may_go.recv();
            let _ = first.send("first");
        });
        // It cannot have ended: nothing let it go.
        removals.start(move || done.send("second").expect("a receiver"));
        assert_eq!(is_done.try_recv(), Ok("second"));
        go.send(()).expect("the first is waiting");
        drop(removals);
        assert_eq!(is_done.try_recv(), Ok("first"));
    }
}
