//! Deletes refs. Refs that are only loose are deleted in process. git deletes packed refs.
//!
//! gix would rewrite `packed-refs` from a copy that it read before it took the lock. So it could
//! lose refs that another git has packed in between. Only git writes `packed-refs` here.
//!
//! Without deletion in process, the row "clean of 8" of `make bench` takes 1.6 times the processor
//! time.
use std::fs;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::lock::Marker;
use gix::lock::acquire::Fail;

use crate::error::{IfExists, Result};
use crate::fs::{regular, tree};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// The number of leading components of a ref's name whose directories are never removed, e.g.
/// `refs/heads`. git keeps the same directories.
const KEPT_DIRECTORIES: usize = 2;

impl Repo {
    /// Deletes refs in one transaction. Deletes none if one of them no longer has the given value.
    pub fn delete_refs(&self, refs: &[(RefName, Oid)], why: &str) -> Result<()> {
        if refs.is_empty() {
            return Ok(());
        }
        let mut change = self.record_change(refs.iter().map(|(name, _)| name))?;
        // git deletes the refs that are left. git waits for locks, and its errors explain why a ref
        // was not deleted.
        let left = self.delete_loose(refs).unwrap_or_else(|| refs.to_vec());
        if !left.is_empty() {
            let orders: String =
                left.iter().map(|(name, old)| format!("delete {name}\0{old}\0")).collect();
            change.run(self.update_ref_call(why).args(["-z", "--stdin"]).stdin(orders))?;
        }
        self.own_moves.lock().extend(refs.iter().map(|(name, _)| (name.clone(), None)));
        Ok(())
    }

    /// Deletes refs that are only loose, under git's locks. Returns the refs whose files could not
    /// be removed. If one of the refs is packed, locked, or has another value, deletes nothing and
    /// returns `None`.
    fn delete_loose(&self, refs: &[(RefName, Oid)]) -> Option<Vec<(RefName, Oid)>> {
        let dir = self.common_dir();
        let lock =
            |file: &Path| Marker::acquire_to_hold_resource(file, Fail::Immediately, None, 0).ok();
        // While `packed-refs` is locked, no git packs refs. Otherwise a git could read a ref before
        // it is deleted here, and write it to `packed-refs` afterwards.
        let mut locks = vec![lock(&dir.join("packed-refs"))?];
        if !are_all_loose(dir, refs) {
            return None;
        }
        for (name, old) in refs {
            let file = dir.join(name.as_str());
            locks.push(lock(&file)?);
            if !fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file()) {
                return None;
            }
            let value = regular::read(&file).ok()?;
            if value.trim_ascii_end() != old.as_str().as_bytes() {
                return None;
            }
        }
        for (name, _) in refs {
            let log = dir.join("logs").join(name.as_str());
            // A new ref of the same name would inherit the reflog.
            fs::remove_file(&log).if_exists().ok()?;
            remove_empty_parents(&dir.join("logs"), name);
        }
        let mut stay = refs.to_vec();
        stay.retain(|(name, _)| fs::remove_file(dir.join(name.as_str())).is_err());
        drop(locks);
        refs.iter().for_each(|(name, _)| remove_empty_parents(dir, name));
        Some(stay)
    }
}

/// True if `packed-refs` names none of these refs; false if it cannot be read.
fn are_all_loose(dir: &Path, refs: &[(RefName, Oid)]) -> bool {
    regular::read(&dir.join("packed-refs")).if_exists().is_ok_and(|packed| {
        let packed = packed.unwrap_or_default();
        !refs.iter().any(|(name, _)| packed.contains_str(format!(" {name}\n")))
    })
}

/// Removes the empty directories above the ref's file, except those that git keeps.
fn remove_empty_parents(root: &Path, name: &RefName) {
    let kept =
        name.split('/').take(KEPT_DIRECTORIES).fold(root.to_owned(), |at, part| at.join(part));
    tree::remove_empty_above(&root.join(name.as_str()), &kept);
}
