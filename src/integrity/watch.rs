//! Watches commands that run an attempt's code: the commands of attempts, or the oracle commands
//! that judge them. Reports changes outside of the worktrees, and puts changes that may be planted
//! into quarantine.
//!
//! Our own git calls ignore planted settings. They use the value from before the commands, or no
//! value. A git-frites process without a watch looks for planted settings only once, when it
//! starts.
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::git::held_refs::{ForeignMove, HeldRefs};
use crate::git::overrides::{SettingOverrides, names_a_program};
use crate::git::refs;
use crate::integrity::baseline::{self, WatchDir};
use crate::integrity::config_snapshot::{self, ConfigSnapshot};
use crate::integrity::diff::{self, Difference, compare};
use crate::integrity::fingerprint::{self, Fact, FactKind, Fingerprint, unreadable_configuration};
use crate::integrity::quarantine::{self, Moment, Suspect};
use crate::integrity::surroundings::{SurroundingsWatch, WatchedSurroundings};
use crate::integrity::{IntegrityContext, WatchedCommands};
use crate::model::name::Name;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::oracle::cache;
use crate::oracle::pool;
use crate::store::events::{self, Event};

/// The largest number of differences that are reported one by one.
pub(super) const MOST_REPORTED: usize = 20;
/// The largest number of differences that are stored in an event.
const MOST_STORED: usize = 500;

/// A running watch: the facts from before the first command, and the changes that were reported
/// since.
pub struct IntegrityWatch {
    commands: WatchedCommands,
    before: Fingerprint,
    /// The watch over the surroundings of judge checkouts; `None` if the commands are those of
    /// attempts.
    surroundings: Option<SurroundingsWatch>,
    /// The refs of the watched run.
    refs: HeldRefs,
    /// The changes that this watch has reported so far.
    pub report: TamperReport,
    dir: WatchDir,
    _snapshot: ConfigSnapshot,
}

/// The changes that a watch has reported.
#[derive(Default)]
pub struct TamperReport {
    /// Each change, in words.
    pub words: Vec<String>,
    /// True if one of the changes may alter the outcome of oracle commands.
    pub affects_outcomes: bool,
}

/// Begins a watch over a run's commands. Must be called before the commands start. `surroundings`
/// are the surroundings of the judge checkouts, or `None` for the commands of attempts. Until the
/// watch ends, our captures and checkouts use the configuration of this moment.
pub fn begin(
    context: IntegrityContext<'_>,
    run: &Run,
    commands: WatchedCommands,
    surroundings: Option<WatchedSurroundings>,
) -> Result<IntegrityWatch> {
    let before = fingerprint::take(context, commands);
    if !before.has_readable_configuration() {
        return Err(Error::fatal(
            "the configuration cannot be read, so no change of it would be seen",
        )
        .hint("try again; `git config --list` and .frites.toml may say why"));
    }
    let dir = WatchDir::create(context.store, &run.run)?;
    dir.save(&before, commands)?;
    let snapshot = config_snapshot::take(context.repo(), &dir.path)?;
    let surroundings =
        surroundings.map(|watched| SurroundingsWatch::begin(context, watched, commands));
    let surroundings = surroundings.transpose()?;
    let refs = HeldRefs::take(context.repo(), &run.run)?;
    let report = TamperReport::default();
    Ok(IntegrityWatch { commands, before, surroundings, refs, report, dir, _snapshot: snapshot })
}

