//! The list of cached outcomes that are trusted: those that existed before the first command ran, and those
//! that git-frites has stored since. Code under test may be able to write to the cache directory, but it
//! cannot change this list, which is in memory.
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::Result;
use crate::fs::lock::{self, Lock};
use crate::fs::regular;
use crate::fs::tree;
use crate::oracle::pool::OUTCOMES;

/// The names of outcomes that are still being written begin with this.
pub const UNFINISHED: &str = ".new-";

/// The names of the files that [`Turn`] locks begin with this.
const TURN: &str = ".turn-";

/// The right of one process at a time to judge a tree on some terms. It is a file lock: a killed process
/// loses it. No process waits for it.
pub struct Turn {
    path: PathBuf,
    _lock: Lock,
    /// True if another process had the turn before, and has stored an outcome.
    pub is_answered: bool,
}

/// The files of one outcome, each with inode, mode or size, and change time. Programs cannot set a change
/// time.
pub type OutcomeStamp = Vec<(OsString, [i64; 4])>;

/// The outcomes that are trusted, each with the stamp by which a later change is detected.
#[derive(Clone, Debug)]
pub struct KnownOutcomes {
    dir: PathBuf,
    known: Arc<Mutex<BTreeMap<OsString, OutcomeStamp>>>,
}

/// An outcome in the cache that is not trusted.
pub struct ForeignOutcome {
    /// The name of the outcome.
    pub name: OsString,
    /// True if the outcome has replaced a trusted outcome with this name.
    pub replaced: bool,
    /// True if the outcome could be removed.
    pub removed: bool,
}

impl Turn {
    /// Takes the turn to judge the tree of the outcome with this name in `dir`. If another process has it, returns
    /// the id of that process as the inner error.
    pub fn take(dir: &Path, name: &str) -> Result<std::result::Result<Turn, String>> {
        let path = dir.join(format!("{TURN}{name}"));
        let Some(lock) = lock::attempt(&path)? else {
            return Ok(Err(regular::read_text(&path).unwrap_or_default()));
        };
        // The id is only shown to the user, so an error is ignored.
        let _ = fs::write(&path, std::process::id().to_string());
        Ok(Ok(Turn { path, _lock: lock, is_answered: false }))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl KnownOutcomes {
    /// Trusts all outcomes that are in `dir` now.
    pub fn list(dir: &Path) -> KnownOutcomes {
        let known = KnownOutcomes { dir: dir.to_owned(), known: Arc::default() };
        known.believe_all();
        known
    }

    /// Trusts all outcomes that exist now. This is called before code under test runs.
    pub fn believe_all(&self) {
        let now = self.read();
        *self.known.lock() = now;
    }

    /// Trusts one more outcome, with the stamp that it had when it was written.
    pub fn believe(&self, name: &str, stamp: OutcomeStamp) {
        self.known.lock().insert(name.into(), stamp);
    }

    /// True if an outcome is trusted and has not changed since.
    pub fn holds(&self, name: &str) -> bool {
        let known = self.known.lock();
        known.get(OsStr::new(name)).is_some_and(|stamp| *stamp == stamp_of(&self.dir.join(name)))
    }

    /// Removes every outcome that is not trusted or has changed. Returns the removed outcomes.
    pub fn remove_foreign(&self) -> Vec<ForeignOutcome> {
        let now = self.read();
        let mut known = self.known.lock();
        let mut found = Vec::new();
        for (name, stamp) in now {
            let ours = known.get(&name);
            if ours == Some(&stamp) {
                continue;
            }
            let replaced = ours.is_some();
            known.remove(&name);
            let removed = tree::delete_tree(&self.dir.join(&name)).is_ok();
            found.push(ForeignOutcome { name, replaced, removed });
        }
        found
    }

    fn read(&self) -> BTreeMap<OsString, OutcomeStamp> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            // No outcome is ever read from files with these names.
            let others = [UNFINISHED, TURN].map(str::as_bytes);
            if !others.iter().any(|prefix| name.as_bytes().starts_with(prefix)) {
                found.insert(name, stamp_of(&entry.path()));
            }
        }
        found
    }
}

/// The stamp of the outcome at a path. It includes the outcome's directory, but without the directory's
/// change time: that time is set when the directory is renamed after the stamp was taken.
pub fn stamp_of(path: &Path) -> OutcomeStamp {
    let Ok(meta) = fs::symlink_metadata(path) else { return Vec::new() };
    let mut stamp = vec![(OsString::new(), [meta.ino().cast_signed(), meta.mode().into(), 0, 0])];
    if meta.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let Ok(meta) = fs::symlink_metadata(entry.path()) else { continue };
            let [ino, size] = [meta.ino(), meta.len()].map(u64::cast_signed);
            stamp.push((entry.file_name(), [ino, size, meta.ctime(), meta.ctime_nsec()]));
        }
    }
    stamp.sort();
    stamp
}

/// The disk space that all outcomes use.
pub fn disk_usage(home: &Path) -> u64 {
    tree::disk_usage(&home.join(OUTCOMES))
}

/// Removes all outcomes.
pub fn forget_all(home: &Path) {
    let _ = tree::delete_tree(&home.join(OUTCOMES));
}
