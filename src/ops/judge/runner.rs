//! The oracle runner: runs the oracle on a run's candidates, its base or one more commit, each in a
//! separate checkout.
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::config::keys;
use crate::error::{Cause, Error, IoContext, Result};
use crate::git::commit::neutral_commit;
use crate::git::protect::protected;
use crate::git::seed::find::Seeds;
use crate::integrity::{baseline, watch};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::StageResult;
use crate::model::path::TreePath;
use crate::model::run::Run;
use crate::model::verdict::{Baseline, Effort, Entry, JudgeSettings, Verdict};
use crate::ops::judge::judged_base::{BaseState, JudgedBase, warn_if_not_started};
use crate::ops::judge::keep;
use crate::ops::judge::schedule::{Judge, Scheduler, StopWhen, commands_run};
use crate::ops::judge::tamper::TamperWatch;
use crate::ops::progress;
use crate::ops::session::Session;
use crate::ops::spawn::prepare;
use crate::oracle::cache::{Cache, Conditions, JudgedTree};
use crate::oracle::outcomes::KnownOutcomes;
use crate::oracle::pool::{CheckoutPool, OUTCOMES};
use crate::oracle::run::{self as oracle_run, ExecContext, OracleEnd, OracleOptions};
use crate::process::interrupt::Cancel;
use crate::ui::comparison;

/// Runs one oracle with one set of options.
pub struct OracleRunner<'a> {
    session: &'a Session,
    run: &'a Run,
    oracle: &'a [OracleCommand],
    settings: &'a JudgeSettings,
    options: OracleOptions,
    pool: CheckoutPool<'a>,
    /// None if no outcome is to be taken from the cache, nor kept there.
    cache: Option<Cache>,
    tamper: TamperWatch<'a>,
}

/// The place to which the results of one tree go.
struct ReportTo {
    /// The name in messages, such as `RUN/CANDIDATE`.
    name: String,
    /// The directory for the commands' logs.
    logs: PathBuf,
}

