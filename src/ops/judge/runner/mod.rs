//! The oracle runner: runs the oracle on a run's candidates, on its base or on another commit, each
//! in a separate checkout.
mod ahead;
mod attempts_write;
pub mod cross;
mod place;
mod run_all;
mod trees;

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::Mutex;

use crate::config::keys;
use crate::config::value::WarmMode;
use crate::error::{Error, Result};
use crate::git::seed::find::Seeds;
use crate::git::seed::leads_back::{self, BackLeads};
use crate::integrity::surroundings::WatchedSurroundings;
use crate::integrity::{WatchedCommands, baseline, watch};
use crate::model::oid::Oid;
use crate::model::outcome::{Results, StageResult};
use crate::model::run::Run;
use crate::model::terms::{ATTEMPTS_WRITE_HINT, Doubts, JudgeSettings, LEADS_BACK_HINT, Terms};
use crate::model::verdict::Verdict;
use crate::model::world::WorldKind;
use crate::ops::attempt_times::when_attempts_ran;
use crate::ops::disk_space;
use crate::ops::guard::{self, Guard};
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::runner::attempts_write::attempts_write;
use crate::ops::judge::tamper::TamperWatch;
use crate::ops::judge::worlds;
use crate::ops::kept_commits;
use crate::ops::session::Session;
use crate::oracle::cache::{Cache, Conditions, JudgedTree, Turn};
use crate::oracle::ledger::{Ledger, Memory};
use crate::oracle::pool::Checkouts;
use crate::oracle::restricted::Restrictions;
use crate::oracle::run::OracleOptions;
use crate::oracle::sealed::{SealedCheckouts, Warmth};
use crate::store::logs::JudgingLogs;

/// Runs the oracle of `terms` with one set of options.
pub struct OracleRunner<'a> {
    session: &'a Session,
    run: &'a Run,
    /// The terms, including the digest of the seeds, and the doubts that exist before commands run.
    pub terms: Terms,
    options: OracleOptions,
    /// How a watch has to treat these commands.
    pub commands: WatchedCommands,
    checkouts: Checkouts<'a>,
    /// The checkouts in sealed worlds; `None` if the commands run in another world.
    layered: Option<SealedCheckouts<'a>>,
    /// The restrictions of the commands, if Landlock confines them.
    restrictions: Option<Restrictions>,
    /// The messages that were already printed, so that each is printed only once. A message about a
    /// refused write is noted by its directory.
    printed: Mutex<BTreeSet<String>>,
    /// Whether candidates are judged with the base's build outputs.
    warm: WarmMode,
    ledger: Ledger<'a>,
    tamper: TamperWatch<'a>,
    leads: BackLeads,
}

/// Called with the result of each command when it ends.
type OnEnd<'r> = &'r (dyn Fn(&StageResult) + Sync);

/// Where the results, messages and logs about one tree go.
struct ReportTo<'r> {
    /// The name of the tree in messages, e.g. `RUN/CAND`.
    name: String,
    /// The place of the commands' logs.
    logs: JudgingLogs,
    on_end: OnEnd<'r>,
    /// True if test files of others are laid over the tree. Such tests are run to see whether they
    /// fail, so a failure is shown without its log.
    failure_is_a_finding: bool,
}

impl ReportTo<'_> {
    fn new(name: String, logs: JudgingLogs) -> Self {
        ReportTo { name, logs, on_end: &|_| (), failure_is_a_finding: false }
    }
}

