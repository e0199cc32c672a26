//! Reads, copies and writes the plain files of git directories.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice;
use rustix::fs::Mode;

use crate::error::IfExists;
use crate::fs::directory::{DIRECTORY, open_or_make};
use crate::fs::regular;
use crate::fs::walk::{list, list_readable};
use crate::model::oid::Oid;

/// The files and directories of an administrative entry that do not belong to the attempt. They are
/// the worktree's paths, lock and configuration, and the git directories of its submodules.
const OF_THE_REPOSITORY: [&str; 5] =
    ["commondir", "gitdir", "locked", "config.worktree", "modules"];

/// The mark in FETCH_HEAD of a branch that `git fetch` updated without being asked for it.
const ONLY_FETCHED: &str = "\tnot-for-merge\t";

/// True if an attempt must not change this path of its administrative entry, or if the path is a
/// lock file. The path is relative to the entry.
pub(super) fn is_of_the_repository(path: &Path) -> bool {
    OF_THE_REPOSITORY.iter().any(|name| path == Path::new(name))
        || path.extension().is_some_and(|extension| extension == "lock")
}

/// True if this path of an administrative entry is the index, or a file with shared entries of it
/// (`git update-index --split-index`).
pub(super) fn is_of_an_index(path: &Path) -> bool {
    path == Path::new("index") || path.as_os_str().as_bytes().starts_with(b"sharedindex.")
}

/// The files and directories of a git directory that are read when an attempt is captured.
const READ: [&str; 6] = ["HEAD", "index", "logs", "objects", "packed-refs", "refs"];

/// The paths in [`READ`] that are neither files nor directories. git-frites opens none of them. git
/// itself would wait for ever for a FIFO.
pub(super) fn special(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let all = list(dir, |path| !READ.iter().any(|name| path.starts_with(name))).into_iter();
    let special = all.filter(|(_, kind)| !kind.is_file() && !kind.is_dir());
    special.map(|(path, _)| dir.join(path))
}

/// Copies the files, links and directories below `from`, except those for which `leaves_out` is
/// true.
pub(super) fn copy(from: &Path, to: &Path, leaves_out: impl Fn(&Path) -> bool) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for (path, kind) in list(from, leaves_out) {
        let source = from.join(&path);
        let target = to.join(&path);
        let copied = if kind.is_dir() {
            fs::create_dir_all(&target)
        } else if kind.is_symlink() {
            fs::read_link(&source).and_then(|leads| std::os::unix::fs::symlink(leads, &target))
        } else if kind.is_file() {
            fs::copy(&source, &target).map(drop)
        } else {
            Ok(())
        };
        // If the path is gone, it may have been a temporary file of git.
        copied.if_exists()?;
    }
    Ok(())
}

/// True if the path is a directory, and not a link to one.
pub(super) fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// At most this many bytes are read of the files below one directory. An attempt can make long
/// files that take no disk space, and git-frites holds them in memory. An index of this length has
/// more than two million files.
const MOST_BYTES: u64 = 256 << 20;

/// The contents of the regular files below a directory, by their relative paths. Links are not
/// followed. Adds to `unread` the paths of files and directories that cannot be read, and of files
/// that are too long.
pub(super) fn read(
    dir: &Path,
    leaves_out: impl Fn(&Path) -> bool,
    unread: &mut Vec<PathBuf>,
) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    if !is_directory(dir) {
        return found;
    }
    let mut left = MOST_BYTES;
    let all = list_readable(dir, leaves_out, unread).into_iter();
    for (path, _) in all.filter(|(_, kind)| kind.is_file()) {
        let at = dir.join(&path);
        match regular::read_own_at_most(&at, left).if_exists() {
            Ok(Some(bytes)) => {
                left -= bytes.len() as u64;
                found.insert(path, bytes);
            }
            // git removes files at any time.
            Ok(None) => {}
            Err(_) => unread.push(at),
        }
    }
    found
}

/// Replaces the files of an administrative entry by these. Files that do not belong to the attempt
/// are kept.
pub(super) fn replace(admin: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    write(admin, files)?;
    remove(admin, |path| !files.contains_key(path))
}

/// The name of a file while it is written. Then the file is renamed.
const NEW: &str = "frites-new";

/// Writes files of an administrative entry. Each file is replaced in one step, so other processes
/// see the old or the new content. Links that the attempt made are not followed. Removes a file
/// where a directory must be, or the other way round.
pub(super) fn write(admin: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    remove(admin, |path| is_in_the_way(path, files))?;
    let root = rustix::fs::open(admin, DIRECTORY, Mode::empty())?;
    let new = Path::new(NEW);
    for (path, bytes) in files.iter().filter(|(path, _)| path.iter().all(|name| name != NEW)) {
        let mut names: Vec<&OsStr> = path.iter().collect();
        let Some(name) = names.pop().map(Path::new) else { continue };
        let mut above = root.try_clone()?;
        for directory in names {
            above = open_or_make(&above, directory)?;
        }
        if regular::read_own_in(&above, name).is_ok_and(|old| old == *bytes) {
            continue;
        }
        // The attempt may have made a FIFO with this name; `create_own_in` does not open that.
        regular::create_own_in(&above, new)?.write_all(bytes)?;
        rustix::fs::renameat(&above, new, &above, name)?;
    }
    Ok(())
}

