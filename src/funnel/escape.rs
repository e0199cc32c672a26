//! The escape report: what changed outside the worktrees while a run's commands ran, named and never
//! reverted; and what follows from it, that nothing planted runs through git-frites and that `judge`
//! waits for a person when its own configuration changed.
//!
//! Not a sandbox: a command runs as the user and can do what the user can. Another process of ours that
//! works meanwhile looks at the configuration once, at its start.
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::session::Session;
use crate::error::{Error, Result};
use crate::git::differences::{self, Difference};
use crate::git::fingerprint::{self, Fingerprint, Kind, Scope};
use crate::git::frozen::{self, Frozen};
use crate::git::pins::{self, Pins};
use crate::git::repo::Repo;
use crate::model::run::Run;
use crate::oracle::checkout;
use crate::store::Store;
use crate::store::untrusted::Planted;
use crate::ui::Ui;

/// How many differences are told one by one, and how many the event holds.
const MOST_TOLD: usize = 20;
const MOST_KEPT: usize = 500;

/// How everything was before the first command of a run started.
pub struct Watch {
    before: Fingerprint,
    _frozen: Frozen,
}

/// Remembers how everything is. Until the watch ends, captures go by the configuration of now.
pub fn begin(session: &Session, run: &Run) -> Result<Watch> {
    let before = look(session, run);
    session.store.begin_watch(&run.run, &before)?;
    Ok(Watch { before, _frozen: frozen::freeze(&session.repo, &session.store.run_dir(&run.run))? })
}

/// Tells and keeps every difference, after the last command has ended.
pub fn end(session: &Session, run: &Run, watch: Watch) -> Result<Vec<String>> {
    let Watch { before, _frozen } = watch;
    report(session, run, &before)
}

fn report(session: &Session, run: &Run, before: &Fingerprint) -> Result<Vec<String>> {
    let Session { repo, store, ui, .. } = session;
    pin(repo, store, session.home.as_deref(), Some((run, before)))?;
    let differences = differences::compare(before, &look(session, run));
    if !differences.is_empty() {
        tell(ui, run, &differences);
        let details: Vec<Value> = differences.iter().take(MOST_KEPT).map(detail).collect();
        store.record_event("escaped", &run.run, json!({ "count": differences.len(), "differences": details }))?;
        let kept = differences.iter().filter(|d| matches!(d.subject.kind, Kind::Config | Kind::Hook | Kind::OwnFile));
        let planted = kept.map(|difference| Planted {
            run: run.run.clone(),
            subject: difference.subject.clone(),
            words: difference.words.clone(),
            digest: difference.digest.clone(),
            before: before.effective(&difference.subject).filter(|_| pins::names_a_program(&difference.subject)),
            configures_us: difference.configures_us(),
        });
        store.add_planted(planted.collect())?;
    }
    store.end_watch(&run.run)?;
    pin(repo, store, session.home.as_deref(), None)?;
    Ok(differences.into_iter().map(|d| d.words).collect())
}

/// Does for a run whose process was killed what that process would have done at its end.
pub fn recover(session: &Session) -> Result<()> {
    for name in session.store.watched()? {
        let Some(_lock) = session.store.try_lock_run(&name)? else { continue };
        frozen::sweep(&session.store.run_dir(&name));
        match (session.store.run(&session.repo, &name)?, session.store.watch(&name)) {
            (Some(run), Some(before)) => drop(report(session, &run, &before)?),
            _ => session.store.end_watch(&name)?,
        }
    }
    Ok(())
}

/// Pins what is planted now: what is listed and still as it was found, and what has changed since the
/// commands of any run started. `own` is a run of this process, whose file an attempt could have edited.
pub fn pin(repo: &Repo, store: &Store, home: Option<&Path>, own: Option<(&Run, &Fingerprint)>) -> Result<()> {
    let planted = store.planted();
    let watched = store.watched()?;
    let mut set = Pins::default();
    if own.is_some() || !planted.is_empty() || !watched.is_empty() {
        let now = fingerprint::configuration(repo, &scope(home, &|path| is_ours(repo, store, path), &[]));
        for one in planted.iter().filter(|p| p.digest.as_deref() == now.digest(&p.subject)) {
            pins::pin(&one.subject, one.before.clone(), &mut set);
        }
        let others = watched.iter().filter(|name| own.is_none_or(|(run, _)| run.run != **name));
        for before in others.filter_map(|name| store.watch(name)) {
            pins::pin_differences(&before, &now, &mut set);
        }
        if let Some((_, before)) = own {
            pins::pin_differences(before, &now, &mut set);
        }
    }
    pins::set(set);
    Ok(())
}

