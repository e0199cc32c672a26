//! `diff.exclude`: the untracked paths that captures leave out.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::error::{Error, Result};

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
        for pattern in patterns {
            builder.add_line(None, pattern).map_err(invalid)?;
        }
        Ok(Excludes(builder.build().map_err(invalid)?))
    }

    /// True if captures leave out this path while it is untracked. A directory ends in a slash.
    pub fn hides(&self, path: &[u8]) -> bool {
        let is_dir = path.ends_with(b"/");
        let path = Path::new(OsStr::from_bytes(path.strip_suffix(b"/").unwrap_or(path)));
        self.0.matched_path_or_any_parents(path, is_dir).is_ignore()
    }
}
