//! The record of the build outputs that a worktree was given before the attempt began, by which a
//! capture tells them from the attempt's own work.
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::Result;
use crate::fs::{atomic, regular};
use crate::git::cli::nul_separated;
use crate::model::path::TreePath;

/// The outputs that a worktree was given, each with the stat data that it had then: a write changes
/// them.
pub struct PlacedOutputs {
    record: PathBuf,
    /// Read when it is first needed: mostly git ignores all outputs.
    stamps: OnceLock<BTreeMap<TreePath, String>>,
}

impl PlacedOutputs {
    /// The outputs that this file lists; none if it cannot be read.
    pub fn recorded_in(record: PathBuf) -> PlacedOutputs {
        PlacedOutputs { record, stamps: OnceLock::new() }
    }

    /// Lists these files of a worktree in a file. What is not there is left out.
    pub fn record<'a>(
        file: &Path,
        worktree: &Path,
        paths: impl Iterator<Item = &'a TreePath>,
    ) -> Result<()> {
        let mut text = Vec::new();
        for path in paths {
            if let Some(stamp) = stamp(&path.on_disk(worktree)) {
                text.extend([stamp.as_bytes(), b" ", path, b"\0"].concat());
            }
        }
        atomic::write(file, &text)
    }

    /// True if a path of the worktree still has the output that it was given.
    pub fn still_hold(&self, worktree: &Path, path: &[u8]) -> bool {
        let stamps = self.stamps.get_or_init(|| read(&self.record));
        stamps.get(path).is_some_and(|given| {
            stamp(&TreePath::new(path).on_disk(worktree)).as_ref() == Some(given)
        })
    }
}

fn read(record: &Path) -> BTreeMap<TreePath, String> {
    let text = regular::read_own(record).unwrap_or_default();
    let lines = nul_separated(&text).filter_map(|line| {
        let blank = line.iter().position(|byte| *byte == b' ')?;
        let stamp = String::from_utf8(line[..blank].to_vec()).ok()?;
        Some((TreePath::new(&line[blank + 1..]), stamp))
    });
    lines.collect()
}

/// The stat data of a file or a link that a write changes; none if there is none. Nobody can set a
/// change time.
fn stamp(path: &Path) -> Option<String> {
    let meta = fs::symlink_metadata(path).ok().filter(|meta| !meta.is_dir())?;
    let (inode, size) = (meta.ino(), meta.size());
    Some(format!("{inode}:{size}:{}.{:09}", meta.ctime(), meta.ctime_nsec()))
}
