//! Trash directories. A directory that will be deleted is first moved into a trash directory. So no
//! process finds a half-deleted directory at the old path.
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{IoContext, Result};
use crate::fs::delete::delete_tree;
use crate::fs::{lock, parallel};

/// The beginning of the names of trash directories. They lie beside the directories of runs, whose
/// names never begin with a dot.
pub const PREFIX: &str = ".trash-";

/// The file beside the trash directories that a process locks while it deletes them.
const LOCK: &str = ".trash.lock";

/// The names of the entries in a trash directory. Each entry is moved there in one step. So an
/// entry that exists is complete.
const CONTENTS: [&str; 2] = ["worktree", "entry"];

/// If the trash has at most this many files and directories, the command itself deletes it.
/// Starting a process would take longer.
const FEW: usize = 1000;

/// The number of threads that delete trash directories.
const THREADS: usize = 2;

/// One trash directory.
#[derive(Debug)]
pub struct Bin(PathBuf);

impl Bin {
    /// Makes a trash directory in `root`. Each removal makes its own. If two removals shared one,
    /// the first removal to end would delete it.
    pub fn new(root: &Path) -> Result<Bin> {
        let failed = || format!("could not use '{}'", root.display());
        fs::create_dir_all(root).context(failed)?;
        let bin = tempfile::Builder::new().prefix(PREFIX).tempdir_in(root).context(failed)?;
        Ok(Bin(bin.keep()))
    }

    /// The path to which a worktree's directory is moved.
    pub fn worktree(&self) -> PathBuf {
        self.0.join(CONTENTS[0])
    }

    /// The path to which an administrative entry is moved.
    pub fn entry(&self) -> PathBuf {
        self.0.join(CONTENTS[1])
    }

    /// Deletes the directory with its contents.
    pub fn delete(self) -> Result<()> {
        delete(&self.0)
    }
}

fn delete(bin: &Path) -> Result<()> {
    delete_tree(bin).could_not("delete", bin)
}

/// True if the trash in `root` has at most `FEW` files and directories.
pub fn is_little(root: &Path) -> bool {
    let mut waiting = bins(root);
    let mut seen = 0;
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            seen += 1;
            if seen > FEW {
                return false;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
        }
    }
    true
}

/// Deletes all trash in `root`, including the trash of killed removals. Does nothing if another
/// process is deleting the trash. If something cannot be deleted, goes on with the rest, and fails
/// at the end.
pub fn empty(root: &Path) -> Result<()> {
    let lock = root.join(LOCK);
    let mut tried = BTreeSet::new();
    let mut done = Ok(());
    let untried = |tried: &BTreeSet<PathBuf>| {
        let mut found = bins(root);
        found.retain(|bin| !tried.contains(bin));
        found
    };
    // The trash is listed again after the lock was released. Removals that found the lock held
    // leave their trash to this process.
    while !untried(&tried).is_empty() {
        let Some(_lock) = lock::attempt(&lock)? else { break };
        // The trash is listed again under the lock, because there may be more by now.
        let found = untried(&tried);
        let deleted = parallel::map_at_once(THREADS, &found, |bin| delete(bin));
        done = done.and(deleted.map(drop));
        tried.extend(found);
        let _ = fs::remove_file(&lock);
    }
    done
}

/// True while a process deletes trash in `root`.
pub fn is_being_emptied(root: &Path) -> bool {
    let lock = root.join(LOCK);
    lock.exists() && lock::attempt(&lock).is_ok_and(|lock| lock.is_none())
}

/// The trash directories to delete: all that have an entry, and empty ones that are older than a
/// minute. A killed process has left the empty ones.
fn bins(root: &Path) -> Vec<PathBuf> {
    let listing = fs::read_dir(root).into_iter().flatten().flatten();
    listing
        .filter(|entry| {
            let is_filled = || CONTENTS.iter().any(|name| entry.path().join(name).exists());
            let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
            entry.file_name().as_bytes().starts_with(PREFIX.as_bytes())
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
                && (is_filled() || age().is_some_and(|age| age.as_secs() > 60))
        })
        .map(|entry| entry.path())
        .collect()
}

/// The main function of the background process that deletes the trash in a directory.
pub fn main(root: &Path) -> std::process::ExitCode {
    // A failure is not reported. The next command tries again, and reports its own failure.
    std::process::ExitCode::from(u8::from(empty(root).is_err()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn all_trash_is_deleted_but_nothing_that_is_being_filled_and_no_link() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let root = directory.path();
        for path in ["kept/file", ".trash-old/worktree/a/b", ".trash-new", "1/c1"] {
            fs::create_dir_all(root.join(path))?;
        }
        std::os::unix::fs::symlink(root.join("kept"), root.join(".trash-link"))?;
        assert!(is_little(root));
        for at in 0..=FEW {
            fs::write(root.join(format!(".trash-old/worktree/a/{at}")), "")?;
        }
        assert!(!is_little(root));
        empty(root).expect("everything can be deleted");
        let mut left: Vec<_> =
            fs::read_dir(root)?.map(|e| e.map(|e| e.file_name())).collect::<io::Result<_>>()?;
        left.sort();
        assert_eq!(left, [".trash-link", ".trash-new", "1", "kept"]);
        assert!(root.join("kept/file").exists());
        Ok(())
    }

    /// The first removal has listed the trash already, and holds the lock when the second one
    /// begins.
    #[test]
    fn trash_that_is_added_while_other_trash_is_deleted_is_deleted_too() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let root = directory.path();
        let old = root.join(".trash-old/worktree");
        fs::create_dir_all(&old)?;
        for at in 0..4 * FEW {
            fs::write(old.join(at.to_string()), "")?;
        }
        let left = || fs::read_dir(&old).map_or(0, Iterator::count);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| empty(root));
            while left() == 4 * FEW {}
            fs::create_dir_all(root.join(".trash-new/worktree"))?;
            empty(root).expect("nothing to do");
            first.join().expect("no panic").expect("everything can be deleted");
            assert!(!root.join(".trash-old").exists());
            assert!(!root.join(".trash-new").exists());
            Ok(())
        })
    }

    #[test]
    fn trash_that_another_process_deletes_is_left_to_it() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let root = directory.path();
        fs::create_dir_all(root.join(".trash-old/worktree"))?;
        let lock = lock::attempt(&root.join(LOCK)).expect("a lock");
        assert!(is_being_emptied(root));
        empty(root).expect("nothing to do");
        assert!(root.join(".trash-old").exists());
        drop(lock);
        assert!(!is_being_emptied(root));
        empty(root).expect("everything can be deleted");
        assert!(!root.join(".trash-old").exists());
        Ok(())
    }
}
