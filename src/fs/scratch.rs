//! Makes git-frites' temporary directories. They lie in the state directory, to which guarded
//! attempts cannot write. In the system's directory for temporary files, a running attempt could
//! replace files, such as an index for judging another attempt.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use crate::error::{IoContext, Result};
use crate::fs::tree::{self, delete_tree};

/// A temporary directory of at least this age was left by a killed command.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// If fewer bytes than this are free, the disk counts as full. Then temporary directories are made
/// elsewhere, because a landing must be able to complete even on a full disk.
const FEW: u64 = 1 << 20;

/// The directory in which this process makes its temporary directories.
static HOME: OnceLock<PathBuf> = OnceLock::new();

/// From now on, temporary directories of this process are made in `home`, if the parent of `home`
/// exists. Only the first call has an effect.
pub fn keep_in(home: &Path) {
    HOME.get_or_init(|| home.to_owned());
}

/// A new directory, which is deleted when the value is dropped.
pub fn directory() -> Result<TempDir> {
    let home = HOME.get().filter(|home| home.parent().is_some_and(has_space));
    let made = match home {
        Some(home) => fs::create_dir_all(home).and_then(|()| tempfile::tempdir_in(home)),
        // Without a state directory, there is no attempt that could replace the files. If the disk
        // is full, there is no better place.
        None => tempfile::tempdir(),
    };
    made.context(|| "could not make a temporary directory".into())
}

/// True if a directory exists, and its disk is not full.
fn has_space(directory: &Path) -> bool {
    directory.is_dir() && tree::free_space(directory).is_ok_and(|free| free >= FEW)
}

/// Deletes the directories in `home` that killed commands have left.
pub fn delete_old(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|meta| meta.modified());
        if changed.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > OLD)) {
            let _: io::Result<()> = delete_tree(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use filetime::FileTime;

    use super::*;

    #[test]
    fn only_directories_that_were_left_long_ago_are_deleted() {
        let home = tempfile::tempdir().expect("a directory");
        let [old, new] = ["old", "new"].map(|name| home.path().join(name));
        fs::create_dir(&new).expect("a directory");
        fs::create_dir_all(old.join("inner")).expect("a directory");
        filetime::set_file_mtime(&old, FileTime::from_unix_time(1, 0)).expect("an old time");
        delete_old(home.path());
        assert!(new.exists() && !old.exists());
        delete_old(&home.path().join("missing"));
    }
}
