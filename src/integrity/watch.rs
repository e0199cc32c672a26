//! The escape report: what changed outside the worktrees while a run's commands ran, or while it was judged, which
//! runs the attempts' code; named and never reverted. And what follows from it, that nothing planted runs through
//! git-frites and that `judge` waits for a person when its own configuration changed.
//!
//! Not a sandbox: a command runs as the user and can do what the user can. Another process of ours that
//! works meanwhile looks at the configuration once, at its start.
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::git::refs;
use crate::git::repo::Repo;
use crate::integrity::baseline::{self, WatchDir};
use crate::integrity::config_snapshot::{self, Frozen};
use crate::integrity::diff::{self, Difference};
use crate::integrity::fingerprint::{self, Fingerprint, Kind, Scope, Subject};
use crate::integrity::overrides::{self, Pins};
use crate::integrity::quarantine::{Moment, Planted};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::oracle::pool;
use crate::store::Store;
use crate::store::events;
use crate::store::events::Event;
use crate::ui::Ui;

/// How many differences are told one by one, and how many the event holds.
const MOST_TOLD: usize = 20;
const MOST_KEPT: usize = 500;

/// What shows without calling git whether anything decisive may have changed.
type Stamps = Vec<(PathBuf, Option<[i64; 4]>)>;

/// How everything was before the first command started, and what changed since as far as it is told.
pub struct Watch {
    before: Fingerprint,
    stamps: Stamps,
    judging: bool,
    told: Told,
    dir: WatchDir,
    _frozen: Frozen,
}

/// What was told of changes.
#[derive(Default)]
pub struct Told {
    /// Each, in words.
    pub words: Vec<String>,
    /// Whether one of them may make commands end otherwise than before.
    pub bends_outcomes: bool,
}

/// Remembers how everything is, before a run's own commands start or, if it is `judging`, those of the oracle. Until
/// the watch ends, captures and checkouts go by the configuration of now.
pub fn begin(session: &Session, run: &Run, judging: bool) -> Result<Watch> {
    let stamps = stamps(session);
    let before = look(session, run);
    let dir = session.store.open_watch(&run.run)?;
    dir.save(&before, judging)?;
    let frozen = config_snapshot::freeze(&session.repo, dir.path())?;
    Ok(Watch { before, stamps, judging, told: Told::default(), dir, _frozen: frozen })
}

impl Watch {
    /// Tells and keeps what decisive things have changed since the last look, before the next command starts, if
    /// that can be seen for next to nothing. `candidate` is the only one that can have done it.
    pub fn look_again(&mut self, session: &Session, candidate: Option<&Name>) -> Result<()> {
        let stamps = stamps(session);
        if stamps != self.stamps {
            let is_ours = |path: &Path| is_ours(&session.store, path);
            let now = fingerprint::decisive(
                &session.repo,
                &scope(session.home.as_deref(), &is_ours, &[]),
            );
            let differences = diff::compare_decisive(&self.before, &now);
            if !differences.is_empty() {
                let moment = self.moment(candidate.cloned());
                self.told.add(tell_and_keep(session, &moment, &self.before, differences)?);
                self.before.replace_decisive(now);
                self.dir.save(&self.before, self.judging)?;
                pin(
                    &session.repo,
                    &session.store,
                    session.home.as_deref(),
                    Some((&self.dir, &self.before)),
                )?;
            }
            self.stamps = stamps;
        }
        Ok(())
    }

    /// Whether something was told that may make commands end otherwise than before.
    pub fn bends_outcomes(&self) -> bool {
        self.told.bends_outcomes
    }

    /// Tells and keeps every difference, after the last command has ended.
    pub fn end(self, session: &Session, run: &Run) -> Result<Told> {
        let moment = self.moment(None);
        let Watch { before, mut told, dir, _frozen: frozen, .. } = self;
        told.add(report(session, run, &moment, &before, &dir)?);
        drop(frozen);
        close(session, dir)?;
        Ok(told)
    }

