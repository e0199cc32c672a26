//! The oracle runner: runs the oracle on a run's candidates, its base or one more commit, each in a
//! separate checkout.
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::config::keys;
use crate::config::value::WarmMode;
use crate::error::{Cause, Error, Result};
use crate::git::seed::find::Seeds;
use crate::git::seed::leads_back::{self, BackLeads};
use crate::integrity::{baseline, watch};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::{self, Outcome, Stage, StageResult};
use crate::model::path::TreePath;
use crate::model::ranking::Rules;
use crate::model::run::Run;
use crate::model::verdict::{Baseline, Effort, Entry, JudgeSettings, LEADS_BACK_HINT, Verdict};
use crate::model::world::WorldKind;
use crate::ops::judge::confirm::{self, StaleCause, StaleCauses, stumbled};
use crate::ops::judge::judged_base::{BaseState, JudgedBase, warn_if_not_started};
use crate::ops::judge::judged_once::{JudgedOnce, TreeOutcome};
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::schedule::{EntryOutcome, Judge, Scheduler, StopWhen, commands_run};
use crate::ops::judge::tamper::TamperWatch;
use crate::ops::judge::{keep, kept_trees, worlds};
use crate::ops::session::Session;
use crate::ops::spawn::prepare;
use crate::ops::{log_end, progress};
use crate::oracle::cache::{Cache, Conditions, JudgedTree};
use crate::oracle::outcomes::KnownOutcomes;
use crate::oracle::pool::{CheckoutPool, OUTCOMES};
use crate::oracle::restricted::{PrivateDirectories, Restrictions};
use crate::oracle::run::{self as oracle_run, ExecContext, OracleEnd, OracleOptions};
use crate::oracle::sealed::{SealedCheckouts, Warmth};
use crate::process::interrupt::Cancel;
use crate::process::world_spec::Confinement;
use crate::store::logs::{BASE_TESTS, JudgingLogs};
use crate::ui::comparison;

/// Runs one oracle with one set of options.
pub struct OracleRunner<'a> {
    session: &'a Session,
    run: &'a Run,
    oracle: &'a [OracleCommand],
    settings: &'a JudgeSettings,
    options: OracleOptions,
    pool: CheckoutPool<'a>,
    /// The checkouts in sealed worlds, if the commands run there.
    sealed: Option<SealedCheckouts<'a>>,
    /// The restrictions of the commands, if Landlock confines them.
    restrictions: Option<Restrictions>,
    /// True if candidates may be judged over the base's outputs.
    may_be_warm: bool,
    /// A digest of the seeds; none when a commit is judged on its own.
    seeds: Option<String>,
    /// None if the cache does not matter: the outcomes depend on more than the tree.
    cache: Option<Cache>,
    once: JudgedOnce,
    /// The outcomes that confirm claims.
    confirmed_once: JudgedOnce,
    tamper: TamperWatch<'a>,
    leads: BackLeads,
}

/// The place to which the results of one tree go.
struct ReportTo {
    /// The name in messages, such as `RUN/CANDIDATE`.
    name: String,
    /// The commands' logs.
    logs: JudgingLogs,
}

impl ReportTo {
    /// The place for the results of the same candidate with the base's tests.
    fn with_base_tests(&self) -> ReportTo {
        ReportTo {
            name: format!("{} with the base's tests", self.name),
            logs: self.logs.with_base_tests(),
        }
    }
}

