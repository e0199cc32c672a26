//! Deleting refs: loose ones in process, packed ones by git.
//!
//! gix would rewrite `packed-refs` from what it read before it took the lock, and so could lose what
//! another git packs at that moment. Here nothing but git ever writes that file.
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gix::bstr::ByteSlice;

use crate::error::{IoContext, Result};
use crate::fs::regular;
use crate::git::cli::PAUSES;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// The components of a ref's path whose directories stay, as in git.
const KEPT_DIRECTORIES: usize = 2;

impl Repo {
    /// Deletes refs in one transaction, each only if it still has this value: all, or none.
    pub fn delete_refs(&self, refs: &[(RefName, Oid)], why: &str) -> Result<()> {
        if refs.is_empty() {
            return Ok(());
        }
        let left = match self.delete_loose(refs) {
            // git words its refusals, and waits for its locks.
            None => refs.to_vec(),
            Some(packed) => packed,
        };
        if !left.is_empty() {
            self.delete_by_git(&left, why)?;
        }
        self.own_moves().extend(refs.iter().map(|(name, _)| (name.clone(), None)));
        Ok(())
    }

    fn delete_by_git(&self, refs: &[(RefName, Oid)], why: &str) -> Result<()> {
        let _guard = self.guard_deletion()?;
        let orders: String =
            refs.iter().map(|(name, old)| format!("delete {name}\0{old}\0")).collect();
        let call = self.git().call("update-ref").args(["--no-deref", "-m"]);
        let call = call.arg(format!("{}: {why}", self.signature()));
        call.args(["-z", "--stdin"]).stdin(orders).run()
    }

    /// Deletes refs that are only loose, under git's locks. None, and no effect, if one of them is
    /// packed, locked, or has another value. Gives those that another git has packed meanwhile, and
    /// that must be deleted there, too.
    fn delete_loose(&self, refs: &[(RefName, Oid)]) -> Option<Vec<(RefName, Oid)>> {
        let dir = self.common_dir();
        let packing = dir.join("packed-refs.lock");
        // Whoever packs refs holds this lock while it reads loose ones: so a ref that it read before
        // it is deleted here is seen by the lock, or by the new file.
        let before = self.packed_refs_stamp();
        if packing.exists() || !packed_of(dir, refs)?.is_empty() {
            return None;
        }
        let mut locks = Locks::default();
        for (name, old) in refs {
            let file = dir.join(name.as_str());
            locks.take(&file).ok()?;
            let value = fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file());
            let value = regular::read(&file).ok().filter(|_| value)?;
            if value.trim_ascii_end() != old.as_str().as_bytes() {
                return None;
            }
        }
        for (name, _) in refs {
            let log = dir.join("logs").join(name.as_str());
            // A log of a ref that is gone would be that of a new one.
            match fs::remove_file(&log) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return None,
                _ => remove_empty_parents(&dir.join("logs"), name),
            }
        }
        let stays = |(name, _): &&(RefName, Oid)| fs::remove_file(dir.join(name.as_str())).is_err();
        let stay: Vec<(RefName, Oid)> = refs.iter().filter(stays).cloned().collect();
        drop(locks);
        refs.iter().for_each(|(name, _)| remove_empty_parents(dir, name));
        for pause in PAUSES {
            if !packing.exists() {
                break;
            }
            std::thread::sleep(pause);
        }
        if before == self.packed_refs_stamp() {
            return Some(stay);
        }
        packed_of(dir, refs).or(Some(stay))
    }

    /// Records that we are deleting a ref, until the guard is dropped.
    fn guard_deletion(&self) -> Result<DeletionGuard> {
        let path = self.common_dir().join(DELETING);
        let failed = || format!("could not write '{}'", path.display());
        let mut file = open_guard(&path).context(failed)?;
        file.lock().context(failed)?;
        file.write_all(b"a git-frites process deletes a ref\n").context(failed)?;
        Ok(DeletionGuard { file })
    }

    /// Removes a `packed-refs.lock` that a killed deletion by git-frites left, and no other: the
    /// guard's file is not empty although nobody has locked it, and the lock has the same age.
    pub fn heal_deletion(&self) -> Result<()> {
        let path = self.common_dir().join(DELETING);
        let length = |path: &Path| fs::metadata(path).map_or(0, |m| m.len());
        if length(&path) == 0 {
            return Ok(());
        }
        let failed = || format!("could not read '{}'", path.display());
        let file = open_guard(&path).context(failed)?;
        if file.try_lock().is_err() || length(&path) == 0 {
            return Ok(());
        }
        let modified = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
        let lock = self.common_dir().join("packed-refs.lock");
        let between = modified(&lock)
            .zip(modified(&path))
            .and_then(|(lock, guard)| lock.duration_since(guard).ok());
        if between.is_some_and(|time| time < Duration::from_secs(2)) {
            let _ = fs::remove_file(&lock);
        }
        file.set_len(0).context(failed)
    }
}

/// Those of these refs that `packed-refs` names; none if that cannot be read.
fn packed_of(dir: &Path, refs: &[(RefName, Oid)]) -> Option<Vec<(RefName, Oid)>> {
    let packed = match regular::read(&dir.join("packed-refs")) {
        Ok(packed) => packed,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Some(Vec::new()),
        Err(_) => return None,
    };
    let has = |name: &RefName| packed.find(format!(" {name}\n")).is_some();
    Some(refs.iter().filter(|(name, _)| has(name)).cloned().collect())
}

/// git's locks of loose refs. Dropped, they are released.
#[derive(Default)]
struct Locks(Vec<PathBuf>);

impl Locks {
    fn take(&mut self, file: &Path) -> io::Result<()> {
        let mut lock = file.as_os_str().to_owned();
        lock.push(".lock");
        fs::OpenOptions::new().write(true).create_new(true).open(&lock)?;
        self.0.push(lock.into());
        Ok(())
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        self.0.iter().for_each(|lock| drop(fs::remove_file(lock)));
    }
}

/// Removes the directories that a ref's file was the last one in, up to those that git keeps.
fn remove_empty_parents(root: &Path, name: &RefName) {
    let mut at = Path::new(name.as_str());
    while let Some(parent) = at.parent().filter(|p| p.components().count() > KEPT_DIRECTORIES) {
        if fs::remove_dir(root.join(parent)).is_err() {
            return;
        }
        at = parent;
    }
}

/// A file in the common git directory, locked and not empty while a ref is deleted. It is never
/// removed: a process that waits for the lock of a removed file would get a lock that nobody else
/// sees.
const DELETING: &str = "frites-deleting";

fn open_guard(path: &Path) -> io::Result<fs::File> {
    regular::open_own_to_write(path, true)
}

struct DeletionGuard {
    file: fs::File,
}

impl Drop for DeletionGuard {
    fn drop(&mut self) {
        let _ = self.file.set_len(0);
    }
}
