//! The times at which files were last written, for `--strategy newest-file-wins`.
//!
//! The times of a capture are stored in a separate commit. A separate ref points to that commit,
//! and is pushed and fetched with the captures.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use gix::ObjectId;
use gix::bstr::{ByteSlice, ByteVec};

use crate::error::{Cause, Result};
use crate::git::objects::{NewObjects, StoredContent};
use crate::git::repo::{Commit, Repo};
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::refname::RefName;

/// The beginning of a line with the time of a file.
const MTIME: &str = "mtime ";

/// The beginning of the line that names the captured tree.
const TREE: &str = "tree ";

/// The name of the file with the times in the commit's tree.
const FILE: &str = "times";

/// The times of a capture's files before they are stored.
pub struct NewTimes {
    /// The ref that will point to the commit with the times.
    pub refname: RefName,
    /// The current value of the ref; `None` if it does not exist.
    pub old: Option<Oid>,
    /// `old`, if it is a readable commit. It becomes the parent of the new commit, so that a plain
    /// `git push` can move the ref forward.
    pub previous: Option<Oid>,
    text: String,
}

impl NewTimes {
    /// Reads the times of these files of a worktree. `tree` is the captured tree. `None` if there
    /// is nothing to store.
    ///
    /// The times must not be stored after the capture. If git-frites were killed in between, the
    /// capture would stay without times. Times without a capture do no harm: their commit names a
    /// tree that no capture has, so they are ignored.
    pub fn read<'a>(
        repo: &Repo,
        refname: RefName,
        worktree: &Path,
        tree: &Oid,
        files: impl Iterator<Item = &'a TreePath>,
    ) -> Result<Option<NewTimes>> {
        let times = as_lines(worktree, files);
        if times.is_empty() {
            return Ok(None);
        }
        let text = format!("{TREE}{tree}\n{times}");
        let old = repo.read_ref(&refname)?;
        let stored = old.filter(|old| repo.is_commit(old)).map(|commit| {
            let there = repo.commit(&commit).and_then(|found| repo.file(&found.tree, FILE));
            there.map(|there| (commit, there))
        });
        let previous = match stored.transpose() {
            Ok(Some((_, Some(there)))) if there == text.as_bytes() => return Ok(None),
            Ok(stored) => stored.map(|(commit, _)| commit),
            // A garbage collection has deleted objects of the old commit, so this commit must not
            // become a parent.
            Err(error) if error.cause == Cause::Damaged => None,
            Err(error) => return Err(error),
        };
        Ok(Some(NewTimes { refname, old, previous, text }))
    }

    /// Adds the commit that holds the times.
    pub fn add(&self, objects: &mut NewObjects) -> Result<ObjectId> {
        let files = [(FILE.to_owned(), StoredContent::Bytes(self.text.as_bytes()))];
        objects.add_files(&files, &self.previous, "frites: times of files")
    }
}

/// The times of a capture's files, in seconds since 1970; empty if no times were stored for this
/// capture.
pub fn of_capture(
    repo: &Repo,
    refname: &RefName,
    capture: &Commit,
) -> Result<BTreeMap<TreePath, i64>> {
    let Some(tip) = repo.read_ref(refname)? else { return Ok(BTreeMap::new()) };
    let stored = repo.file(&repo.commit(&tip)?.tree, FILE)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&stored);
    let is_of_capture = text.starts_with(&format!("{TREE}{}\n", capture.tree));
    Ok(if is_of_capture { from_lines(&text) } else { BTreeMap::new() })
}

/// One line for each of these files that exists: the seconds since 1970, and the path. Newlines,
/// and bytes that are not UTF-8, are escaped in the path.
fn as_lines<'a>(worktree: &Path, paths: impl Iterator<Item = &'a TreePath>) -> String {
    let mut lines = String::new();
    for path in paths {
        let Ok(meta) = fs::symlink_metadata(path.on_disk(worktree)) else { continue };
        lines.push_str(&format!(
            "{MTIME}{}.{:09} {}\n",
            meta.mtime(),
            meta.mtime_nsec(),
            path.escape_bytes()
        ));
    }
    lines
}

/// Parses the lines that [`as_lines`] wrote, and ignores all other lines of the text.
fn from_lines(text: &str) -> BTreeMap<TreePath, i64> {
    text.lines()
        .filter_map(|line| {
            let (time, path) = line.strip_prefix(MTIME)?.split_once(' ')?;
            let seconds = time.split('.').next()?.parse().ok()?;
            Some((TreePath::new(Vec::unescape_bytes(path)), seconds))
        })
        .collect()
}

/// The time of the last commit in the history of `tip` that touched a path, in seconds since 1970.
/// `None` if there is none.
pub fn last_touched(repo: &Repo, tip: &Oid, path: &TreePath) -> Result<Option<i64>> {
    let call = repo.git().call("--literal-pathspecs").words("log -1 --format=%ct");
    Ok(call
        .args([tip.as_str(), "--"])
        .arg(OsStr::from_bytes(path))
        .line()?
        .to_string_lossy()
        .trim()
        .parse()
        .ok())
}

/// The time of the newest commit that gave a path this blob, or that removed the path if `blob` is
/// `None`. Only commits count that are reachable from `heads` and not from `base`. `None` if there
/// is no such commit.
pub fn commit_time(
    repo: &Repo,
    heads: &[Oid],
    base: &Oid,
    path: &TreePath,
    blob: Option<&Oid>,
) -> Result<Option<i64>> {
    if heads.is_empty() {
        return Ok(None);
    }
    let call = repo.git().call("--literal-pathspecs").words("log -m --no-renames --raw");
    let call =
        call.args(["--no-abbrev", "--format=commit %ct"]).args(heads.iter().map(Oid::as_str));
    let call = call.args([&format!("^{base}"), "--"]).arg(OsStr::from_bytes(path));
    let answer = call.bytes()?;
    let wanted = blob.copied().unwrap_or_else(|| base.null());
    let mut time = None;
    for line in String::from_utf8_lossy(&answer).lines() {
        if let Some(seconds) = line.strip_prefix("commit ") {
            time = seconds.parse().ok();
        } else if line.split(' ').nth(3) == Some(wanted.as_str()) {
            return Ok(time);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_paths_are_read_back() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let names: [&[u8]; 4] = [b"plain", b"with blank", b"new\nline", b"\xff\\x"];
        for name in names {
            let file =
                fs::File::create(directory.path().join(OsStr::from_bytes(name))).expect("a file");
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_767_000_000_500);
            file.set_modified(time).expect("a time");
        }
        let paths: Vec<TreePath> =
            names.into_iter().chain([&b"missing"[..]]).map(TreePath::new).collect();
        let lines = as_lines(directory.path(), paths.iter());
        let expected: BTreeMap<TreePath, i64> =
            names.iter().map(|n| (TreePath::new(n), 1_767_000_000)).collect();
        assert_eq!(from_lines(&lines), expected);
    }
}
