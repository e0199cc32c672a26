//! The scheduler decides which tree is judged next, how many are judged at once, and when judging
//! stops.
//!
//! All trees are treated alike: a candidate's own tree, the trees of its second judging
//! ([`BaseTestsResult`]), and the base's tree. If two candidates have the same tree, it is judged
//! only once. The scheduler uses neither git nor processes, so that unit tests can give it their
//! own [`Judge`].
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};
use crate::fs::parallel;
use crate::model::base_tests::BaseTestsResult;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::outcome::Results;
use crate::model::ranking::{Rules, undecided};
use crate::model::verdict::{Effort, Entry};
use crate::process::interrupt::Cancel;

/// The time between two checks of a tree that another process judges.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// When judging stops.
#[derive(Clone, Copy, Debug)]
pub enum StopWhen {
    /// Judging stops once every usable candidate was judged, each up to its first tree that did not
    /// pass.
    AllRan,
    /// Judging stops once the recommended candidate is certain, whatever the missing outcomes are.
    Decided(Rules),
}

/// The phases in which candidates are judged.
#[derive(Clone, Copy, Debug)]
pub enum JudgePhase<'c> {
    /// The first phase, before it is known which candidate would be recommended.
    First,
    /// The phase in which claims (`ops/judge/confirm.rs`) are confirmed: candidates with claims are
    /// judged again, including their second judging. The value is the entries with the claimed
    /// results.
    Confirming(&'c [Entry]),
}

/// The base, if it is judged together with the candidates.
#[derive(Clone, Copy, Debug)]
pub struct BaseToJudge {
    /// The base's tree.
    pub tree: Oid,
    /// True if no candidate is judged before the base has ended.
    pub is_first: bool,
}

/// How a scheduler judges its entries, and when it stops.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<'c> {
    /// When the scheduler stops.
    pub stop: StopWhen,
    pub phase: JudgePhase<'c>,
    /// True if each candidate is judged in its own worktree, even if several have the same tree.
    pub in_place: bool,
    /// The base, if it is judged together with the candidates.
    pub base: Option<BaseToJudge>,
    /// The spawn index of the candidate that is judged before all others, if any.
    pub first: Option<u32>,
}

impl<'c> Schedule<'c> {
    /// A schedule that judges the candidates in checkouts, in their order and without the base.
    pub const fn of_candidates(stop: StopWhen, phase: JudgePhase<'c>) -> Schedule<'c> {
        Schedule { stop, phase, in_place: false, base: None, first: None }
    }
}

/// For whom a tree is judged. Other candidates may have the same tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The run's base.
    Base,
    /// A candidate.
    Candidate {
        /// The candidate's name.
        name: Name,
        /// The iteration that is judged.
        iteration: Option<u32>,
        /// `None` for the candidate's own tree. For a tree of its second judging, the files beside
        /// the source ([`TreeBeside::path`]); this is empty for the first of these trees.
        ///
        /// [`TreeBeside::path`]: crate::model::base_tests::TreeBeside::path
        second: Option<String>,
    },
    /// The tree of a candidate or of the base, with test files laid over it.
    Cross {
        /// The candidate whose tree it is; `None` for the base.
        of: Option<Name>,
        /// The author of the files, or `@all`.
        author: String,
    },
}

/// A tree to judge.
#[derive(Clone, Debug)]
pub struct Work {
    /// For whom the tree is judged.
    pub of: Subject,
    pub tree: Oid,
    place: Place,
    group: Group,
}

/// Where a tree is judged. In the same place, two judgings never run at the same time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Tree(Oid),
    /// The worktree of the candidate with this spawn index.
    Worktree(u32),
}

/// The spawn index of the first of all candidates that have the same tree; `None` for the base.
type Group = Option<u32>;

/// Judges one tree.
pub trait Judge: Sync {
    /// A tree that is prepared for its commands.
    type Prepared;

