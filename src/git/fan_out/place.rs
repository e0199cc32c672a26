//! The directories that are filled.
use std::path::{Path, PathBuf};

/// A directory that gets the files of a commit, and the place of its index.
pub struct Place<'a> {
    /// The directory.
    pub path: &'a Path,
    /// The index file.
    pub index: PathBuf,
}
