//! The state that git-frites keeps between its commands: records in refs and files, locks, and
//! events (DESIGN.md §4).
//!
//! Refs and commits are authoritative. The files under `.frites/` are for people and for speed, and
//! can be rebuilt. An attempt can write to these files, so no decision depends on them alone.
pub mod candidate;
pub mod events;
pub mod intents;
pub mod landed;
pub mod logs;
pub mod parts;
pub mod records;
pub mod select;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Cause, Error, IfExists, IoContext, Result};
use crate::fs::lock::{self, Lock};
use crate::fs::removals::Removals;
use crate::fs::{atomic, tree};
use crate::git::repo::Repo;
use crate::model::layout::{CandidateDir, RunDir, StateDir};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::store::events::Event;

/// A repository's state: the directory `.frites`, and the records in refs.
pub struct Store {
    repo: Arc<Repo>,
    dir: StateDir,
    /// The files of each record commit that was already read, by the commit's id.
    record_files: Mutex<BTreeMap<Oid, Arc<BTreeMap<String, Oid>>>>,
    /// The removals in the background. The process waits for them before it exits.
    removals: Arc<Removals>,
}

impl Store {
    pub fn repo(&self) -> &Repo {
        &self.repo
    }

    /// The removals that this process has started in the background.
    pub fn removals(&self) -> &Arc<Removals> {
        &self.removals
    }

    pub fn dir(&self) -> &StateDir {
        &self.dir
    }

    /// The state of a repository. Creates nothing.
    pub fn of(repo: &Arc<Repo>) -> Store {
        Store {
            repo: repo.clone(),
            dir: repo.state_dir(),
            record_files: Mutex::default(),
            removals: Arc::default(),
        }
    }

    /// Creates the state directory, with a `.gitignore` that hides it from git. Every function that
    /// takes a lock calls this. Every change takes a lock first.
    fn prepare(&self) -> Result<&StateDir> {
        let ignore = self.dir.ignore();
        if !ignore.exists() {
            atomic::write(&ignore, b"*\n")?;
        }
        Ok(&self.dir)
    }

    /// Restores the `.gitignore` of the state directory if it is neither a file nor a directory.
    /// git would wait for ever for a FIFO.
    pub fn restore_ignore(&self) -> Result<()> {
        let ignore = self.dir.ignore();
        match std::fs::metadata(&ignore) {
            Ok(meta) if !meta.is_file() && !meta.is_dir() => atomic::write(&ignore, b"*\n"),
            _ => Ok(()),
        }
    }

    /// `runs/RUN/`.
    pub fn run_dir(&self, run: &Name) -> RunDir {
        self.dir.run(run)
    }

    /// `runs/RUN/CAND/`.
    pub fn candidate_dir(&self, run: &Name, candidate: &Name) -> CandidateDir {
        self.run_dir(run).candidate(candidate)
    }

    /// The directory with the worktrees of runs. `configured` is the directory that a run's record
    /// or the configuration names. `None` means the default directory.
    pub fn worktrees(&self, configured: Option<&str>) -> PathBuf {
        let home = self.dir.path().parent().unwrap_or(self.dir.path());
        match configured {
            // The path has no `..`, and links in it are resolved. git does the same in its
            // administrative entries.
            Some(directory) => tree::nearest_real(&home.join(directory)),
            None => self.dir.worktrees(),
        }
    }

    /// True if a checkout is a candidate's worktree, even if the run does not use the default
    /// directory for worktrees.
    pub fn is_candidates(&self, checkout: &Path) -> Result<bool> {
        if checkout.starts_with(self.worktrees(None)) {
            return Ok(true);
        }
        Ok(self.candidate_at(checkout)?.is_some())
    }

    /// The candidate whose worktree this checkout is. `None` if it is no candidate's worktree.
    pub fn candidate_at(&self, checkout: &Path) -> Result<Option<(Run, Name)>> {
        let name = |path: Option<&Path>| path?.file_name()?.to_str()?.parse::<Name>().ok();
        let (Some(run), Some(candidate)) = (name(checkout.parent()), name(Some(checkout))) else {
            return Ok(None);
        };
        let Some(run) = self.run(&run)? else { return Ok(None) };
        let is_there = run.candidates.contains(&candidate)
            && self.candidate(&run, &candidate).worktree() == checkout;
        Ok(is_there.then_some((run, candidate)))
    }

    /// The root of the user's own checkout; `None` in a bare repository. Inside a candidate's
    /// worktree, this is the main worktree. An attempt may have edited the files in the candidate's
    /// worktree.
    pub fn users_checkout(&self) -> Result<Option<PathBuf>> {
        let Some(here) = self.repo.work_tree() else { return Ok(None) };
        let root = if self.is_candidates(here)? { self.repo.main_worktree() } else { Some(here) };
        Ok(root.map(Path::to_owned))
    }

    /// Appends an event to the log. Call this after the event has happened, never before.
    pub fn record_event(&self, run: &Name, event: &Event) -> Result<()> {
        // The event is recorded even if the run's record cannot be read.
        events::append(&self.dir.events(), run, self.run(run).ok().flatten().as_ref(), event)
    }

    /// Appends the last event of a run whose record was just removed.
    pub fn record_last_event(&self, run: &Run, event: &Event) -> Result<()> {
        events::append(&self.dir.events(), &run.run, Some(run), event)
    }