    /// Prepares a tree for its commands, even if it may turn out later that they need not run.
    /// Returns `None` if another process is judging the tree. Runs no command, and does not wait
    /// for other processes.
    fn prepare(&self, work: &Work) -> Result<Option<Self::Prepared>>;

    /// Runs the oracle on a tree. Returns `None` if it was cancelled.
    fn judge(
        &self,
        work: &Work,
        prepared: Self::Prepared,
        cancel: &Cancel,
    ) -> Result<Option<Results>>;

    /// Called when the results of a candidate are complete, or when it has failed its second
    /// judging.
    fn completed(&self, _entry: &Entry) {}
}

/// Judges each distinct tree once, and fills the results into every entry with this tree.
pub struct Scheduler<'e> {
    shared: Mutex<Shared<'e>>,
    /// Signalled when the commands on a tree begin, or when a worker is done with a tree.
    changed: Condvar,
}

/// The state that the workers share.
struct Shared<'e> {
    entries: &'e mut [Entry],
    schedule: Schedule<'e>,
    /// The group of each entry, by its spawn index.
    groups: BTreeMap<u32, u32>,
    known: BTreeMap<(Group, Place), Results>,
    /// The trees that workers are preparing or running commands on.
    running: BTreeMap<Place, Arc<Cancel>>,
    /// The trees in `running` whose commands run or are about to run.
    executing: BTreeSet<Place>,
    /// The trees that another process was judging when a worker last tried them.
    elsewhere: BTreeSet<Place>,
    /// The number of commands that did not run because another candidate has the same tree.
    saved_equal: u64,
    /// The first error of any worker.
    error: Option<Error>,
    /// True after an error or a panic, so that no worker takes another tree.
    stopped: bool,
}

/// How far the judging of an entry has come.
struct Progress {
    /// The results on the entry's own tree, once they are known.
    own: Option<Results>,
    /// The results of the entry's second judging, once it has ended.
    second: Option<Results>,
    /// The next tree to judge for the entry; `None` if all results are known.
    needs: Option<Work>,
}

