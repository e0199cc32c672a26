//! The git program, looked for on PATH once.
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::process;

const NAME: &str = "git";

/// The file of the git program; `None` if it is not on PATH.
pub(super) fn file() -> Option<&'static Path> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    FILE.get_or_init(|| process::find(OsStr::new(NAME))).as_deref()
}

/// The program as our calls start it: by its path. For a bare name the standard library uses `fork`, which
/// copies the memory tables of this process, and tries each directory of PATH in the child.
pub(super) fn to_start() -> PathBuf {
    match file() {
        Some(file) if file.is_absolute() => file.to_owned(),
        // A relative path would name another file, because a call does not start in the directory of this
        // process.
        _ => PathBuf::from(NAME),
    }
}

/// A file of a git that is installed under its own prefix; `None` if it has no such file.
pub(super) fn file_of_prefix(name: &str) -> Option<PathBuf> {
    let prefix = file()?.parent()?.parent()?;
    Some(prefix.join(name)).filter(|file| file.is_file())
}
