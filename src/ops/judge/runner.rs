//! Running the oracle: each distinct tree once, several at a time, only as far as it matters.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::config::keys;
use crate::error::{Error, IoContext, Result};
use crate::git::commit::neutral_commit;
use crate::git::seed::find::Seeds;
use crate::integrity::watch::{self, Watch};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::{Outcome, StageResult};
use crate::model::path::TreePath;
use crate::model::ranking::{Rules, undecided};
use crate::model::rationale::some_of;
use crate::model::run::Run;
use crate::model::verdict::{Effort, Entry, JudgeSettings, Verdict};
use crate::ops::progress;
use crate::ops::session::Session;
use crate::ops::spawn::prepare;
use crate::oracle::cache::Cache;
use crate::oracle::pool::CheckoutPool;
use crate::oracle::run as oracle_run;
use crate::oracle::run::{ExecContext, OracleOptions};
use crate::process::interrupt::Cancel;
use crate::ui::table;

/// How much is run.
pub enum StopWhen {
    /// Everything that is usable.
    All,
    /// As much as it takes until the recommended candidate cannot change any more.
    UntilDecided(Rules),
}

/// What it takes to run an oracle for a run.
pub struct OracleRunner<'a> {
    session: &'a Session,
    run: &'a Run,
    oracle: &'a [OracleCommand],
    terms: &'a JudgeSettings,
    manner: OracleOptions,
    pool: CheckoutPool<'a>,
    cache: Option<Cache>,
    tamper: Mutex<TamperWatch>,
}

/// What is seen of what the commands do outside of their checkouts.
#[derive(Default)]
struct TamperWatch {
    /// From the first command on.
    watch: Option<Watch>,
    /// How many times the oracle ran.
    runs: usize,
    /// Whether it ran, or was still running, when what bends outcomes had changed already.
    tainted: bool,
    /// What was kept in the cache: trees and commits.
    kept: Vec<(Oid, Oid)>,
}

/// What candidates are run together by: a tree; in place, each by itself.
type GroupKey = String;

/// What the workers share.
struct Schedule<'e> {
    entries: &'e mut [Entry],
    running: BTreeMap<GroupKey, Arc<Cancel>>,
    effort: Effort,
    error: Option<Error>,
}

