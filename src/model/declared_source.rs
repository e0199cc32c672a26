//! The files that `oracle.source` declares to be source, or not to be.
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::{Error, Result};

/// The patterns of `oracle.source`. The last one that matches a path decides, as in a `.gitignore`.
pub struct DeclaredSource {
    /// Two for each pattern: one for the paths that match it, and one for everything below them.
    globs: GlobSet,
    /// For each pattern, true if what matches it is source.
    are_source: Vec<bool>,
}

impl DeclaredSource {
    /// Reads patterns. One that begins with `!` names files that are neither source nor documents, and whose
    /// dependencies do not count with the source.
    ///
    /// Fails if a pattern is not valid, or can match no path.
    pub fn of(patterns: &[String]) -> Result<DeclaredSource> {
        let invalid = |pattern: &str, why: String| {
            Error::fatal(format!("'{pattern}' in oracle.source is not a pattern: {why}"))
                .hint("write it as in `data/**` or `!tools/*.py`, from the repository's root")
        };
        let mut globs = GlobSetBuilder::new();
        for pattern in patterns {
            let files = pattern.strip_prefix('!').unwrap_or(pattern);
            // A pattern that matches no path would exclude nothing.
            let is_path = !files.is_empty() && files.trim() == files && !files.contains("//");
            if !is_path || ["!", "/", "./"].iter().any(|start| files.starts_with(start)) {
                return Err(invalid(pattern, "it matches no path".to_owned()));
            }
            for glob in [files.to_owned(), format!("{}/**", files.trim_end_matches('/'))] {
                let glob = GlobBuilder::new(&glob).literal_separator(true).build();
                globs.add(glob.map_err(|why| invalid(pattern, why.kind().to_string()))?);
            }
        }
        let globs = globs.build();
        let globs = globs.map_err(|why| invalid(&patterns.join(" "), why.kind().to_string()))?;
        let are_source = patterns.iter().map(|pattern| !pattern.starts_with('!')).collect();
        Ok(DeclaredSource { globs, are_source })
    }

    /// True if a file is source, false if it is not; `None` if no pattern matches its path.
    pub fn is_source(&self, path: &str) -> Option<bool> {
        self.globs.matches(path).last().map(|at| self.are_source[at / 2])
    }
}
