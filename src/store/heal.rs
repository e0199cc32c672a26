//! Healing: what a killed git-frites left half made is taken back or marked by the next command.
//!
//! While a run is being made, or its commands run, a file `active` lies in its directory and its lock is
//! held. A file without a holder is what a killed process left.
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{IoContext, Result};
use crate::fs::tree;
use crate::git::repo::Repo;
use crate::git::{refs, worktree};
use crate::model::candidate::State;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::store::records::{read_toml, write_toml};
use crate::store::{Store, remove};

/// What the holder of a run's lock is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Worktrees are being made: until that is done the run does not exist.
    Making,
    /// Commands run in them.
    Running,
}

/// `runs/RUN/active`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Active {
    /// How far it is.
    pub phase: Phase,
    /// git's administrative entries before we made ours: a damaged one that is not among them, and
    /// is called as git would call ours, is ours.
    pub entries: Vec<String>,
}

impl Store {
    /// Says what is about to be done to a run.
    pub fn set_active(&self, run: &Name, active: &Active) -> Result<()> {
        write_toml(&self.active_file(run), active)
    }

    /// Says that it is done. An attempt may have removed the file, or the whole directory.
    pub fn clear_active(&self, run: &Name) -> Result<()> {
        remove(&self.active_file(run))
    }

    fn active_file(&self, run: &Name) -> PathBuf {
        self.run_dir(run).join("active")
    }

    /// Puts right what killed processes left; gives a line for each thing done. Costs one look at the
    /// directory of runs when there is nothing to do.
    pub fn heal(&self) -> Result<Vec<String>> {
        // First: what is put right may need these refs.
        self.repo.heal_ref_locks("refs/frites", Duration::from_secs(1))?;
        let mut said: Vec<String> = match self.heal_landing() {
            Ok(line) => line.into_iter().collect(),
            // Every other command goes on: some of them help to put it right.
            Err(error) => {
                vec![format!("a landing was interrupted, and is not put right: {}", error.message)]
            }
        };
        said.extend(self.heal_moves()?);
        self.repo.heal_deletion()?;
        for run in self.run_directories()? {
            match self.heal_run(&run) {
                Ok(line) => said.extend(line),
                // One damaged run must not stand in the way of every command on every other.
                Err(error) => said.push(format!(
                    "run {run} was interrupted, and is not put right: {}",
                    error.message
                )),
            }
        }
        Ok(said)
    }

    /// The same for one run; a line if something was done.
    fn heal_run(&self, run: &Name) -> Result<Option<String>> {
        if !self.active_file(run).exists() {
            self.sweep_stub(run)?;
            return Ok(None);
        }
        let Some(_lock) = self.try_lock_run(run)? else { return Ok(None) };
        // Read under the lock: the holder may have ended in between.
        let Some(active) = read_toml::<Active>(&self.active_file(run)) else {
            if self.active_file(run).exists() && self.run(run)?.is_some() {
                self.clear_active(run)?;
            }
            return Ok(None);
        };
        match active.phase {
            Phase::Making => {
                let Some(record) = read_toml::<Run>(&self.run_dir(run).join("run.toml")) else {
                    // The intent itself was never whole, so nothing else was made.
                    tree::delete_tree(&self.run_dir(run))
                        .context(|| format!("could not remove run {run}"))?;
                    return Ok(None);
                };
                self.unmake(&record, &active.entries)?;
                Ok(Some(format!("run {run} was interrupted while it was made, and is taken back")))
            }
            Phase::Running => {
                let Some(record) = self.run(run)? else {
                    return self.clear_active(run).map(|()| None);
                };
                self.cancel_running(&record)?;
                self.clear_active(run)?;
                let next = format!(", and `git frites run --resume {run}` goes on");
                let next = if record.has_commands() { next } else { String::new() };
                Ok(Some(format!(
                    "run {run} was interrupted while its commands ran; what they did is kept{next}"
                )))
            }
        }
    }

    /// Removes the directory of a run that was killed before its first record or after its last.
    fn sweep_stub(&self, run: &Name) -> Result<()> {
        let intent = self.run_dir(run).join("run.toml");
        if intent.exists() {
            return Ok(());
        }
        let Some(_lock) = self.try_lock_run(run)? else { return Ok(()) };
        if intent.exists()
            || self.active_file(run).exists()
            || self.repo.read_ref(&refs::record(run))?.is_some()
        {
            return Ok(());
        }
        tree::delete_tree(&self.run_dir(run))
            .context(|| format!("could not remove what is left of run {run}"))
    }

    fn cancel_running(&self, run: &Run) -> Result<()> {
        for name in &run.candidates {
            let _lock = self.lock_candidate(&run.run, name)?;
            let mut candidate = self.candidate(run, name).record()?;
            if candidate.state == State::Running {
                candidate.state = State::Cancelled;
                candidate.reason = Some("git-frites was interrupted".into());
                self.save_candidate(&candidate)?;
            }
        }
        Ok(())
    }

    /// Takes back a run that was never handed out: its worktrees, entries, branches and directory. The
    /// caller holds the run's lock.
    ///
    /// A branch goes only if it still is where the run starts.
    pub fn unmake(&self, run: &Run, entries_before: &[String]) -> Result<()> {
        let _lock = self.lock_repository()?;
        // Nobody else writes these refs before the run is handed out.
        self.repo.heal_ref_locks(&format!("refs/heads/frites/run/{}", run.run), Duration::ZERO)?;
        let root = self.worktrees(run.worktree_root.as_deref());
        for name in &run.candidates {
            let path = self.candidate(run, name).worktree();
            let admin = match worktree::admin_of(&self.repo, &path)? {
                Some(admin) => Some(admin),
                None => damaged_entry(&self.repo, name, entries_before)?,
            };
            match admin {
                Some(admin) => {
                    worktree::discard(&root, &path, Some(&admin))?;
                }
                // Without an entry it is what lay in the way, not ours; a killed git may leave an empty directory.
                None => {
                    let _ = fs::remove_dir(&path);
                }
            }
            let branch = refs::branch(&run.run, name);
            if self.repo.read_ref(&branch)?.is_some_and(|tip| tip == run.base) {
                self.repo.update_ref(&branch, None, Some(&run.base), "spawn taken back")?;
            }
        }
        if let Some(record) = self.repo.read_ref(&refs::record(&run.run))? {
            self.repo.update_ref(
                &refs::record(&run.run),
                None,
                Some(&record),
                "spawn taken back",
            )?;
        }
        // The run's directory, unless something that is not ours lies in it.
        let _ = fs::remove_dir(root.join(run.run.as_str()));
        tree::delete_tree(&self.run_dir(&run.run))
            .context(|| format!("could not remove run {}", run.run))
    }
}

/// The entry that a killed `git worktree add` for `name` left without a readable `gitdir`.
fn damaged_entry(repo: &Repo, name: &Name, before: &[String]) -> Result<Option<PathBuf>> {
    Ok(worktree::entries(repo)?.into_iter().find(|admin| {
        let Some(file) = admin.file_name().and_then(|n| n.to_str()) else { return false };
        let ours = file
            .strip_prefix(name.as_str())
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
        ours && !before.iter().any(|b| b == file) && worktree::points_to(admin).is_none()
    }))
}

/// The names of git's administrative entries now, for [`Active::entries`].
pub fn entry_names(repo: &Repo) -> Result<Vec<String>> {
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
    Ok(worktree::entries(repo)?.iter().filter_map(|path| name(path)).collect())
}
