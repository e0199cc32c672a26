//! The scheduler: which tree is judged next, on how many threads, and when judging stops.
//!
//! The scheduler uses neither git nor processes, so that unit tests can give it their own
//! [`Judge`].
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::model::name::Name;
use crate::model::outcome::{Outcome, StageResult};
use crate::model::ranking::{Rules, undecided};
use crate::model::verdict::{Effort, Entry};
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
    /// Runs the oracle on the entry's tree and, if it passes there, on the tree with the base's
    /// tests. None if it was cancelled.
    fn judge(&self, entry: &Entry, cancel: &Cancel) -> Result<Option<EntryOutcome>>;
}

/// All that the oracle said about one entry.
#[derive(Clone, Debug, Default)]
pub struct EntryOutcome {
    /// The results on the entry's tree.
    pub results: Vec<StageResult>,
    /// The results on the tree with the base's tests; empty if they did not have to be known.
    pub base_tests: Vec<StageResult>,
    /// The number of commands that were run and saved for this.
    pub effort: Effort,
}

impl EntryOutcome {
    fn commands_run(&self) -> u64 {
        commands_run(&self.results) + commands_run(&self.base_tests)
    }
}

/// Judges each distinct tree once and gives the results to every entry with that tree.
///
/// The key of a group of entries with one tree is the position of its first entry, which is the one
/// that is judged.
pub struct Scheduler<'e> {
    stop: StopWhen,
    /// The group of each entry, by the entry's spawn index.
    groups: BTreeMap<u32, usize>,
    shared: Mutex<Shared<'e>>,
    /// Signalled when a group has ended.
    changed: Condvar,
}

/// The state that the workers share.
struct Shared<'e> {
    entries: &'e mut [Entry],
    running: BTreeMap<usize, Arc<Cancel>>,
    effort: Effort,
    /// The first error of any worker.
    error: Option<Error>,
    /// Ends the work that comes before the groups.
    first: Arc<Cancel>,
    /// Set after an error or a panic: no worker starts another group.
    stopped: bool,
}

