//! Tests of the scheduler with scripted judges.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::model::base_tests::{BaseTestsResult, TreeBeside};
use crate::model::blast::Blast;
use crate::model::outcome::{Outcome, Stage, StageResult};

/// A usable entry with this number of changed lines. Entries with the same `tree` letter have the
/// same tree.
pub(super) fn entry(index: u32, lines: u64, tree: char) -> Entry {
    Entry {
        candidate: format!("c{index}").parse().expect("a valid name"),
        index,
        iteration: Some(1),
        tree: Oid::parse(&tree.to_string().repeat(40)),
        blast: Blast { lines, files: 1 },
        ..Entry::default()
    }
}

pub(super) fn ended(outcome: Outcome) -> Result<Option<Results>> {
    Ok(Some(Results(vec![StageResult::new(Stage::Test, 0.0, outcome)])))
}

fn wait_for_cancel(cancel: &Cancel) -> Result<Option<Results>> {
    while !cancel.is_cancelled() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(None)
}

/// The schedule that judges all candidates, without the base.
pub(super) const ALL: Schedule<'static> =
    Schedule::of_candidates(StopWhen::AllRan, JudgePhase::First);

/// The spawn index of the candidate that a tree is judged for; 0 for the base.
pub(super) fn index_of(work: &Work) -> u32 {
    match &work.of {
        Subject::Base | Subject::Cross { .. } => 0,
        Subject::Candidate { name, .. } => name.as_str()[1..].parse().expect("a number"),
    }
}

fn oid(letter: char) -> Oid {
    Oid::parse(&letter.to_string().repeat(40)).expect("an id")
}

/// A judge that calls `act` for each tree, and records the names of the judged candidates.
struct Script<F> {
    act: F,
    judged: Mutex<Vec<String>>,
}

impl<F: Fn(&Work, &Cancel) -> Result<Option<Results>> + Sync> Script<F> {
    fn new(act: F) -> Script<F> {
        Script { act, judged: Mutex::default() }
    }

    fn judged(&self) -> Vec<String> {
        self.judged.lock().clone()
    }
}

impl<F: Fn(&Work, &Cancel) -> Result<Option<Results>> + Sync> Judge for Script<F> {
    type Prepared = ();

    fn prepare(&self, _: &Work) -> Result<Option<()>> {
        Ok(Some(()))
    }

    fn judge(&self, work: &Work, (): (), cancel: &Cancel) -> Result<Option<Results>> {
        let mut judged = self.judged.lock();
        judged.push(match &work.of {
            Subject::Base | Subject::Cross { .. } => "base".to_owned(),
            Subject::Candidate { name, second: None, .. } => name.to_string(),
            Subject::Candidate { name, second: Some(_), .. } => format!("{name} again"),
        });
        drop(judged);
        (self.act)(work, cancel)
    }
}

/// Returns the value of `work`. Panics if `work` takes longer than it could on any machine.
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
        let script = Script::new(|work: &Work, cancel: &Cancel| {
            started.wait();
            assert_ne!(index_of(work), 1, "this panic is part of the test");
            wait_for_cancel(cancel)
        });
        let scheduler = Scheduler::new(&mut entries, ALL);
        let run = catch_unwind(AssertUnwindSafe(|| scheduler.run(2, &script)));
        (run.is_err(), script.judged().len())
    });
    assert!(panicked);
    assert_eq!(judged, 2, "nothing is started after a panic");
}

#[test]
fn a_worker_without_work_ends_when_the_other_panics() {
    let panicked = in_time(|| {
        let mut entries = [entry(1, 1, 'a')];
        let script = Script::new(|_: &Work, _: &Cancel| {
            // After this, either the second worker waits, or it will find that judging has stopped.
            std::thread::sleep(Duration::from_millis(50));
            panic!("this panic is part of the test")
        });
        let scheduler = Scheduler::new(&mut entries, ALL);
        catch_unwind(AssertUnwindSafe(|| scheduler.run(2, &script))).is_err()
    });
    assert!(panicked);
}

#[test]
fn an_error_cancels_the_others_and_is_returned() {
    let error = in_time(|| {
        let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b'), entry(3, 3, 'c')];
        let started = std::sync::Barrier::new(2);
        let script = Script::new(|work: &Work, cancel: &Cancel| {
            started.wait();
            match index_of(work) {
                1 => Err(Error::fatal("no space").hint("make some")),
                _ => wait_for_cancel(cancel),
            }
        });
        let scheduler = Scheduler::new(&mut entries, ALL);
        scheduler.run(2, &script);
        scheduler.finish(1).expect_err("the judge failed").message
    });
    assert_eq!(error, "no space");
}