/// Combines the result of some work with the result of ending its watch. If both failed, returns
/// the error of the work, and calls `warn` with the error of the watch. So the error of the work
/// stays visible.
pub fn with_work<T, W>(
    work: Result<T>,
    watch: Result<W>,
    warn: impl FnOnce(&Error),
) -> Result<(T, W)> {
    match (work, watch) {
        (Ok(work), Ok(watch)) => Ok((work, watch)),
        (Err(work), Err(watch)) => {
            warn(&watch);
            Err(work)
        }
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}

impl IntegrityWatch {
    /// Reports and stores the changes since the last look. Called before the next command starts.
    /// `candidate` is the only candidate that can have made the changes, if that is known.
    ///
    /// Confined commands can change neither the configuration nor git's files. So for them the
    /// configuration is compared only when the watch ends, and git's files are not compared.
    pub fn look_again(
        &mut self,
        context: IntegrityContext<'_>,
        candidate: Option<&Name>,
    ) -> Result<()> {
        let moment = self.moment(candidate.cloned());
        let mut differences = self.look_around(context)?;
        let mut changed = None;
        if !self.commands.are_confined() {
            let now = fingerprint::decisive(context);
            let decisive = compare(&self.before, &now, Fact::is_decisive);
            changed = (!decisive.is_empty()).then_some(now);
            differences.extend(decisive);
        }
        report_and_store(context, &moment, &self.before, &differences)?;
        self.report.add(differences);
        if let Some(now) = changed {
            self.before.replace_decisive(now);
            self.dir.save(&self.before, self.commands)?;
            update_overrides(context)?;
        }
        Ok(())
    }

    /// Ends the watch, and reports and stores every difference. Called after the last command has
    /// ended.
    pub fn end(mut self, context: IntegrityContext<'_>, run: &Run) -> Result<TamperReport> {
        let moment = self.moment(None);
        let around = self.look_around(context)?;
        let IntegrityWatch { commands, before, mut report, dir, _snapshot: snapshot, .. } = self;
        report.add(report_all(context, run, &moment, (&before, commands), around)?);
        drop(snapshot);
        let closed = dir.close(context.store);
        // From here on, calls use the current configuration, even if the directory could not be
        // removed.
        update_overrides(context)?;
        closed.map(|()| report)
    }

    /// Returns the changes of the surroundings and of the run's refs since the last look. Some of
    /// the changes are reverted here.
    fn look_around(&mut self, context: IntegrityContext<'_>) -> Result<Vec<Difference>> {
        let own = &self.dir.path;
        let around = self.surroundings.as_mut().map(|watch| watch.look(context, own));
        let moves = self.refs.restore(context.repo())?;
        Ok(around.into_iter().flatten().chain(moves.into_iter().map(moved_ref)).collect())
    }

    fn moment(&self, candidate: Option<Name>) -> Moment {
        Moment { run: self.dir.run.clone(), judging: self.commands.are_judging(), candidate }
    }
}

impl TamperReport {
    fn add(&mut self, differences: Vec<Difference>) {
        self.affects_outcomes |= differences.iter().any(Difference::affects_outcomes);
        self.words.extend(differences.into_iter().map(|d| d.words));
    }
}

/// Ends the watches of processes that were killed, as those processes would have done.
pub fn recover(context: IntegrityContext<'_>) -> Result<()> {
    for (name, path) in baseline::all(context.store) {
        let Some(dir) = WatchDir::take_over(context.store, &name, &path)? else { continue };
        if let (Some(run), Some((before, commands))) =
            (context.store.run(&name)?, baseline::read(&path))
        {
            let moment = Moment { run: name, judging: commands.are_judging(), candidate: None };
            if commands == WatchedCommands::Oracle {
                // Only the killed process knew which outcomes git-frites had written. So no cached
                // outcome can be believed.
                cache::forget_all(&pool::home(context.repo())?);
            }
            report_all(context, &run, &moment, (&before, commands), Vec::new())?;
        }
        dir.close(context.store)?;
        update_overrides(context)?;
    }
    Ok(())
}

fn report_all(
    context: IntegrityContext<'_>,
    run: &Run,
    moment: &Moment,
    (before, commands): (&Fingerprint, WatchedCommands),
    mut differences: Vec<Difference>,
) -> Result<Vec<Difference>> {
    let now = fingerprint::take(context, commands);
    for difference in compare(before, &now, |_| true) {
        if !is_our_doing(context, run, before, &difference)? {
            differences.push(difference);
        }
    }
    report_and_store(context, moment, before, &differences)?;
    Ok(differences)
}

/// The difference for a move of one of the run's own refs.
fn moved_ref(moved: ForeignMove) -> Difference {
    let ForeignMove { name, from, to, put_back } = moved;
    let words = diff::move_in_words(&name, from.as_deref(), to.as_deref());
    let result = match &put_back {
        None => String::new(),
        Some(Ok(())) if from.is_none() => "; it was removed".to_owned(),
        Some(Ok(())) => "; it was put back".to_owned(),
        Some(Err(e)) => format!("; that could not be undone: {}", e.message),
    };
    Difference {
        fact: Fact::new(FactKind::Ref, "", &name),
        words: format!("{words}{result}"),
        digest: to.clone(),
        texts: (from, to),
        reverted: matches!(put_back, Some(Ok(()))),
    }
}

/// True if any git-frites process has moved the ref of this difference for a person. If the ref's
/// run is new since `before`, also true if a git-frites process has moved the ref for an attempt.
/// Also true for the refs of the watched run, because [`HeldRefs`] watches them.
fn is_our_doing(
    context: IntegrityContext<'_>,
    run: &Run,
    before: &Fingerprint,
    difference: &Difference,
) -> Result<bool> {
    let Fact { kind: FactKind::Ref, name, .. } = &difference.fact else { return Ok(false) };
    let Some(owner) = refs::run_of(name) else { return Ok(false) };
    if owner == run.run {
        return Ok(true);
    }
    let record = refs::record(&owner);
    if difference.digest.is_some() {
        let is_new_run = before.digest(&Fact::new(FactKind::Ref, "", &record)).is_none();
        return context.repo().reflog_claims_us(&RefName::new(name.as_str()), is_new_run);
    }
    // git-frites deletes the refs with the outcomes of single candidates when all are judged.
    if **name != *record && name.contains("/@results/") {
        return Ok(true);
    }
    // The ref and its reflog are gone. Once the removal of the run is complete, the event log says
    // who removed the run. While the run is locked, the removal may still go on.
    if context.store.try_lock_run(&owner)?.is_none() {
        return Ok(true);
    }
    let events = events::read_of(&context.store.dir().events(), &owner)?;
    Ok(events.iter().any(|event| matches!(event, Event::Forgotten { by: None })))
}

/// Reports the differences, if there are any, and puts those that may be planted into quarantine.
fn report_and_store(
    context: IntegrityContext<'_>,
    moment: &Moment,
    before: &Fingerprint,
    differences: &[Difference],
) -> Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    report(context, moment, differences);
    let list: Vec<Value> = differences.iter().take(MOST_STORED).map(as_json).collect();
    let event = Event::Escaped {
        count: differences.len(),
        judging: moment.judging,
        candidate: moment.candidate.clone(),
        differences: list,
    };
    context.store.record_event(&moment.run, &event)?;
    let suspects = differences.iter().filter(|d| may_be_planted(&d.fact) && !d.is_readable_again());
    let suspects = suspects.map(|d| suspect(d, moment, before)).collect();
    quarantine::add(context.store, suspects)
}