impl<'a> OracleRunner<'a> {
    /// A runner for a run's own oracle. It uses the cache, unless the options or the settings forbid
    /// that.
    pub fn new(
        session: &'a Session,
        run: &'a Run,
        oracle: &'a [OracleCommand],
        settings: &'a JudgeSettings,
        timeout: Duration,
        judging: &JudgeOptions,
    ) -> Result<OracleRunner<'a>> {
        let seeds = judging.seeds(session, &run.base)?;
        let digest = seeds.digest()?;
        let options = options(session, settings, timeout);
        let leads = back_leads(session, settings, &seeds, &run.base)?;
        // While others judge, their code under test can write to the cache.
        let others_judge = baseline::others_judge(&session.store, None);
        // In a checkout that is not clean, an outcome depends on more than the tree.
        let cache = if !settings.in_place && !others_judge {
            let cache = open_cache(session, oracle, &options, digest.clone())?;
            let is_kept = !judging.no_cache && worlds::keeps_outcomes(session, settings.world);
            Some(if is_kept { cache } else { cache.only_forgetting() })
        } else {
            None
        };
        let runner = OracleRunner::with_cache(
            session,
            run,
            (&run.base, seeds),
            oracle,
            settings,
            options,
            cache,
        )?;
        let may_be_warm = !judging.cold && session.config.get(keys::ORACLE_WARM) == WarmMode::Base;
        let runner = OracleRunner { seeds: Some(digest), leads, may_be_warm, ..runner };
        if let (Some(sealed), Some(cache)) = (&runner.sealed, &runner.cache) {
            let base = JudgedTree::of(&session.repo, run.base)?;
            let name = cache.name_of(&session.repo, &base)?;
            sealed.use_kept(&name, cache.distrusted())?;
        }
        Ok(runner)
    }

    /// Names the seeds that lead back to a checkout of the repository; gives them for the record.
    pub fn warn_of_seeds(&self) -> Vec<String> {
        let Session { ui, .. } = self.session;
        for line in self.leads.warnings("the judged ones") {
            ui.warn(line);
        }
        if self.leads.first_in_words().is_some() {
            ui.hint(LEADS_BACK_HINT);
        }
        self.leads.paths()
    }

    fn with_cache(
        session: &'a Session,
        run: &'a Run,
        (base, seeds): (&Oid, Seeds),
        oracle: &'a [OracleCommand],
        settings: &'a JudgeSettings,
        options: OracleOptions,
        cache: Option<Cache>,
    ) -> Result<OracleRunner<'a>> {
        let sealed = worlds::checkouts(session, &options, base, &seeds)?;
        let restrictions = worlds::restrictions(session, &options)?;
        let pool = CheckoutPool::open(&session.repo, &session.store)?
            .with_seeds(session.home.as_deref(), seeds);
        let outcomes = match &cache {
            Some(cache) => cache.known(),
            None => KnownOutcomes::list(&pool.path().join(OUTCOMES)),
        };
        let tamper = TamperWatch::new(session, run, outcomes);
        let (once, leads) = (JudgedOnce::default(), BackLeads::default());
        Ok(OracleRunner {
            session,
            run,
            oracle,
            settings,
            options,
            pool,
            sealed,
            restrictions,
            may_be_warm: false,
            seeds: None,
            cache,
            once,
            confirmed_once: JudgedOnce::default(),
            tamper,
            leads,
        })
    }

    /// A digest of the seeds.
    pub fn seeds(&self) -> Option<String> {
        self.seeds.clone()
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
            kept_trees::keep_trees(self.session, self.run, self.oracle, self.settings, entries)?;
        }
        let scheduler = Scheduler::new(entries, self.settings.in_place, stop);
        if self.cache.as_ref().is_some_and(Cache::gives_outcomes) {
            scheduler.fill_in_cached(|entry| self.find_cached_entry(entry))?;
        }
        let waiting = scheduler.waiting();
        let (mut base, with_base) = match base {
            BaseState::NotWanted => (None, false),
            BaseState::Unjudged => (None, true),
            BaseState::Judged(judged) => (Some(judged), false),
        };
        if let (Some(sealed), Some(JudgedBase { layer: Some(layer), .. })) = (&self.sealed, &base) {
            sealed.adopt(layer.clone())?;
        }
        let trees = waiting.len() + usize::from(with_base);
        if trees > 0 && !self.settings.in_place {
            self.require_space(&self.run.base, jobs.min(trees))?;
        }
        let workers = scheduler.workers(jobs, usize::from(with_base));
        // The candidates wait for the outputs of the base.
        let base_first = workers == 1 || self.sealed.is_some() && self.may_be_warm;
        progress::live(self.session, self.run, &waiting, || {
            if with_base && base_first {
                base = self.judge_base(&Cancel::default(), true)?;
            }
            let warmth = self.warmth();
            let judge_base = |cancel: &Cancel| {
                if with_base && !base_first {
                    base = self.judge_base(cancel, false)?;
                }
                Ok(())
            };
            scheduler.run(workers, judge_base, &EntryJudge::new(self, workers, warmth));
            Ok(())
        })?;
        let mut effort = scheduler.finish(self.oracle.len())?;
        if confirm::any_claims(entries) {
            effort.add(self.confirm(entries, jobs)?);
        }
        if let Some(base) = &mut base {
            self.confirm_base(base, entries)?;
        }
        let ran_base = base.as_ref().map_or(0, |base| base.ran);
        Ok((Effort { ran_base, ..effort }, base.map(|base| base.baseline)))
    }

    /// The share of the base that candidates are judged over first.
    fn warmth(&self) -> Warmth {
        if self.may_be_warm { Warmth::Warm } else { Warmth::Cold }
    }

    /// True if outputs of the base are kept.
    fn has_outputs(&self) -> bool {
        self.sealed.as_ref().is_some_and(SealedCheckouts::has_outputs)
    }

    /// Runs the oracle without the base's layers on those of the entries that the recommendation
    /// depends on, and on those that the overlay has let fail.
    fn confirm(&self, entries: &mut [Entry], jobs: usize) -> Result<Effort> {
        let has_outputs = self.has_outputs();
        // Before the logs are those of the confirmation.
        let causes: StaleCauses =
            entries.iter().map(|entry| (entry.index, self.cause(entry, has_outputs))).collect();
        let rules = Rules::from_settings(self.settings);
        confirm::confirm(entries, &causes, rules, |entries, stop| {
            self.judge_cold(entries, jobs, stop)
        })
    }

    fn judge_cold(&self, entries: &mut [Entry], jobs: usize, stop: StopWhen) -> Result<Effort> {
        let scheduler = Scheduler::new(entries, false, stop);
        let waiting = scheduler.waiting();
        let workers = scheduler.workers(jobs.min(waiting.len()), 0);
        progress::live(self.session, self.run, &waiting, || {
            let judge = EntryJudge::new(self, workers, Warmth::Cold);
            scheduler.run(workers, |_| Ok(()), &judge);
            Ok(())
        })?;
        scheduler.finish(0)
    }

    /// The cause that a claim's failure has if it is not confirmed.
    fn cause(&self, entry: &Entry, has_outputs: bool) -> StaleCause {
        let logs = self.session.store.candidate_dir(&self.run.run, &entry.candidate);
        let second = entry.base_tests.as_ref().map(|second| second.results.as_slice());
        if stumbled(&entry.results, &logs)
            || stumbled(second.unwrap_or_default(), &logs.join(BASE_TESTS))
        {
            return StaleCause::Rename;
        }
        if has_outputs { StaleCause::Outputs } else { StaleCause::Overlay }
    }

    /// Judges the base once more in a plain directory if it may have failed because of the overlay:
    /// its output says so, or a candidate passed in a plain directory alone.
    fn confirm_base(&self, base: &mut JudgedBase, entries: &[Entry]) -> Result<()> {
        let report = self.report_of_base();
        let results = &base.baseline.results;
        let is_claim = results.iter().any(|r| r.warm) && !outcome::all_passed(results);
        let is_doubtful = || entries.iter().any(|e| e.stale.is_some() && e.passed());
        if !is_claim || !(stumbled(results, &report.logs.directory()) || is_doubtful()) {
            return Ok(());
        }
        let commit = self.run.base;
        let cancel = Cancel::default();
        let end = self.run_on_commit(&commit, &report, &cancel, Warmth::Cold)?;
        self.tamper.check(None, || {
            let OracleEnd::Finished(results) = end else { return Ok(None) };
            let judged = JudgedTree::of(&self.session.repo, commit)?;
            self.keep_cached(&judged, &results, &report)?;
            base.ran += commands_run(&results);
            base.baseline.results = results;
            Ok(Some(judged))
        })
    }

    fn report_of_base(&self) -> ReportTo {
        ReportTo {
            name: format!("{}, base", self.run.run),
            logs: self.session.store.base_logs(&self.run.run).judging(None),
        }
    }

    /// Runs the oracle on the base itself. None if it was cancelled. `first` is true if no
    /// candidate is judged before it ends.
    pub fn judge_base(&self, cancel: &Cancel, first: bool) -> Result<Option<JudgedBase>> {
        let commit = self.run.base;
        let tree = self.session.repo.commit(&commit)?.tree;
        let report = self.report_of_base();
        let mut ran = 0;
        // Nothing is decided by the base's results, so that a claim will do. An overlay shows what its
        // commands leave.
        let needs_outputs = self.may_be_warm || !self.has_outputs();
        let warmth = if needs_outputs { Warmth::Warm } else { Warmth::Cold };
        let found = self.once(warmth).get_or_judge(&tree, || {
            let judged = JudgedTree { tree, commit };
            let logs = report.logs.directory();
            if let Some(results) = self.find_cached(&judged, &report, Warmth::Warm)? {
                return Ok(Some(TreeOutcome { results, logs }));
            }
            let end = self.run_on_commit(&commit, &report, cancel, warmth)?;
            let OracleEnd::Finished(results) = end else {
                return Ok(None);
            };
            let cache = || {
                self.keep_cached(&judged, &results, &report)?;
                Ok(Some(judged))
            };
            if first {
                self.tamper.check_base_first(cache)?;
            } else {
                self.tamper.check(None, cache)?;
            }
            ran = commands_run(&results);
            Ok(Some(TreeOutcome { results, logs }))
        })?;
        let Some((TreeOutcome { results, logs }, was_known)) = found else { return Ok(None) };
        if was_known {
            report.logs.copy_from(&logs)?;
            self.note_all(&report, &results);
        }
        warn_if_not_started(self.session, self.run, &results);
        let layer = self.sealed.as_ref().and_then(SealedCheckouts::layer_in_use);
        Ok(Some(JudgedBase { baseline: Baseline { results }, ran, layer }))
    }

    fn require_space(&self, commit: &Oid, checkouts: usize) -> Result<()> {
        prepare::require_space_to_judge(self.session, self.pool.path(), commit, checkouts)
    }

    fn report_to(&self, entry: &Entry) -> Result<ReportTo> {
        let candidate = self.session.store.candidate(self.run, &entry.candidate);
        Ok(ReportTo { name: candidate.address(), logs: candidate.logs()?.judging(entry.iteration) })
    }

    /// A tree, with a commit of it on the run's base, which is kept until judging ends.
    fn judged_tree(&self, tree: &Oid) -> Result<JudgedTree> {
        // Until a ref keeps the commit, a garbage collection may delete it.
        let keep = || keep::keep_tree(self.session, self.run, tree);
        let commit = self.session.repo.retry_during_gc(keep)?;
        Ok(JudgedTree { tree: *tree, commit })
    }

    /// The outcome of an entry, if all of it is cached.
    fn find_cached_entry(&self, entry: &Entry) -> Result<Option<EntryOutcome>> {
        let Some(tree) = entry.judged() else { return Ok(None) };
        let report = self.report_to(entry)?;
        let Some(results) = self.look_up(tree, &report)? else { return Ok(None) };
        let second = report.with_base_tests();
        let base_tests = match tree_with_base_tests(entry, &results) {
            Some(tree) => match self.look_up(tree, &second)? {
                Some(results) => results,
                None => return Ok(None),
            },
            None => Vec::new(),
        };
        self.note_all(&report, &results);
        self.note_all(&second, &base_tests);
        let saved_cached = commands_run(&results) + commands_run(&base_tests);
        let effort = Effort { saved_cached, ..Effort::default() };
        Ok(Some(EntryOutcome { results, base_tests, effort }))
    }

    fn look_up(&self, tree: &Oid, report: &ReportTo) -> Result<Option<Vec<StageResult>>> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let warm = self.may_be_warm;
        cache.find(&self.session.repo, &self.judged_tree(tree)?, &report.logs, warm)
    }

    fn find_cached(
        &self,
        judged: &JudgedTree,
        report: &ReportTo,
        warmth: Warmth,
    ) -> Result<Option<Vec<StageResult>>> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let warm = warmth == Warmth::Warm;
        let found = cache.find(&self.session.repo, judged, &report.logs, warm)?;
        self.note_all(report, found.as_deref().unwrap_or_default());
        Ok(found)
    }

    /// Notes cached results, or those of another candidate with the same tree.
    fn note_all(&self, report: &ReportTo, results: &[StageResult]) {
        for result in results.iter().filter(|r| r.outcome != Outcome::Skipped) {
            self.note(report, result);
        }
    }

    /// The results on a tree, from the cache, from another candidate or by running the oracle, and
    /// the commands that this took. None if it was cancelled. `suspect` is the only candidate whose
    /// commands run now.
    fn outcome_of(
        &self,
        tree: &Oid,
        report: &ReportTo,
        suspect: Option<&Name>,
        (cancel, warmth): (&Cancel, Warmth),
    ) -> Result<Option<(Vec<StageResult>, Effort)>> {
        let mut effort = Effort::default();
        let found = self.once(warmth).get_or_judge(tree, || {
            let judged = self.judged_tree(tree)?;
            let logs = report.logs.directory();
            if let Some(results) = self.find_cached(&judged, report, warmth)? {
                effort.saved_cached = commands_run(&results);
                return Ok(Some(TreeOutcome { results, logs }));
            }
            let end = self.run_on_commit(&judged.commit, report, cancel, warmth)?;
            let results = match end {
                OracleEnd::Finished(results) => Some(results),
                OracleEnd::Cancelled => None,
            };
            self.tamper.check(suspect, || {
                let Some(results) = &results else { return Ok(None) };
                self.keep_cached(&judged, results, report)?;
                Ok(Some(judged))
            })?;
            effort.ran = commands_run(results.as_deref().unwrap_or_default());
            Ok(results.map(|results| TreeOutcome { results, logs }))
        })?;
        let Some((known, was_known)) = found else { return Ok(None) };
        if was_known {
            effort.saved_equal = commands_run(&known.results);
            report.logs.copy_from(&known.logs)?;
            self.note_all(report, &known.results);
        }
        Ok(Some((known.results, effort)))
    }

    /// The outcomes of this judging, with outputs of the base or without them.
    fn once(&self, warmth: Warmth) -> &JudgedOnce {
        match warmth {
            Warmth::Warm => &self.once,
            Warmth::Cold => &self.confirmed_once,
        }
    }

    fn keep_cached(
        &self,
        judged: &JudgedTree,
        results: &[StageResult],
        report: &ReportTo,
    ) -> Result<()> {
        match &self.cache {
            Some(cache) => {
                cache.keep(&self.session.repo, judged, results, &report.logs.directory())
            }
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
        let place = JudgedPlace { dir: &dir, written: &dir, confinement: &|_| None };
        self.execute(&place, report, cancel, &|| Ok(Vec::new()))
    }

    /// Runs the oracle on one commit in a clean checkout.
    fn run_on_commit(
        &self,
        commit: &Oid,
        report: &ReportTo,
        cancel: &Cancel,
        warmth: Warmth,
    ) -> Result<OracleEnd> {
        if let Some(sealed) = &self.sealed {
            return self.run_in_world(sealed, commit, report, cancel, warmth);
        }
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
                let dir = &files.worktree.path;
                let own = self.restrictions.as_ref().map(|_| PrivateDirectories::make());
                let own = own.transpose()?;
                let confinement = |_| {
                    let (restrictions, own) = self.restrictions.as_ref().zip(own.as_ref())?;
                    Some(Confinement::Landlock(restrictions.of(dir, own)))
                };
                let place = JudgedPlace { dir, written: dir, confinement: &confinement };
                self.execute(&place, report, cancel, &|| files.changed())
            }
        });
        self.pool.release(checkout.checkout);
        end
    }

    /// Runs the oracle on one commit in a sealed world. What it leaves on the base is kept for the
    /// candidates.
    fn run_in_world(
        &self,
        sealed: &SealedCheckouts<'_>,
        commit: &Oid,
        report: &ReportTo,
        cancel: &Cancel,
        warmth: Warmth,
    ) -> Result<OracleEnd> {
        self.tamper.begin()?;
        let checkout = sealed.acquire(commit, warmth)?;
        if let Some(reason) = &checkout.problem {
            return Ok(self.not_started(report, reason));
        }
        let written = checkout.written();
        let confinement = |stage| Some(Confinement::Sealed(checkout.world(stage)));
        let place =
            JudgedPlace { dir: checkout.dir(), written: &written, confinement: &confinement };
        let repo = &self.session.repo;
        let mut end = self.execute(&place, report, cancel, &|| checkout.changed(repo))?;
        if let OracleEnd::Finished(results) = &mut end {
            for result in results.iter_mut().filter(|r| r.outcome != Outcome::Skipped) {
                // An overlay refuses what a plain directory allows, and never the other way.
                let may_be_refused = checkout.is_overlay && !result.outcome.passed();
                result.warm = checkout.has_outputs || may_be_refused;
            }
            // Without outputs the candidates take longer, and nothing else differs.
            if *commit == self.run.base
                && checkout.is_overlay
                && let Err(error) = sealed.keep_outputs(&checkout)
            {
                tracing::debug!(error = error.message, "the base's outputs are not kept");
            }
        }
        Ok(end)
    }

    /// Runs the oracle on one commit to its end, as nothing cancels it.
    fn finish_on_commit(&self, commit: &Oid, report: &ReportTo) -> Result<Vec<StageResult>> {
        match self.run_on_commit(commit, report, &Cancel::default(), Warmth::Cold)? {
            OracleEnd::Finished(results) => Ok(results),
            OracleEnd::Cancelled => Err(ended_too_early(report)),
        }
    }

    fn not_started(&self, report: &ReportTo, reason: &str) -> OracleEnd {
        self.session.ui.warn(format!("{}: {reason}", report.name));
        OracleEnd::Finished(oracle_run::not_started(self.oracle, reason))
    }

    fn execute(
        &self,
        place: &JudgedPlace<'_>,
        report: &ReportTo,
        cancel: &Cancel,
        changed: &dyn Fn() -> Result<Vec<TreePath>>,
    ) -> Result<OracleEnd> {
        report.logs.begin()?;
        let logs = &report.logs.directory();
        let policy = &self.session.policy;
        let on_end = &|result: &StageResult| {
            let line = comparison::stage_line(&report.name, result);
            match result.outcome.passed() {
                true => self.session.ui.note(line),
                false => log_end::note(&self.session.ui, &line, &report.logs.log(result.stage)),
            }
        };
        let JudgedPlace { dir, written, confinement } = *place;
        let context =
            ExecContext { dir, written, confinement, logs, policy, cancel, changed, on_end };
        oracle_run::run(self.oracle, &self.options, &context).map_err(|e| match e.cause {
            Cause::EndUnknown => e.context(&report.name),
            _ => e,
        })
    }

    fn note(&self, report: &ReportTo, result: &StageResult) {
        self.session.ui.note(comparison::stage_line(&report.name, result));
    }
}