    fn moment(&self, candidate: Option<Name>) -> Moment {
        Moment { run: self.dir.run().clone(), judging: self.judging, candidate }
    }
}

impl Told {
    fn add(&mut self, differences: Vec<Difference>) {
        self.bends_outcomes |= differences.iter().any(Difference::bends_outcomes);
        self.words.extend(differences.into_iter().map(|d| d.words));
    }
}

fn report(
    session: &Session,
    run: &Run,
    moment: &Moment,
    before: &Fingerprint,
    dir: &WatchDir,
) -> Result<Vec<Difference>> {
    pin(&session.repo, &session.store, session.home.as_deref(), Some((dir, before)))?;
    let mut differences = diff::compare(before, &look(session, run));
    let mut others = Vec::new();
    for difference in differences.drain(..) {
        if !is_our_doing(session, run, before, &difference)? {
            others.push(difference);
        }
    }
    tell_and_keep(session, moment, before, others)
}

/// Whether git-frites itself moved a ref of its own, in this process or another: for a person, or for an attempt in a
/// run that is new. Refs of the run itself move all the time.
fn is_our_doing(
    session: &Session,
    run: &Run,
    before: &Fingerprint,
    difference: &Difference,
) -> Result<bool> {
    let Session { repo, store, .. } = session;
    let Subject { kind: Kind::Ref, name, .. } = &difference.subject else { return Ok(false) };
    let Some(owner) = refs::run_of(name) else { return Ok(false) };
    if owner == run.run {
        return Ok(true);
    }
    if difference.digest.is_some() {
        let record = Subject {
            kind: Kind::Ref,
            place: String::new(),
            name: refs::record(&owner).to_string(),
        };
        return repo
            .reflog_claims_us(&RefName::new(name.as_str()), before.digest(&record).is_none());
    }
    // The outcome of one candidate goes when all are judged.
    if **name != *refs::record(&owner) && name.contains("/@results/") {
        return Ok(true);
    }
    // Gone with its log: then the event log says who did it, when that is done.
    if store.try_lock_run(&owner)?.is_none() {
        return Ok(true);
    }
    let forgotten = |e: &Map<String, Value>| {
        matches!(
            serde_json::from_value(Value::Object(e.clone())),
            Ok(Event::Forgotten { by: None })
        )
    };
    let events = events::read(&store.events())?;
    Ok(events.iter().any(|e| forgotten(e) && e.get("run") == Some(&json!(owner))))
}

/// Refuses a run whose record somebody else wrote while commands ran: it may say that something passed that did not.
pub fn require_own_record(session: &Session, run: &Run) -> Result<()> {
    let Session { repo, store, .. } = session;
    let name = refs::record(&run.run);
    let now = repo.read_ref(&name)?;
    let is_record = |p: &&Planted| p.subject.kind == Kind::Ref && *p.subject.name == *name;
    match store
        .planted()
        .iter()
        .find(is_record)
        .filter(|p| p.digest.as_deref() == now.as_ref().map(Oid::as_str))
    {
        None => Ok(()),
        Some(planted) => Err(Error::no(format!(
            "nothing in run {} is verified: its record is not what its last judging wrote; {}, {}",
            run.run, planted.moment, planted.words
        ))
        .hint(format!("judge it again: `git frites judge {}`", run.run))),
    }
}

fn close(session: &Session, dir: WatchDir) -> Result<()> {
    dir.close()?;
    pin(&session.repo, &session.store, session.home.as_deref(), None)
}

