//! Decides again by stored outcomes: the outcomes of the last judging of the whole run, and the
//! outcomes of candidates that have been judged singly since.
//!
//! An outcome is never used if it was found on other terms than [`OwnTerms`]. If `shard open` has
//! fixed the terms, the outcome is left out; for a candidate's outcome, a warning says so.
//! Otherwise replay fails.
use crate::config::keys;
use crate::config::value::SandboxMode;
use crate::error::{Error, Result};
use crate::fs::{atomic, regular};
use crate::git::refs;
use crate::integrity::trust;
use crate::model::decision::{decide, with_commands};
use crate::model::name::Name;
use crate::model::oracle::as_options;
use crate::model::part::{Part, PartOutcome, SharedTerms};
use crate::model::rank::Rank;
use crate::model::ranking::Rules;
use crate::model::rationale::and;
use crate::model::run::Run;
use crate::model::terms::Terms;
use crate::model::verdict::{Baseline, Entry, Verdict};
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::overruled::overrule;
use crate::ops::judge::part_judge::{base_outcome, end_of_log};
use crate::ops::judge::part_storage::PartStorage;
use crate::ops::judge::record::{save, undecided};
use crate::ops::judge::{confirm, entries};
use crate::ops::session::Session;
use crate::oracle::{self, ResolvedOracle};
use crate::process::environment::caller;

/// Decides again by the stored outcomes, without running anything. The terms are those of
/// `shard open`, or else those of this clone (see [`OwnTerms::of`]).
///
/// If the decision is new, it is recorded, because `apply` reads the record.
pub fn replay(session: &Session, run: &Run, options: &JudgeOptions) -> Result<Verdict> {
    let (_lock, run) = &session.store.lock_and_read(&run.run)?;
    replay_locked(session, run, options)
}

/// As [`replay`], for a caller that holds the run's lock.
pub fn replay_locked(session: &Session, run: &Run, options: &JudgeOptions) -> Result<Verdict> {
    let store = &session.store;
    trust::require_own_record(session.integrity(), run)?;
    entries::require_captures(session, run)?;
    let storage = PartStorage { store, run: &run.run, remote: None };
    storage.name_unreadable(&session.ui, &run.candidates);
    let opened = store.terms(&run.run)?;
    // A verdict that is older than the last `shard open` does not count.
    let first_round = opened.as_ref().map_or(0, |terms| terms.round);
    let stored = store.verdict(&run.run)?.filter(|verdict| verdict.round >= first_round);
    let parts = store.parts(run)?;
    let is_judged = stored.is_some() || opened.is_some();
    let nothing = |what: String| {
        Error::fatal(what).hint(format!("judge it with `git frites judge {}`", run.run))
    };
    if !is_judged && parts.is_empty() {
        return Err(nothing(format!("run {} was never judged", run.run)));
    }
    let mut terms = match &opened {
        Some(opened) => OwnTerms::opened(session, opened, options)?,
        None => OwnTerms::of(session, run, options, stored.as_ref(), &parts)?,
    };
    if let Some(verdict) = &stored {
        terms.require_same(run, None, &verdict.terms)?;
    }
    let mut verdict = match &stored {
        Some(verdict) => verdict.clone(),
        None => {
            let judged = parts.iter().map(|(_, part)| part.judged);
            let judged = judged.chain(opened.as_ref().map(|terms| terms.opened)).max();
            undecided(run, terms.terms.clone(), first_round, judged.unwrap_or_default())
        }
    };
    let mut used = add_parts(session, run, &mut terms, opened.as_ref(), parts, &mut verdict)?;
    if !is_judged && used.is_empty() {
        return Err(nothing(format!("no stored outcome of run {} can be used", run.run)));
    }
    let base = match &opened {
        Some(opened) => storage.find(&Part::Base, opened)?,
        None => base_outcome(store, run, verdict.round, &terms.terms)?,
    };
    if let Some(base) = base {
        verdict.terms.settings.doubts.add(&base.terms.settings.doubts);
        let results = base.on_base.clone();
        verdict.baseline.insert(Baseline { results, inherited: false }).settle();
        used.push(base);
    }
    if opened.is_some() {
        entries::share_equal_trees(&mut verdict.candidates);
        storage.tell_machines(&session.ui, &used)?;
    }
    decide_and_save(session, run, options, stored.as_ref(), verdict)
}

