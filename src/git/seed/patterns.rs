//! Patterns for seeds, in the syntax of `.gitignore`.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::error::{Error, IfExists, IoContext, Result};
use crate::fs::regular;

/// A file in the checkout with patterns for files to copy. Other tools read it, too. Only files
/// that git ignores are copied.
pub const INCLUDE: &str = ".worktreeinclude";

/// The longest pattern, in bytes. A longer pattern matches nothing, because no path is that long.
/// But it could take minutes to compile.
const LONGEST_PATTERN: usize = 4096;

/// Fails with the reason if a line is not a pattern.
fn check_pattern(line: &str) -> std::result::Result<(), String> {
    if line.len() > LONGEST_PATTERN {
        return Err(format!("it is longer than {LONGEST_PATTERN} bytes"));
    }
    GitignoreBuilder::new("").add_line(None, line).map(drop).map_err(|e| match e {
        ignore::Error::Glob { err, .. } => err,
        other => other.to_string(),
    })
}

/// Patterns in the syntax of `.gitignore`.
pub struct Patterns {
    /// The patterns themselves.
    wanted: Gitignore,
    /// Patterns for the directories that must be searched: `/data/*.json` leads into `data`. A
    /// pattern without a slash leads into no directory.
    leading: Gitignore,
}

impl Patterns {
    /// Compiles patterns into one set. `lines` has each pattern with the name of its setting, for
    /// errors. Fails if a line is not a pattern, or has `..` in it.
    pub fn parse(lines: &[(&str, &String)]) -> Result<Patterns> {
        let refuse = |key: &str, line: &str, why: &str| {
            Error::fatal(format!("{key}: '{line}' {why}"))
                .hint("write patterns as in a .gitignore, from the root of your checkout: `.env*`, `/config/*.key`")
        };
        for (key, line) in lines {
            if line.split('/').any(|part| part == "..") {
                return Err(refuse(key, line, "leaves the checkout"));
            }
            if let Err(why) = check_pattern(line) {
                let why = format!("is not a pattern: {why}");
                return Err(refuse(key, line.get(..60).unwrap_or(line), &why));
            }
        }
        Ok(Patterns::compile(lines.iter().map(|(_, line)| line.as_str())))
    }

    /// Reads the patterns of a file. A line that is not a pattern is skipped with a note, because
    /// the file may be written for other tools.
    pub fn read(file: &Path, notes: &mut Vec<String>) -> Result<Patterns> {
        let bytes = regular::read(file).if_exists().could_not("read", file)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            match check_pattern(line) {
                Ok(()) => lines.push(line),
                Err(why) => {
                    let line = at + 1;
                    notes.push(format!("{INCLUDE}:{line}: left out, it is not a pattern: {why}"));
                }
            }
        }
        Ok(Patterns::compile(lines.into_iter()))
    }

    fn compile<'a>(lines: impl Iterator<Item = &'a str>) -> Patterns {
        let mut wanted = GitignoreBuilder::new("");
        let mut leading = GitignoreBuilder::new("");
        for line in lines {
            let _ = wanted.add_line(None, line);
            if line.starts_with(['#', '!']) {
                continue;
            }
            let parts: Vec<&str> =
                line.trim_start_matches('/').trim_end_matches('/').split('/').collect();
            for end in 1..parts.len() {
                if parts[..end] != ["**"] {
                    let _ = leading.add_line(None, &format!("/{}/", parts[..end].join("/")));
                }
            }
        }
        // A set that is too large to compile matches nothing.
        let build =
            |builder: GitignoreBuilder| builder.build().unwrap_or_else(|_| Gitignore::empty());
        Patterns { wanted: build(wanted), leading: build(leading) }
    }

    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    pub fn matches(&self, path: &[u8], is_dir: bool) -> bool {
        self.wanted.matched_path_or_any_parents(OsStr::from_bytes(path), is_dir).is_ignore()
    }

    /// True if a pattern matches the path itself, and not only a directory above the path.
    pub fn matches_itself(&self, path: &[u8]) -> bool {
        self.wanted.matched(OsStr::from_bytes(path), false).is_ignore()
    }

    /// True if a pattern may match a path below this directory. Only the parts of a pattern before
    /// its last slash count.
    pub fn lead_into(&self, directory: &[u8]) -> bool {
        self.leading.matched(OsStr::from_bytes(directory), true).is_ignore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    proptest! {
        #[test]
        fn every_line_is_a_pattern_or_has_a_note(
            lines in prop::collection::vec(
                prop_oneof!["[a-z*?/!#\\\\{},\\[\\]. -]{0,12}", any::<String>(), Just("**/".repeat(2000))],
                0..6,
            ),
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            let file = directory.path().join(INCLUDE);
            fs::write(&file, lines.join("\n")).expect("written");
            let mut notes = Vec::new();
            let patterns = Patterns::read(&file, &mut notes).expect("readable");
            let text = lines.join("\n");
            let (good, bad): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| check_pattern(line).is_ok());
            let count = |patterns: &Patterns| patterns.wanted.num_ignores() + patterns.wanted.num_whitelists();
            let alone = good.iter().map(|line| count(&Patterns::compile([*line].into_iter())));
            prop_assert_eq!(count(&patterns), alone.sum::<u64>());
            prop_assert_eq!(notes.len(), bad.len());
            prop_assert!(notes.iter().all(|note| note.len() < 300), "{notes:?}");
        }
    }
}