/// The place in which a tree's commands run.
struct JudgedPlace<'p> {
    /// The checkout, as the commands see it.
    dir: &'p Path,
    /// The directory in which files appear that the commands write to the checkout.
    written: &'p Path,
    /// The confinement of each stage's command.
    confinement: &'p dyn Fn(Stage) -> Option<Confinement>,
}

/// Judges candidates by really running the oracle.
struct EntryJudge<'r, 'a> {
    runner: &'r OracleRunner<'a>,
    /// True if no other candidate is judged at the same time: then changes outside the checkout are
    /// this one's.
    alone: bool,
    /// The share of the base's outputs to judge over.
    warmth: Warmth,
}

impl<'r, 'a> EntryJudge<'r, 'a> {
    fn new(runner: &'r OracleRunner<'a>, workers: usize, warmth: Warmth) -> EntryJudge<'r, 'a> {
        EntryJudge { runner, alone: workers == 1, warmth }
    }
}

impl Judge for EntryJudge<'_, '_> {
    fn judge(&self, entry: &Entry, cancel: &Cancel) -> Result<Option<EntryOutcome>> {
        let runner = self.runner;
        let name = &entry.candidate;
        let report = runner.report_to(entry)?;
        let suspect = self.alone.then_some(name);
        let how = (cancel, self.warmth);
        if runner.settings.in_place {
            runner.tamper.begin()?;
            let end = runner.run_in_worktree(name, &report, cancel)?;
            runner.tamper.check(suspect, || Ok(None))?;
            return Ok(entry_outcome(end));
        }
        let Some(tree) = entry.judged() else {
            return Ok(entry_outcome(runner.not_started(&report, "nothing was captured")));
        };
        let Some((results, mut effort)) = runner.outcome_of(tree, &report, suspect, how)? else {
            return Ok(None);
        };
        let mut base_tests = Vec::new();
        if let Some(tree) = tree_with_base_tests(entry, &results) {
            let second = report.with_base_tests();
            let Some((results, more)) = runner.outcome_of(tree, &second, suspect, how)? else {
                return Ok(None);
            };
            base_tests = results;
            effort.add(more);
        }
        Ok(Some(EntryOutcome { results, base_tests, effort }))
    }
}