/// Adds the outcomes of candidates to a verdict, and then an entry without results for each
/// candidate that is still missing from the verdict. Returns the outcomes that were used, and warns
/// of the others.
fn add_parts(
    session: &Session,
    run: &Run,
    terms: &mut OwnTerms,
    opened: Option<&SharedTerms>,
    parts: Vec<(&Name, PartOutcome)>,
    verdict: &mut Verdict,
) -> Result<Vec<PartOutcome>> {
    let names: Vec<&Name> = parts.iter().map(|(name, _)| *name).collect();
    let present = present_entries(session, run, &terms.terms, verdict, &names)?;
    let mut used = Vec::new();
    for (name, part) in parts {
        let Some(entry) = present.iter().find(|e| e.candidate == *name) else { continue };
        let found = match &part.candidate {
            Some(found)
                if found.candidate == *name && part.run == run.run && part.base == run.base =>
            {
                why_not_used(&part, found, entry, verdict.round, opened).map_or(Ok(found), Err)
            }
            _ => Err(format!(
                "it is of {}/{} on the base {:.10}",
                part.run,
                part.part(),
                part.base.as_str()
            )),
        };
        match found {
            Ok(found) => {
                terms.require_same(run, Some(name), &part.terms)?;
                restore_logs(session, run, found)?;
                add_part(verdict, entry, &part, found);
                used.push(part);
            }
            Err(reason) => session.ui.warn(format!(
                "{}/{name}: the outcome of judging it alone is not used: {reason}",
                run.run
            )),
        }
    }
    for entry in present {
        if verdict.entry(&entry.candidate).is_none() {
            verdict.candidates.push(entry);
        }
    }
    Ok(used)
}

/// Decides by the results of a verdict's candidates, and records the decision if it is new.
fn decide_and_save(
    session: &Session,
    run: &Run,
    options: &JudgeOptions,
    stored: Option<&Verdict>,
    mut verdict: Verdict,
) -> Result<Verdict> {
    verdict.candidates.sort_by_key(|entry| entry.index);
    if !verdict.terms.settings.in_place {
        entries::name_twins(&mut verdict.candidates);
    }
    if stored.map(|v| &v.candidates) != Some(&verdict.candidates) {
        // The cross results compare candidates, and some candidates have other results now.
        verdict.candidates.iter_mut().for_each(|entry| entry.cross = None);
        entries::set_agreement_of_judged(session, run, &mut verdict.candidates)?;
    }
    let settings = &mut verdict.terms.settings;
    settings.rank = options.rank.unwrap_or(settings.rank);
    let mut rules = Rules::of(&verdict.terms);
    // An older version may have decided without a base.
    rules.needs_base &= stored
        .is_none_or(|stored| stored.baseline.is_some() || !stored.decision.decision.verified());
    require_known_tests(&verdict)?;
    let Verdict { candidates, baseline, terms, .. } = &mut verdict;
    overrule(&session.repo, run.root(), terms, candidates, baseline.as_ref())?;
    if let Some(stored) = stored {
        require_confirmed(stored, &verdict.candidates, rules)?;
    }
    confirm::drop_decisive_claims(&mut verdict.candidates, rules);
    verdict.decision = decide(&verdict.candidates, verdict.baseline.as_ref(), rules);
    if !verdict.terms.oracle.is_empty() {
        verdict.decision = with_commands(verdict.decision);
    }
    if stored != Some(&verdict) {
        save(session, run, &verdict)?;
    }
    // The record keeps the effort of the judging. The returned verdict has none, because this
    // command has run nothing.
    verdict.effort = Default::default();
    Ok(verdict)
}

/// Fails if candidates are to be ranked by their tests, but the tests were not judged on all
/// candidates that may win.
fn require_known_tests(verdict: &Verdict) -> Result<()> {
    let mut may_win: Vec<&Entry> = verdict.candidates.iter().filter(|e| e.usable()).collect();
    may_win.retain(|entry| entry.passed() || entry.not_run());
    let is_known = may_win.len() < 2 || may_win.iter().all(|entry| entry.cross.is_some());
    if verdict.terms.settings.rank != Rank::Cross || is_known {
        return Ok(());
    }
    Err(Error::fatal(format!(
        "run {} cannot be ranked by cross: its candidates were not judged by each other's tests",
        verdict.run
    ))
    .hint(format!("judge them: `{}`", verdict.terms.judge_command(&verdict.run, " --rank cross"))))
}

/// Fails if the ranking differs from the ranking of the stored verdict, and depends on claims. Only
/// the claims on which the stored verdict depends were confirmed.
fn require_confirmed(stored: &Verdict, entries: &[Entry], rules: Rules) -> Result<()> {
    let open = confirm::open_claims(entries, rules);
    if open.is_empty() || rules.rank == stored.terms.settings.rank {
        return Ok(());
    }
    let names: Vec<&str> = open.iter().map(|entry| entry.candidate.as_str()).collect();
    let cross = if stored.terms.settings.cross { " --cross" } else { "" };
    let options = format!("{cross} --rank {}", rules.rank);
    Err(Error::fatal(format!(
        "ranked by {}, the verdict of run {} depends on {}, whose results are not confirmed yet",
        rules.rank,
        stored.run,
        and(&names)
    ))
    .hint(format!("confirm them: `{}`", stored.terms.judge_command(&stored.run, &options))))
}

