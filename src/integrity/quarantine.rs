//! The quarantine: changes that attempts may have planted, until a person accepts them. It is
//! `untrusted.json` in the state root.
//!
//! There is one list for the whole repository, not one per run: the configuration is the same for all runs,
//! and a planted setting is still dangerous after its run was forgotten.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::fs::atomic;
use crate::fs::regular;
use crate::integrity::diff;
use crate::integrity::fact::{Fact, FactKind};
use crate::integrity::fingerprint::Fingerprint;
use crate::model::FORMAT;
use crate::model::name::Name;
use crate::store::{Store, remove};

/// The run and the commands during which something changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Moment {
    /// The run.
    pub run: Name,
    /// True if the commands were the oracle's, false if they were the run's own.
    #[serde(default)]
    pub judging: bool,
    /// The only candidate that was judged, if that is certain.
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

/// One thing that changed while commands ran. Its JSON still has the names of the first version.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Suspect {
    /// The commands that ran.
    #[serde(flatten)]
    pub moment: Moment,
    /// The thing that changed.
    #[serde(rename = "subject")]
    pub fact: Fact,
    /// The change, in words.
    pub words: String,
    /// The thing's digest when the commands had ended; `None` if the thing was gone. As long as
    /// this digest is found, the planted value is still there.
    pub digest: Option<String>,
    /// The value of a setting before the change, which our calls go on using. If the configuration could
    /// not be read after the change: all of it from before, to be compared later.
    pub before: Option<String>,
    /// True if the thing may configure git-frites itself. Then `judge` waits for a person.
    #[serde(rename = "configures_us")]
    pub affects_own_config: bool,
}

impl Suspect {
    /// True for a setting for an identity, a remote or maintenance.
    pub fn is_harmless(&self) -> bool {
        self.fact.kind == FactKind::Config && diff::is_harmless(&self.fact.name)
    }

    /// True if the thing is still as the commands left it.
    pub fn is_still_there(&self, now: &Fingerprint) -> bool {
        self.digest.as_deref() == now.digest(&self.fact)
    }
}

#[derive(Serialize, Deserialize)]
struct QuarantineFile {
    version: u32,
    planted: Vec<Suspect>,
}

/// All changes that are not accepted yet.
pub fn suspects(store: &Store) -> Vec<Suspect> {
    let bytes = regular::read(&store.dir().untrusted()).unwrap_or_default();
    serde_json::from_slice::<QuarantineFile>(&bytes).map(|f| f.planted).unwrap_or_default()
}

/// Adds changes. If a thing has changed twice, the newer change is kept, with the value from before the
/// older one.
pub fn add(store: &Store, new: Vec<Suspect>) -> Result<()> {
    if new.is_empty() {
        return Ok(());
    }
    let _lock = store.lock_repository()?;
    let mut planted = suspects(store);
    for mut suspect in new {
        if let Some(at) = planted.iter().position(|p| p.fact == suspect.fact) {
            suspect.before = planted.remove(at).before;
        }
        planted.push(suspect);
    }
    write(store, planted)
}

fn write(store: &Store, planted: Vec<Suspect>) -> Result<()> {
    let bytes = serde_json::to_vec(&QuarantineFile { version: FORMAT, planted })
        .map_err(|e| Error::internal(format!("a record cannot be written as JSON: {e}")))?;
    atomic::write(&store.dir().untrusted(), &bytes)
}

/// Removes the change of one thing.
pub fn forget(store: &Store, fact: &Fact) -> Result<()> {
    let _lock = store.lock_repository()?;
    let mut planted = suspects(store);
    planted.retain(|suspect| suspect.fact != *fact);
    if planted.is_empty() { remove(&store.dir().untrusted()) } else { write(store, planted) }
}

/// Accepts all changes.
pub fn clear(store: &Store) -> Result<()> {
    let _lock = store.lock_repository()?;
    remove(&store.dir().untrusted())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspect_is_stored_under_the_names_of_the_first_version() {
        let text = r#"{"run":"1","judging":true,"subject":{"kind":"own-file","place":"","name":".frites.toml"},"words":"'.frites.toml' was changed","digest":"d","before":null,"configures_us":true}"#;
        let suspect: Suspect = serde_json::from_str(text).expect("it is read");
        assert!(suspect.affects_own_config && suspect.moment.judging);
        assert_eq!(serde_json::to_string(&suspect).expect("it is written"), text);
    }
}