/// The outcome of an entry that is judged once.
fn entry_outcome(end: OracleEnd) -> Option<EntryOutcome> {
    let OracleEnd::Finished(results) = end else { return None };
    let effort = Effort { ran: commands_run(&results), ..Effort::default() };
    Some(EntryOutcome { results, base_tests: Vec::new(), effort })
}

/// The tree with the base's tests that is to be judged after these results on the entry's own.
fn tree_with_base_tests<'e>(entry: &'e Entry, results: &[StageResult]) -> Option<&'e Oid> {
    let second = entry.base_tests.as_ref().filter(|_| outcome::all_passed(results));
    second.and_then(|second| second.tree.as_ref())
}

fn ended_too_early(report: &ReportTo) -> Error {
    Error::internal(format!("{}: judging ended too early", report.name))
}

/// The seeds that lead back to a checkout of the repository. In a sealed world the path of the user's
/// checkout leads to the judged tree, and in place there are no seeds.
fn back_leads(
    session: &Session,
    settings: &JudgeSettings,
    seeds: &Seeds,
    commit: &Oid,
) -> Result<BackLeads> {
    if settings.in_place || settings.world == WorldKind::Sealed {
        return Ok(BackLeads::default());
    }
    leads_back::find(&session.repo, seeds, commit)
}

