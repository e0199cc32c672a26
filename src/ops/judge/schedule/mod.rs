//! The scheduler: which tree is judged next, on how many threads, and when judging stops.
//!
//! The scheduler uses neither git nor processes, so that unit tests can give it their own
//! [`Judge`].
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::model::name::Name;
use crate::model::ranking::{Rules, undecided};
use crate::model::verdict::{Effort, Entry};
use crate::ops::judge::entry_outcome::EntryOutcome;
use crate::ops::judge::groups::Groups;
use crate::process::interrupt::Cancel;

/// The moment at which judging stops.
#[derive(Clone, Copy, Debug)]
pub enum StopWhen {
    /// Every usable candidate was judged.
    AllRan,
    /// No outcome that is missing could change the recommended candidate.
    Decided(Rules),
}

/// Runs the oracle for one entry.
pub trait Judge: Sync {
    /// What is made for an entry before its commands may run.
    type Prepared;

    /// Prepares for an entry, which may then not be judged. This runs no command.
    fn prepare(&self, entry: &Entry) -> Result<Self::Prepared>;

    /// Runs the oracle on the entry's tree and, if it passes there, on the tree with the base's
    /// tests. None if it was cancelled.
    fn judge(
        &self,
        entry: &Entry,
        prepared: Self::Prepared,
        cancel: &Cancel,
    ) -> Result<Option<EntryOutcome>>;
}

/// Judges each distinct tree once and gives the results to every entry with that tree.
pub struct Scheduler<'e> {
    stop: StopWhen,
    groups: Groups,
    shared: Mutex<Shared<'e>>,
    /// Signalled when a group has begun or ended.
    changed: Condvar,
}

/// The state that the workers share.
struct Shared<'e> {
    entries: &'e mut [Entry],
    /// The groups that a worker has taken, to prepare them or to run their commands.
    running: BTreeMap<usize, Arc<Cancel>>,
    /// Those of them whose commands may run.
    executing: BTreeSet<usize>,
    /// True during the work that comes before the groups, which runs commands, too.
    first_runs: bool,
    effort: Effort,
    /// The first error of any worker.
    error: Option<Error>,
    /// Ends the work that comes before the groups.
    first: Arc<Cancel>,
    /// Set after an error or a panic: no worker starts another group.
    stopped: bool,
}

