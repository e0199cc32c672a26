//! What attempts may have planted, until a person accepts it: `untrusted.json` in the state root.
//!
//! One list for the repository and not one a run: the configuration belongs to all runs, and forgetting
//! a run does not make what it planted any better.
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::fs::atomic;
use crate::fs::regular;
use crate::integrity::fingerprint::Subject;
use crate::model::FORMAT;
use crate::model::name::Name;
use crate::store::{Store, remove};

/// What ran when something changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Moment {
    /// The run.
    pub run: Name,
    /// Whether it was being judged: then it was the oracle's commands, and else its own.
    #[serde(default)]
    pub judging: bool,
    /// The only candidate that was, where that is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Name>,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moment { run, judging: false, .. } => write!(f, "while run {run}'s commands ran"),
            Moment { run, candidate: Some(candidate), .. } => {
                write!(f, "while {run}/{candidate} was judged")
            }
            Moment { run, .. } => write!(f, "while run {run} was judged"),
        }
    }
}

/// One thing that was changed while commands ran.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Planted {
    /// Which commands.
    #[serde(flatten)]
    pub moment: Moment,
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
        let bytes = regular::read(&self.untrusted_file()).unwrap_or_default();
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

    fn untrusted_file(&self) -> PathBuf {
        self.root().join("untrusted.json")
    }
}
