//! When a candidate's files were last written: kept in the message of each capture, so that it goes where
//! the capture goes.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use gix::bstr::{ByteSlice, ByteVec};

use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// How a line about a file begins.
const MTIME: &str = "mtime ";

/// A line for each of these paths that is there: seconds since 1970, and the path with what is not UTF-8
/// escaped.
pub fn as_lines<'a>(worktree: &Path, paths: impl Iterator<Item = &'a TreePath>) -> String {
    let line = |path: &TreePath| {
        let meta = fs::symlink_metadata(path.on_disk(worktree)).ok()?;
        Some(format!("{MTIME}{}.{:09} {}\n", meta.mtime(), meta.mtime_nsec(), path.escape_bytes()))
    };
    paths.filter_map(line).collect()
}

/// What [`as_lines`] wrote into a message: the seconds for each path.
pub fn from_message(message: &str) -> BTreeMap<TreePath, i64> {
    let read = |line: &str| {
        let (time, path) = line.strip_prefix(MTIME)?.split_once(' ')?;
        Some((TreePath::from(Vec::unescape_bytes(path)), time.split('.').next()?.parse().ok()?))
    };
    message.lines().filter_map(read).collect()
}

/// When a commit in the history of `tip` last touched a path; none if none did.
pub fn last_touched(repo: &Repo, tip: &Oid, path: &[u8]) -> Result<Option<i64>> {
    let call = repo.git().call("--literal-pathspecs").args([
        "log",
        "-1",
        "--format=%ct",
        tip.as_str(),
        "--",
    ]);
    Ok(call.arg(OsStr::from_bytes(path)).line()?.to_string_lossy().trim().parse().ok())
}

/// When the newest of the commits that `heads` have beyond `base` gave a path this blob, or took it away
/// (none); none if no such commit did.
pub fn committed(
    repo: &Repo,
    heads: &[Oid],
    base: &Oid,
    path: &[u8],
    blob: Option<&Oid>,
) -> Result<Option<i64>> {
    if heads.is_empty() {
        return Ok(None);
    }
    let call = repo.git().call("--literal-pathspecs").args([
        "log",
        "-m",
        "--no-renames",
        "--raw",
        "--no-abbrev",
    ]);
    let call = call
        .arg("--format=commit %ct")
        .args(heads.iter().map(Oid::as_str))
        .arg(format!("^{base}"))
        .arg("--");
    let answer = call.arg(OsStr::from_bytes(path)).bytes()?;
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
    fn times_read_back_from_a_message_whatever_the_paths() {
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
        let message = format!("frites: capture\n\n{lines}\nFrites-Run: 1\n");
        let expected: BTreeMap<TreePath, i64> =
            names.iter().map(|n| (TreePath::new(n), 1_767_000_000)).collect();
        assert_eq!(from_message(&message), expected);
    }
}