#[test]
fn the_scheduled_first_candidate_comes_first_and_the_others_follow_in_order() {
    let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b'), entry(3, 3, 'c')];
    let script = Script::new(|_: &Work, _: &Cancel| ended(Outcome::Passed));
    let scheduler = Scheduler::new(&mut entries, Schedule { first: Some(3), ..ALL });
    scheduler.run(1, &script);
    scheduler.finish(1).expect("no judge failed");
    assert_eq!(script.judged(), ["c3", "c1", "c2"]);
}

#[test]
fn until_pass_judges_in_rank_order_and_stops_at_the_first_pass() {
    let mut entries = [entry(1, 9, 'a'), entry(2, 1, 'b'), entry(3, 5, 'c')];
    let script = Script::new(|work: &Work, _: &Cancel| match index_of(work) {
        2 => ended(Outcome::Failed { code: 1 }),
        _ => ended(Outcome::Passed),
    });
    let scheduler =
        Scheduler::new(&mut entries, Schedule { stop: StopWhen::Decided(Rules::default()), ..ALL });
    scheduler.run(1, &script);
    let effort = scheduler.finish(3).expect("no judge failed");
    assert_eq!(script.judged(), ["c2", "c3"]);
    assert_eq!(effort.saved_not_run, 3);
    assert!(entries[0].not_run() && entries[2].passed());
}

#[test]
fn until_pass_cancels_a_candidate_that_cannot_win_any_more() {
    let (effort, not_run) = in_time(|| {
        let mut entries = [entry(1, 1, 'a'), entry(2, 9, 'b')];
        let started = std::sync::Barrier::new(2);
        let script = Script::new(|work: &Work, cancel: &Cancel| {
            started.wait();
            match index_of(work) {
                1 => ended(Outcome::Passed),
                _ => wait_for_cancel(cancel),
            }
        });
        let scheduler = Scheduler::new(
            &mut entries,
            Schedule { stop: StopWhen::Decided(Rules::default()), ..ALL },
        );
        scheduler.run(2, &script);
        let effort = scheduler.finish(1).expect("no judge failed");
        (effort, entries[1].not_run())
    });
    assert!(not_run);
    assert_eq!(effort.saved_not_run, 1);
}

#[test]
fn no_more_workers_than_trees() {
    let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b'), entry(3, 3, 'a')];
    let scheduler = Scheduler::new(&mut entries, ALL);
    assert_eq!(scheduler.workers(1_000_000), 2);
    assert_eq!(scheduler.workers(1), 1);
    assert_eq!(scheduler.workers(0), 1);
    let scheduler = Scheduler::new(&mut [], ALL);
    assert_eq!(scheduler.workers(4), 0);
    let base = Some(BaseToJudge { tree: oid('e'), is_first: true });
    assert_eq!(Scheduler::new(&mut [], Schedule { base, ..ALL }).workers(4), 1);
}

#[test]
fn the_base_is_judged_before_the_candidates_by_one_worker_and_beside_them_by_several() {
    let base = Some(BaseToJudge { tree: oid('e'), is_first: false });
    let mut entries = [entry(1, 1, 'a')];
    let script = Script::new(|_: &Work, _: &Cancel| ended(Outcome::Passed));
    let scheduler = Scheduler::new(&mut entries, Schedule { base, ..ALL });
    scheduler.run(1, &script);
    assert_eq!(script.judged(), ["base", "c1"]);
    let judged = in_time(move || {
        let mut entries = [entry(1, 1, 'a')];
        let meeting = std::sync::Barrier::new(2);
        let script = Script::new(|_: &Work, _: &Cancel| {
            meeting.wait();
            ended(Outcome::Passed)
        });
        let scheduler = Scheduler::new(&mut entries, Schedule { base, ..ALL });
        scheduler.run(scheduler.workers(2), &script);
        script.judged().len()
    });
    assert_eq!(judged, 2);
}

#[test]
fn no_candidate_is_judged_before_a_base_that_comes_first() {
    let base = Some(BaseToJudge { tree: oid('e'), is_first: true });
    let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b')];
    let is_known = Mutex::new(false);
    let script = Script::new(|work: &Work, _: &Cancel| {
        let mut is_known = is_known.lock();
        assert_eq!(*is_known, index_of(work) != 0);
        *is_known = true;
        ended(Outcome::Failed { code: 1 })
    });
    let scheduler = Scheduler::new(&mut entries, Schedule { base, ..ALL });
    assert_eq!(scheduler.workers(8), 3);
    scheduler.run(3, &script);
    assert!(scheduler.finish(1).is_ok());
    assert_eq!(script.judged().len(), 3);
}