/// If the configuration could not be read when commands had ended, tries to read it again. If it
/// can be read, compares it with the configuration from before the commands.
pub(super) fn compare_again(context: IntegrityContext<'_>) -> Result<()> {
    let unread = unreadable_configuration();
    let suspects = quarantine::suspects(context.store);
    let Some(unread) = suspects.into_iter().find(|suspect| suspect.fact == unread) else {
        return Ok(());
    };
    let Some(before) = unread.configuration_before() else { return Ok(()) };
    let now = fingerprint::configuration(context);
    if !now.has_readable_configuration() {
        return Ok(());
    }
    let differences = compare(&before, &now, Fact::is_configuration);
    report_and_store(context, &unread.moment, &before, &differences)?;
    quarantine::forget(context.store, &unread.fact)
}

/// True for facts that decide which programs run, or which outcomes count.
fn may_be_planted(fact: &Fact) -> bool {
    match fact.kind {
        FactKind::Config | FactKind::Hook | FactKind::OwnFile => true,
        FactKind::Ref => {
            refs::run_of(&fact.name).is_some_and(|run| *fact.name == *refs::record(&run))
        }
        FactKind::Info | FactKind::Surroundings | FactKind::Outcome | FactKind::Worktree => false,
    }
}

fn suspect(difference: &Difference, moment: &Moment, before: &Fingerprint) -> Suspect {
    let fact = &difference.fact;
    let is_program = fact.kind == FactKind::Config && names_a_program(&fact.name);
    let earlier = match *fact == unreadable_configuration() || fact.is_include() {
        true => String::from_utf8(before.of_configuration().to_json()).ok(),
        false if is_program => before.effective(fact),
        false => None,
    };
    Suspect {
        moment: moment.clone(),
        fact: fact.clone(),
        words: difference.words.clone(),
        digest: difference.digest.clone(),
        before: earlier,
        affects_own_config: difference.affects_own_config(),
    }
}