impl<'a> OracleRunner<'a> {
    /// A runner for a run's oracle. It uses the cache, unless the options or the world forbid that.
    pub fn new(
        session: &'a Session,
        run: &'a Run,
        mut terms: Terms,
        judging: &JudgeOptions,
        memory: &'a Memory,
    ) -> Result<OracleRunner<'a>> {
        let seeds = judging.seeds(session, run.root())?;
        terms.seeds = Some(seeds.digest()?);
        let leads = back_leads(session, &terms.settings, &seeds, run.root())?;
        let base = (run.root(), seeds.clone());
        let timeout = judging.timeout(session);
        let runner = OracleRunner::with_memory(session, run, base, terms, timeout, memory)?;
        let mut runner = OracleRunner { leads, warm: judging.warm(session), ..runner };
        let leads_back = runner.leads.paths();
        let attempts_write = attempts_write(session, run, &seeds, runner.layered.as_ref())?;
        // If this run's attempts could influence outcomes, the outcomes are not cached, because
        // other runs could not know about the influence.
        let is_influenced = !attempts_write.is_empty();
        runner.terms.settings.doubts = Doubts { tainted: false, leads_back, attempts_write };
        let keeps = !judging.no_cache && worlds::keeps_outcomes(session, runner.world());
        runner.ledger.only_forgets |= is_influenced || !keeps;
        if let (Some(layered), false) =
            (&runner.layered, is_influenced || can_others_write(session))
        {
            let base = JudgedTree::of(&session.repo, *run.root())?;
            let cache = &runner.ledger.cache;
            let name = cache.layer_name(&base)?;
            layered.use_and_keep(name, &cache.distrusted, runner.warmth() == Warmth::Warm)?;
        }
        Ok(runner)
    }

    /// Warns of seeds that lead back to a checkout of the repository.
    pub fn warn_of_seeds(&self) {
        let Session { ui, .. } = self.session;
        for line in self.leads.warnings("the judged ones") {
            ui.warn(line);
        }
        if self.leads.first_in_words().is_some() {
            ui.hint(LEADS_BACK_HINT);
        }
    }

    fn with_memory(
        session: &'a Session,
        run: &'a Run,
        (base, seeds): (&Oid, Seeds),
        terms: Terms,
        timeout: Duration,
        memory: &'a Memory,
    ) -> Result<OracleRunner<'a>> {
        let world = terms.settings.commands.world;
        let options = OracleOptions { timeout, sandbox: worlds::options(session, world) };
        let ledger = open_ledger(session, &terms, &options, memory)?;
        session.warn_of_undeleted();
        let store = &session.store;
        let home = session.home.as_deref();
        let oracle = &terms.oracle;
        let mut layered = None;
        let mut restrictions = None;
        match (world, options.sandbox.clone()) {
            (WorldKind::Sealed, Some(sandbox)) => {
                let base = (*base, seeds.clone());
                layered = Some(SealedCheckouts::open(store, home, base, sandbox, oracle)?);
            }
            (WorldKind::Landlock, Some(sandbox)) => {
                restrictions = Some(Restrictions::new(&session.repo, home, &sandbox)?);
            }
            _ => {}
        }
        let checkouts = Checkouts::open(store)?.with_seeds(home, seeds);
        let commands = worlds::watched_commands(world, &options);
        let surroundings = WatchedSurroundings { outcomes: ledger.cache.known.clone(), world };
        let tamper = TamperWatch::new(session, run, commands, surroundings);
        Ok(OracleRunner {
            session,
            run,
            terms,
            options,
            commands,
            checkouts,
            layered,
            restrictions,
            printed: Mutex::default(),
            warm: WarmMode::Never,
            ledger,
            tamper,
            leads: BackLeads::default(),
        })
    }

    /// The world in which the commands run.
    fn world(&self) -> WorldKind {
        self.terms.settings.commands.world
    }

    /// Ends the work of this runner, even if the work failed. Reports the changes that the commands
    /// made outside of their checkouts. Removes cached outcomes that may be wrong.
    ///
    /// Returns the value of `work`, and the doubts about its outcomes. If the work failed, returns
    /// its error; an error of the watch is then only a warning.
    pub fn end<T>(self, work: Result<T>) -> Result<(T, Doubts)> {
        let OracleRunner { session, ledger, tamper, terms, .. } = self;
        let tainted = tamper.end().and_then(|end| {
            let mut doubtful = end.doubtful.iter();
            doubtful.try_for_each(|judged| ledger.cache.forget(judged))?;
            Ok(end.tainted)
        });
        let (done, tainted) =
            watch::with_work(work, tainted, |error| session.ui.warn(&error.message))?;
        Ok((done, Doubts { tainted, ..terms.settings.doubts }))
    }

    /// Returns this runner, but without a watch of its own over its commands. The watch over
    /// attempts covers them: it began before the commands and ends after them.
    pub fn covered_by_another_watch(mut self) -> Result<Self> {
        self.tamper.is_covered = true;
        if let Some(layered) = &mut self.layered {
            let guard = guard::choose(self.session)?;
            let access = guard.as_ref().map_or_else(guard::unguarded, Guard::access);
            layered.note_running_attempts(!access.is_apart());
        }
        Ok(self)
    }

    /// Takes the lock with which only one process at a time judges a tree. Returns `None` if no
    /// lock is needed, because other processes cannot find the outcome in the cache. The inner
    /// error names the process that holds the lock.
    fn take_turn(&self, judged: &JudgedTree) -> Result<std::result::Result<Option<Turn>, String>> {
        let Ledger { cache, memory, only_forgets, .. } = &self.ledger;
        if *only_forgets || self.commands != WatchedCommands::SealedOracle {
            return Ok(Ok(None));
        }
        let turn = cache.take_turn(judged, || {
            open_ledger(self.session, &self.terms, &self.options, memory)?.has_kept(judged)
        })?;
        Ok(turn.map(Some))
    }

    fn require_space(&self, commit: &Oid, checkouts: usize) -> Result<()> {
        let place = &self.checkouts.dir;
        disk_space::require_space(self.session, place, commit, checkouts, "checkouts")
    }
}