    /// Waits for the repository lock. With it, a process may give a number to a new run, and may
    /// add and remove administrative entries of worktrees.
    pub fn lock_repository(&self) -> Result<Lock> {
        lock::wait(&self.prepare()?.repository_lock())
    }

    /// Waits for the landing lock.
    pub fn lock_landing(&self) -> Result<Lock> {
        lock::wait(&self.prepare()?.landing_lock())
    }

    /// Takes the landing lock; `None` if another process holds it.
    pub fn try_lock_landing(&self) -> Result<Option<Lock>> {
        lock::attempt(&self.prepare()?.landing_lock())
    }

    /// Takes the lock with which a process starts a cleaning in the background. `None` if another
    /// process holds it.
    pub fn try_lock_auto_clean(&self) -> Result<Option<Lock>> {
        lock::attempt(&self.prepare()?.auto_clean_lock())
    }

    /// Takes a run's lock; `None` if another process holds it. A process that makes, runs, judges
    /// or cleans a run holds the run's lock until it is done.
    pub fn try_lock_run(&self, run: &Name) -> Result<Option<Lock>> {
        lock::attempt(&self.prepare()?.run_lock(run))
    }

    /// Takes a run's lock. Fails if another process holds it.
    pub fn lock_run(&self, run: &Name) -> Result<Lock> {
        self.try_lock_run(run)?.ok_or_else(|| busy(run))
    }

    /// Takes a run's lock, and reads the run's record again, because another process may have
    /// changed it. Fails if another process holds the lock or has removed the run.
    pub fn lock_and_read(&self, run: &Name) -> Result<(Lock, Run)> {
        let lock = self.lock_run(run)?;
        let found = self.run(run)?.ok_or_else(|| {
            Error::fatal(format!("run {run} was removed meanwhile"))
                .hint("`git frites status` lists the runs")
        });
        Ok((lock, found?))
    }

    /// Takes a run's lock in shared mode, so that several processes can judge single candidates.
    /// Fails if another process holds the lock exclusively.
    pub fn share_run(&self, run: &Name) -> Result<Lock> {
        lock::attempt_shared(&self.prepare()?.run_lock(run))?.ok_or_else(|| busy(run))
    }

    /// Waits for a candidate's lock. With it, a process may capture the candidate and change its
    /// record. Makes the candidate's directory. If an attempt has put something in the place of the
    /// directory or of its files, removes that.
    pub fn lock_candidate(&self, run: &Name, candidate: &Name) -> Result<Lock> {
        let lock = lock::wait(&self.prepare()?.candidate_lock(run, candidate))?;
        let dir = self.candidate_dir(run, candidate);
        // The directory is checked before its files, so that no link is followed. The target of a
        // link is not ours.
        make_real_directory(dir.path())?;
        for file in [dir.record(), dir.index(), dir.seeds()] {
            if file.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
                tree::delete_tree(&file).could_not("remove", &file)?;
            }
        }
        Ok(lock)
    }

    /// The directory in which git-frites tests whether layers over the user's directories are
    /// possible. Creates the state directory.
    pub fn probe_room(&self) -> Result<PathBuf> {
        Ok(self.prepare()?.probe())
    }

    /// Removes the temporary files that killed processes left in the directories of this run, and
    /// in those that all runs share.
    pub fn remove_abandoned_files(&self, run: &Run) {
        let dir = &self.dir;
        let of_run = self.run_dir(&run.run);
        let mut ours = vec![dir.path().to_owned(), dir.landings(), dir.landings_of_run(&run.run)];
        ours.push(of_run.path().to_owned());
        ours.extend(run.candidates.iter().map(|name| of_run.candidate(name).path().to_owned()));
        // An attempt can put a link in the place of a directory. Links are left out, because the
        // target of a link is not ours.
        ours.retain(|path| tree::is_real_directory(dir.path(), path));
        ours.iter().for_each(|path| atomic::remove_abandoned(path));
    }

    /// The names of the runs that have a directory in the state directory. Such a run may be
    /// incomplete.
    pub fn run_directories(&self) -> Result<Vec<Name>> {
        let path = self.dir.runs();
        let failed = || format!("could not list '{}'", path.display());
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&path).if_exists().context(failed)?.into_iter().flatten() {
            names.extend(entry.context(failed)?.file_name().to_str().and_then(|n| n.parse().ok()));
        }
        Ok(names)
    }

    /// The runs that have a directory in the state directory, each with a flag. It is true if work
    /// on the run is under way or its process was killed.
    pub fn run_activities(&self) -> Result<Vec<(Name, bool)>> {
        let names = self.run_directories()?.into_iter();
        Ok(names.map(|name| (name.clone(), self.is_active(&name))).collect())
    }
}

fn busy(run: &Name) -> Error {
    Error::fatal(format!("run {run} is still at work in another process"))
        .because(Cause::RunBusy(run.to_string()))
}

/// Makes a directory. If an attempt has put something else in its place, e.g. a link, removes that
/// first.
fn make_real_directory(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
        tree::delete_tree(path).could_not("remove", path)?;
    }
    std::fs::create_dir_all(path).could_not("make", path)
}

/// Removes a file. It is not an error if the file does not exist.
pub fn remove(file: &Path) -> Result<()> {
    std::fs::remove_file(file).if_exists().map(drop).could_not("remove", file)
}
