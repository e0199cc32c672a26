//! Rebuilds a run whose refs have vanished, from its files, its worktrees, and the captures that
//! are still in the object store. For example, `git fetch --prune` with a refspec for
//! `refs/frites/*` deletes the refs that the remote does not have.
use crate::error::Result;
use crate::git::refs;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::store::Store;
use crate::store::candidate::CandidateRef;
use crate::store::events::{self, Event};

/// Rebuilds the run `name` if its record is lost. Returns a message for the user; `None` if the
/// record is not lost.
///
/// The verdict is not rebuilt: attempts can write to `.frites/`, so a verdict from there cannot be
/// trusted.
pub fn rebuild(store: &Store, name: &Name) -> Result<Option<String>> {
    let repo = store.repo();
    let is_lost = || Ok(!store.is_active(name) && repo.read_ref(&refs::record(name))?.is_none());
    let Some(run) = store.run_intent(name).filter(|run| run.run == *name) else { return Ok(None) };
    if !is_lost()? {
        return Ok(None);
    }
    let Some(_lock) = store.try_lock_run(name)? else { return Ok(None) };
    // Check again under the lock: the process that makes the run may have written the record in
    // between.
    if !is_lost()? || store.run_intent(name).is_none() {
        return Ok(None);
    }
    if !repo.is_commit(&run.base) {
        let directory = store.run_dir(name);
        return Ok(Some(format!(
            "run {name} has lost its refs, and its base {} is gone: fetch that commit, or remove '{}'",
            run.base.short(),
            directory.path().display()
        )));
    }
    let events = events::read_of(&store.dir().events(), name)?;
    let mut lost = Vec::new();
    for candidate in store.candidates(&run) {
        let commits = captures_of(&events, candidate.name);
        let is_restored = restore_capture(store, candidate, &commits)?;
        if !is_restored && !commits.is_empty() && !candidate.worktree().is_dir() {
            lost.push(candidate.address());
        }
    }
    store.save_record(&run, None, &[])?;
    let mut message = format!(
        "run {name} had lost its refs, and was rebuilt from its worktrees and captures; judge it again"
    );
    if !lost.is_empty() {
        message.push_str(&format!("; nothing is left of {}", lost.join(", ")));
    }
    Ok(Some(message))
}

/// The commits of a candidate's captures in the event log, newest first.
fn captures_of(events: &[Event], name: &Name) -> Vec<Oid> {
    let newest_first = events.iter().rev();
    let captured = newest_first.filter_map(|event| match event {
        Event::Captured { candidate, commit, .. } if candidate == name => Some(*commit),
        _ => None,
    });
    captured.collect()
}

/// Sets a candidate's ref to the newest of these commits that is a whole capture of this candidate.
/// All objects of the commit must exist, and its message must name the run and the candidate. True
/// if the candidate has a capture afterwards.
fn restore_capture(store: &Store, candidate: CandidateRef<'_>, commits: &[Oid]) -> Result<bool> {
    let repo = store.repo();
    let name = candidate.capture_ref();
    if repo.read_ref(&name)?.is_some() {
        return Ok(true);
    }
    let Run { run, base, .. } = candidate.run;
    for commit in commits.iter().filter(|commit| repo.is_commit(commit)) {
        let message = repo.commit(commit)?.message;
        let is_capture = Trailer::Run.find(&message) == Some(run.as_str())
            && Trailer::Candidate.find(&message) == Some(candidate.name.as_str());
        if is_capture && repo.set_ref_whole(&name, commit, None, &[base], "rebuilt").is_ok() {
            return Ok(true);
        }
    }
    Ok(false)
}