/// Accepts everything as it is now, for the run that is about to be judged.
pub fn accept(session: &Session, run: &Run) -> Result<()> {
    let Session { repo, store, ui, .. } = session;
    let planted = store.planted();
    for one in &planted {
        ui.note(format!("accepted: {}, while run {}'s commands ran", one.words, one.run));
    }
    store.accept_planted()?;
    if !planted.is_empty() {
        let words: Vec<&String> = planted.iter().map(|p| &p.words).collect();
        store.record_event("trusted", &run.run, json!({ "differences": words }))?;
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
        let more = if suspects.len() > 1 { format!(" and {} more", suspects.len() - 1) } else { String::new() };
        return Err(Error::fatal(format!(
            "the configuration of git-frites changed while run {}'s commands ran: {}{more}",
            first.run, first.words
        ))
        .hint("look at it: `git config --show-origin --get-regexp '^frites[.]'` and .frites.toml")
        .hint(format!(
            "accept it as it is now: `git frites judge --trust-config {}`",
            run.map_or(&first.run, |run| &run.run)
        )));
    }
    // Commands of another run may be at work this moment; what they change has not been told yet.
    let watched = store.watched()?;
    if watched.is_empty() {
        return Ok(());
    }
    let is_ours = |path: &Path| is_ours(repo, store, path);
    let now = fingerprint::configuration(repo, &scope(session.home.as_deref(), &is_ours, &[]));
    for name in watched {
        let Some(before) = store.watch(&name) else { continue };
        let changed = |d: &Difference| d.configures_us() && matches!(d.subject.kind, Kind::Config | Kind::OwnFile);
        if let Some(first) = differences::compare_configuration(&before, &now).into_iter().find(changed) {
            return Err(Error::fatal(format!(
                "the configuration of git-frites has changed since run {name}'s commands started: {}",
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
    let is_ours = |path: &Path| is_ours(repo, store, path);
    let now = fingerprint::take(repo, &scope(session.home.as_deref(), &is_ours, &[]));
    let there = planted.iter().filter(|p| p.digest.is_some() && p.digest.as_deref() == now.digest(&p.subject));
    for one in there.filter(|p| p.subject.kind != Kind::OwnFile).take(MOST_TOLD) {
        ui.warn(format!("your commit obeys what changed while run {}'s commands ran: {}", one.run, one.words));
    }
}

fn look(session: &Session, run: &Run) -> Fingerprint {
    let Session { repo, store, .. } = session;
    let candidates: Vec<(String, PathBuf, bool)> = run
        .candidates
        .iter()
        .map(|name| {
            let removed = store.candidate(repo, run, name).is_ok_and(|c| c.cleaned);
            (format!("{}/{name}", run.run), store.worktree(run, name), removed)
        })
        .collect();
    let is_ours = |path: &Path| is_ours(repo, store, path);
    fingerprint::take(repo, &scope(session.home.as_deref(), &is_ours, &candidates))
}

fn scope<'a>(
    home: Option<&'a Path>,
    is_ours: &'a dyn Fn(&Path) -> bool,
    candidates: &'a [(String, PathBuf, bool)],
) -> Scope<'a> {
    Scope { home, is_ours, candidates }
}

fn is_ours(repo: &Repo, store: &Store, path: &Path) -> bool {
    checkout::is_pristine(path) || store.is_candidates(repo, path).unwrap_or(false)
}

fn tell(ui: &Ui, run: &Run, differences: &[Difference]) {
    let during = format!("while run {}'s commands ran", run.run);
    for difference in differences.iter().take(MOST_TOLD) {
        ui.warn(format!("{during}: {}", difference.words));
    }
    if let Some(more) = differences.len().checked_sub(MOST_TOLD).filter(|n| *n > 0) {
        ui.warn(format!("{during}: {more} more changes; `git frites log --json {}` names them", run.run));
    }
    ui.hint("an attempt did that, or you; nothing was reverted");
}

fn detail(difference: &Difference) -> Value {
    let subject = &difference.subject;
    let (from, to) = &difference.texts;
    json!({ "kind": subject.kind, "place": subject.place, "name": subject.name, "from": from, "to": to, "what": difference.words })
}
