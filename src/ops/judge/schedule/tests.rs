//! The scheduler with judges that tell it what a test wants.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::model::blast::Blast;
use crate::model::candidate::State;
use crate::model::oid::Oid;
use crate::model::outcome::{Outcome, Results, Stage, StageResult};

/// A usable entry with so many changed lines; entries with the same letter have the same tree.
pub(super) fn entry(index: u32, lines: u64, tree: char) -> Entry {
    let name = format!("c{index}").parse().expect("a valid name");
    Entry {
        iteration: Some(1),
        tree: Oid::parse(&tree.to_string().repeat(40)),
        blast: Blast { lines, files: 1 },
        ..Entry::new(name, index, State::Open)
    }
}

pub(super) fn ended(outcome: Outcome) -> Result<Option<EntryOutcome>> {
    let results = vec![StageResult::new(Stage::Test, 0.0, outcome)].into();
    let effort = Effort { ran: 1, ..Effort::default() };
    Ok(Some(EntryOutcome { results, base_tests: Results::default(), effort }))
}

fn wait_for_cancel(cancel: &Cancel) -> Result<Option<EntryOutcome>> {
    while !cancel.is_cancelled() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(None)
}

pub(super) fn nothing_first(_: &Cancel) -> Result<()> {
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
    type Prepared = ();

    fn prepare(&self, _: &Entry) -> Result<()> {
        Ok(())
    }

    fn judge(&self, entry: &Entry, (): (), cancel: &Cancel) -> Result<Option<EntryOutcome>> {
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        judged.push(entry.candidate.to_string());
        drop(judged);
        (self.act)(entry, cancel)
    }
}

/// The value that `work` gives; fails if it takes longer than any machine needs for it.
pub(super) fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
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
        let scheduler = Scheduler::new(&mut entries, false, StopWhen::Decided(Rules::default()));
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
        let results = vec![StageResult::new(Stage::Test, 0.0, Outcome::Passed)].into();
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