/// True while another process judges with commands that can write to the cache.
fn can_others_write(session: &Session) -> bool {
    baseline::others_judge(&session.store, None) == Some(WatchedCommands::Oracle)
}

/// The ledger for these terms and options. It leaves out outcomes that cannot be trusted.
pub(super) fn open_ledger<'m>(
    session: &'m Session,
    terms: &Terms,
    options: &OracleOptions,
    memory: &'m Memory,
) -> Result<Ledger<'m>> {
    let conditions = Conditions::new(&terms.oracle, options, &session.policy);
    let distrusted = when_attempts_ran(session)?;
    let home = session.home.as_deref();
    let cache = Cache::open(&session.repo, home, terms.clone(), conditions, distrusted)?;
    Ok(Ledger { id: terms.id(), memory, cache, only_forgets: can_others_write(session) })
}

/// The seeds that lead back to a checkout of the repository. A sealed world has no such seeds,
/// because in it the path of the user's checkout leads to the judged tree. With `--in-place` there
/// are none either, because no seeds are used.
fn back_leads(
    session: &Session,
    settings: &JudgeSettings,
    seeds: &Seeds,
    commit: &Oid,
) -> Result<BackLeads> {
    if settings.in_place || settings.commands.world == WorldKind::Sealed {
        return Ok(BackLeads::default());
    }
    leads_back::find(&session.repo, seeds, commit)
}

/// Runs the oracle of a verdict, with the verdict's settings, on another commit in a clean
/// checkout.
///
/// Messages call the commit `name`. Returns the results, and the world in which the commands ran.
pub fn judge_commit(
    session: &Session,
    run: &Run,
    verdict: &Verdict,
    commit: &Oid,
    (name, logs): (&str, &JudgingLogs),
) -> Result<(Results, WorldKind)> {
    // The commit gets the seeds of the user's checkout. The HEAD of this checkout is the commit's
    // first parent.
    let parents = session.repo.commit(commit)?.parents;
    let known = parents.first().unwrap_or(&run.base);
    let seeds = session.seeds(known)?;
    // The commit is judged in a world that this machine allows, even if the candidates were judged
    // on another machine.
    let world = worlds::choose(session)?;
    let mut terms = verdict.terms.clone();
    (terms.settings.commands.world, terms.settings.in_place) = (world, false);
    let leads = back_leads(session, &terms.settings, &seeds, known)?;
    // If the candidates were also judged with seeds that lead back to a checkout, the landing is
    // unverified anyway. The user has then been told.
    if verdict.terms.settings.doubts.leads_back.is_empty()
        && let Some(lead) = leads.first_in_words()
    {
        return Err(
            Error::no(format!("the merged tree cannot be verified: {lead}")).hint(LEADS_BACK_HINT)
        );
    }
    let timeout = session.config.get(keys::ORACLE_TIMEOUT);
    let memory = Memory::default();
    let base = (commit, seeds.clone());
    let runner = OracleRunner::with_memory(session, run, base, terms, timeout, &memory)?;
    // The seeds may be others than those of the candidates.
    if verdict.terms.settings.doubts.attempts_write.is_empty()
        && let Some(path) = attempts_write(session, run, &seeds, runner.layered.as_ref())?.first()
    {
        return Err(Error::no(format!(
            "the merged tree cannot be verified: the commands can read '{path}', which attempts may write"
        ))
        .hint(ATTEMPTS_WRITE_HINT));
    }
    let report = ReportTo::new(name.to_owned(), logs.clone());
    let results = kept_commits::keep(session, run, &[*commit], known)
        .and_then(|()| runner.require_space(commit, 1))
        .and_then(|()| runner.finish_on_commit(commit, &report));
    let (results, _) = runner.end(results)?;
    Ok((results, world))
}
