//! Does short work on many items in parallel, such as reading files. The whole process has one pool
//! of threads, which nested calls share.
//!
//! If the system allows no more threads, the caller does the work alone. For example, an attempt
//! may have started so many threads that the user's limit is reached.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, Scope, ScopedJoinHandle, scope, sleep};
use std::time::Duration;

use parking_lot::Mutex;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Result;

/// The pause between two tries to start a thread.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// Starts a separate thread, for work that takes long or waits. If the system allows the user no
/// more threads, waits until one of the user's threads has ended. For example, an attempt may have
/// started them all.
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

/// Does `work`. Meanwhile, calls `tick` again and again: first after `pause`, and then each time
/// after the pause that `tick` returned.
pub fn beside<T>(
    mut pause: Duration,
    mut tick: impl FnMut() -> Duration + Send,
    work: impl FnOnce() -> T,
) -> T {
    scope(|scope| {
        let (done, waiting) = channel::<()>();
        start(scope, move || {
            // The loop ends when `done` is dropped.
            while waiting.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = tick();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// The pool of the process; `None` if its threads could not be started.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    POOL.get_or_init(|| ThreadPoolBuilder::new().build().ok()).as_ref()
}

/// Calls `work` in the pool of this thread, or else in the pool of the process, which must exist.
fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match pool() {
        Some(pool) if rayon::current_thread_index().is_none() => pool.install(work),
        _ => work(),
    }
}

/// The number of threads in the pool.
pub fn threads() -> usize {
    if can_share() { in_pool(rayon::current_num_threads) } else { 1 }
}

/// True if other threads can do a part of the work of this one.
fn can_share() -> bool {
    rayon::current_thread_index().is_some() || pool().is_some()
}

/// Calls `work` for every item, and returns the results in the order of the items. If an item
/// fails, goes on with the others, and returns the error of the first item that failed.
///
/// `work` must not take a lock. While a thread waits for the results of a nested call, it may do
/// the work of another caller. That work could wait for the same lock.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let done: Vec<Result<R>> = if can_share() {
        in_pool(|| items.par_iter().map(&work).collect())
    } else {
        items.iter().map(&work).collect()
    };
    done.into_iter().collect()
}

/// Like [`map`], but in a pool of its own with this number of threads, for work that waits for the
/// disk.
pub fn map_at_once<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    match ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(|| map(items, &work)),
        Err(_) => map(items, work),
    }
}

/// Like [`map`], but `work` also gets a state that it can reuse from item to item. `init` makes a
/// state. About as many states are made as there are threads.
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

/// Calls both functions at the same time, and returns both results. Neither function may take a
/// lock; see [`map`].
pub fn both<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    if can_share() { in_pool(|| rayon::join(one, other)) } else { (one(), other()) }
}

/// Calls `work` for chunks of the items. There are about as many chunks as threads. This is for
/// work that takes less time than it would take to store a result for each item.
pub fn map_chunks<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&[T]) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let chunks: Vec<&[T]> = items.chunks(items.len().div_ceil(threads()).max(1)).collect();
    map(&chunks, |chunk| work(chunk))
}
