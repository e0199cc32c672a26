//! Checks the version of the git program before git-frites does anything else.
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::{atomic, regular};
use crate::git::cli::Git;
use crate::git::program;
use crate::model::layout::StateDir;

/// The oldest version that works. `git merge-tree --merge-base` is new in 2.40, and
/// `git --attr-source` in 2.41.
const OLDEST: (u32, u32) = (2, 41);

/// Fails if the git program is older than 2.41, or cannot be started.
///
/// git is not asked for its version if a file in `state` says that this program was checked before.
/// An attempt gains nothing by editing that file. An old git then fails later, at an option that it
/// does not know.
pub fn require_new_enough(git: &Git, state: &StateDir) -> Result<()> {
    let memory = state.git_program();
    let stamp = stamp();
    if stamp.is_some() && regular::read(&memory).ok() == stamp {
        return Ok(());
    }
    ask(git)?;
    // The state directory may not exist yet, and is not made here, because some commands must
    // change nothing. If the file cannot be written, git is asked again next time.
    if let Some(stamp) = stamp
        && state.path().is_dir()
    {
        let _ = atomic::write(&memory, &stamp);
    }
    Ok(())
}

/// The version of the git program. Needs no repository. Fails if git is older than 2.41, or cannot
/// be started.
pub fn check() -> Result<String> {
    ask(&Git::at(Path::new("."), Arc::default()))
}

/// The version that git prints. Fails if git is older than 2.41, or cannot be started.
fn ask(git: &Git) -> Result<String> {
    let output = git.call("version").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    match version(&text) {
        Some((found, number)) if number < OLDEST => Err(Error::fatal(format!(
            "git {found} is too old: git-frites needs git 2.41 or newer"
        ))
        .hint(
            "update git, or put a newer one first on PATH; `git --version` shows which one is used",
        )),
        Some((found, _)) => Ok(found.to_owned()),
        // If the version has an unknown form, git may still be new enough.
        None => Ok(text.trim().to_owned()),
    }
}

/// A text that changes when the git program changes. It has the program's path, and the inode, size
/// and mtime of its file. `None` if git is not found.
fn stamp() -> Option<Vec<u8>> {
    let program = program::file()?;
    let meta = program.metadata().ok()?;
    let state =
        format!("{} {} {}.{:09} ", meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec());
    Some([state.as_bytes(), program.as_os_str().as_bytes(), b"\n"].concat())
}

/// The version in the output of `git version`: the whole version, e.g. `2.47.1`, and its first two
/// numbers.
fn version(text: &str) -> Option<(&str, (u32, u32))> {
    let found = text.trim().strip_prefix("git version ")?.split_whitespace().next()?;
    let mut numbers = found.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((found, (numbers.next()?.ok()?, numbers.next()?.ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_in_every_form_that_git_prints() {
        for (text, expected) in [
            ("git version 2.41.0\n", Some(("2.41.0", (2, 41)))),
            ("git version 2.39.5 (Apple Git-154)\n", Some(("2.39.5", (2, 39)))),
            ("git version 2.50.1.windows.1\n", Some(("2.50.1.windows.1", (2, 50)))),
            ("git version 3.0-rc1\n", Some(("3.0-rc1", (3, 0)))),
            ("something else\n", None),
        ] {
            assert_eq!(version(text), expected, "{text}");
        }
    }
}
