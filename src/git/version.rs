//! The version of the git program. An old git is refused before anything else happens.
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::{atomic, regular};
use crate::git::cli::Git;
use crate::git::program;
use crate::model::layout::StateDir;

/// The oldest version that works: `git merge-tree` has `--merge-base` since 2.40, and
/// `--attr-source` is new in 2.41.
const OLDEST: (u32, u32) = (2, 41);

/// Refuses a git program that is older than 2.41, or that cannot be started.
///
/// The program is asked only if it is not the one that `state` remembers. An attempt that edits this memory
/// gains nothing: an old git then fails later, at an option that it does not have.
pub fn require_new_enough(git: &Git, state: &StateDir) -> Result<()> {
    let memory = state.git_program();
    let stamp = stamp();
    if stamp.is_some() && regular::read(&memory).ok() == stamp {
        return Ok(());
    }
    ask(git)?;
    // Commands that only look do not make the state directory. If the version cannot be noted, git is asked
    // each time.
    if let Some(stamp) = stamp
        && state.path().is_dir()
    {
        let _ = atomic::write(&memory, &stamp);
    }
    Ok(())
}

/// The version of the git program, outside of any repository. Fails as [`require_new_enough`] does.
pub fn check() -> Result<String> {
    ask(&Git::at(Path::new("."), Arc::default()))
}

/// The version that git prints. Fails if it is older than 2.41, or cannot be started.
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
        // An unknown form of the version is not a reason to refuse.
        None => Ok(text.trim().to_owned()),
    }
}

/// The path of the git program on PATH, with the inode, size and time of its file; `None` if it is
/// not found.
fn stamp() -> Option<Vec<u8>> {
    let program = program::file()?;
    let meta = program.metadata().ok()?;
    let state =
        format!("{} {} {}.{:09} ", meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec());
    Some([state.as_bytes(), program.as_os_str().as_bytes(), b"\n"].concat())
}

/// The version in the answer of `git version`, as text and as numbers.
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