impl<'e> Scheduler<'e> {
    /// A scheduler for the entries that have no results yet.
    pub fn new(entries: &'e mut [Entry], schedule: Schedule<'e>) -> Scheduler<'e> {
        let mut first_of: BTreeMap<Oid, u32> = BTreeMap::new();
        let mut groups = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.not_run()) {
            let group = match entry.judged() {
                Some(tree) if !schedule.in_place => *first_of.entry(*tree).or_insert(entry.index),
                _ => entry.index,
            };
            groups.insert(entry.index, group);
        }
        let shared = Shared {
            entries,
            schedule,
            groups,
            known: BTreeMap::new(),
            running: BTreeMap::new(),
            executing: BTreeSet::new(),
            elsewhere: BTreeSet::new(),
            saved_equal: 0,
            error: None,
            stopped: false,
        };
        Scheduler { shared: Mutex::new(shared), changed: Condvar::new() }
    }

    /// Fills in known results. Calls `find` for the trees of each candidate, in order, up to the
    /// first tree for which `find` returns `None`.
    pub fn fill_in(&self, mut find: impl FnMut(&Work) -> Result<Option<Results>>) -> Result<()> {
        let mut shared = self.shared.lock();
        let mut unknown: BTreeSet<(Group, Place)> = BTreeSet::new();
        loop {
            let all = shared.unjudged();
            let Some(work) = all.into_iter().find(|work| !unknown.contains(&work.key())) else {
                return Ok(());
            };
            match find(&work)? {
                Some(results) => drop(shared.set(&work, results)),
                None => drop(unknown.insert(work.key())),
            }
        }
    }

    /// The candidates that are not judged yet, in spawn order. If several have the same tree, only
    /// the first of them is included.
    pub fn waiting(&self) -> Vec<Name> {
        let shared = self.shared.lock();
        let waiting = shared.entries.iter().filter(|entry| entry.not_run());
        let mut waiting: Vec<&Entry> =
            waiting.filter(|e| shared.groups.get(&e.index) == Some(&e.index)).collect();
        waiting.sort_by_key(|entry| entry.index);
        waiting.into_iter().map(|entry| entry.candidate.clone()).collect()
    }

    /// True if the base has to be judged, because its results are not known yet.
    pub fn awaits_base(&self) -> bool {
        self.shared.lock().base().is_some()
    }

    /// The number of trees on which commands can run at once; at most `jobs`.
    pub fn workers(&self, jobs: usize) -> usize {
        jobs.max(1).min(self.shared.lock().unjudged().len())
    }

    /// Judges until every tree that matters is judged, or until a judge fails. Commands run on at
    /// most `workers` trees at once. Meanwhile, one more tree is prepared.
    ///
    /// Panics if a judge panics, after the other workers have stopped.
    pub fn run(&self, workers: usize, judge: &impl Judge) {
        let span = tracing::Span::current();
        if workers == 0 {
            return;
        }
        std::thread::scope(|scope| {
            for _ in 0..=workers {
                parallel::start(scope, || {
                    let _span = span.enter();
                    while let Some(running) = self.next() {
                        match judge.prepare(&running.work).transpose() {
                            None => self.put_back(&running),
                            Some(prepared) if self.await_slot(&running, workers) => {
                                let RunningWork { work, cancel, .. } = &running;
                                let judged = prepared.and_then(|p| judge.judge(work, p, cancel));
                                self.note(work, judged, judge);
                            }
                            Some(_) => {}
                        }
                    }
                });
            }
        });
    }

    /// The numbers of commands that did not have to run. Each tree that was not judged counts as
    /// `commands` commands.
    ///
    /// Fails with the first error of a judge.
    pub fn finish(self, commands: usize) -> Result<Effort> {
        let not_run = self.waiting().len();
        let shared = self.shared.into_inner();
        match shared.error {
            Some(error) => Err(error),
            None => Ok(Effort {
                saved_equal: shared.saved_equal,
                saved_not_run: (not_run * commands) as u64,
                ..Effort::default()
            }),
        }
    }

    /// Waits for the next tree to judge. Returns `None` once nothing is left to do.
    fn next(&self) -> Option<RunningWork<'_, 'e>> {
        let mut shared = self.shared.lock();
        loop {
            if shared.stopped {
                return None;
            }
            let wanted = shared.wanted();
            for (place, cancel) in &shared.running {
                if !wanted.iter().any(|work| work.place == *place) {
                    cancel.cancel();
                }
            }
            let Shared { running, elsewhere, .. } = &*shared;
            if let Some(work) = wanted
                .into_iter()
                .find(|w| !running.contains_key(&w.place) && !elsewhere.contains(&w.place))
            {
                let cancel = Arc::new(Cancel::default());
                shared.running.insert(work.place.clone(), cancel.clone());
                return Some(RunningWork { scheduler: self, work, cancel });
            }
            if !shared.elsewhere.is_empty() {
                if self.changed.wait_for(&mut shared, BETWEEN_LOOKS).timed_out() {
                    shared.elsewhere.clear();
                }
            } else if shared.running.is_empty() {
                return None;
            } else {
                self.changed.wait(&mut shared);
            }
        }
    }

    /// Puts back a tree that another process judges. It is taken again when no other tree is left
    /// to take.
    fn put_back(&self, RunningWork { work, .. }: &RunningWork<'_, 'e>) {
        self.shared.lock().elsewhere.insert(work.place.clone());
    }

    /// Waits until fewer than `jobs` other trees are being judged, and it is the turn of this tree
    /// in the order of `wanted`. Returns false if the tree does not matter any more.
    fn await_slot(&self, RunningWork { work, .. }: &RunningWork<'_, 'e>, jobs: usize) -> bool {
        let mut shared = self.shared.lock();
        loop {
            let wanted = shared.wanted();
            if shared.stopped || !wanted.iter().any(|other| other.place == work.place) {
                return false;
            }
            if shared.next_to_run(&wanted, jobs) == Some(&work.place) {
                shared.executing.insert(work.place.clone());
                self.changed.notify_all();
                return true;
            }
            self.changed.wait(&mut shared);
        }
    }

    fn note(&self, work: &Work, judged: Result<Option<Results>>, judge: &impl Judge) {
        match judged {
            Ok(None) => {}
            Ok(Some(results)) => {
                let completed = self.shared.lock().set(work, results);
                completed.iter().for_each(|entry| judge.completed(entry));
            }
            Err(error) => {
                let mut shared = self.shared.lock();
                shared.error.get_or_insert(error);
                shared.stop_all();
            }
        }
    }
}