impl<'a> OracleRunner<'a> {
    /// A runner for a run's own oracle. With `use_cache` it uses the cache, unless the settings
    /// forbid that.
    pub fn new(
        session: &'a Session,
        run: &'a Run,
        oracle: &'a [OracleCommand],
        settings: &'a JudgeSettings,
        timeout: Duration,
        use_cache: bool,
    ) -> Result<OracleRunner<'a>> {
        let seeds = session.seeds(&run.base)?;
        let options = options(settings, timeout);
        // In a checkout that is not clean, an outcome depends on more than the tree.
        // While others judge, their code under test can write to the cache.
        let others_judge = baseline::others_judge(&session.store, None);
        let cache = if use_cache && !settings.in_place && !settings.warm && !others_judge {
            let conditions = Conditions::new(oracle, &options, &seeds, &session.policy)?;
            let distrusted = when_attempts_ran(session)?;
            Some(Cache::open(&session.repo, session.home.as_deref(), conditions, distrusted)?)
        } else {
            None
        };
        OracleRunner::with_cache(session, run, oracle, settings, options, seeds, cache)
    }

    fn with_cache(
        session: &'a Session,
        run: &'a Run,
        oracle: &'a [OracleCommand],
        settings: &'a JudgeSettings,
        options: OracleOptions,
        seeds: Seeds,
        cache: Option<Cache>,
    ) -> Result<OracleRunner<'a>> {
        let pool = CheckoutPool::open(&session.repo, &session.store)?
            .with_seeds(session.home.as_deref(), seeds)
            .warm(settings.warm);
        let outcomes = match &cache {
            Some(cache) => cache.known(),
            None => KnownOutcomes::list(&pool.path().join(OUTCOMES)),
        };
        let tamper = TamperWatch::new(session, run, outcomes);
        Ok(OracleRunner { session, run, oracle, settings, options, pool, cache, tamper })
    }

    /// Does `work`, then reports what the commands changed outside their checkouts, also if the
    /// work failed.
    ///
    /// Gives the work's value, and true if such a change tainted the outcomes: then they cannot be
    /// compared. The work's own error comes first; an error of the watch beside it is only a
    /// warning.
    pub fn watched<T>(self, work: impl FnOnce(&Self) -> Result<T>) -> Result<(T, bool)> {
        let result = work(&self);
        let session = self.session;
        let tainted = self.end();
        watch::with_work(result, tainted, |error| session.ui.warn(&error.message))
    }

    /// Ends the tamper watch and takes outcomes that may be wrong out of the cache. True if
    /// outcomes are tainted.
    fn end(self) -> Result<bool> {
        let OracleRunner { session, pool, cache, tamper, .. } = self;
        // Removing the checkouts takes about as long as the last look.
        let end = std::thread::scope(|scope| {
            scope.spawn(|| drop(pool));
            tamper.end()
        })?;
        if let Some(cache) = cache {
            for judged in &end.doubtful {
                cache.forget(&session.repo, judged)?;
            }
        }
        Ok(end.tainted)
    }

    /// Leaves the watch over the commands to another that began before them and ends after them.
    #[must_use]
    pub fn covered_by_another_watch(mut self) -> Self {
        self.tamper.leave_to_another();
        self
    }

    /// Runs the oracle for the entries without results, up to `jobs` at a time, and fills their
    /// results in. Equal trees are judged once. The base comes first, and with several jobs the
    /// entries are judged beside it.
    pub fn run_all(
        &self,
        entries: &mut [Entry],
        jobs: usize,
        stop: StopWhen,
        base: BaseState,
    ) -> Result<(Effort, Option<Baseline>)> {
        if !self.settings.in_place {
            self.keep_trees(&entries.iter().collect::<Vec<_>>())?;
        }
        let scheduler = Scheduler::new(entries, self.settings.in_place, stop);
        if self.cache.is_some() {
            scheduler.fill_in_cached(|entry| self.find_cached_entry(entry))?;
        }
        let waiting = scheduler.waiting();
        let (mut base, with_base) = match base {
            BaseState::NotWanted => (None, false),
            BaseState::Unjudged => (None, true),
            BaseState::Judged(judged) => (Some(judged), false),
        };
        let trees = waiting.len() + usize::from(with_base);
        if trees > 0 && !self.settings.in_place {
            self.require_space(&self.run.base, jobs.min(trees))?;
        }
        let workers = scheduler.workers(jobs, usize::from(with_base));
        let judge = EntryJudge { runner: self, alone: workers == 1 };
        progress::live(self.session, self.run, &waiting, || {
            let judge_base = |cancel: &Cancel| {
                if with_base {
                    base = self.judge_base(cancel, workers == 1)?;
                }
                Ok(())
            };
            scheduler.run(workers, judge_base, &judge);
            Ok(())
        })?;
        let effort = scheduler.finish(self.oracle.len())?;
        let ran_base = base.as_ref().map_or(0, |base| base.ran);
        Ok((Effort { ran_base, ..effort }, base.map(|base| base.baseline)))
    }

    /// Runs the oracle on the base itself. None if it was cancelled. `first` is true if no
    /// candidate is judged before it ends.
    pub fn judge_base(&self, cancel: &Cancel, first: bool) -> Result<Option<JudgedBase>> {
        let commit = self.run.base;
        let judged = JudgedTree { tree: self.session.repo.commit(&commit)?.tree, commit };
        let report = ReportTo {
            name: format!("{}, base", self.run.run),
            logs: self.session.store.run_dir(&self.run.run).join("base"),
        };
        let (results, ran) = match self.find_cached(&judged, &report)? {
            Some(results) => (results, 0),
            None => match self.run_on_commit(&judged.commit, &report, cancel)? {
                OracleEnd::Cancelled => return Ok(None),
                OracleEnd::Finished(results) => {
                    let cache = || {
                        self.keep_cached(&judged, &results, &report)?;
                        Ok(Some(judged))
                    };
                    if first {
                        self.tamper.check_base_first(cache)?;
                    } else {
                        self.tamper.check(None, cache)?;
                    }
                    let ran = commands_run(&results);
                    (results, ran)
                }
            },
        };
        warn_if_not_started(self.session, self.run, &results, |result| {
            std::fs::read(report.logs.join(format!("{}.log", result.stage))).unwrap_or_default()
        });
        Ok(Some(JudgedBase { baseline: Baseline { results }, ran }))
    }

    fn require_space(&self, commit: &Oid, checkouts: usize) -> Result<()> {
        prepare::require_space_to_judge(self.session, self.pool.path(), commit, checkouts)
    }

    fn report_to(&self, candidate: &Name) -> ReportTo {
        ReportTo {
            name: format!("{}/{candidate}", self.run.run),
            logs: self.session.store.candidate(self.run, candidate).directory(),
        }
    }

    /// The tree that is judged for an entry; none if nothing was ever captured.
    fn judged_tree(&self, entry: &Entry) -> Result<Option<JudgedTree>> {
        let Some(tree) = entry.judged() else { return Ok(None) };
        let commit = self.keep_trees(&[entry])?.pop();
        Ok(commit.map(|commit| JudgedTree { tree: *tree, commit }))
    }

    /// Keeps the trees of these entries until judging ends; gives a commit of each.
    fn keep_trees(&self, entries: &[&Entry]) -> Result<Vec<Oid>> {
        let Session { repo, store, .. } = self.session;
        let base = &self.run.base;
        let recorded = store.judged(&self.run.run)?;
        let mut is_first_try = true;
        repo.retry_during_gc(|| {
            let mut commits = Vec::new();
            for entry in entries {
                if let (false, Some(captured)) = (is_first_try, &entry.tree) {
                    // The tree itself may be lost, if it is not the captured one.
                    protected(repo, base, captured, &self.settings.protect)?;
                }
                if let Some(tree) = entry.judged() {
                    commits.push(neutral_commit(repo, tree, base)?);
                }
            }
            is_first_try = false;
            let new: Vec<Oid> =
                commits.iter().filter(|commit| !recorded.contains(commit)).copied().collect();
            keep::keep(self.session, self.run, &new, base)?;
            Ok(commits)
        })
    }

    fn find_cached_entry(&self, entry: &Entry) -> Result<Option<Vec<StageResult>>> {
        match self.judged_tree(entry)? {
            Some(judged) => self.find_cached(&judged, &self.report_to(&entry.candidate)),
            None => Ok(None),
        }
    }

    fn find_cached(
        &self,
        judged: &JudgedTree,
        report: &ReportTo,
    ) -> Result<Option<Vec<StageResult>>> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let found = cache.find(&self.session.repo, judged, &report.logs)?;
        for result in found.iter().flatten().filter(|r| r.cached) {
            self.note(report, result);
        }
        Ok(found)
    }

    fn keep_cached(
        &self,
        judged: &JudgedTree,
        results: &[StageResult],
        report: &ReportTo,
    ) -> Result<()> {
        match &self.cache {
            Some(cache) => cache.keep(&self.session.repo, judged, results, &report.logs),
            None => Ok(()),
        }
    }

    fn run_in_worktree(
        &self,
        candidate: &Name,
        report: &ReportTo,
        cancel: &Cancel,
    ) -> Result<OracleEnd> {
        let dir = self.session.store.candidate(self.run, candidate).worktree();
        if !dir.is_dir() {
            return Ok(self.not_started(report, "its worktree is gone"));
        }
        self.execute(&dir, report, cancel, &|| Ok(Vec::new()))
    }

    /// Runs the oracle on one commit in a clean checkout.
    fn run_on_commit(&self, commit: &Oid, report: &ReportTo, cancel: &Cancel) -> Result<OracleEnd> {
        // The first time, the watch takes about as long to begin as a checkout.
        let (watch, checkout) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| self.tamper.begin());
            let checkout = self.pool.acquire(&self.session.repo, commit);
            (watch.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), checkout)
        });
        let checkout = checkout?;
        let end = watch.and_then(|()| match &checkout.problem {
            Some(reason) => Ok(self.not_started(report, reason)),
            None => {
                let files = &checkout.checkout.files;
                self.execute(&files.worktree.path, report, cancel, &|| files.changed())
            }
        });
        self.pool.release(checkout.checkout);
        end
    }

    /// Runs the oracle on one commit to its end, as nothing cancels it.
    fn finish_on_commit(&self, commit: &Oid, report: &ReportTo) -> Result<Vec<StageResult>> {
        match self.run_on_commit(commit, report, &Cancel::default())? {
            OracleEnd::Finished(results) => Ok(results),
            OracleEnd::Cancelled => {
                Err(Error::internal(format!("{}: judging ended too early", report.name)))
            }
        }
    }

    fn not_started(&self, report: &ReportTo, reason: &str) -> OracleEnd {
        self.session.ui.warn(format!("{}: {reason}", report.name));
        OracleEnd::Finished(oracle_run::not_started(self.oracle, reason))
    }

    fn execute(
        &self,
        dir: &Path,
        report: &ReportTo,
        cancel: &Cancel,
        changed: &dyn Fn() -> Result<Vec<TreePath>>,
    ) -> Result<OracleEnd> {
        let logs = report.logs.as_path();
        std::fs::create_dir_all(logs).context(|| format!("could not make '{}'", logs.display()))?;
        let policy = &self.session.policy;
        let on_end = &|result: &StageResult| self.note(report, result);
        let context = ExecContext { dir, logs, policy, cancel, changed, on_end };
        oracle_run::run(self.oracle, &self.options, &context).map_err(|e| match e.cause {
            Cause::EndUnknown => e.context(&report.name),
            _ => e,
        })
    }

    fn note(&self, report: &ReportTo, result: &StageResult) {
        self.session.ui.note(comparison::stage_line(&report.name, result));
    }
}

