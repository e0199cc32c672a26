//! The state between commands: records in refs and files, locks, events (DESIGN.md §4).
//!
//! Refs and commits are authoritative. The files under `.frites/` serve people and speed, and can
//! be rebuilt. An attempt can write there, so no decision rests on these files alone.
pub mod candidate;
pub mod events;
pub mod intents;
pub mod landed;
pub mod logs;
pub mod parts;
pub mod records;
pub mod select;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Cause, Error, IoContext, Result};
use crate::fs::removals::Removals;
use crate::fs::tree;
use crate::fs::{
    atomic,
    lock::{self, Lock},
};
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
    /// The files of the commits of records that were read.
    record_files: Mutex<BTreeMap<Oid, Arc<BTreeMap<String, Oid>>>>,
    /// The removals in the background, for which the command waits at its end.
    removals: Arc<Removals>,
}

impl Store {
    /// The repository whose state this is.
    pub fn repo(&self) -> &Repo {
        &self.repo
    }

    /// The removals that this process has started in the background.
    pub fn removals(&self) -> &Arc<Removals> {
        &self.removals
    }

    /// The paths of the state.
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

    /// Creates the state directory, with a `.gitignore` that hides it from git. Every change takes a lock
    /// first, and every lock calls this function.
    fn prepare(&self) -> Result<&StateDir> {
        let ignore = self.dir.ignore();
        if !ignore.exists() {
            atomic::write(&ignore, b"*\n")?;
        }
        Ok(&self.dir)
    }

    /// Restores the `.gitignore` of the state root if something other than a regular file is in its place:
    /// if it were a FIFO, git would wait for ever.
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

    /// The directory that holds the worktrees of all runs, unless a run's record names another.
    pub fn worktrees(&self, configured: Option<&str>) -> PathBuf {
        let home = self.dir.path().parent().unwrap_or(self.dir.path());
        match configured {
            // As in git's admin directories, the path has no `..`, and links are resolved.
            Some(directory) => tree::nearest_real(&home.join(directory)),
            None => self.dir.worktrees(),
        }
    }

    /// True if a checkout is a candidate's worktree, in any directory that a run uses for worktrees.
    pub fn is_candidates(&self, checkout: &Path) -> Result<bool> {
        if checkout.starts_with(self.worktrees(None)) {
            return Ok(true);
        }
        Ok(self.candidate_at(checkout)?.is_some())
    }

    /// The candidate whose worktree this checkout is; `None` if it is not a candidate's worktree.
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

    /// The root of the user's own checkout; `None` in a bare repository. In a candidate's worktree it
    /// is the main worktree, because an attempt may have edited the candidate's files.
    pub fn users_checkout(&self) -> Result<Option<PathBuf>> {
        let Some(here) = self.repo.work_tree() else { return Ok(None) };
        let root = if self.is_candidates(here)? { self.repo.main_worktree() } else { Some(here) };
        Ok(root.map(Path::to_owned))
    }

    /// Appends an event to the log. Call this after the event, never before.
    pub fn record_event(&self, run: &Name, event: &Event) -> Result<()> {
        // The event is recorded even if the run's record cannot be read.
        events::append(&self.dir.events(), run, self.run(run).ok().flatten().as_ref(), event)
    }

    /// Appends the last event of a run whose record is gone.
    pub fn record_last_event(&self, run: &Run, event: &Event) -> Result<()> {
        events::append(&self.dir.events(), &run.run, Some(run), event)
    }

    /// Waits for the repository lock. Its holder may number runs, and may add and remove admin
    /// directories.
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

    /// Takes the lock under which a cleaning is started in the background; `None` if another
    /// process holds it.
    pub fn try_lock_auto_clean(&self) -> Result<Option<Lock>> {
        lock::attempt(&self.prepare()?.auto_clean_lock())
    }

    /// Takes a run's lock; `None` if another process holds it. A process that makes, runs, judges
    /// or cleans a run holds its lock throughout.
    pub fn try_lock_run(&self, run: &Name) -> Result<Option<Lock>> {
        lock::attempt(&self.prepare()?.run_lock(run))
    }

