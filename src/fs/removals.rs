//! Removes directories in the background while the process goes on.
use std::sync::mpsc::{self, SendError};
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

type Removal = Box<dyn FnOnce() + Send>;

/// Runs removals in the background, one at a time. When this is dropped, it waits until the last
/// removal has ended.
#[derive(Debug, Default)]
pub struct Removals(Mutex<Option<JoinHandle<()>>>);

impl Removals {
    /// Calls `remove` in a separate thread. Calls it in this thread in two cases: an earlier
    /// removal is still at work, or the system allows no more threads. So removals do not pile up.
    pub fn start(&self, remove: impl FnOnce() + Send + 'static) {
        let mut last = self.0.lock();
        let (sender, receiver) = mpsc::channel();
        if last.as_ref().is_none_or(JoinHandle::is_finished) {
            let thread = Builder::new();
            let thread = thread.spawn(|| receiver.into_iter().for_each(|remove: Removal| remove()));
            *last = thread.ok();
        } else {
            drop(receiver);
        }
        drop(last);
        // The thread gets the removal only now. A thread that could not start would have lost it.
        if let Err(SendError(remove)) = sender.send(Box::new(remove)) {
            remove();
        }
    }

    /// Waits for the removal in the background.
    pub fn wait(&self) {
        // If a removal failed, the next command repeats it.
        let _ = self.0.lock().take().map(JoinHandle::join);
    }
}

impl Drop for Removals {
    fn drop(&mut self) {
        self.wait();
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
        // The first removal cannot have ended, because it still waits for a message.
        removals.start(move || done.send("second").expect("a receiver"));
        assert_eq!(is_done.try_recv(), Ok("second"));
        go.send(()).expect("the first is waiting");
        drop(removals);
        assert_eq!(is_done.try_recv(), Ok("first"));
    }
}
