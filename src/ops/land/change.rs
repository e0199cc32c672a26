//! The change that a landing brings to its branch, and the part of it that a checkout still holds after a switch.
use std::fmt;

use crate::error::Result;
use crate::git::diff::{self, Change};
use crate::git::repo::Repo;
use crate::model::blast::Blast;
use crate::model::count::some_of;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::ops::land::plan::Plan;
use crate::store::intents::Intent;

/// The change of a branch by a landing: its size and its files.
pub struct LandedChange {
    blast: Blast,
    files: Vec<String>,
}

impl LandedChange {
    /// The change that a landing makes to a branch that was at this commit.
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

/// The files of a staged landing that are staged in the checkout although it is on another branch:
/// `git switch` takes staged changes along. None in a bare repository or amid a merge.
pub fn carried_along(repo: &Repo, intent: &Intent) -> Result<Vec<TreePath>> {
    let (Some(_), Some(head), false) = (repo.work_tree(), repo.head(), intent.commit) else {
        return Ok(Vec::new());
    };
    let Ok(staged) = repo.checkout().call("write-tree").oid() else { return Ok(Vec::new()) };
    let from = &intent.from.commit;
    let landed = diff::changes(repo, from, from, &intent.to)?;
    let here = diff::changes(repo, &head, &head, &staged)?;
    let is_landed =
        |change: &Change| landed.iter().any(|l| l.path == change.path && l.new == change.new);
    Ok(here.into_iter().filter(is_landed).map(|change| change.path).collect())
}
