//! The directories that are filled.
use std::path::{Path, PathBuf};

use gix::index::entry::Stat as EntryStat;

/// A directory that gets the files of a commit, and the place of its index.
pub struct Place<'a> {
    /// The directory.
    pub path: &'a Path,
    /// The index file.
    pub index: PathBuf,
}

/// The stat data of the files that a place has already, by their entries' positions in the index.
pub type Taken = Vec<Option<EntryStat>>;