fn report(context: IntegrityContext<'_>, moment: &Moment, differences: &[Difference]) {
    for difference in differences.iter().take(MOST_REPORTED) {
        context.ui.warn(format!("{moment}: {}", difference.words));
    }
    let more = differences.len().saturating_sub(MOST_REPORTED);
    if more > 0 {
        context.ui.warn(format!(
            "{moment}: {more} more changes; `git frites log --json {}` names them",
            moment.run
        ));
    }
    let other = if differences.iter().any(|d| d.reverted) { "nothing else" } else { "nothing" };
    context.ui.hint(format!("an attempt or you did that; {other} was reverted"));
}

fn as_json(difference: &Difference) -> Value {
    let fact = &difference.fact;
    let (from, to) = &difference.texts;
    json!({ "kind": fact.kind, "place": fact.place, "name": fact.name, "from": from, "to": to, "what": difference.words })
}

/// Replaces the overridden settings by those that may be planted now:
///
/// - settings in quarantine that still have the planted value;
/// - settings that have changed since the watched commands of any run started.
///
/// An include can be active in one worktree alone (`onbranch`). So it is not known which settings
/// it brings, and they cannot be overridden by name. While an include may be planted, our calls use
/// a snapshot of the configuration, which has no includes.
pub fn update_overrides(context: IntegrityContext<'_>) -> Result<()> {
    let suspects = quarantine::suspects(context.store);
    let watched = baseline::all(context.store);
    let mut settings = SettingOverrides::default();
    let mut has_include = false;
    if !suspects.is_empty() || !watched.is_empty() {
        let now = fingerprint::configuration(context);
        let mut befores = Vec::new();
        for suspect in suspects.into_iter().filter(|s| s.is_still_there(&now)) {
            befores.extend(suspect.configuration_before());
            if suspect.fact.kind == FactKind::Config {
                settings.add(&suspect.fact.name, suspect.before);
            }
        }
        befores.extend(watched.iter().filter_map(|(_, path)| Some(baseline::read(path)?.0)));
        for before in befores {
            // `add` ignores a setting that is overridden already. That is right, because another
            // run's attempt may have planted the value in `before`.
            for Difference { fact, .. } in compare(&before, &now, Fact::is_configuration) {
                has_include |= fact.is_include();
                if fact.kind == FactKind::Config {
                    settings.add(&fact.name, before.effective(&fact));
                }
            }
        }
    }
    let repo = context.repo();
    repo.overrides().set_settings(settings);
    context.includes.set(repo, has_include)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_the_work_is_returned_and_that_of_the_watch_is_only_a_warning() {
        let fail = |message: &str| Error::fatal(message.to_owned()).hint("a hint");
        let join = |work: Result<u8>, watch: Result<u8>| {
            let mut warned = None;
            let result = with_work(work, watch, |e| warned = Some(e.message.clone()));
            (result.map_err(|e| e.message), warned)
        };
        assert_eq!(join(Ok(1), Ok(2)), (Ok((1, 2)), None));
        assert_eq!(join(Err(fail("a")), Ok(2)), (Err("a".into()), None));
        assert_eq!(join(Ok(1), Err(fail("b"))), (Err("b".into()), None));
        assert_eq!(join(Err(fail("a")), Err(fail("b"))), (Err("a".into()), Some("b".into())));
    }
}