#[test]
fn an_error_of_the_base_stops_the_candidates_and_one_of_a_candidate_stops_the_base() {
    for (fails, is_first) in [(0, true), (1, false)] {
        let error = in_time(move || {
            let base = Some(BaseToJudge { tree: oid('e'), is_first });
            let mut entries = [entry(1, 1, 'a')];
            let script = Script::new(|work: &Work, cancel: &Cancel| {
                if index_of(work) == fails {
                    return Err(Error::fatal("broken").hint("mend it"));
                }
                wait_for_cancel(cancel)
            });
            let scheduler = Scheduler::new(&mut entries, Schedule { base, ..ALL });
            scheduler.run(2, &script);
            scheduler.finish(1).expect_err("it failed").message
        });
        assert_eq!(error, "broken");
    }
}

#[test]
fn equal_trees_are_judged_once_and_in_place_each_by_itself() {
    for (in_place, judged, saved) in [(false, 2, 1), (true, 3, 0)] {
        let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b'), entry(3, 1, 'a')];
        let script = Script::new(|_: &Work, _: &Cancel| ended(Outcome::Passed));
        let scheduler = Scheduler::new(&mut entries, Schedule { in_place, ..ALL });
        scheduler.run(scheduler.workers(8), &script);
        let effort = scheduler.finish(1).expect("no judge failed");
        assert_eq!((script.judged().len(), effort.saved_equal), (judged, saved));
        assert!(entries.iter().all(Entry::passed));
    }
}

#[test]
fn trees_of_a_second_judging_follow_a_pass_in_the_round_in_which_they_are_due() {
    let second = |if_first: bool| BaseTestsResult {
        tree: Some(oid('d')),
        alone: vec![TreeBeside { path: "data".into(), tree: oid('e') }],
        if_first,
        ..BaseTestsResult::default()
    };
    let cases = [
        (JudgePhase::First, false, Outcome::Passed, vec!["c1", "c1 again", "c1 again", "c2"]),
        (JudgePhase::First, true, Outcome::Passed, vec!["c1", "c2"]),
        (
            JudgePhase::Confirming(&[]),
            true,
            Outcome::Passed,
            vec!["c1", "c1 again", "c1 again", "c2"],
        ),
        (JudgePhase::First, false, Outcome::Failed { code: 1 }, vec!["c1", "c2"]),
    ];
    for (phase, if_first, end, expected) in cases {
        let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b')];
        entries[0].base_tests = Some(second(if_first));
        let script = Script::new(|_: &Work, _: &Cancel| ended(end.clone()));
        let scheduler = Scheduler::new(&mut entries, Schedule { phase, ..ALL });
        scheduler.run(1, &script);
        assert_eq!(script.judged(), expected);
        let second = entries[0].base_tests.as_ref().map_or(0, |second| second.results.len());
        assert_eq!(second, expected.len() - 2);
    }
}

#[test]
fn known_results_are_not_judged_again() {
    let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b'), entry(3, 1, 'a')];
    let script = Script::new(|_: &Work, _: &Cancel| ended(Outcome::Passed));
    let scheduler = Scheduler::new(&mut entries, ALL);
    let known = |work: &Work| if index_of(work) == 1 { ended(Outcome::Passed) } else { Ok(None) };
    scheduler.fill_in(known).expect("nothing fails");
    assert_eq!(scheduler.waiting().len(), 1);
    scheduler.run(1, &script);
    let effort = scheduler.finish(1).expect("no judge failed");
    assert_eq!((script.judged(), effort.saved_equal), (vec!["c2".to_owned()], 1));
}

/// A judge that acts as if another process judged the first tree, until all other trees are judged.
struct Shared {
    own: Mutex<Vec<u32>>,
    others: usize,
    looks: Mutex<usize>,
}

impl Judge for Shared {
    type Prepared = ();

    fn prepare(&self, work: &Work) -> Result<Option<()>> {
        let is_elsewhere = index_of(work) == 1 && self.own.lock().len() < self.others;
        *self.looks.lock() += usize::from(is_elsewhere);
        Ok((!is_elsewhere).then_some(()))
    }

    fn judge(&self, work: &Work, (): (), _: &Cancel) -> Result<Option<Results>> {
        self.own.lock().push(index_of(work));
        ended(Outcome::Passed)
    }
}

#[test]
fn a_tree_that_another_process_judges_goes_back_to_the_queue() {
    for workers in [1, 3] {
        let (judged, looks, missing) = in_time(move || {
            let mut entries = [entry(1, 1, 'a'), entry(2, 2, 'b'), entry(3, 3, 'c')];
            let judge = Shared { own: Mutex::default(), others: 2, looks: Mutex::default() };
            let scheduler = Scheduler::new(&mut entries, ALL);
            scheduler.run(workers, &judge);
            scheduler.finish(1).expect("no error");
            let missing = entries.iter().filter(|entry| entry.not_run()).count();
            (judge.own.into_inner(), judge.looks.into_inner(), missing)
        });
        assert_eq!((judged.len(), judged[2], missing), (3, 1, 0), "{judged:?}");
        assert!((1..20).contains(&looks), "{looks} looks at a tree of another process");
    }
}
