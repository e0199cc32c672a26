//! Holds the refs of one run in memory while commands run. A command could delete or redirect refs
//! on the disk. Such refs are restored from memory.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::fs::regular;
use crate::git::ref_list::{LINK, RefValues};
use crate::git::repo::Repo;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// The refs of a run as git-frites left them, with their reflogs. [`HeldRefs::restore`] compares
/// them with the refs on the disk.
pub struct HeldRefs {
    run: Name,
    held: BTreeMap<RefName, HeldRef>,
    /// The number of moves in [`Repo::own_moves`] that are noted in `held` already.
    moves_seen: usize,
}

struct HeldRef {
    value: String,
    log: Vec<u8>,
}

/// A move of a ref, made neither by git-frites for a person nor by a capture. A value is an object
/// id, or `ref: ` with the target of a symbolic ref.
pub struct ForeignMove {
    /// The ref.
    pub name: RefName,
    /// The ref's value as git-frites left it; `None` if the ref did not exist.
    pub from: Option<String>,
    /// The value that was found; `None` if the ref is gone.
    pub to: Option<String>,
    /// The result of restoring the ref, or of removing it if it is new. `None` if the ref stays as
    /// it is, because a person may have fetched it.
    pub put_back: Option<Result<()>>,
}

impl HeldRefs {
    /// Holds a run's refs as they are now.
    pub fn take(repo: &Repo, run: &Name) -> Result<HeldRefs> {
        let moves_seen = repo.own_moves.lock().len();
        let mut all = HeldRefs { run: run.clone(), held: BTreeMap::new(), moves_seen };
        for (name, value) in list(repo, run)? {
            let log = regular::read(&log_file(repo, &name)).unwrap_or_default();
            all.held.insert(name, HeldRef { value, log });
        }
        Ok(all)
    }

    /// Returns the moves of refs since the last call, except moves by git-frites for a person and
    /// moves by a capture. Restores a ref in three cases: it is gone, it has become symbolic, or
    /// its new commit does not contain the old one. Also undoes every move that an attempt made by
    /// calling git-frites.
    pub fn restore(&mut self, repo: &Repo) -> Result<Vec<ForeignMove>> {
        self.note_own_moves(repo);
        let now = list(repo, &self.run)?;
        let names: BTreeSet<RefName> = self.held.keys().chain(now.keys()).cloned().collect();
        let mut found = Vec::new();
        for name in names {
            let from = self.held.get(&name).map(|held| held.value.clone());
            let to = now.get(&name).cloned();
            // Another thread of this process may have moved the ref since the moves were noted.
            if from == to || self.moved_since(repo, &name) {
                continue;
            }
            if !is_ours(repo, &name, to.as_deref())? {
                let put_back = self.undo(repo, &name, to.as_deref())?;
                let is_back = matches!(put_back, Some(Ok(())));
                found.push(ForeignMove { name: name.clone(), from, to: to.clone(), put_back });
                if is_back {
                    continue;
                }
            }
            self.hold(&name, to);
        }
        Ok(found)
    }

    /// Notes the value of a ref, and keeps the held reflog. The value is `None` if the ref is gone.
    fn hold(&mut self, name: &RefName, value: Option<String>) {
        let log = self.held.remove(name).map(|held| held.log).unwrap_or_default();
        self.held.extend(value.map(|value| (name.clone(), HeldRef { value, log })));
    }

    /// Restores or removes a ref that somebody else changed. Fast-forwards and new refs are kept,
    /// because they may come from a fetch. Refs with outcomes are always reverted; if they came
    /// from a fetch, the person can fetch again.
    fn undo(&self, repo: &Repo, name: &RefName, to: Option<&str>) -> Result<Option<Result<()>>> {
        // An outcome that git-frites did not store could make another candidate win.
        let by_attempt =
            to.is_some() && (name.contains("/@results/") || repo.reflog_claims_us(name, true)?);
        Ok(match self.held.get(name) {
            Some(held) => {
                let moved_on = to.is_some_and(|to| contains(repo, to, &held.value));
                (by_attempt || !moved_on).then(|| put_back(repo, name, held))
            }
            None => by_attempt.then(|| remove(repo, name)),
        })
    }

    /// True if this process has moved a ref since [`HeldRefs::note_own_moves`] was called.
    fn moved_since(&self, repo: &Repo, name: &RefName) -> bool {
        repo.own_moves.lock()[self.moves_seen..].iter().any(|(moved, _)| moved == name)
    }

    /// Updates `held` with the moves that this process has made since the last call.
    fn note_own_moves(&mut self, repo: &Repo) {
        let moves = repo.own_moves.lock();
        for (name, new) in &moves[self.moves_seen..] {
            if name.starts_with(&format!("refs/frites/{}/", self.run)) {
                self.hold(name, new.map(|new| new.to_string()));
            }
        }
        self.moves_seen = moves.len();
    }
}

/// True if git-frites moved a ref to the value `to` for a person. For the ref of a capture or of
/// its file times, also true if an attempt called git-frites to move the ref.
fn is_ours(repo: &Repo, name: &RefName, to: Option<&str>) -> Result<bool> {
    let Some(to) = to else { return Ok(false) };
    let is_capture = !name.contains("/@") || name.contains("/@mtimes/");
    Ok(!to.starts_with(LINK) && repo.reflog_claims_us(name, is_capture)?)
}

/// The refs of a run with their values. A ref that cannot be read is left out, as in git's own
/// lists.
fn list(repo: &Repo, run: &Name) -> Result<RefValues> {
    repo.ref_values(&format!("refs/frites/{run}/"))
}

/// True if the commit `to` contains the commit `old`.
fn contains(repo: &Repo, to: &str, old: &str) -> bool {
    match (Oid::parse(to), Oid::parse(old)) {
        (Some(to), Some(old)) => repo.is_ancestor(&old, &to).unwrap_or(false),
        _ => false,
    }
}

/// Sets a ref to the held value. If the ref has no reflog, writes the held one.
fn put_back(repo: &Repo, name: &RefName, held: &HeldRef) -> Result<()> {
    let Some(value) = Oid::parse(&held.value) else {
        return Err(Error::fatal("it was a symbolic ref"));
    };
    // A ref below this one, such as `NAME/x`, is not ours, and git could not make the file `NAME`.
    for below in repo.ref_names(&format!("{name}/"))? {
        remove(repo, &below)?;
    }
    let log = log_file(repo, name);
    if !log.exists() && !held.log.is_empty() {
        let written = log.parent().map(fs::create_dir_all).transpose();
        // If the reflog cannot be written, the ref is still right.
        let _ = written.and_then(|_| fs::write(&log, &held.log));
    }
    let set = || repo.overwrite_ref(name, &value, "put back");
    set().or_else(|_| {
        // git does not overwrite a file whose content is not a ref.
        let _ = fs::remove_file(repo.common_dir().join(name.as_str()));
        set()
    })
}

fn remove(repo: &Repo, name: &RefName) -> Result<()> {
    let mut change = repo.record_change([name])?;
    change.run(repo.git().call("update-ref").args(["--no-deref", "-d", name.as_str()]))
}

fn log_file(repo: &Repo, name: &RefName) -> PathBuf {
    repo.common_dir().join("logs").join(name.as_str())
}
