//! Intents: files that describe work that is about to begin. An intent is written before the first
//! effect of the work, and removed after the last.
//!
//! If an intent exists without its process, the process was killed. The next git-frites command
//! then reads the intent, and finishes the work or takes it back (`ops/recover.rs`).
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::error::{Error, IoContext, Result};
use crate::fs::atomic;
use crate::git::landing::intent::{Holder, Intent};
use crate::model::layout::{ACTIVE, RUN_RECORD};
use crate::model::name::Name;
use crate::model::run::Run;
use crate::store::records::{read_toml, to_toml, write_toml};
use crate::store::{Store, remove};

/// Converts the file of an intent to the current form, if an older version wrote it.
fn renamed(mut file: Table) -> Table {
    if let (Some(target), Some(old)) = (file.remove("target"), file.remove("old")) {
        let undoing = file.get("landing") == Some(&Value::from("undone"));
        let from = [("branch".to_owned(), target.clone()), ("commit".to_owned(), old)];
        file.insert("from".to_owned(), Value::Table(from.into_iter().collect()));
        file.insert("branch".to_owned(), target);
        file.insert("undoing".to_owned(), Value::from(undoing));
    }
    file
}

/// `runs/RUN/active`: the work that the process with the run's lock is doing. If the file exists
/// and no process has the lock, that process was killed.
#[derive(Debug, Serialize, Deserialize)]
struct Active {
    /// The kind of work.
    phase: Phase,
}

/// The work that is under way in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// A run's worktrees are being made. Until they are complete, the run does not exist.
    Making,
    /// The worktrees of these candidates are being made. Until they are complete, the run does not
    /// have these candidates.
    Adding(Vec<Name>),
    /// Commands run in the worktrees.
    Running,
}

impl Store {
    /// The file for the intent of a landing. The landing is in a candidate's worktree, or else in
    /// the user's checkout.
    fn landing_file(&self, holder: Option<&Holder>) -> PathBuf {
        match holder {
            None => self.dir.landing(&self.repo.checkout_key()),
            Some(Holder { run, candidate }) => self.dir.candidate_landing(run, candidate),
        }
    }

    /// Writes the intent of a landing that begins, and returns its file. Fails if another landing
    /// in the same checkout was interrupted, and is neither finished nor taken back. Without its
    /// intent, nothing could recover that landing. The caller holds the landing lock.
    pub fn begin_landing(&self, intent: &Intent) -> Result<PathBuf> {
        let files = self.landing_files().into_iter();
        let mut left = files.filter_map(|file| self.landing_intent(&file));
        if let Some((left, _)) = left.find(|(left, _)| left.holder == intent.holder) {
            let branch = left.branch.short();
            return Err(Error::fatal(format!(
                "a landing on '{branch}' was interrupted here, and is not taken back yet"
            ))
            .hint("`git frites status` says what it waits for"));
        }
        let file = self.landing_file(intent.holder.as_ref());
        write_toml(&file, intent)?;
        Ok(file)
    }

    /// Removes the intent of a landing that is finished or taken back.
    pub fn end_landing(&self, file: &Path) -> Result<()> {
        fs::remove_file(file).could_not("remove", file)
    }

