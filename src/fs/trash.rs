//! Trash directories. A directory to delete is first moved into one, so that no process finds half of it in
//! its old place.
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, IoContext, Result};
use crate::fs::delete::delete_tree;
use crate::fs::{lock, parallel};

/// The beginning of the names of trash directories; no run's name begins with a dot.
pub const PREFIX: &str = ".trash-";

/// The file, beside trash directories, that is locked by the process that deletes them.
const LOCK: &str = ".trash.lock";

/// The entries of a trash directory. Each is moved there in one step, and nothing is moved into it later.
const CONTENTS: [&str; 2] = ["worktree", "entry"];

/// Up to this number of files and directories, the trash is deleted at once, because starting a process
/// would take longer.
const FEW: usize = 1000;

/// The number of threads that delete.
const THREADS: usize = 2;

/// One trash directory.
#[derive(Debug)]
pub struct Bin(PathBuf);

impl Bin {
    /// Makes a trash directory in `root`. Each removal has its own, because the first removal to end
    /// deletes its directory.
    pub fn new(root: &Path) -> Result<Bin> {
        let failed = || format!("could not use '{}'", root.display());
        fs::create_dir_all(root).context(failed)?;
        let bin = tempfile::Builder::new().prefix(PREFIX).tempdir_in(root).context(failed)?;
        Ok(Bin(bin.keep()))
    }

    /// The place for a worktree.
    pub fn worktree(&self) -> PathBuf {
        self.0.join(CONTENTS[0])
    }

    /// The place for an administrative entry.
    pub fn entry(&self) -> PathBuf {
        self.0.join(CONTENTS[1])
    }

    /// Deletes the directory with its contents.
    pub fn delete(self) -> Result<()> {
        delete(&self.0)
    }
}

fn delete(bin: &Path) -> Result<()> {
    delete_tree(bin).context(|| format!("could not delete '{}'", bin.display()))
}

/// True if the trash in `root` can be deleted quickly.
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

/// Deletes all trash in `root`, also that of killed removals, unless another process is doing so. Deletes
/// as much as it can, and fails if something is left.
pub fn empty(root: &Path) -> Result<()> {
    if bins(root).is_empty() {
        return Ok(());
    }
    let lock = root.join(LOCK);
    let Some(_lock) = lock::attempt(&lock)? else { return Ok(()) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build();
    let pool = pool.map_err(|e| Error::internal(format!("no threads: {e}")))?;
    // Listed again under the lock, because there may be more by now.
    let done = pool.install(|| parallel::map(&bins(root), |bin| delete(bin)));
    let _ = fs::remove_file(&lock);
    done.map(drop)
}

/// True while a process deletes trash in `root`.
pub fn is_being_emptied(root: &Path) -> bool {
    let lock = root.join(LOCK);
    lock.exists() && lock::attempt(&lock).is_ok_and(|lock| lock.is_none())
}

/// The trash directories into which nothing will be moved any more.
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
    // A failure is not reported here, but by the command that tries again.
    match empty(root) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(_) => std::process::ExitCode::FAILURE,
    }
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
