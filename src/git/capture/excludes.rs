//! `diff.exclude`: the paths that captures leave out, whether the attempt committed them or not.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::bstr::ByteSlice;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// `diff.exclude`, in the syntax of `.gitignore`.
#[derive(Clone)]
pub struct Excludes(Gitignore);

impl Excludes {
    /// Compiles the patterns; fails on a pattern that is not a valid glob.
    pub fn new(patterns: &[String]) -> Result<Self> {
        let invalid = |e: ignore::Error| {
            Error::fatal(format!("diff.exclude: {e}"))
                .hint("write patterns as in a .gitignore: `node_modules`, `/build`, `*.log`")
        };
        let mut builder = GitignoreBuilder::new("");
        for pattern in patterns.iter().map(String::as_str).chain([".frites"]) {
            builder.add_line(None, pattern).map_err(invalid)?;
        }
        Ok(Excludes(builder.build().map_err(invalid)?))
    }

    /// True if the patterns match this path or a directory above it. The path of a directory ends
    /// in a slash.
    pub fn matches(&self, path: &[u8]) -> bool {
        let is_dir = path.ends_with(b"/");
        let path = Path::new(OsStr::from_bytes(path.strip_suffix(b"/").unwrap_or(path)));
        self.0.matched_path_or_any_parents(path, is_dir).is_ignore()
    }

    /// The outermost directory above `path` that the patterns match, or else `path` itself if they
    /// match it. `None` if they match neither.
    fn outermost<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut above = ends.map(|(end, _)| &path[..=end]);
        let found = self.matches(path).then_some(path)?;
        let found = above.find(|directory| self.matches(directory)).unwrap_or(found);
        Some(found.strip_suffix(b"/").unwrap_or(found))
    }
}

/// The paths that captures of a candidate leave out. `diff.exclude` matches such a path, or a
/// directory above it. The base tracks neither the matched path nor a file below it.
pub struct HiddenPaths<'a> {
    excludes: &'a Excludes,
    repo: &'a Repo,
    base: Oid,
}

impl<'a> HiddenPaths<'a> {
    pub fn new(repo: &'a Repo, base: Oid, excludes: &'a Excludes) -> HiddenPaths<'a> {
        HiddenPaths { excludes, repo, base }
    }

    pub fn excludes(&self) -> &Excludes {
        self.excludes
    }

    /// True if captures leave this path out. The path of a directory ends in a slash.
    pub fn hides(&self, path: &[u8]) -> bool {
        self.outermost(path).is_some()
    }

    /// The outermost hidden directory above a path, or else the path itself if it is hidden. `None`
    /// if neither is hidden.
    pub fn outermost(&self, path: &[u8]) -> Option<TreePath> {
        let found = TreePath::new(self.excludes.outermost(path)?);
        let is_tracked = self.repo.index_of(&self.base).is_ok_and(|base| {
            base.path_is_directory(found.as_bstr()) || base.entry_by_path(found.as_bstr()).is_some()
        });
        (!is_tracked).then_some(found)
    }
}
