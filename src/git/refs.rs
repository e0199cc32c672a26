//! Refs: what ours are called, reading them, and moving them only from the value we saw.
use gix::bstr::ByteSlice;

use super::repo::{Repo, to_oid};
use crate::error::{Error, Result};
use crate::model::name::Name;
use crate::model::oid::Oid;

/// `refs/heads/frites/run/RUN/CAND`: the candidate's branch.
pub fn branch(run: &Name, candidate: &Name) -> String {
    format!("refs/heads/frites/run/{run}/{candidate}")
}

/// `refs/frites/RUN/CAND`: its captures.
pub fn capture(run: &Name, candidate: &Name) -> String {
    format!("refs/frites/{run}/{candidate}")
}

/// `refs/frites/RUN/@record`: the run's records.
pub fn record(run: &Name) -> String {
    format!("refs/frites/{run}/@record")
}

/// `refs/heads/frites/apply/RUN`: what was landed, unless the user names another branch.
pub fn apply_branch(run: &Name) -> String {
    format!("refs/heads/frites/apply/{run}")
}

/// A branch as people write it.
pub fn short(full: &str) -> &str {
    full.strip_prefix("refs/heads/").unwrap_or(full)
}

impl Repo {
    /// The value of a ref by its full name.
    pub fn read_ref(&self, full: &str) -> Result<Option<Oid>> {
        let unreadable = |e: &dyn std::fmt::Display| Error::fatal(format!("the ref {full} cannot be read: {e}"));
        let gix = self.gix();
        match gix.try_find_reference(full).map_err(|e| unreadable(&e))? {
            Some(mut found) => Ok(Some(to_oid(found.peel_to_id().map_err(|e| unreadable(&e))?.detach()))),
            None => Ok(None),
        }
    }

    /// All refs under a prefix that ends in `/`, sorted by name.
    pub fn refs_under(&self, prefix: &str) -> Result<Vec<(String, Oid)>> {
        let unreadable =
            |e: &dyn std::fmt::Display| Error::fatal(format!("the refs under {prefix} cannot be read: {e}"));
        let gix = self.gix();
        let platform = gix.references().map_err(|e| unreadable(&e))?;
        let mut found = Vec::new();
        for reference in platform.prefixed(prefix).map_err(|e| unreadable(&e))? {
            let mut reference = reference.map_err(|e| unreadable(&e))?;
            let name = reference.name().as_bstr().to_str_lossy().into_owned();
            if let Ok(id) = reference.peel_to_id() {
                found.push((name, to_oid(id.detach())));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Moves a ref from `old` to `new`; `None` means that it must not exist, or is to go.
    ///
    /// Fails without effect when somebody else moved it first: of many racers exactly one wins.
    pub fn update_ref(&self, full: &str, new: Option<&Oid>, old: Option<&Oid>, why: &str) -> Result<()> {
        let zeros = new.or(old).map(Oid::null).unwrap_or_default();
        let value = |oid: Option<&Oid>| oid.map_or_else(|| zeros.clone(), |o| o.as_str().to_owned());
        self.git()
            .call("update-ref")
            .args(["--no-deref", "-m", &format!("git-frites: {why}"), full, &value(new), &value(old)])
            .run()
    }
}