/// Tells the differences, if there are any, and keeps those that may have been planted.
fn tell_and_keep(
    session: &Session,
    moment: &Moment,
    before: &Fingerprint,
    differences: Vec<Difference>,
) -> Result<Vec<Difference>> {
    let Session { store, ui, .. } = session;
    if differences.is_empty() {
        return Ok(differences);
    }
    tell(ui, moment, &differences);
    let list: Vec<Value> = differences.iter().take(MOST_KEPT).map(detail).collect();
    let event = Event::Escaped {
        count: differences.len(),
        judging: moment.judging,
        candidate: moment.candidate.clone(),
        differences: list,
    };
    store.record_event(&moment.run, &event)?;
    let planted = |subject: &Subject| match subject.kind {
        Kind::Config | Kind::Hook | Kind::OwnFile => true,
        Kind::Ref => {
            refs::run_of(&subject.name).is_some_and(|run| *subject.name == *refs::record(&run))
        }
        _ => false,
    };
    let kept = differences.iter().filter(|d| planted(&d.subject));
    let planted = kept.map(|difference| Planted {
        moment: moment.clone(),
        subject: difference.subject.clone(),
        words: difference.words.clone(),
        digest: difference.digest.clone(),
        before: before
            .effective(&difference.subject)
            .filter(|_| overrides::names_a_program(&difference.subject)),
        configures_us: difference.configures_us(),
    });
    store.add_planted(planted.collect())?;
    Ok(differences)
}

/// Does for a run whose process was killed what that process would have done at its end.
pub fn recover(session: &Session) -> Result<()> {
    for (name, path) in session.store.watches() {
        let Some(dir) = session.store.inherit_watch(&name, &path)? else { continue };
        match (session.store.run(&name)?, baseline::read(&path)) {
            (Some(run), Some((before, judging))) => {
                let moment = Moment { run: name, judging, candidate: None };
                report(session, &run, &moment, &before, &dir)?;
                close(session, dir)?;
            }
            _ => dir.close()?,
        }
    }
    Ok(())
}

/// Pins what is planted now: what is listed and still as it was found, and what has changed since the
/// commands of any run started. `own` is a watch of this process, whose file an attempt could have edited.
pub fn pin(
    repo: &Repo,
    store: &Store,
    home: Option<&Path>,
    own: Option<(&WatchDir, &Fingerprint)>,
) -> Result<()> {
    let planted = store.planted();
    let watched = store.watches();
    let mut set = Pins::default();
    if own.is_some() || !planted.is_empty() || !watched.is_empty() {
        let now = fingerprint::configuration(repo, &scope(home, &|path| is_ours(store, path), &[]));
        for one in planted.iter().filter(|p| p.digest.as_deref() == now.digest(&p.subject)) {
            overrides::pin(&one.subject, one.before.clone(), &mut set);
        }
        let others =
            watched.iter().filter(|(_, path)| own.is_none_or(|(dir, _)| dir.path() != path));
        for (before, _) in others.filter_map(|(_, path)| baseline::read(path)) {
            overrides::pin_differences(&before, &now, &mut set);
        }
        if let Some((_, before)) = own {
            overrides::pin_differences(before, &now, &mut set);
        }
    }
    overrides::set(set);
    Ok(())
}

/// Accepts everything as it is now, for the run that is about to be judged.
pub fn accept(session: &Session, run: &Run) -> Result<()> {
    let Session { repo, store, ui, .. } = session;
    let planted = store.planted();
    for one in &planted {
        ui.note(format!("accepted: {}, {}", one.words, one.moment));
    }
    store.accept_planted()?;
    if !planted.is_empty() {
        let differences = planted.iter().map(|p| p.words.clone()).collect();
        store.record_event(&run.run, &Event::Trusted { differences })?;
    }
    pin(repo, store, session.home.as_deref(), None)
}