/// Judges candidates by really running the oracle.
struct EntryJudge<'r, 'a> {
    runner: &'r OracleRunner<'a>,
    /// True if no other candidate is judged at the same time: then changes outside the checkout are
    /// this one's.
    alone: bool,
}

impl Judge for EntryJudge<'_, '_> {
    fn judge(&self, entry: &Entry, cancel: &Cancel) -> Result<OracleEnd> {
        let runner = self.runner;
        let name = &entry.candidate;
        let report = runner.report_to(name);
        let suspect = self.alone.then_some(name);
        if runner.settings.in_place {
            runner.tamper.begin()?;
            let end = runner.run_in_worktree(name, &report, cancel)?;
            runner.tamper.check(suspect, || Ok(None))?;
            return Ok(end);
        }
        let Some(judged) = runner.judged_tree(entry)? else {
            return Ok(runner.not_started(&report, "nothing was captured"));
        };
        let end = runner.run_on_commit(&judged.commit, &report, cancel)?;
        runner.tamper.check(suspect, || match &end {
            OracleEnd::Cancelled => Ok(None),
            OracleEnd::Finished(results) => {
                runner.keep_cached(&judged, results, &report)?;
                Ok(Some(judged))
            }
        })?;
        Ok(end)
    }
}

fn options(settings: &JudgeSettings, timeout: Duration) -> OracleOptions {
    OracleOptions {
        timeout,
        retries: settings.retries,
        refuse_flaky: settings.refuse_flaky,
        junit: settings.junit.clone(),
    }
}