impl Work {
    /// The judging of the base's tree.
    pub fn of_base(tree: Oid) -> Work {
        Work { of: Subject::Base, tree, place: Place::Tree(tree), group: None }
    }

    /// The judging of a tree with test files laid over it.
    pub fn of_cross(of: Option<&Name>, author: &str, tree: Oid) -> Work {
        let of = Subject::Cross { of: of.cloned(), author: author.to_owned() };
        Work { of, ..Work::of_base(tree) }
    }

    /// If this is a tree with test files laid over it, the candidate whose tree it is.
    pub fn crossed(&self) -> Option<&Name> {
        match &self.of {
            Subject::Cross { of, .. } => of.as_ref(),
            Subject::Base | Subject::Candidate { .. } => None,
        }
    }

    fn key(&self) -> (Group, Place) {
        (self.group, self.place.clone())
    }
}

impl Shared<'_> {
    /// The trees that still matter, in the order in which to judge them.
    fn wanted(&self) -> Vec<Work> {
        let mut works = match self.schedule.stop {
            StopWhen::AllRan => {
                let mut open: Vec<&Entry> = self.entries.iter().collect();
                open.retain(|entry| !fails_base_tests(entry));
                open.sort_by_key(|entry| Some(entry.index) != self.schedule.first);
                self.works(open)
            }
            StopWhen::Decided(rules) => self.works(undecided(self.entries, rules)),
        };
        let is_first = self.schedule.base.is_some_and(|base| base.is_first);
        if is_first && works.first().is_some_and(|work| work.of == Subject::Base) {
            works.truncate(1);
        }
        works
    }

    /// The next tree of each entry without results, and the base's tree if it is not judged yet.
    fn unjudged(&self) -> Vec<Work> {
        self.works(self.entries.iter().collect())
    }

    fn works(&self, entries: Vec<&Entry>) -> Vec<Work> {
        let mut works: Vec<Work> = self.base().into_iter().collect();
        for entry in entries.into_iter().filter(|entry| entry.not_run()) {
            if let Some(work) = self.progress(entry).and_then(|p| p.needs)
                && !works.iter().any(|other| other.place == work.place)
            {
                works.push(work);
            }
        }
        works
    }

    fn base(&self) -> Option<Work> {
        let work = Work::of_base(self.schedule.base?.tree);
        (!self.known.contains_key(&work.key())).then_some(work)
    }

    /// The progress of judging an entry; `None` if the entry had results before.
    ///
    /// If there is a claim that the entry's own tree passes, the trees of the second judging come
    /// first. If one of them fails, the own tree matters only if no other candidate passes.
    fn progress(&self, entry: &Entry) -> Option<Progress> {
        let phase = self.schedule.phase;
        let group = *self.groups.get(&entry.index)?;
        let work = |place: Place, tree: Oid, second: Option<String>| {
            let first = self.entries.iter().find(|other| other.index == group).unwrap_or(entry);
            let (name, iteration) = (first.candidate.clone(), first.iteration);
            let of = Subject::Candidate { name, iteration, second };
            Work { of, tree, place, group: Some(group) }
        };
        let tree = *entry.judged()?;
        let place = match self.schedule.in_place {
            true => Place::Worktree(entry.index),
            false => Place::Tree(tree),
        };
        let own = self.known.get(&(Some(group), place.clone())).cloned();
        let mut needs = own.is_none().then(|| work(place, tree, None));
        let has_passed = own.as_ref().map_or_else(|| phase.claims_pass(entry), Results::passed);
        if !has_passed || !phase.has_second(entry) {
            return Some(Progress { own, second: None, needs });
        }
        let mut second = Results::default();
        for (tree, beside) in entry.base_tests.iter().flat_map(BaseTestsResult::trees_beside) {
            let place = Place::Tree(*tree);
            let Some(more) = self.known.get(&(Some(group), place.clone())) else {
                needs = Some(work(place, *tree, Some(beside.to_owned())));
                return Some(Progress { own, second: None, needs });
            };
            second.0.extend(more.iter().cloned());
            if !more.passed() {
                break;
            }
        }
        Some(Progress { own, second: Some(second), needs })
    }

    /// Stores the results of a tree. Returns the entries whose results are now complete, and those
    /// that have now failed their second judging.
    fn set(&mut self, work: &Work, results: Results) -> Vec<Entry> {
        self.known.insert(work.key(), results);
        let mut completed = Vec::new();
        for at in 0..self.entries.len() {
            if !self.entries[at].not_run() {
                continue;
            }
            let Some(Progress { own, second, needs }) = self.progress(&self.entries[at]) else {
                continue;
            };
            let entry = &mut self.entries[at];
            let (is_complete, was_known) = (needs.is_none(), fails_base_tests(entry));
            if is_complete && self.groups.get(&entry.index) != Some(&entry.index) {
                let saved = own.iter().chain(&second).map(Results::commands_run);
                self.saved_equal += saved.sum::<u64>();
            }
            if let Some(base_tests) = &mut entry.base_tests
                && (is_complete || second.is_some())
            {
                base_tests.results = second.unwrap_or_default();
            }
            entry.results = own.filter(|_| is_complete).unwrap_or_default();
            if is_complete || !was_known && fails_base_tests(entry) {
                completed.push(entry.clone());
            }
        }
        completed
    }

    /// The first tree in `wanted` on which no commands run yet; `None` while commands run on `jobs`
    /// trees.
    fn next_to_run<'w>(&self, wanted: &'w [Work], jobs: usize) -> Option<&'w Place> {
        if self.executing.len() >= jobs {
            return None;
        }
        let mut places = wanted.iter().map(|work| &work.place);
        places.find(|place| !self.executing.contains(place) && !self.elsewhere.contains(place))
    }

    /// Cancels all running commands, and lets no further ones start.
    fn stop_all(&mut self) {
        self.stopped = true;
        for cancel in self.running.values() {
            cancel.cancel();
        }
    }
}