impl<'a> OracleRunner<'a> {
    /// Prepares a pool, and looks at what is known if `known` outcomes may be used.
    pub fn open(
        session: &'a Session,
        run: &'a Run,
        oracle: &'a [OracleCommand],
        terms: &'a JudgeSettings,
        timeout: Duration,
        known: bool,
    ) -> Result<OracleRunner<'a>> {
        OracleRunner::with_seeds(
            session,
            run,
            (oracle, terms),
            timeout,
            known,
            session.seeds(&run.base)?,
        )
    }

    fn with_seeds(
        session: &'a Session,
        run: &'a Run,
        (oracle, terms): (&'a [OracleCommand], &'a JudgeSettings),
        timeout: Duration,
        known: bool,
        seeds: Seeds,
    ) -> Result<OracleRunner<'a>> {
        let manner = manner(terms, timeout);
        // A checkout that is not pristine tells of more than the tree.
        let home = session.home.as_deref();
        let cache = if known && !terms.in_place && !terms.warm {
            let ran = when_attempts_ran(session)?;
            Some(Cache::open(&session.repo, home, oracle, &manner, &seeds, &session.policy, ran)?)
        } else {
            None
        };
        let pool = CheckoutPool::open(&session.repo, &session.store)?
            .with_seeds(home, seeds)
            .warm(terms.warm);
        Ok(OracleRunner {
            session,
            run,
            oracle,
            terms,
            manner,
            pool,
            cache,
            tamper: Mutex::default(),
        })
    }

    /// Does `work`, and tells what the commands changed outside of their checkouts; also when it failed. Gives
    /// whether that tainted them: then what they say cannot be compared.
    pub fn watched<T>(self, work: impl FnOnce(&Self) -> Result<T>) -> Result<(T, bool)> {
        let result = work(&self);
        let OracleRunner { session, run, pool, cache, tamper, .. } = self;
        let TamperWatch { watch, runs, mut tainted, kept } =
            tamper.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(watch) = watch {
            let seen = watch.bends_outcomes();
            // Beside the pool's removal, which takes about as long.
            let told = std::thread::scope(|scope| {
                scope.spawn(|| drop(pool));
                watch.end(session, run)
            })?;
            if told.bends_outcomes && !seen && runs > 1 {
                // Nobody knows when.
                tainted = true;
                for (tree, commit) in &kept {
                    cache
                        .as_ref()
                        .map_or(Ok(()), |cache| cache.forget(&session.repo, tree, commit))?;
                }
            }
        }
        Ok((result?, tainted))
    }

    /// Begins to watch, if that is not done yet.
    fn watch(&self) -> Result<()> {
        let mut tamper = lock(&self.tamper);
        if tamper.watch.is_none() {
            tamper.watch = Some(watch::begin(self.session, self.run, true)?);
        }
        Ok(())
    }

    /// Looks at what the commands on a candidate did outside, and keeps their ends if it is certain that they mean
    /// what they say.
    fn look_again(
        &self,
        candidate: &Name,
        alone: bool,
        keep: impl FnOnce() -> Result<Option<(Oid, Oid)>>,
    ) -> Result<()> {
        let mut tamper = lock(&self.tamper);
        let TamperWatch { watch, runs, tainted, kept } = &mut *tamper;
        *runs += 1;
        let Some(watch) = watch else { return Ok(()) };
        *tainted |= watch.bends_outcomes();
        watch.look_again(self.session, Some(candidate).filter(|_| alone))?;
        if !watch.bends_outcomes() {
            kept.extend(keep()?);
        }
        Ok(())
    }

    /// Runs the oracle for the entries that have no results, `jobs` at a time; equal trees once. The first
    /// in spawn order stands for the others.
    pub fn run_all(&self, entries: &mut [Entry], jobs: usize, extent: &StopWhen) -> Result<Effort> {
        let mut effort = Effort::default();
        self.recall(entries, &mut effort)?;
        let mut waiting: Vec<(GroupKey, Entry)> = self.wanted(entries, extent);
        waiting.sort_by_key(|(_, entry)| entry.index);
        let waiting: Vec<Name> = waiting.into_iter().map(|(_, entry)| entry.candidate).collect();
        if !waiting.is_empty() && !self.terms.in_place {
            self.require_space(&self.run.base, jobs.min(waiting.len()))?;
        }
        let state = Mutex::new(Schedule { entries, running: BTreeMap::new(), effort, error: None });
        let changed = Condvar::new();
        let alone = jobs == 1;
        let all = || {
            std::thread::scope(|scope| {
                for _ in 0..jobs {
                    scope.spawn(|| self.work(&state, &changed, extent, alone));
                }
            });
            Ok(())
        };
        progress::live(self.session, self.run, &waiting, all)?;
        let mut state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        let mut left: Vec<GroupKey> =
            state.entries.iter().filter(|e| e.not_run()).map(|e| self.group(e)).collect();
        left.sort();
        left.dedup();
        state.effort.saved_not_run = (left.len() * self.oracle.len()) as u64;
        Ok(state.effort)
    }

    /// Runs the oracle on the base itself.
    pub fn run_baseline(&self, effort: &mut Effort) -> Result<Vec<StageResult>> {
        let repo = &self.session.repo;
        let base = &self.run.base;
        let tree = repo.commit(base)?.tree;
        let (who, logs) = (
            format!("{}, base", self.run.run),
            self.session.store.run_dir(&self.run.run).join("base"),
        );
        if let Some(results) = self.known(&tree, base, &who, &logs)? {
            effort.saved_cached += commands_run(&results);
            return Ok(results);
        }
        self.require_space(base, 1)?;
        let results = self.on_commit(base, &who, &logs, &Cancel::default())?.unwrap_or_default();
        if !lock(&self.tamper).watch.as_ref().is_some_and(Watch::bends_outcomes) {
            self.keep(&tree, base, &results, &logs)?;
        }
        effort.ran += commands_run(&results);
        Ok(results)
    }

    fn require_space(&self, commit: &Oid, checkouts: usize) -> Result<()> {
        prepare::require_space_to_judge(self.session, self.pool.path(), commit, checkouts)
    }

    fn group(&self, entry: &Entry) -> GroupKey {
        match entry.judged() {
            Some(tree) if !self.terms.in_place => tree.to_string(),
            _ => entry.candidate.to_string(),
        }
    }

    fn logs(&self, candidate: &Name) -> PathBuf {
        self.session.store.candidate(self.run, candidate).directory()
    }

    /// Fills in what is known already.
    fn recall(&self, entries: &mut [Entry], effort: &mut Effort) -> Result<()> {
        for at in 0..entries.len() {
            if !entries[at].not_run() || self.cache.is_none() {
                continue;
            }
            let entry = &entries[at];
            let Some(tree) = entry.judged() else { continue };
            let commit = neutral_commit(&self.session.repo, tree, &self.run.base)?;
            let who = format!("{}/{}", self.run.run, entry.candidate);
            if let Some(results) = self.known(tree, &commit, &who, &self.logs(&entry.candidate))? {
                effort.saved_cached += commands_run(&results);
                let group = self.group(entry);
                self.set(entries, &group, &results, effort);
            }
        }
        Ok(())
    }

    fn known(
        &self,
        tree: &Oid,
        commit: &Oid,
        who: &str,
        logs: &Path,
    ) -> Result<Option<Vec<StageResult>>> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let found = cache.find(&self.session.repo, tree, commit, logs)?;
        for result in found.iter().flatten().filter(|r| r.cached) {
            self.tell(who, result);
        }
        Ok(found)
    }

    fn keep(&self, tree: &Oid, commit: &Oid, results: &[StageResult], logs: &Path) -> Result<()> {
        self.cache
            .as_ref()
            .map_or(Ok(()), |cache| cache.keep(&self.session.repo, tree, commit, results, logs))
    }

    /// Gives results to every candidate of a group.
    fn set(
        &self,
        entries: &mut [Entry],
        group: &GroupKey,
        results: &[StageResult],
        effort: &mut Effort,
    ) {
        let mut first: Option<Name> = None;
        for entry in entries.iter_mut().filter(|e| e.not_run()) {
            if self.group(entry) != *group {
                continue;
            }
            entry.results = results.to_vec();
            entry.same_as.clone_from(&first);
            match &first {
                Some(_) => effort.saved_equal += commands_run(&results),
                None => first = Some(entry.candidate.clone()),
            }
        }
    }

    /// A worker's life: the next group that matters, until there is none.
    fn work(&self, state: &Mutex<Schedule<'_>>, changed: &Condvar, extent: &StopWhen, alone: bool) {
        let mut held = lock(state);
        loop {
            if held.error.is_some() {
                return;
            }
            let wanted = self.wanted(held.entries, extent);
            for (group, cancel) in &held.running {
                if !wanted.iter().any(|(g, _)| g == group) {
                    cancel.cancel();
                }
            }
            let next = wanted.into_iter().find(|(group, _)| !held.running.contains_key(group));
            let Some((group, entry)) = next else {
                if held.running.is_empty() {
                    return;
                }
                held = changed.wait(held).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let cancel = Arc::new(Cancel::default());
            held.running.insert(group.clone(), cancel.clone());
            drop(held);
            let results = self.on_entry(&entry, &cancel, alone);
            held = lock(state);
            held.running.remove(&group);
            match results {
                Err(error) => held.error = held.error.take().or(Some(error)),
                Ok(None) => {}
                Ok(Some(results)) => {
                    held.effort.ran += commands_run(&results);
                    let Schedule { entries, effort, .. } = &mut *held;
                    self.set(entries, &group, &results, effort);
                }
            }
            if held.error.is_some() {
                held.running.values().for_each(|cancel| cancel.cancel());
            }
            changed.notify_all();
        }
    }

    /// The groups that still matter, in the order in which to run them, each with who stands for it.
    fn wanted(&self, entries: &[Entry], extent: &StopWhen) -> Vec<(GroupKey, Entry)> {
        let open: Vec<&Entry> = match extent {
            StopWhen::All => entries.iter().filter(|e| e.not_run()).collect(),
            StopWhen::UntilDecided(rules) => undecided(entries, *rules),
        };
        let mut wanted: Vec<(GroupKey, Entry)> = Vec::new();
        for entry in open {
            let group = self.group(entry);
            if wanted.iter().any(|(g, _)| *g == group) {
                continue;
            }
            let first =
                entries.iter().find(|e| e.not_run() && self.group(e) == group).unwrap_or(entry);
            wanted.push((group, first.clone()));
        }
        wanted
    }

    fn on_entry(
        &self,
        entry: &Entry,
        cancel: &Cancel,
        alone: bool,
    ) -> Result<Option<Vec<StageResult>>> {
        let name = &entry.candidate;
        let who = format!("{}/{name}", self.run.run);
        let logs = self.logs(name);
        if self.terms.in_place {
            self.watch()?;
            let results = self.in_place(name, &who, &logs, cancel)?;
            self.look_again(name, alone, || Ok(None))?;
            return Ok(results);
        }
        let Some(tree) = entry.judged() else { return Ok(None) };
        let commit = neutral_commit(&self.session.repo, tree, &self.run.base)?;
        let results = self.on_commit(&commit, &who, &logs, cancel)?;
        self.look_again(name, alone, || {
            let Some(results) = &results else { return Ok(None) };
            self.keep(tree, &commit, results, &logs)?;
            Ok(Some((*tree, commit)))
        })?;
        Ok(results)
    }

    fn in_place(
        &self,
        name: &Name,
        who: &str,
        logs: &Path,
        cancel: &Cancel,
    ) -> Result<Option<Vec<StageResult>>> {
        let dir = self.session.store.candidate(self.run, name).worktree();
        if !dir.is_dir() {
            let reason = "its worktree is gone";
            self.session.ui.warn(format!("{who}: {reason}"));
            return Ok(Some(oracle_run::not_started(self.oracle, reason)));
        }
        let changed = || Ok(Vec::new());
        self.stand(&dir, who, logs, cancel, &changed)
    }

    /// Runs the oracle on one commit in a pristine checkout; none if it was cancelled.
    fn on_commit(
        &self,
        commit: &Oid,
        who: &str,
        logs: &Path,
        cancel: &Cancel,
    ) -> Result<Option<Vec<StageResult>>> {
        // Beside each other: at the first, they take about as long.
        let (watch, checkout) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| self.watch());
            let checkout = self.pool.acquire(&self.session.repo, commit);
            (watch.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), checkout)
        });
        let checkout = checkout?;
        if let Err(error) = watch {
            self.pool.release(checkout);
            return Err(error);
        }
        let results = match &checkout.problem {
            Some(reason) => {
                self.session.ui.warn(format!("{who}: {reason}"));
                Ok(Some(oracle_run::not_started(self.oracle, reason)))
            }
            None => {
                self.stand(&checkout.files.path, who, logs, cancel, &|| checkout.files.changed())
            }
        };
        self.pool.release(checkout);
        results
    }

    fn stand(
        &self,
        dir: &Path,
        who: &str,
        logs: &Path,
        cancel: &Cancel,
        changed: &dyn Fn() -> Result<Vec<TreePath>>,
    ) -> Result<Option<Vec<StageResult>>> {
        std::fs::create_dir_all(logs).context(|| format!("could not make '{}'", logs.display()))?;
        let policy = &self.session.policy;
        let stand = ExecContext {
            dir,
            logs,
            policy,
            cancel,
            changed,
            told: &|result| self.tell(who, result),
        };
        oracle_run::run(self.oracle, &self.manner, &stand)
    }

    /// Says how a command ended.
    fn tell(&self, who: &str, result: &StageResult) {
        let StageResult { stage, seconds, outcome, leaky, cached, changed, tests, earlier } =
            result;
        let time = if *cached { "known".to_owned() } else { table::duration(*seconds) };
        let mut line = format!("{who}: {stage} {outcome} ({time})");
        if !earlier.is_empty() {
            let ends: Vec<String> = earlier.iter().map(|a| a.outcome.to_string()).collect();
            line.push_str(&format!(", before that {}", ends.join(", ")));
        }
        if let Some(report) = tests {
            match &report.problem {
                Some(problem) => line.push_str(&format!("; {problem}")),
                None if report.failing.is_empty() => {
                    line.push_str(&format!("; {} tests", report.total));
                }
                None => line.push_str(&format!(
                    "; {} of {} tests failed: {}",
                    report.failing.len(),
                    report.total,
                    some_of(&report.failing)
                )),
            }
        }
        if !changed.is_empty() {
            line.push_str(&format!(
                "; it changed {}, which git tracks: that does not land",
                some_of(changed)
            ));
        }
        if *leaky {
            line.push_str(", and left processes behind: they were ended");
        }
        self.session.ui.note(line);
    }
}

