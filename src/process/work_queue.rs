//! A queue of work for several threads. Parts can be added while the threads work.
use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

use crate::fs::parallel;

/// A queue of parts of work. It is over when no part is waiting, no part is being worked on, and no
/// [`QueueHold`] exists.
pub struct WorkQueue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
}

struct QueueState<T> {
    waiting: VecDeque<(usize, T)>,
    added: usize,
    /// The number of parts that are being worked on, plus the number of holds.
    busy: usize,
    is_over: bool,
}

impl<T: Send> WorkQueue<T> {
    /// A queue of these parts.
    pub fn new(parts: impl IntoIterator<Item = T>) -> WorkQueue<T> {
        let waiting: VecDeque<(usize, T)> = parts.into_iter().enumerate().collect();
        let state =
            QueueState { added: waiting.len(), busy: 0, is_over: waiting.is_empty(), waiting };
        WorkQueue { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Calls `work` for every part, in separate threads, at most `jobs` at once, until the queue is
    /// over. Returns the results in the order in which the parts were added.
    pub fn work_on<R: Send>(&self, jobs: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
        let span = tracing::Span::current();
        let done: Mutex<Vec<(usize, R)>> = Mutex::default();
        std::thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                parallel::start(scope, || {
                    let _span = span.enter();
                    while let Some((number, part)) = self.next() {
                        let _busy = QueueHold(self);
                        let result = work(part);
                        done.lock().push((number, result));
                    }
                });
            }
        });
        let mut done = done.into_inner();
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, result)| result).collect()
    }

    /// Keeps the queue open while the caller prepares another part; `None` if the queue is over.
    pub fn hold(&self) -> Option<QueueHold<'_, T>> {
        let mut state = self.state.lock();
        if state.is_over {
            return None;
        }
        state.busy += 1;
        Some(QueueHold(self))
    }

    fn next(&self) -> Option<(usize, T)> {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.waiting.is_empty() && !state.is_over);
        let next = state.waiting.pop_front()?;
        state.busy += 1;
        Some(next)
    }
}

/// Keeps a queue open until this is dropped.
pub struct QueueHold<'a, T: Send>(&'a WorkQueue<T>);

impl<T: Send> QueueHold<'_, T> {
    /// Adds a part.
    pub fn add(&self, part: T) {
        let mut state = self.0.state.lock();
        let number = state.added;
        state.added += 1;
        state.waiting.push_back((number, part));
        self.0.changed.notify_all();
    }
}

impl<T: Send> Drop for QueueHold<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.busy -= 1;
        state.is_over = state.busy == 0 && state.waiting.is_empty();
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn parts_are_added_until_nobody_works_and_results_are_in_their_order() {
        for jobs in [1, 3] {
            let queue = WorkQueue::new([3u32, 1, 2]);
            let results = queue.work_on(jobs, |part| {
                let hold = queue.hold().expect("this part is worked on");
                if part > 1 {
                    hold.add(part - 1);
                }
                part
            });
            let mut sorted = results.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [1, 1, 1, 2, 2, 3]);
            assert_eq!(results[..3], [3, 1, 2]);
            assert!(queue.hold().is_none());
        }
        assert!(WorkQueue::<()>::new([]).hold().is_none());
    }

    #[test]
    fn hold_keeps_workers_waiting_for_what_it_adds() {
        let queue = WorkQueue::new([0]);
        let hold = Mutex::new(queue.hold());
        let ran = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let worker =
                scope.spawn(|| queue.work_on(2, |part| (part, ran.fetch_add(1, Ordering::SeqCst))));
            while ran.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            let hold = hold.lock().take().expect("the queue is open");
            hold.add(7);
            drop(hold);
            assert_eq!(worker.join().expect("nobody panics"), [(0, 0), (7, 1)]);
        });
    }
}