/// The spans of time in which commands of any run's attempts may have been at work.
///
/// Each goes from the making of a run to the end of its last command, with no gap: the record of
/// when each command began is a file that the command could write. It goes up to now where a start
/// or an end is missing: the command was not started, git-frites was killed, or the record was
/// lost. A run without commands counts only with the candidates that `spawn --again` ran one for.
fn when_attempts_ran(session: &Session) -> Result<Vec<(SystemTime, SystemTime)>> {
    let store = &session.store;
    let mut spans = Vec::new();
    for run in store.runs()? {
        let mut attempts =
            store.candidates(&run).map(|c| c.record()).collect::<Result<Vec<_>>>()?;
        if !run.has_commands() {
            attempts.retain(|c| c.again || c.started.is_some() || c.ended.is_some());
        }
        let ends = attempts.iter().map(|c| match (c.started, c.ended) {
            (Some(_), Some(end)) => SystemTime::from(end),
            _ => SystemTime::now(),
        });
        spans.extend(ends.max().map(|last| (SystemTime::from(run.created), last)));
    }
    Ok(spans)
}

/// Runs a verdict's oracle, with its settings, on one more commit in a clean checkout.
///
/// `name` stands for the commit in messages. The directory `logs` is made.
pub fn judge_commit(
    session: &Session,
    run: &Run,
    verdict: &Verdict,
    commit: &Oid,
    name: &str,
    logs: &Path,
) -> Result<Vec<StageResult>> {
    // The landed commit is to be seeded as the user's checkout is, whose HEAD is its first parent.
    let parents = session.repo.commit(commit)?.parents;
    let known = parents.first().unwrap_or(&run.base);
    let seeds = session.seeds(known)?;
    let options = options(&verdict.settings, session.config.get(keys::ORACLE_TIMEOUT));
    let runner = OracleRunner::with_cache(
        session,
        run,
        &verdict.oracle,
        &verdict.settings,
        options,
        seeds,
        None,
    )?;
    let report = ReportTo { name: name.to_owned(), logs: logs.to_owned() };
    let (results, _) = runner.watched(|runner| {
        keep::keep(session, run, &[*commit], known)?;
        runner.require_space(commit, 1)?;
        runner.finish_on_commit(commit, &report)
    })?;
    Ok(results)
}
