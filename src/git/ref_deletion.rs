//! Deleting refs: loose ones in process, packed ones by git.
//!
//! gix would rewrite `packed-refs` from a copy that it read before it took the lock, and so could lose refs
//! that another git has just packed. So only git ever writes that file.
//!
//! Deleting in process is for the row "clean of 8" of `make bench`, which takes 1.6 times the processor time without it.
use std::fs;
use std::io;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::lock::Marker;
use gix::lock::acquire::Fail;

use crate::error::Result;
use crate::fs::regular;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// The number of components at the beginning of a ref's path whose directories stay, as in git.
const KEPT_DIRECTORIES: usize = 2;

impl Repo {
    /// Deletes refs in one transaction, each only if it still has this value: all, or none.
    pub fn delete_refs(&self, refs: &[(RefName, Oid)], why: &str) -> Result<()> {
        if refs.is_empty() {
            return Ok(());
        }
        let mut change = self.record_change(refs.iter().map(|(name, _)| name))?;
        // git deletes the others: it waits for locks, and explains a refusal.
        let left = self.delete_loose(refs).unwrap_or_else(|| refs.to_vec());
        if !left.is_empty() {
            let orders: String =
                left.iter().map(|(name, old)| format!("delete {name}\0{old}\0")).collect();
            change.run(self.update_ref_call(why).args(["-z", "--stdin"]).stdin(orders))?;
        }
        self.own_moves.lock().extend(refs.iter().map(|(name, _)| (name.clone(), None)));
        Ok(())
    }

    /// Deletes refs that are only loose, under git's locks. Gives the refs whose file could not be removed.
    /// `None`, without effect, if one of them is packed, locked, or has another value.
    fn delete_loose(&self, refs: &[(RefName, Oid)]) -> Option<Vec<(RefName, Oid)>> {
        let dir = self.common_dir();
        let lock =
            |file: &Path| Marker::acquire_to_hold_resource(file, Fail::Immediately, None, 0).ok();
        // Under this lock no git packs refs. Otherwise a ref that git read before it is deleted here would
        // come back.
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
            // A new ref of the same name would inherit a log that stays.
            match fs::remove_file(&log) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return None,
                _ => remove_empty_parents(&dir.join("logs"), name),
            }
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
    match regular::read(&dir.join("packed-refs")) {
        Ok(packed) => !refs.iter().any(|(name, _)| packed.contains_str(format!(" {name}\n"))),
        Err(e) => e.kind() == io::ErrorKind::NotFound,
    }
}

/// Removes the directories that became empty without the ref's file, up to those that git keeps.
fn remove_empty_parents(root: &Path, name: &RefName) {
    let mut at = Path::new(name.as_str());
    while let Some(parent) = at.parent().filter(|p| p.components().count() > KEPT_DIRECTORIES) {
        if fs::remove_dir(root.join(parent)).is_err() {
            return;
        }
        at = parent;
    }
}