/// The cached outcomes of these commands with these options and seeds.
pub(super) fn open_cache(
    session: &Session,
    oracle: &[OracleCommand],
    options: &OracleOptions,
    seeds: String,
) -> Result<Cache> {
    let conditions = Conditions::new(oracle, options, seeds, &session.policy);
    let distrusted = when_attempts_ran(session)?;
    Cache::open(&session.repo, session.home.as_deref(), conditions, distrusted)
}

/// The options of the commands under these settings.
pub(super) fn options(
    session: &Session,
    settings: &JudgeSettings,
    timeout: Duration,
) -> OracleOptions {
    OracleOptions {
        timeout,
        retries: settings.retries,
        refuse_flaky: settings.refuse_flaky,
        junit: settings.junit.clone(),
        world: settings.world,
        sandbox: worlds::options(session, settings.world),
    }
}

/// The spans of time in which commands of any run's attempts may have been at work.
///
/// Each goes from the making of a run to the end of its last command, with no gap: the record of
/// when each command began is a file that the command could write. It goes up to now where a start
/// or an end is missing: the command was not started, git-frites was killed, or the record was
/// lost. A candidate without a command counts only if `spawn --again` ran one for it.
fn when_attempts_ran(session: &Session) -> Result<Vec<(SystemTime, SystemTime)>> {
    let store = &session.store;
    let mut spans = Vec::new();
    for run in store.runs()? {
        let mut attempts =
            store.candidates(&run).map(|c| c.record()).collect::<Result<Vec<_>>>()?;
        attempts.retain(|c| {
            run.has_command(&c.candidate) || c.again || c.started.is_some() || c.ended.is_some()
        });
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
/// `name` stands for the commit in messages. Gives the results, and the world in which the commands
/// ran.
pub fn judge_commit(
    session: &Session,
    run: &Run,
    verdict: &Verdict,
    commit: &Oid,
    name: &str,
    logs: &JudgingLogs,
) -> Result<(Vec<StageResult>, WorldKind)> {
    // The landed commit is to be seeded as the user's checkout is, whose HEAD is its first parent.
    let parents = session.repo.commit(commit)?.parents;
    let known = parents.first().unwrap_or(&run.base);
    let seeds = session.seeds(known)?;
    // The commit is judged in a world of this machine, wherever the verdict was reached.
    let world = worlds::choose(session)?;
    let settings = &JudgeSettings { world, in_place: false, ..verdict.settings.clone() };
    let leads = back_leads(session, settings, &seeds, known)?;
    // Whoever lands what was judged with such seeds knows that it is not verified.
    if verdict.settings.leads_back.is_empty()
        && let Some(lead) = leads.first_in_words()
    {
        return Err(
            Error::no(format!("the merged tree cannot be verified: {lead}")).hint(LEADS_BACK_HINT)
        );
    }
    let timeout = session.config.get(keys::ORACLE_TIMEOUT);
    let options = options(session, settings, timeout);
    let runner = OracleRunner::with_cache(
        session,
        run,
        (commit, seeds),
        &verdict.oracle,
        settings,
        options,
        None,
    )?;
    let report = ReportTo { name: name.to_owned(), logs: logs.clone() };
    let (results, _) = runner.watched(|runner| {
        keep::keep(session, run, &[*commit], known)?;
        runner.require_space(commit, 1)?;
        runner.finish_on_commit(commit, &report)
    })?;
    Ok((results, world))
}