    /// The files with intents of landings in this checkout and in candidates' worktrees.
    pub fn landing_files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.landing_file(None), self.dir.old_move(&self.repo.checkout_key())];
        for run in fs::read_dir(self.dir.candidate_landings()).into_iter().flatten().flatten() {
            let landings = fs::read_dir(run.path()).into_iter().flatten().flatten();
            files.extend(landings.map(|entry| entry.path()));
        }
        // Temporary files are left out. The process of such a file was killed before the landing
        // began.
        files.retain(|file| file.extension().is_some_and(|end| end == "toml") && file.exists());
        files
    }

    /// Reads one of [`Store::landing_files`]. Returns the intent and the time at which it was
    /// written. `None` if the file is damaged.
    pub fn landing_intent(&self, file: &Path) -> Option<(Intent, SystemTime)> {
        let intent = renamed(read_toml(file)?).try_into().ok()?;
        let written = fs::metadata(file).and_then(|meta| meta.modified());
        Some((intent, written.unwrap_or(SystemTime::UNIX_EPOCH)))
    }

    /// Writes a new run's record to its file (not yet to a ref), and notes that the run is being
    /// made. Called before the worktrees are made. The caller holds the run's lock.
    pub fn save_intent(&self, run: &Run) -> Result<()> {
        let active = to_toml(&Active { phase: Phase::Making })?;
        let record = to_toml(run)?;
        let files = [(ACTIVE, active.as_str()), (RUN_RECORD, record.as_str())];
        let files = files.map(|(name, text)| (OsStr::new(name), text.as_bytes()));
        atomic::write_all(self.run_dir(&run.run).path(), &files)
    }

    /// Notes that this work on a run begins. The caller holds the run's lock.
    pub fn set_active(&self, run: &Name, phase: Phase) -> Result<()> {
        write_toml(&self.run_dir(run).active(), &Active { phase })
    }

    /// Removes the file of [`Store::set_active`], and the file for `status` that a killed process
    /// may have left. It is not an error if they do not exist, because an attempt may have removed
    /// them.
    pub fn clear_active(&self, run: &Name) -> Result<()> {
        let dir = self.run_dir(run);
        remove(&dir.board())?;
        remove(&dir.active())
    }

    /// True if work on a run is under way, or its process was killed.
    pub fn is_active(&self, run: &Name) -> bool {
        self.run_dir(run).active().exists()
    }

    /// The work on a run that is under way, or whose process was killed. `None` if there is none,
    /// or if its file is damaged.
    pub fn active(&self, run: &Name) -> Option<Phase> {
        read_toml(&self.run_dir(run).active()).map(|active: Active| active.phase)
    }

    /// The record of a run from the run's file. `None` if the file does not exist or is damaged.
    pub fn run_intent(&self, run: &Name) -> Option<Run> {
        read_toml(&self.run_dir(run).record())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::candidate::Landing;

    fn read(text: &str) -> Intent {
        renamed(toml::from_str(text).expect("TOML")).try_into().expect("an intent")
    }

    #[test]
    fn intents_of_older_versions_are_read() {
        let [one, two, three] = ["1", "2", "3"].map(|digit| digit.repeat(40));
        let fresh = read(&format!(
            "run = \"1\"\ncandidate = \"c1\"\niteration = 2\nbranch = \"refs/heads/new\"\ntree = \"{two}\"\n\
             verified = true\ncommit = true\nunlocked = true\nundoing = true\n\n\
             [from]\nbranch = \"refs/heads/main\"\ncommit = \"{one}\"\n"
        ));
        assert!(fresh.is_fresh() && fresh.commit && fresh.verified);
        assert_eq!((fresh.landing(), fresh.to.as_str()), (Landing::Undone, two.as_str()));
        assert_eq!(fresh.files().as_str(), one);
        for (landing, state) in [("merged", Landing::Merged), ("undone", Landing::Undone)] {
            let moved = read(&format!(
                "run = \"1\"\ncandidate = \"c1\"\niteration = 2\nlanding = \"{landing}\"\n\
                 target = \"refs/heads/main\"\nold = \"{one}\"\nnew = \"{two}\"\nfiles = \"{three}\"\n\
                 verified = false\n\n[holder]\nrun = \"2\"\ncandidate = \"c2\"\n"
            ));
            assert!(!moved.is_fresh());
            assert_eq!((moved.landing(), moved.to.as_str()), (state, two.as_str()));
            assert_eq!((moved.from.commit.as_str(), moved.files().as_str()), (&*one, &*three));
            assert!(moved.holder.is_some());
            // The record that this version writes reads back unchanged.
            let again = read(&to_toml(&moved).expect("text"));
            assert_eq!(format!("{again:?}"), format!("{moved:?}"));
        }
    }
}