impl<'e> Scheduler<'e> {
    /// A scheduler for the entries that have no results yet. Judged in place, each candidate is
    /// judged by itself.
    pub fn new(entries: &'e mut [Entry], in_place: bool, stop: StopWhen) -> Scheduler<'e> {
        let groups = Groups::new(entries, in_place);
        let shared = Shared {
            entries,
            running: BTreeMap::new(),
            executing: BTreeSet::new(),
            first_runs: false,
            effort: Effort::default(),
            error: None,
            first: Arc::default(),
            stopped: false,
        };
        Scheduler { stop, groups, shared: Mutex::new(shared), changed: Condvar::new() }
    }

    /// Fills in the outcomes that `find` has for an entry's tree.
    pub fn fill_in_cached(
        &self,
        mut find: impl FnMut(&Entry) -> Result<Option<EntryOutcome>>,
    ) -> Result<()> {
        let mut shared = self.lock();
        for group in self.unjudged(&shared) {
            if let Some(outcome) = find(&shared.entries[group])? {
                shared.set_outcome(&self.groups, group, &outcome);
            }
        }
        Ok(())
    }

    /// The candidates that will be judged, in spawn order.
    pub fn waiting(&self) -> Vec<Name> {
        let shared = self.lock();
        let mut groups = self.wanted(&shared);
        groups.sort_by_key(|group| shared.entries[*group].index);
        groups.into_iter().map(|group| shared.entries[group].candidate.clone()).collect()
    }

    /// The number of groups whose commands can run at once when `jobs` may, with `more` work beside
    /// the groups.
    pub fn workers(&self, jobs: usize, more: usize) -> usize {
        jobs.max(1).min(self.unjudged(&self.lock()).len() + more)
    }

    /// Judges until all that matters is judged, or one judge fails. The commands of so many groups
    /// run at once, and beside them one more group is prepared. The first worker does the work `first`
    /// before it judges.
    ///
    /// Panics if a judge or `first` panics, after the other workers have stopped.
    pub fn run(
        &self,
        workers: usize,
        first: impl FnOnce(&Cancel) -> Result<()> + Send,
        judge: &impl Judge,
    ) {
        let span = tracing::Span::current();
        let judge_groups = || {
            while let Some(group) = self.next() {
                let prepared = judge.prepare(&group.entry);
                if self.await_turn(&group, workers) {
                    self.judge(&group, prepared, judge);
                }
            }
        };
        self.lock().first_runs = true;
        std::thread::scope(|scope| {
            if workers > 0 {
                scope.spawn(|| {
                    let _span = span.enter();
                    self.do_first(first);
                    judge_groups();
                });
            }
            for _ in 0..workers {
                scope.spawn(|| {
                    let _span = span.enter();
                    judge_groups();
                });
            }
        });
    }

    fn do_first(&self, first: impl FnOnce(&Cancel) -> Result<()>) {
        let cancel = self.lock().first.clone();
        let guard = StopOnPanic(self);
        let result = first(&cancel);
        drop(guard);
        let mut shared = self.lock();
        shared.first_runs = false;
        if let Err(error) = result {
            shared.error.get_or_insert(error);
            shared.stop_all();
        }
        drop(shared);
        self.changed.notify_all();
    }

    /// The number of commands that were run and saved; each tree that was not judged saved
    /// `commands` of them.
    ///
    /// Fails with the first error of a judge.
    pub fn finish(self, commands: usize) -> Result<Effort> {
        let not_run = self.unjudged(&self.lock()).len();
        let shared = self.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        match shared.error {
            Some(error) => Err(error),
            None => Ok(Effort { saved_not_run: (not_run * commands) as u64, ..shared.effort }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared<'e>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next group to judge, when there is one; none when nothing is left to do.
    fn next(&self) -> Option<RunningGroup<'_, 'e>> {
        let mut shared = self.lock();
        loop {
            if shared.stopped {
                return None;
            }
            let wanted = self.wanted(&shared);
            for (group, cancel) in &shared.running {
                if !wanted.contains(group) {
                    cancel.cancel();
                }
            }
            if let Some(group) = wanted.into_iter().find(|g| !shared.running.contains_key(g)) {
                let cancel = Arc::new(Cancel::default());
                shared.running.insert(group, cancel.clone());
                let entry = shared.entries[group].clone();
                return Some(RunningGroup { scheduler: self, group, entry, cancel });
            }
            if shared.running.is_empty() {
                return None;
            }
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until the commands of a group may run beside those of others, `jobs` in all. Groups get
    /// their turns in the order in which they are wanted. False if this one does not matter any more.
    fn await_turn(&self, RunningGroup { group, .. }: &RunningGroup<'_, 'e>, jobs: usize) -> bool {
        let mut shared = self.lock();
        loop {
            let wanted = self.wanted(&shared);
            if shared.stopped || !wanted.contains(group) {
                return false;
            }
            if shared.next_turn(&wanted, jobs) == Some(*group) {
                shared.executing.insert(*group);
                self.changed.notify_all();
                return true;
            }
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn judge<J: Judge>(
        &self,
        running: &RunningGroup<'_, 'e>,
        prepared: Result<J::Prepared>,
        judge: &J,
    ) {
        let end =
            prepared.and_then(|prepared| judge.judge(&running.entry, prepared, &running.cancel));
        let mut shared = self.lock();
        match end {
            Ok(None) => {}
            Ok(Some(outcome)) => shared.set_outcome(&self.groups, running.group, &outcome),
            Err(error) => {
                shared.error.get_or_insert(error);
                shared.stop_all();
            }
        }
    }

    /// The groups that still matter, in the order in which to judge them.
    fn wanted(&self, shared: &Shared<'_>) -> Vec<usize> {
        match self.stop {
            StopWhen::AllRan => self.unjudged(shared),
            StopWhen::Decided(rules) => self.groups.of(undecided(shared.entries, rules)),
        }
    }

    /// The groups without results.
    fn unjudged(&self, shared: &Shared<'_>) -> Vec<usize> {
        self.groups.of(shared.entries.iter().filter(|e| e.not_run()))
    }
}

impl Shared<'_> {
    fn set_outcome(&mut self, groups: &Groups, group: usize, outcome: &EntryOutcome) {
        self.effort.add(groups.set_outcome(self.entries, group, outcome));
    }

    /// The first of the wanted groups that wait for their turn; none while `jobs` execute.
    fn next_turn(&self, wanted: &[usize], jobs: usize) -> Option<usize> {
        if self.executing.len() + usize::from(self.first_runs) >= jobs {
            return None;
        }
        let waits =
            |group: &usize| self.running.contains_key(group) && !self.executing.contains(group);
        wanted.iter().copied().find(waits)
    }

    /// Cancels all that runs, and lets nothing else start.
    fn stop_all(&mut self) {
        self.stopped = true;
        self.first.cancel();
        for cancel in self.running.values() {
            cancel.cancel();
        }
    }
}

/// Dropped by a panic, stops the other workers.
struct StopOnPanic<'s, 'e>(&'s Scheduler<'e>);

impl Drop for StopOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().stop_all();
            self.0.changed.notify_all();
        }
    }
}

/// A group that a worker judges.
///
/// Dropped, it wakes the workers that wait for the group. This happens also when the judge panics:
/// otherwise they would wait for ever.
struct RunningGroup<'s, 'e> {
    scheduler: &'s Scheduler<'e>,
    group: usize,
    entry: Entry,
    cancel: Arc<Cancel>,
}

impl Drop for RunningGroup<'_, '_> {
    fn drop(&mut self) {
        let mut shared = self.scheduler.lock();
        shared.running.remove(&self.group);
        shared.executing.remove(&self.group);
        if std::thread::panicking() {
            shared.stop_all();
        }
        drop(shared);
        self.scheduler.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_ahead;
