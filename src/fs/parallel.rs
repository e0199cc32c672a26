//! Short reads of many files at once, on one pool of threads for the whole process, which nested calls
//! share.

use std::sync::Arc;
use std::thread::{Builder, Scope, ScopedJoinHandle, sleep};
use std::time::Duration;

use parking_lot::Mutex;
use rayon::prelude::*;

use crate::error::Result;

/// The time between two tries to start a thread.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// Starts a thread of its own, for work that takes long or waits. Where the user has as many threads as the
/// system allows, which an attempt can bring about, this waits until one has ended.
pub fn start<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let work = Arc::new(Mutex::new(Some(work)));
    loop {
        let work = work.clone();
        let run = move || work.lock().take().expect("one thread takes the work")();
        match Builder::new().spawn_scoped(scope, run) {
            Ok(thread) => return thread,
            Err(_) => sleep(BETWEEN_TRIES),
        }
    }
}

/// The number of threads.
pub fn threads() -> usize {
    rayon::current_num_threads()
}

/// Does `work` on every item; gives the results in the items' order. All items are worked on even
/// if one fails; the error is that of the first item that failed.
///
/// `work` must take no lock: while a thread waits for its results, it may do the work of another caller.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let done: Vec<Result<R>> = items.par_iter().map(&work).collect();
    done.into_iter().collect()
}

/// Like [`map`], with a state that `init` makes and that is passed on from item to item. There are about as
/// many states as threads.
pub fn map_with<T: Sync, S: Send, R: Send>(
    items: &[T],
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let idle = Mutex::new(Vec::new());
    let idle = || idle.lock();
    map(items, |item| {
        let state = idle().pop();
        let mut state = state.unwrap_or_else(&init);
        let done = work(&mut state, item);
        idle().push(state);
        done
    })
}

/// Does two things at the same time. Neither may take a lock, as in [`map`].
pub fn both<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    rayon::join(one, other)
}

/// Does `work` on chunks of the items, about as many as there are threads. For work that costs less
/// than a result for each item.
pub fn map_chunks<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&[T]) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let size = items.len().div_ceil(rayon::current_num_threads()).max(1);
    let done: Vec<Result<R>> = items.par_chunks(size).map(&work).collect();
    done.into_iter().collect()
}
