//! A file that a candidate changes, with its content before and after the change.
use std::borrow::Cow;

use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// A change to one path, with the content before and after.
pub struct ChangedFile {
    /// The path from the root.
    pub path: TreePath,
    /// The content before.
    pub before: FileContent,
    /// The content now.
    pub after: FileContent,
    /// True if lines of an existing file are removed.
    pub loses: bool,
    /// True if an existing file became executable, or is no longer executable.
    pub changes_mode: bool,
    /// True if the path is a submodule now.
    pub is_submodule: bool,
    /// True if the path is or was a symbolic link.
    pub is_link: bool,
}

/// The content of a path on one side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// There is no such file.
    Missing,
    /// A file that git does not count as binary.
    Text(Vec<u8>),
    /// A submodule, or a file that git counts as binary. It has bytes only if a tool may read them
    /// as text. For agreement (`agreement.rs`), it counts as one run of tokens.
    Binary(Oid, Vec<u8>),
}

impl FileContent {
    /// The bytes of the file; empty for a submodule and for a binary file that was not read. `None`
    /// if there is no file.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            FileContent::Missing => None,
            FileContent::Text(bytes) | FileContent::Binary(_, bytes) => Some(bytes),
        }
    }

    /// The bytes of the file as text, in which bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        self.bytes().map(String::from_utf8_lossy)
    }

    /// True if there is a file or a submodule whose bytes were not read.
    pub fn is_unread(&self) -> bool {
        matches!(self, FileContent::Binary(_, bytes) if bytes.is_empty())
    }

    /// The text, in which bytes that are not UTF-8 are replaced; empty for a missing or binary
    /// file.
    pub fn lossy(&self) -> Cow<'_, str> {
        match self {
            FileContent::Text(bytes) => String::from_utf8_lossy(bytes),
            FileContent::Missing | FileContent::Binary(..) => "".into(),
        }
    }
}