/// True if the entry has failed its second judging.
fn fails_base_tests(entry: &Entry) -> bool {
    entry.base_tests.as_ref().is_some_and(BaseTestsResult::failed)
}

impl JudgePhase<'_> {
    /// True if an entry whose own tree passes gets its second judging in this phase. A second
    /// judging that only the leader needs (`if_first`) waits for [`JudgePhase::Confirming`].
    fn has_second(self, entry: &Entry) -> bool {
        let second = entry.base_tests.as_ref();
        second.is_some_and(|second| matches!(self, JudgePhase::Confirming(_)) || !second.if_first)
    }

    /// True if there is a claim that the entry's own tree passes.
    fn claims_pass(self, entry: &Entry) -> bool {
        let JudgePhase::Confirming(claims) = self else { return false };
        claims.iter().any(|claim| claim.index == entry.index && claim.results.passed())
    }
}

/// A tree that a worker has taken.
///
/// When this is dropped, even after a panic of the judge, the waiting workers are woken. Otherwise
/// they would wait for the tree for ever.
struct RunningWork<'s, 'e> {
    scheduler: &'s Scheduler<'e>,
    work: Work,
    cancel: Arc<Cancel>,
}

impl Drop for RunningWork<'_, '_> {
    fn drop(&mut self) {
        let mut shared = self.scheduler.shared.lock();
        shared.running.remove(&self.work.place);
        shared.executing.remove(&self.work.place);
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