/// How many commands that took.
fn commands_run(results: &[StageResult]) -> u64 {
    let started = results.iter().filter(|r| !matches!(r.outcome, Outcome::CouldNotStart { .. }));
    started.map(|r| r.runs() as u64).sum()
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn manner(terms: &JudgeSettings, timeout: Duration) -> OracleOptions {
    let JudgeSettings { retries, refuse_flaky, junit, .. } = terms;
    OracleOptions { timeout, retries: *retries, refuse_flaky: *refuse_flaky, junit: junit.clone() }
}

/// When commands of attempts may have been at work, of whichever run. From the making of a run to the end of its
/// last command, with no gap: when each began is in a file that it could write. Where an end is not known, for
/// git-frites was killed, to this moment.
fn when_attempts_ran(session: &Session) -> Result<Vec<(SystemTime, SystemTime)>> {
    let store = &session.store;
    let mut spans = Vec::new();
    for run in store.runs()? {
        let mut worked = store.candidates(&run).map(|c| c.record()).collect::<Result<Vec<_>>>()?;
        worked.retain(|c| c.started.is_some());
        let ends: Option<Vec<SystemTime>> =
            worked.iter().map(|c| c.ended.map(SystemTime::from)).collect();
        let last = ends.map_or(Some(SystemTime::now()), |ends| ends.into_iter().max());
        spans.extend(last.map(|last| (SystemTime::from(run.created), last)));
    }
    Ok(spans)
}

/// Runs a run's oracle on one more commit, in a pristine checkout and as the verdict's terms have it, telling
/// how it goes as `who`; output goes to the directory `logs`, which is made.
pub fn judge_commit(
    session: &Session,
    run: &Run,
    verdict: &Verdict,
    commit: &Oid,
    who: &str,
    logs: &Path,
) -> Result<Vec<StageResult>> {
    // The first parent is what the user's checkout is at.
    let seeds = session.seeds(session.repo.commit(commit)?.parents.first().unwrap_or(&run.base))?;
    let oracle = (verdict.oracle.as_slice(), &verdict.terms);
    let runner = OracleRunner::with_seeds(
        session,
        run,
        oracle,
        session.config.get(keys::ORACLE_TIMEOUT),
        false,
        seeds,
    )?;
    let (results, _) = runner.watched(|runner| {
        runner.require_space(commit, 1)?;
        runner.on_commit(commit, who, logs, &Cancel::default())
    })?;
    Ok(results.unwrap_or_default())
}