/// Makes entries without results for two kinds of candidates: those that have a stored outcome, and
/// those that are not in the verdict. This clone finds their present state, size and flags itself.
fn present_entries(
    session: &Session,
    run: &Run,
    terms: &Terms,
    verdict: &Verdict,
    with_part: &[&Name],
) -> Result<Vec<Entry>> {
    let mut captured = Vec::new();
    for candidate in session.store.candidates(run) {
        if with_part.contains(&candidate.name) || verdict.entry(candidate.name).is_none() {
            captured.push(session.capture_or_tell(candidate)?);
        }
    }
    if captured.is_empty() {
        return Ok(Vec::new());
    }
    entries::from_captured(session, run, terms, &captured)
}

/// The reason why an outcome cannot be used; `None` if it can be used. The outcome may be of
/// another state of the candidate, or of another round, or on other terms than those of the opened
/// run.
fn why_not_used(
    part: &PartOutcome,
    theirs: &Entry,
    present: &Entry,
    round: u32,
    opened: Option<&SharedTerms>,
) -> Option<String> {
    if part.round != round {
        return Some(format!(
            "it belongs to round {} of judging, and the run is in round {round}",
            part.round
        ));
    }
    if theirs.tree != present.tree {
        let of = |entry: &Entry| entry.iteration.map_or("none".to_owned(), |n| format!("@{n}"));
        return Some(format!(
            "it is of another state, iteration {}; the current one is {}",
            of(theirs),
            of(present)
        ));
    }
    if theirs.judged() != present.judged() && theirs.problem.is_none() {
        return Some(
            "the changes to protected paths that are put back are no longer the same as when it \
             was judged"
                .into(),
        );
    }
    let was_judged_once = part.terms.settings.in_place || theirs.problem.is_some();
    if theirs.second_judging() != present.second_judging() && !was_judged_once {
        return Some(
            "the changes that the second judging puts back are no longer the same as when it was \
             judged"
                .into(),
        );
    }
    let difference = part.terms.first_difference(&opened?.terms())?;
    Some(format!("it was found on other terms: {difference}"))
}

/// Puts an outcome into a verdict. Only the results are taken from the outcome. Everything else is
/// in `present`, which this clone has found itself.
fn add_part(verdict: &mut Verdict, present: &Entry, part: &PartOutcome, found: &Entry) {
    let settings = &part.terms.settings;
    verdict.judged = verdict.judged.max(part.judged);
    let ours = &mut verdict.terms.settings;
    ours.doubts.add(&settings.doubts);
    ours.in_place |= settings.in_place;
    // All outcomes come from the same world: `OwnTerms::require_same` has checked that.
    ours.commands.world = settings.commands.world;
    let Entry { problem, results, base_tests, .. } = found.clone();
    let entry = Entry { same_as: None, problem, results, base_tests, ..present.clone() };
    match verdict.candidates.iter_mut().find(|e| e.candidate == entry.candidate) {
        Some(old) => *old = entry,
        None => verdict.candidates.push(entry),
    }
}

/// Writes the ends of the logs that are stored with an outcome to the candidate's directory, unless
/// the logs are already there.
fn restore_logs(session: &Session, run: &Run, found: &Entry) -> Result<()> {
    let candidate = session.store.candidate(run, &found.candidate);
    let directory = candidate.directory();
    let part = Part::Candidate(found.candidate.clone());
    let logs = session.store.part_logs(run, &part, &found.results)?;
    let is_here = logs.iter().all(|(file, kept)| {
        regular::read(&directory.path().join(file)).is_ok_and(|log| end_of_log(&log) == kept)
    });
    if is_here {
        return Ok(());
    }
    let _lock = candidate.lock()?;
    candidate.logs().judging(found.iteration).begin()?;
    logs.iter().try_for_each(|(file, kept)| atomic::write(&directory.path().join(file), kept))
}

/// The terms of a replay: those of `shard open`, or else those of this clone.
pub struct OwnTerms {
    /// The terms. They have no digest of the seeds if no stored outcome has one.
    pub terms: Terms,
    /// The worlds that the configuration allows, until the first outcome decides on one; `None`
    /// after that. Outcomes from different worlds cannot be compared.
    unsettled: Option<SandboxMode>,
}