/// Refuses to run what our own configuration names while it is not what the user left. `run` is the one
/// to be judged; without it a run is to be made, whose setup the configuration names.
pub fn require_trust(session: &Session, run: Option<&Run>) -> Result<()> {
    let Session { repo, store, .. } = session;
    let planted = store.planted();
    let suspects: Vec<&Planted> = planted.iter().filter(|p| p.configures_us).collect();
    if let Some(first) = suspects.first() {
        let more = if suspects.len() > 1 {
            format!(" and {} more", suspects.len() - 1)
        } else {
            String::new()
        };
        return Err(Error::fatal(format!(
            "the configuration of git-frites changed {}: {}{more}",
            first.moment, first.words
        ))
        .hint("look at it: `git config --show-origin --get-regexp '^frites[.]'` and .frites.toml")
        .hint(format!(
            "accept it as it is now: `git frites judge --trust-config {}`",
            run.map_or(&first.moment.run, |run| &run.run)
        )));
    }
    // Commands of another run may be at work this moment; what they change has not been told yet.
    let watched = store.watches();
    if watched.is_empty() {
        return Ok(());
    }
    let is_ours = |path: &Path| is_ours(store, path);
    let now = fingerprint::configuration(repo, &scope(session.home.as_deref(), &is_ours, &[]));
    for (name, path) in watched {
        let Some((before, judging)) = baseline::read(&path) else { continue };
        let changed = |d: &Difference| {
            d.configures_us() && matches!(d.subject.kind, Kind::Config | Kind::OwnFile)
        };
        if let Some(first) = diff::compare_configuration(&before, &now).into_iter().find(changed) {
            let since = if judging { "judging" } else { "commands" };
            return Err(Error::fatal(format!(
                "the configuration of git-frites has changed since run {name}'s {since} started: {}",
                first.words
            ))
            .hint(format!("wait until they have ended; `git frites status {name}` shows how far they are")));
        }
    }
    Ok(())
}

/// Says before the user's own commit what it will obey that attempts may have planted.
pub fn before_commit(session: &Session) {
    let Session { repo, store, ui, .. } = session;
    let planted = store.planted();
    if planted.is_empty() {
        return;
    }
    let is_ours = |path: &Path| is_ours(store, path);
    let now = fingerprint::take(repo, &scope(session.home.as_deref(), &is_ours, &[]));
    let there = planted
        .iter()
        .filter(|p| p.digest.is_some() && p.digest.as_deref() == now.digest(&p.subject));
    for one in there.filter(|p| matches!(p.subject.kind, Kind::Config | Kind::Hook)).take(MOST_TOLD)
    {
        ui.warn(format!("your commit obeys what changed {}: {}", one.moment, one.words));
    }
}

fn stamps(session: &Session) -> Stamps {
    let is_ours = |path: &Path| is_ours(&session.store, path);
    fingerprint::stamps(&session.repo, &scope(session.home.as_deref(), &is_ours, &[]))
}

fn look(session: &Session, run: &Run) -> Fingerprint {
    let Session { repo, store, .. } = session;
    let candidates: Vec<(String, PathBuf, bool)> = store
        .candidates(run)
        .map(|candidate| {
            let removed = candidate.record().is_ok_and(|c| c.cleaned);
            (candidate.address(), candidate.worktree(), removed)
        })
        .collect();
    let is_ours = |path: &Path| is_ours(store, path);
    fingerprint::take(repo, &scope(session.home.as_deref(), &is_ours, &candidates))
}

fn scope<'a>(
    home: Option<&'a Path>,
    is_ours: &'a dyn Fn(&Path) -> bool,
    candidates: &'a [(String, PathBuf, bool)],
) -> Scope<'a> {
    Scope { home, is_ours, candidates }
}

fn is_ours(store: &Store, path: &Path) -> bool {
    pool::is_pristine(path) || store.is_candidates(path).unwrap_or(false)
}

fn tell(ui: &Ui, moment: &Moment, differences: &[Difference]) {
    for difference in differences.iter().take(MOST_TOLD) {
        ui.warn(format!("{moment}: {}", difference.words));
    }
    if let Some(more) = differences.len().checked_sub(MOST_TOLD).filter(|n| *n > 0) {
        ui.warn(format!(
            "{moment}: {more} more changes; `git frites log --json {}` names them",
            moment.run
        ));
    }
    ui.hint("an attempt did that, or you; nothing was reverted");
}

fn detail(difference: &Difference) -> Value {
    let subject = &difference.subject;
    let (from, to) = &difference.texts;
    json!({ "kind": subject.kind, "place": subject.place, "name": subject.name, "from": from, "to": to, "what": difference.words })
}
