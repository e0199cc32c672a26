//! Paths in git trees.
use std::borrow::Borrow;
use std::ffi::OsStr;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::{ByteSlice, ByteVec};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::plain;

/// A path in a git tree: bytes in any encoding, separated by `/`, relative to the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(Vec<u8>);

impl TreePath {
    /// Copies a path from one of git's lists.
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        TreePath(bytes.as_ref().to_vec())
    }

    /// The path's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The place of the path in the checkout at `root`.
    pub fn on_disk(&self, root: &Path) -> PathBuf {
        root.join(OsStr::from_bytes(&self.0))
    }

    /// The part after the last slash.
    pub fn file_name(&self) -> &[u8] {
        file_name(&self.0)
    }

    /// The path of an entry of this directory; the empty path is the root.
    pub fn join(&self, name: impl AsRef<[u8]>) -> Self {
        let separator: &[u8] = if self.0.is_empty() { b"" } else { b"/" };
        TreePath([&self.0, separator, name.as_ref()].concat())
    }

    /// The directories above the path, outermost first, without the root.
    pub fn parents(&self) -> impl Iterator<Item = TreePath> {
        let slashes = self.0.iter().enumerate().filter(|(_, b)| **b == b'/');
        slashes.map(|(at, _)| TreePath::new(&self.0[..at]))
    }

    /// The path as text, with a mark for each byte that is not UTF-8.
    pub fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// The path for a message, see [`quoted`].
    pub fn quoted(&self) -> String {
        quoted(&self.0)
    }

    /// Paths as git reads a list with `-z`: each ends in a NUL.
    pub fn nul_terminated<'a>(paths: impl IntoIterator<Item = &'a TreePath>) -> Vec<u8> {
        paths.into_iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect()
    }
}

/// In records, bytes that are not UTF-8, and backslashes, are escaped (`\xff`, `\\`).
impl Serialize for TreePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.escape_bytes())
    }
}

impl<'de> Deserialize<'de> for TreePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| TreePath(Vec::unescape_bytes(text)))
    }
}

impl Deref for TreePath {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for TreePath {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

/// The part of a path after the last slash, for a path given as bytes.
pub fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or_default()
}

/// The part of a path before the last slash; empty for the root.
pub fn directory_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(b"", |at| &path[..at])
}

/// A path for a message: unchanged, or quoted if it contains anything unusual.
pub fn quoted(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    if text.chars().any(|c| plain::is_invisible(c) || matches!(c, '"' | '\\' | '\u{fffd}')) {
        format!("{:?}", path.as_bstr())
    } else {
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_with_a_character_that_cannot_be_seen_is_quoted() {
        assert_eq!(quoted("a/é".as_bytes()), "a/é");
        assert_eq!(quoted("a\u{202e}gnp".as_bytes()), "\"a\\u{202e}gnp\"");
        assert_eq!(quoted(b"a\n"), "\"a\\n\"");
        assert_eq!(quoted("é\n".as_bytes()), "\"é\\n\"");
        assert_eq!(quoted(b"a\xff"), "\"a\\xff\"");
    }

    #[test]
    fn parents_are_the_directories_above_a_path_without_the_root() {
        let parents: Vec<TreePath> = TreePath::new("a/b/c").parents().collect();
        assert_eq!(parents, [TreePath::new("a"), TreePath::new("a/b")]);
        assert_eq!(TreePath::new("a").parents().count(), 0);
    }

    #[test]
    fn join_adds_a_slash_except_below_the_root() {
        assert_eq!(TreePath::default().join("a").join(b"\xff"), TreePath::new(b"a/\xff"));
        assert_eq!(TreePath::new(b"a/\xff").file_name(), b"\xff");
    }
}
