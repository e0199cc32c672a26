//! Finds the git program on PATH, once for each process.
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::process;

const NAME: &str = "git";

/// The path of the git program; `None` if git is not on PATH.
pub(super) fn file() -> Option<&'static Path> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    FILE.get_or_init(|| process::find(OsStr::new(NAME))).as_deref()
}

/// The name by which our calls start git: its absolute path. For a bare name, the standard library
/// would use `fork`, which copies the memory tables of this process. The child would also try each
/// directory of PATH.
pub(super) fn to_start() -> PathBuf {
    match file() {
        Some(file) if file.is_absolute() => file.to_owned(),
        // A call may start in another directory than this process. There a relative path would not
        // find git.
        _ => PathBuf::from(NAME),
    }
}

/// The file `name` in the parent of the git program's directory. For example, this is
/// `/opt/git/etc/gitattributes` for `/opt/git/bin/git`. `None` if there is no such file.
pub(super) fn file_of_prefix(name: &str) -> Option<PathBuf> {
    let prefix = file()?.parent()?.parent()?;
    Some(prefix.join(name)).filter(|file| file.is_file())
}
