//! The quarantine: a list of changes that attempts may have made on purpose. A change stays in the
//! list until a person accepts it. The list is the file `untrusted.json` in the state directory.
//!
//! There is one list for the whole repository, and not one for each run. All runs have the same
//! configuration, and a planted setting is still dangerous after its run was removed.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::fs::atomic;
use crate::fs::regular;
use crate::integrity::diff;
use crate::integrity::fingerprint::{Fact, FactKind, Fingerprint};
use crate::model::FORMAT;
use crate::model::name::Name;
use crate::store::{Store, remove};

/// The circumstances of a change: the commands that ran when it happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Moment {
    pub run: Name,
    /// True if oracle commands ran, false if the commands of attempts ran.
    #[serde(default)]
    pub judging: bool,
    /// The candidate that was judged. `None` if one of several candidates may have made the change.
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

/// A change that happened while commands ran. The field names in JSON are those of the first
/// version.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Suspect {
    /// When the change happened.
    #[serde(flatten)]
    pub moment: Moment,
    /// The fact that changed.
    #[serde(rename = "subject")]
    pub fact: Fact,
    /// The change, in words.
    pub words: String,
    /// The digest of the fact after the change; `None` if the fact was gone. While the fact has
    /// this digest, the planted value is still there.
    pub digest: Option<String>,
    /// The state before the change. For a setting that names a program, this is its value, which
    /// our calls still use. For an include, or if the configuration could not be read, this is the
    /// whole configuration as JSON. It is compared with a later configuration, which may have other
    /// settings.
    pub before: Option<String>,
    /// True if the change may configure git-frites itself. Then `judge` waits until a person
    /// accepts it.
    #[serde(rename = "configures_us")]
    pub affects_own_config: bool,
}

impl Suspect {
    /// True if the fact is a setting for an identity, a remote, maintenance or the like.
    pub fn is_harmless(&self) -> bool {
        self.fact.kind == FactKind::Config && diff::is_harmless(&self.fact.name)
    }

    /// The whole configuration from before the change, if [`Suspect::before`] has it.
    pub(super) fn configuration_before(&self) -> Option<Fingerprint> {
        Fingerprint::from_json(self.before.as_deref()?.as_bytes())
    }

    /// True if the fact still has the value that it had after the change.
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

/// Adds changes. If a fact is in the list already, the new change replaces the old one.
/// [`Suspect::before`] then stays the value from before the old change.
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

/// Removes the change of one fact from the list.
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
