//! What attempts may have planted, until a person accepts it: `untrusted.json` in the state root, and
//! `runs/RUN/before.json` while a run's commands run.
//!
//! One list for the repository and not one a run: the configuration belongs to all runs, and forgetting
//! a run does not make what it planted any better.
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Store, atomic, remove};
use crate::error::{Error, Result};
use crate::git::fingerprint::{Fingerprint, Subject};
use crate::model::FORMAT;
use crate::model::name::Name;
use crate::plain;

/// One thing that was changed while a run's commands ran.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Planted {
    /// The run.
    pub run: Name,
    /// What was changed.
    pub subject: Subject,
    /// How, in words.
    pub words: String,
    /// Its digest when the commands had ended; none if it was gone. While that is what is found, it
    /// still is what was planted.
    pub digest: Option<String>,
    /// What a setting was before, to be pinned to.
    pub before: Option<String>,
    /// Whether it may configure git-frites itself: then `judge` waits for a person.
    pub configures_us: bool,
}

#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    planted: Vec<Planted>,
}

impl Store {
    /// All that is not accepted yet.
    pub fn planted(&self) -> Vec<Planted> {
        let bytes = plain::read(&self.untrusted_file()).unwrap_or_default();
        serde_json::from_slice::<Record>(&bytes).map(|r| r.planted).unwrap_or_default()
    }

    /// Adds to the list; the newest word on a thing stays, and the oldest value.
    pub fn add_planted(&self, new: Vec<Planted>) -> Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        let _lock = self.lock_repository()?;
        let mut planted = self.planted();
        for mut one in new {
            if let Some(at) = planted.iter().position(|p| p.subject == one.subject) {
                one.before = planted.remove(at).before;
            }
            planted.push(one);
        }
        let record = Record { version: FORMAT, planted };
        let bytes = serde_json::to_vec(&record)
            .map_err(|e| Error::internal(format!("a record cannot be written as JSON: {e}")))?;
        atomic::write(&self.untrusted_file(), &bytes)
    }

    /// Empties the list.
    pub fn accept_planted(&self) -> Result<()> {
        let _lock = self.lock_repository()?;
        remove(&self.untrusted_file())
    }

    /// Keeps what was there before a run's commands start: for other processes, and for the one that
    /// finds the run interrupted.
    pub fn begin_watch(&self, run: &Name, before: &Fingerprint) -> Result<()> {
        atomic::write(&self.watch_file(run), &before.to_json())
    }

    /// The fingerprint before a run's commands; none if they do not run, and have been looked at.
    pub fn watch(&self, run: &Name) -> Option<Fingerprint> {
        Fingerprint::from_json(&plain::read(&self.watch_file(run)).ok()?)
    }

    /// The runs that are being watched, or were when their process was killed.
    pub fn watched(&self) -> Result<Vec<Name>> {
        Ok(self.run_folders()?.into_iter().filter(|run| self.watch_file(run).exists()).collect())
    }

    /// The differences are told and kept.
    pub fn end_watch(&self, run: &Name) -> Result<()> {
        remove(&self.watch_file(run))
    }

    fn watch_file(&self, run: &Name) -> PathBuf {
        self.run_dir(run).join("before.json")
    }

    fn untrusted_file(&self) -> PathBuf {
        self.root.join("untrusted.json")
    }
}
