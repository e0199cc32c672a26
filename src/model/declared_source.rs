//! The files that `oracle.source` declares to be source, or not to be.
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::{Error, Result};

/// The patterns of `oracle.source`. The last pattern that matches a path decides, as in a
/// `.gitignore`.
pub struct DeclaredSource {
    /// Two globs for each pattern: one for the paths that match the pattern, and one for everything
    /// below these paths.
    globs: GlobSet,
    /// For each pattern, true if the paths that match it are source.
    are_source: Vec<bool>,
}

impl DeclaredSource {
    /// Reads patterns. A pattern that begins with `!` names files that count neither as source, nor
    /// as documents, nor as lists of dependencies.
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
            // A pattern that matches no path, or other paths than it seems to, is refused.
            // Otherwise, nobody would notice the mistake.
            let is_path = !files.is_empty() && files.trim() == files && !files.contains("//");
            if !is_path || ["!", "/", "./"].iter().any(|start| files.starts_with(start)) {
                return Err(invalid(pattern, "it matches no path".to_owned()));
            }
            if has_separating_comma(files) {
                let why = "each pattern is a value of its own, and a comma in a name is `[,]`";
                return Err(invalid(pattern, why.to_owned()));
            }
            if !stars_are_parts(files) {
                return Err(invalid(pattern, "`**` is a whole part of a path".to_owned()));
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

/// True if a pattern has a comma that is neither between braces nor in a class of characters.
fn has_separating_comma(pattern: &str) -> bool {
    let mut depth = 0_usize;
    pattern.chars().any(|c| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// True if each `**` of a pattern is a whole part of a path, as in `src/**`. In `src/**.py`, the
/// `**` would mean the same as `*`.
fn stars_are_parts(pattern: &str) -> bool {
    pattern.match_indices("**").all(|(at, stars)| {
        let before = &pattern[..at];
        let after = &pattern[at + stars.len()..];
        (before.is_empty() || before.ends_with(['/', '{', ',']))
            && (after.is_empty() || after.starts_with(['/', '}', ',']))
    })
}