/// True if this path of an administrative entry keeps one of the files from being written.
fn is_in_the_way(path: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> bool {
    let mut after = files.range::<Path, _>((Bound::Excluded(path), Bound::Unbounded));
    path.iter().any(|name| name == NEW)
        || path.ancestors().skip(1).any(|above| files.contains_key(above))
        || after.next().is_some_and(|(next, _)| next.starts_with(path))
}

/// Removes the files of an administrative entry for which `is_gone` is true. Keeps the files that
/// do not belong to the attempt. Removes all empty directories, because for git even an empty
/// `rebase-merge` means a rebase.
fn remove(admin: &Path, is_gone: impl Fn(&Path) -> bool) -> io::Result<()> {
    for (path, kind) in list(admin, is_of_the_repository).into_iter().rev() {
        if kind.is_dir() {
            if path != Path::new("refs") && path != Path::new("logs") {
                let _ = fs::remove_dir(admin.join(&path));
            }
        } else if is_gone(&path) {
            fs::remove_file(admin.join(&path))?;
        }
    }
    Ok(())
}

/// Every object id in the files of the administrative entry `admin`, without its index. git deletes
/// these files together with the worktree. They may be the only ones that name an object, such as
/// an autostash, a ref of a bisection, or an amended commit.
///
/// All files count, because the set of files differs between versions of git. Some of the objects
/// may not exist.
pub fn named(admin: &Path) -> BTreeSet<Oid> {
    let is_left_out = |path: &Path| is_of_the_repository(path) || is_of_an_index(path);
    let found = read(admin, is_left_out, &mut Vec::new());
    found.values().flat_map(|bytes| ids_in(bytes)).collect()
}

/// Every object id in these bytes, except the null id and the ids of branches that were only
/// fetched.
pub fn ids_in(bytes: &[u8]) -> BTreeSet<Oid> {
    let lines = bytes.lines().filter(|line| !line.contains_str(ONLY_FETCHED));
    let words = lines.flat_map(|line| line.split(|byte| !byte.is_ascii_hexdigit()));
    let ids = words.filter_map(|word| Oid::parse(std::str::from_utf8(word).ok()?));
    ids.filter(|id| !id.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_of_a_file_is_removed_and_a_file_that_is_missing_is_kept() {
        let entry = tempfile::tempdir().expect("a directory");
        let at = |path: &str| entry.path().join(path);
        for dir in ["refs/b", "c", NEW, "frites-new.lock"] {
            fs::create_dir_all(at(dir)).expect("a directory");
        }
        for file in ["refs/a", "refs/b/1", "kept", "frites-new/x", "locked"] {
            fs::write(at(file), "old").expect("a file");
        }
        std::os::unix::fs::symlink("kept", at("d")).expect("a link");
        let files = ["HEAD", "c", "d/1", "frites-new/x", "refs/a/1", "refs/b"];
        let files = files.map(|path| (PathBuf::from(path), path.into())).into();
        let paths = || {
            let files =
                list(entry.path(), |_| false).into_iter().filter(|(_, kind)| kind.is_file());
            files.map(|(path, _)| path).collect::<BTreeSet<_>>()
        };
        let of = |names: &[&str]| names.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        write(entry.path(), &files).expect("written");
        assert_eq!(paths(), of(&["HEAD", "c", "d/1", "kept", "locked", "refs/a/1", "refs/b"]));
        replace(entry.path(), &files).expect("written");
        assert_eq!(paths(), of(&["HEAD", "c", "d/1", "locked", "refs/a/1", "refs/b"]));
    }

    #[test]
    fn ids_are_found_wherever_they_stand_except_those_of_fetched_branches() {
        let id = |digit: &str| Oid::parse(&digit.repeat(40)).expect("an id");
        let [a, b, c] = ["a", "b", "c"].map(id);
        for text in [
            format!("{a}\n"),
            format!("{} {a} A <a@b> 1 +0000\tcommit: x\n", a.null()),
            format!("pick {a} # x\nupdate refs/heads/{a}f\n"),
            format!("{a}\t\tbranch 'x' of .\n{b}\tnot-for-merge\tbranch 'y' of .\n"),
            format!("\u{1}\u{ff}{a}\0{b}{c}{c}"),
        ] {
            assert_eq!(ids_in(text.as_bytes()), [a].into(), "{text:?}");
        }
    }
}
