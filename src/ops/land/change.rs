//! The change that a landing brings to its branch.
use std::fmt;

use crate::error::Result;
use crate::git::diff;
use crate::git::repo::Repo;
use crate::model::blast::Blast;
use crate::model::count::some_of;
use crate::model::oid::Oid;
use crate::ops::land::plan::Plan;

/// The size and the files of the change that a landing brings to its branch.
pub struct LandedChange {
    blast: Blast,
    files: Vec<String>,
}

impl LandedChange {
    /// The change of a landing on a branch whose tip was `before`.
    pub fn new(repo: &Repo, plan: &Plan, before: &Oid) -> Result<LandedChange> {
        let attributes = &plan.run.base;
        let changes = diff::changes(repo, attributes, before, &plan.tree)?;
        let blast = diff::blast(repo, attributes, before, &plan.tree, &changes)?;
        Ok(LandedChange { blast, files: changes.iter().map(|c| c.path.quoted()).collect() })
    }
}

impl fmt::Display for LandedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.files.as_slice() {
            [] => write!(f, "nothing that was not there already"),
            files => write!(f, "{} ({})", self.blast, some_of(files)),
        }
    }
}