impl<'e> Scheduler<'e> {
    /// A scheduler for the entries that have no results yet. Judged in place, candidates share
    /// nothing: then each one is a group by itself.
    pub fn new(entries: &'e mut [Entry], in_place: bool, stop: StopWhen) -> Scheduler<'e> {
        let same_group = |a: &Entry, b: &Entry| {
            let same_tree = a.judged().is_some() && a.judged() == b.judged();
            a.candidate == b.candidate || (same_tree && !in_place)
        };
        let mut groups = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate().filter(|(_, e)| e.not_run()) {
            let first = entries[..at].iter().position(|e| e.not_run() && same_group(e, entry));
            groups.insert(entry.index, first.unwrap_or(at));
        }
        let shared = Shared {
            entries,
            running: BTreeMap::new(),
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
                self.set_outcome(&mut shared, group, &outcome);
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

    /// The number of threads that have something to do when `jobs` may run at once, with `more`
    /// work beside the groups.
    pub fn workers(&self, jobs: usize, more: usize) -> usize {
        jobs.max(1).min(self.unjudged(&self.lock()).len() + more)
    }

    /// Judges on so many threads, until all that matters is judged, or one fails. The first of them
    /// does the work `first` before it judges.
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
                self.judge(&group, judge);
            }
        };
        std::thread::scope(|scope| {
            if workers > 0 {
                scope.spawn(|| {
                    let _span = span.enter();
                    self.do_first(first);
                    judge_groups();
                });
            }
            for _ in 1..workers {
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
        if let Err(error) = result {
            let mut shared = self.lock();
            shared.error.get_or_insert(error);
            shared.stop_all();
        }
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

    fn judge(&self, running: &RunningGroup<'_, 'e>, judge: &impl Judge) {
        let end = judge.judge(&running.entry, &running.cancel);
        let mut shared = self.lock();
        match end {
            Ok(None) => {}
            Ok(Some(outcome)) => self.set_outcome(&mut shared, running.group, &outcome),
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
            StopWhen::Decided(rules) => self.groups_of(undecided(shared.entries, rules)),
        }
    }

    /// The groups without results.
    fn unjudged(&self, shared: &Shared<'_>) -> Vec<usize> {
        self.groups_of(shared.entries.iter().filter(|e| e.not_run()))
    }

    /// The groups of these entries in the entries' order, each once.
    fn groups_of<'a>(&self, entries: impl IntoIterator<Item = &'a Entry>) -> Vec<usize> {
        let mut groups = Vec::new();
        for group in entries.into_iter().filter_map(|e| self.groups.get(&e.index)) {
            if !groups.contains(group) {
                groups.push(*group);
            }
        }
        groups
    }

    /// Gives an outcome to every entry of a group.
    fn set_outcome(&self, shared: &mut Shared<'_>, group: usize, outcome: &EntryOutcome) {
        shared.effort.add(outcome.effort);
        let first = shared.entries[group].candidate.clone();
        for (at, entry) in shared.entries.iter_mut().enumerate() {
            if self.groups.get(&entry.index) != Some(&group) {
                continue;
            }
            entry.results.clone_from(&outcome.results);
            if let Some(second) = &mut entry.base_tests {
                second.results.clone_from(&outcome.base_tests);
            }
            if at != group {
                entry.same_as = Some(first.clone());
                shared.effort.saved_equal += outcome.commands_run();
            }
        }
    }
}

impl Shared<'_> {
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
        if std::thread::panicking() {
            shared.stop_all();
        }
        drop(shared);
        self.scheduler.changed.notify_all();
    }
}

/// The number of commands that were started for these results.
pub fn commands_run(results: &[StageResult]) -> u64 {
    let started = results.iter().filter(|r| !matches!(r.outcome, Outcome::CouldNotStart { .. }));
    started.map(|r| r.runs() as u64).sum()
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::model::blast::Blast;
    use crate::model::candidate::State;
    use crate::model::oid::Oid;
    use crate::model::outcome::Stage;

    /// A usable entry with so many changed lines; entries with the same letter have the same tree.
    fn entry(index: u32, lines: u64, tree: char) -> Entry {
        let name = format!("c{index}").parse().expect("a valid name");
        Entry {
            iteration: Some(1),
            tree: Oid::parse(&tree.to_string().repeat(40)),
            blast: Blast { lines, files: 1 },
            ..Entry::new(name, index, State::Open)
        }
    }

    fn ended(outcome: Outcome) -> Result<Option<EntryOutcome>> {
        let results = vec![StageResult::new(Stage::Test, 0.0, outcome)];
        let effort = Effort { ran: 1, ..Effort::default() };
        Ok(Some(EntryOutcome { results, base_tests: Vec::new(), effort }))
    }

    fn wait_for_cancel(cancel: &Cancel) -> Result<Option<EntryOutcome>> {
        while !cancel.is_cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(None)
    }

    fn nothing_first(_: &Cancel) -> Result<()> {
        Ok(())
    }

    /// A judge that does what a function does, and notes whom it judged.
    struct Script<F> {
        act: F,
        judged: Mutex<Vec<String>>,
    }

    impl<F: Fn(&Entry, &Cancel) -> Result<Option<EntryOutcome>> + Sync> Script<F> {
        fn new(act: F) -> Script<F> {
            Script { act, judged: Mutex::default() }
        }

        fn judged(&self) -> Vec<String> {
            self.judged.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    impl<F: Fn(&Entry, &Cancel) -> Result<Option<EntryOutcome>> + Sync> Judge for Script<F> {
        fn judge(&self, entry: &Entry, cancel: &Cancel) -> Result<Option<EntryOutcome>> {
            let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
            judged.push(entry.candidate.to_string());
            drop(judged);
            (self.act)(entry, cancel)
        }
    }

    /// The value that `work` gives; fails if it takes longer than any machine needs for it.
    fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || drop(sender.send(work())));
        receiver.recv_timeout(Duration::from_secs(60)).expect("the scheduler ends")
    }

    #[test]
    fn a_panic_in_one_judge_stops_the_others_and_is_passed_on() {
        let (panicked, judged) = in_time(|| {
            let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b'), entry(3, 3, 'c')];
            let started = std::sync::Barrier::new(2);
            let script = Script::new(|entry: &Entry, cancel: &Cancel| {
                started.wait();
                assert_ne!(entry.index, 1, "this panic is part of the test");
                wait_for_cancel(cancel)
            });
            let scheduler = Scheduler::new(&mut entries, false, StopWhen::AllRan);
            let run = catch_unwind(AssertUnwindSafe(|| scheduler.run(2, nothing_first, &script)));
            (run.is_err(), script.judged().len())
        });
        assert!(panicked);
        assert_eq!(judged, 2, "nothing is started after a panic");
    }

    #[test]
    fn a_worker_without_work_ends_when_the_other_panics() {
        let panicked = in_time(|| {
            let mut entries = [entry(1, 1, 'a')];
            let script = Script::new(|_: &Entry, _: &Cancel| {
                // The second worker waits by now, or will find that judging has stopped.
                std::thread::sleep(Duration::from_millis(50));
                panic!("this panic is part of the test")
            });
            let scheduler = Scheduler::new(&mut entries, false, StopWhen::AllRan);
            catch_unwind(AssertUnwindSafe(|| scheduler.run(2, nothing_first, &script))).is_err()
        });
        assert!(panicked);
    }

    #[test]
    fn an_error_cancels_the_others_and_is_returned() {
        let error = in_time(|| {
            let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b'), entry(3, 3, 'c')];
            let started = std::sync::Barrier::new(2);
            let script = Script::new(|entry: &Entry, cancel: &Cancel| {
                started.wait();
                match entry.index {
                    1 => Err(Error::fatal("no space").hint("make some")),
                    _ => wait_for_cancel(cancel),
                }
            });
            let scheduler = Scheduler::new(&mut entries, false, StopWhen::AllRan);
            scheduler.run(2, nothing_first, &script);
            scheduler.finish(1).expect_err("the judge failed").message
        });
        assert_eq!(error, "no space");
    }

    #[test]
    fn until_pass_judges_in_rank_order_and_stops_at_the_first_pass() {
        let mut entries = [entry(1, 9, 'a'), entry(2, 1, 'b'), entry(3, 5, 'c')];
        let script = Script::new(|entry: &Entry, _: &Cancel| match entry.index {
            2 => ended(Outcome::Failed { code: 1 }),
            _ => ended(Outcome::Passed),
        });
        let scheduler = Scheduler::new(&mut entries, false, StopWhen::Decided(Rules::default()));
        scheduler.run(1, nothing_first, &script);
        let effort = scheduler.finish(3).expect("no judge failed");
        assert_eq!(script.judged(), ["c2", "c3"]);
        assert_eq!((effort.ran, effort.saved_not_run), (2, 3));
        assert!(entries[0].not_run() && entries[2].passed());
    }

    #[test]
    fn until_pass_cancels_a_candidate_that_cannot_win_any_more() {
        let (effort, not_run) = in_time(|| {
            let mut entries = [entry(1, 1, 'a'), entry(2, 9, 'b')];
            let started = std::sync::Barrier::new(2);
            let script = Script::new(|entry: &Entry, cancel: &Cancel| {
                started.wait();
                match entry.index {
                    1 => ended(Outcome::Passed),
                    _ => wait_for_cancel(cancel),
                }
            });
            let scheduler =
                Scheduler::new(&mut entries, false, StopWhen::Decided(Rules::default()));
            scheduler.run(2, nothing_first, &script);
            let effort = scheduler.finish(1).expect("no judge failed");
            (effort, entries[1].not_run())
        });
        assert!(not_run);
        assert_eq!((effort.ran, effort.saved_not_run), (1, 1));
    }

    #[test]
    fn no_more_workers_than_trees() {
        let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b'), entry(3, 3, 'a')];
        let scheduler = Scheduler::new(&mut entries, false, StopWhen::AllRan);
        assert_eq!(scheduler.workers(1_000_000, 0), 2);
        assert_eq!(scheduler.workers(1, 0), 1);
        assert_eq!(scheduler.workers(0, 0), 1);
        let scheduler = Scheduler::new(&mut [], false, StopWhen::AllRan);
        assert_eq!(scheduler.workers(4, 0), 0);
        assert_eq!(scheduler.workers(4, 1), 1);
    }

    #[test]
    fn the_first_work_is_done_before_the_groups_by_one_worker_and_beside_them_by_several() {
        let mut entries = [entry(1, 1, 'a')];
        let script = Script::new(|_: &Entry, _: &Cancel| ended(Outcome::Passed));
        let scheduler = Scheduler::new(&mut entries, false, StopWhen::AllRan);
        let before = || script.judged().is_empty();
        let first = |_: &Cancel| {
            assert!(before());
            Ok(())
        };
        scheduler.run(1, first, &script);
        assert!(!before());
        let (met, _) = in_time(|| {
            let mut entries = [entry(1, 1, 'a')];
            let meeting = std::sync::Barrier::new(2);
            let script = Script::new(|_: &Entry, _: &Cancel| {
                meeting.wait();
                ended(Outcome::Passed)
            });
            let scheduler = Scheduler::new(&mut entries, false, StopWhen::AllRan);
            let first = |_: &Cancel| {
                meeting.wait();
                Ok(())
            };
            scheduler.run(scheduler.workers(2, 1), first, &script);
            (script.judged().len(), scheduler.finish(1).is_ok())
        });
        assert_eq!(met, 1);
    }

    #[test]
    fn an_error_of_the_first_work_stops_the_groups_and_one_of_a_group_stops_the_first_work() {
        let (error, judged) = in_time(|| {
            let mut entries = [entry(1, 1, 'a')];
            let script = Script::new(|_: &Entry, _: &Cancel| ended(Outcome::Passed));
            let scheduler = Scheduler::new(&mut entries, false, StopWhen::AllRan);
            scheduler.run(1, |_| Err(Error::fatal("no space").hint("make some")), &script);
            (scheduler.finish(1).expect_err("it failed").message, script.judged().len())
        });
        assert_eq!((error.as_str(), judged), ("no space", 0));
        let error = in_time(|| {
            let mut entries = [entry(1, 1, 'a')];
            let fail = |_: &Entry, _: &Cancel| Err(Error::fatal("broken").hint("mend it"));
            let scheduler = Scheduler::new(&mut entries, false, StopWhen::AllRan);
            let first = |cancel: &Cancel| wait_for_cancel(cancel).map(drop);
            scheduler.run(2, first, &Script::new(fail));
            scheduler.finish(1).expect_err("it failed").message
        });
        assert_eq!(error, "broken");
    }

    #[test]
    fn equal_trees_are_judged_once_and_in_place_each_by_itself() {
        for (in_place, judged, saved) in [(false, 2, 1), (true, 3, 0)] {
            let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b'), entry(3, 1, 'a')];
            let script = Script::new(|_: &Entry, _: &Cancel| ended(Outcome::Passed));
            let scheduler = Scheduler::new(&mut entries, in_place, StopWhen::AllRan);
            scheduler.run(scheduler.workers(8, 0), nothing_first, &script);
            let effort = scheduler.finish(1).expect("no judge failed");
            assert_eq!((script.judged().len(), effort.saved_equal), (judged, saved));
            assert!(entries.iter().all(Entry::passed));
            let twin = entries[2].same_as.as_ref().map(Name::as_str);
            assert_eq!(twin, (!in_place).then_some("c1"));
        }
    }

    #[test]
    fn cached_outcomes_are_not_judged_again() {
        let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b'), entry(3, 1, 'a')];
        let script = Script::new(|_: &Entry, _: &Cancel| ended(Outcome::Passed));
        let scheduler = Scheduler::new(&mut entries, false, StopWhen::AllRan);
        let cached = |entry: &Entry| {
            let results = vec![StageResult::new(Stage::Test, 0.0, Outcome::Passed)];
            let effort = Effort { saved_cached: 1, ..Effort::default() };
            let outcome = EntryOutcome { results, effort, ..EntryOutcome::default() };
            Ok((entry.index == 1).then_some(outcome))
        };
        scheduler.fill_in_cached(cached).expect("nothing fails");
        assert_eq!(scheduler.waiting().len(), 1);
        scheduler.run(1, nothing_first, &script);
        let effort = scheduler.finish(1).expect("no judge failed");
        assert_eq!(script.judged(), ["c2"]);
        assert_eq!((effort.ran, effort.saved_cached, effort.saved_equal), (1, 1, 1));
    }
}