impl OwnTerms {
    /// The terms that the options name. All other terms come from the verdict if this clone
    /// recorded it, or else from the configuration and the base's files.
    pub fn of(
        session: &Session,
        run: &Run,
        options: &JudgeOptions,
        stored: Option<&Verdict>,
        parts: &[(&Name, PartOutcome)],
    ) -> Result<OwnTerms> {
        let own = stored.map(|verdict| &verdict.terms);
        let own = if was_recorded_here(session, run) { own } else { None };
        let resolved = match own {
            // The commands are taken from the verdict and not resolved again. So an error in the
            // configuration or the base cannot prevent a decision.
            Some(own) if options.flags.is_empty() => {
                ResolvedOracle { commands: own.oracle.clone(), ..ResolvedOracle::default() }
            }
            _ => oracle::resolve(&session.repo, &session.config, &options.flags, run.root())?,
        };
        let mut terms = options.terms(session, &resolved);
        if let Some(own) = own {
            let configured = std::mem::replace(&mut terms.settings, own.settings.clone());
            options.change(&mut terms.settings.commands);
            if !options.protect.is_empty() {
                terms.settings.protect = configured.protect;
            }
        }
        let mut all = parts.iter().map(|(_, part)| &part.terms).chain(stored.map(|v| &v.terms));
        terms.seeds = own.and_then(|own| own.seeds.clone());
        if terms.seeds.is_none() && all.any(|terms| terms.seeds.is_some()) {
            terms.seeds = Some(session.seeds(run.root())?.digest()?);
        }
        let unsettled = own.is_none().then(|| session.config.get(keys::SANDBOX_MODE));
        Ok(OwnTerms { terms, unsettled })
    }

    /// The terms that `shard open` wrote. Fails if the options say something else.
    pub fn opened(
        session: &Session,
        opened: &SharedTerms,
        options: &JudgeOptions,
    ) -> Result<OwnTerms> {
        let (run, terms) = (&opened.run, opened.terms());
        let mut named = terms.without_setup();
        if !options.flags.is_empty() {
            let Session { repo, config, store, .. } = session;
            let run = store.run(run)?;
            let base = run.as_ref().map_or(&opened.base, Run::root);
            named.oracle = oracle::resolve(repo, config, &options.flags, base)?.commands;
        }
        options.change(&mut named.settings.commands);
        let differs = terms.without_setup().first_difference(&named.without_setup());
        let mut more = options.protect.iter().filter(|path| !terms.settings.protect.contains(path));
        let differs =
            differs.or_else(|| Some(format!("'{}' is no protected path of the run", more.next()?)));
        match differs {
            None => Ok(OwnTerms { terms, unsettled: None }),
            Some(difference) => Err(Error::fatal(format!(
                "run {run} was opened on other terms than these options name: {difference}"
            ))
            .hint("leave the options out: the terms are those of `git frites shard open`")
            .hint(format!("or open the run again on other terms: `git frites shard open {run}`"))),
        }
    }

    /// Fails if `theirs`, the terms of a verdict or of one candidate's outcome, differ from these
    /// terms. The first call decides on the world: it takes the world of `theirs`, and fails if the
    /// configuration of this clone does not allow that world.
    pub fn require_same(
        &mut self,
        run: &Run,
        candidate: Option<&Name>,
        theirs: &Terms,
    ) -> Result<()> {
        let (what, options) = match candidate {
            Some(name) => (format!("{}/{name}", run.run), format!(" --candidate {name}")),
            None => (format!("run {}", run.run), String::new()),
        };
        let here = self.terms.judge_command(&run.run, &options);
        let refusal = |difference: &str| {
            Error::fatal(format!(
                "{what} was judged on other terms than those given here: {difference}"
            ))
            .hint(format!("judge it here: `{here}`"))
        };
        if let Some(mode) = self.unsettled {
            let world = theirs.settings.commands.world;
            if !mode.allows(world) {
                return Err(refusal(&format!(
                    "its commands ran {}, and here sandbox.mode is {mode}",
                    world.in_words()
                )));
            }
            self.unsettled = None;
            self.terms.settings.commands.world = world;
        }
        match theirs.first_difference(&self.terms) {
            None => Ok(()),
            Some(difference) => Err(refusal(&difference).hint(format!(
                "or decide on its terms: `git{} frites judge --replay {}{}`",
                theirs.settings.git_options(&self.terms.settings),
                run.run,
                as_options(theirs.without_setup().oracle.iter())
            ))),
        }
    }
}

/// True if the run's verdict was recorded in this clone, not fetched.
fn was_recorded_here(session: &Session, run: &Run) -> bool {
    let for_anyone = caller(&session.store.dir().runs()).is_some();
    session.repo.reflog_claims_us(&refs::record(&run.run), for_anyone).unwrap_or(false)
}
