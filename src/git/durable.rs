//! Waits for the disk. The objects of a landing are on the disk before the branch moves. The move
//! is on the disk before the landing is reported.
use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{IfExists, IoContext, Result};
use crate::fs::disk;
use crate::git::repo::Repo;
use crate::model::refname::RefName;

/// A file of at least this age is certainly on the disk. By default the system writes a file after
/// half a minute, or after several minutes on a laptop that saves power.
const WRITTEN_BY_ITSELF: Duration = Duration::from_secs(15 * 60);

impl Repo {
    /// Waits until all loose objects that any program wrote in the last minutes are on the disk.
    ///
    /// Objects that git-frites wrote are on the disk already. But git-frites does not write an
    /// object that exists, and git does not sync loose objects by default. So two kinds of objects
    /// may have only their names on the disk:
    ///
    /// - objects that an attempt's `git add` wrote;
    /// - objects of the commit on which a change lands.
    pub(super) fn sync_young_objects(&self) -> Result<()> {
        let root = self.common_dir().join("objects");
        if disk::is_in_memory(&root) {
            return Ok(());
        }
        let mut young = Vec::new();
        // If a file was added to a directory, the directory is young, too.
        for directory in young_below(&root, Metadata::is_dir)? {
            let is_fan_out = directory.file_name().is_some_and(|name| name.len() == 2);
            if is_fan_out {
                young.extend(young_below(&directory, Metadata::is_file)?);
                young.push(directory);
            }
        }
        disk::sync(&young)
    }

    /// Waits until these refs (or their deletions) and their reflogs are on the disk. Also waits
    /// for HEAD and the index of this checkout.
    pub fn sync_refs(&self, refs: &[&RefName]) -> Result<()> {
        let common = self.common_dir();
        if disk::is_in_memory(common) {
            return Ok(());
        }
        let mut moved = BTreeSet::from([common.to_owned(), self.git_dir().to_owned()]);
        moved.insert(self.git_dir().join("logs/HEAD"));
        for name in refs {
            let log = common.join("logs").join(name.as_str());
            let file = common.join(name.as_str());
            let above = file.ancestors().skip(1).take_while(|above| *above != common);
            moved.extend(above.map(Path::to_owned));
            moved.insert(log);
        }
        disk::sync(&Vec::from_iter(moved))
    }
}

/// The young entries of a directory for which `is_kind` is true. Empty if the directory does not
/// exist.
fn young_below(directory: &Path, is_kind: impl Fn(&Metadata) -> bool) -> Result<Vec<PathBuf>> {
    let failed = || format!("could not read '{}'", directory.display());
    let mut young = Vec::new();
    for entry in fs::read_dir(directory).if_exists().context(failed)?.into_iter().flatten() {
        let entry = entry.context(failed)?;
        // The file is gone: a git has moved it into a pack, or deleted it.
        let Ok(meta) = entry.metadata() else { continue };
        // If the file's mtime is in the future, its age is 0.
        let age = meta.modified().ok().and_then(|at| at.elapsed().ok()).unwrap_or_default();
        if is_kind(&meta) && age < WRITTEN_BY_ITSELF {
            young.push(entry.path());
        }
    }
    Ok(young)
}