    /// Takes a run's lock. Fails if another process holds it.
    pub fn lock_run(&self, run: &Name) -> Result<Lock> {
        self.try_lock_run(run)?.ok_or_else(|| busy(run))
    }

    /// Takes a run's lock, and reads the run again: its record may have changed since it was last read, and
    /// a changed record must be based on the newest. Fails if another process holds the lock, or has
    /// removed the run.
    pub fn lock_and_read(&self, run: &Name) -> Result<(Lock, Run)> {
        let lock = self.lock_run(run)?;
        match self.run(run)? {
            Some(run) => Ok((lock, run)),
            None => Err(Error::fatal(format!("run {run} was removed meanwhile"))
                .hint("`git frites status` lists the runs")),
        }
    }

    /// Takes a run's lock in shared mode, to judge single candidates. Fails if another process holds it
    /// exclusively.
    pub fn share_run(&self, run: &Name) -> Result<Lock> {
        lock::attempt_shared(&self.prepare()?.run_lock(run))?.ok_or_else(|| busy(run))
    }

    /// Waits for a candidate's lock, which allows capturing and changing the record. Afterwards the
    /// candidate's directory exists, and anything that an attempt put in the place of the directory or of
    /// its files is removed.
    pub fn lock_candidate(&self, run: &Name, candidate: &Name) -> Result<Lock> {
        let lock = lock::wait(&self.prepare()?.candidate_lock(run, candidate))?;
        let dir = self.candidate_dir(run, candidate);
        // The directory is checked before its files, and no link is followed, because the target of a link
        // is not ours.
        if dir.path().symlink_metadata().is_ok_and(|m| !m.is_dir()) {
            remove(dir.path())?;
        }
        for file in [dir.record(), dir.index(), dir.seeds()] {
            match file.symlink_metadata() {
                Ok(meta) if meta.is_dir() => {
                    tree::delete_tree(&file)
                        .context(|| format!("could not remove '{}'", file.display()))?;
                }
                Ok(meta) if !meta.is_file() => remove(&file)?,
                _ => {}
            }
        }
        let dir = dir.path();
        std::fs::create_dir_all(dir).context(|| format!("could not make '{}'", dir.display()))?;
        Ok(lock)
    }

    /// The directory in which layers over the user's directories are tried. Creates the state root.
    pub fn probe_room(&self) -> Result<PathBuf> {
        Ok(self.prepare()?.probe())
    }

    /// Removes the temporary files that killed processes left in the directories of this run, and in
    /// those that all runs share.
    pub fn remove_abandoned_files(&self, run: &Run) {
        let dir = &self.dir;
        let of_run = self.run_dir(&run.run);
        let mut ours = vec![dir.path().to_owned(), dir.landings(), dir.landings_of_run(&run.run)];
        ours.push(of_run.path().to_owned());
        for name in &run.candidates {
            ours.push(of_run.candidate(name).path().to_owned());
        }
        // An attempt can put a link in the place of a directory, and the target of a link is not ours.
        ours.retain(|path| tree::is_real_directory(dir.path(), path));
        ours.iter().for_each(|path| atomic::remove_abandoned(path));
    }

    /// The runs that have a directory; their records may be incomplete.
    pub fn run_directories(&self) -> Result<Vec<Name>> {
        let path = self.dir.runs();
        let failed = || format!("could not list '{}'", path.display());
        let listing = match std::fs::read_dir(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listing => listing.context(failed)?,
        };
        let mut names = Vec::new();
        for entry in listing {
            names.extend(entry.context(failed)?.file_name().to_str().and_then(|n| n.parse().ok()));
        }
        Ok(names)
    }

    /// The runs that have a directory; true for each on which work is under way, or was killed.
    pub fn run_activities(&self) -> Result<Vec<(Name, bool)>> {
        let names = self.run_directories()?.into_iter();
        Ok(names.map(|name| (name.clone(), self.is_active(&name))).collect())
    }
}

fn busy(run: &Name) -> Error {
    Error::fatal(format!("run {run} is still at work in another process"))
        .because(Cause::RunBusy(run.to_string()))
}

/// Removes a file. A missing file is not an error.
pub fn remove(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(e).context(|| format!("could not remove '{}'", file.display()))
        }
        _ => Ok(()),
    }
}
