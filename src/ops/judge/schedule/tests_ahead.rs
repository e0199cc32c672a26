//! Tests that a tree is prepared while commands run on other trees.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::tests::{ALL, ended, entry, in_time, index_of};
use super::*;
use crate::model::outcome::Outcome;

/// A judge that reports which entry it prepares. While it judges the first entry, it waits until
/// the second entry is prepared.
struct Ahead {
    tell: Sender<u32>,
    prepared: Mutex<Receiver<u32>>,
    /// The result of preparing the second tree.
    second: fn() -> Result<()>,
    executing: AtomicUsize,
    most: AtomicUsize,
    judged: Mutex<Vec<u32>>,
}

impl Ahead {
    fn new(second: fn() -> Result<()>) -> Ahead {
        let (tell, prepared) = channel();
        Ahead {
            tell,
            prepared: Mutex::new(prepared),
            second,
            executing: AtomicUsize::default(),
            most: AtomicUsize::default(),
            judged: Mutex::default(),
        }
    }

    /// The judged entries in order, and the largest number that were judged at once.
    fn end(self) -> (Vec<u32>, usize) {
        let judged = self.judged.into_inner();
        (judged, self.most.into_inner())
    }
}

impl Judge for Ahead {
    type Prepared = u32;

    fn prepare(&self, work: &Work) -> Result<Option<u32>> {
        let index = index_of(work);
        self.tell.send(index).expect("somebody listens");
        let prepared = if index == 2 { (self.second)() } else { Ok(()) };
        prepared.map(|()| Some(index))
    }

    fn judge(&self, work: &Work, prepared: u32, _: &Cancel) -> Result<Option<Results>> {
        let index = index_of(work);
        assert_eq!(prepared, index);
        let executing = self.executing.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(executing, Ordering::SeqCst);
        self.judged.lock().push(index);
        if index == 1 {
            let prepared = self.prepared.lock();
            while prepared.recv().expect("somebody tells") != 2 {}
        }
        self.executing.fetch_sub(1, Ordering::SeqCst);
        ended(Outcome::Passed)
    }
}

fn entries() -> [Entry; 5] {
    std::array::from_fn(|at| {
        let index = u32::try_from(at).expect("small") + 1;
        entry(index, u64::from(index), char::from_digit(index, 16).expect("a digit"))
    })
}

#[test]
fn the_next_tree_is_prepared_while_commands_run_and_no_more_of_them_run_at_once() {
    for (jobs, most) in [(1, 1), (2, 2)] {
        let (judged, at_once) = in_time(move || {
            let (mut entries, judge) = (entries(), Ahead::new(|| Ok(())));
            let scheduler = Scheduler::new(&mut entries, ALL);
            scheduler.run(jobs, &judge);
            scheduler.finish(1).expect("no judge failed");
            judge.end()
        });
        assert!(at_once <= most, "{at_once} at once");
        if jobs == 1 {
            assert_eq!(judged, [1, 2, 3, 4, 5]);
        }
    }
}

#[test]
fn a_prepared_tree_that_does_not_matter_any_more_is_not_judged() {
    let fail = || Err(Error::fatal("no space").hint("make some"));
    for second in [|| Ok(()), fail] {
        let (judged, effort) = in_time(move || {
            let (mut entries, judge) = (entries(), Ahead::new(second));
            let stop = StopWhen::Decided(Rules::default());
            let scheduler = Scheduler::new(&mut entries, Schedule { stop, ..ALL });
            scheduler.run(1, &judge);
            let effort = scheduler.finish(1).expect("the failure does not matter either");
            (judge.end().0, effort)
        });
        assert_eq!(judged, [1]);
        assert_eq!(effort.saved_not_run, 4);
    }
}

#[test]
fn a_tree_that_cannot_be_prepared_stops_the_others_in_its_turn() {
    let (judged, error) = in_time(|| {
        let (mut entries, judge) =
            (entries(), Ahead::new(|| Err(Error::fatal("no space").hint("make some"))));
        let scheduler = Scheduler::new(&mut entries, ALL);
        scheduler.run(1, &judge);
        let error = scheduler.finish(1).expect_err("one could not be prepared").message;
        (judge.end().0, error)
    });
    assert_eq!((judged.as_slice(), error.as_str()), ([1].as_slice(), "no space"));
}
