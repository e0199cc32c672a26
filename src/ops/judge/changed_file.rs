//! The files that a candidate changes, with their content on both sides.
use crate::ecosystems::touched::TouchedPath;
use crate::error::Result;
use crate::git::diff::{self, Change, ChangeStatus};
use crate::git::mode::EntryMode;
use crate::git::repo::Repo;
use crate::model::agreement::Content;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// A change to one path, with the content of both sides.
pub struct ChangedFile {
    /// The path from the root.
    pub path: TreePath,
    /// The content before.
    pub before: FileContent,
    /// The content now.
    pub after: FileContent,
    /// True if lines of an existing file are removed.
    pub loses: bool,
}

/// The content of a path on one side of a change.
pub enum FileContent {
    /// There is no file.
    Missing,
    /// A file that git does not count as binary.
    Text(Vec<u8>),
    /// A file that it does, or a submodule.
    Binary(Oid),
}

impl ChangedFile {
    /// The change as its language sees it. `name` is the path as text.
    pub fn touched<'f>(&'f self, name: &'f str) -> TouchedPath<'f> {
        let [before, after] = [&self.before, &self.after].map(FileContent::text);
        TouchedPath { path: name, before, after, loses: self.loses }
    }
}

impl FileContent {
    /// A missing object is searched for several times, so a submodule's commit counts as `binary`.
    fn of(repo: &Repo, oid: &Oid, binary: bool) -> FileContent {
        if oid.is_null() {
            return FileContent::Missing;
        }
        if binary {
            return FileContent::Binary(*oid);
        }
        // The other side of a file may be a submodule's commit, which is no blob.
        repo.blob(oid).map_or(FileContent::Binary(*oid), FileContent::Text)
    }

    /// The content as text; `None` if there is no file.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            FileContent::Missing => None,
            FileContent::Text(bytes) => Some(bytes),
            FileContent::Binary(_) => Some(b""),
        }
    }

    /// The content as agreement compares it.
    pub fn as_agreement(&self) -> Content<'_> {
        match self {
            FileContent::Missing => Content::Missing,
            FileContent::Text(bytes) => Content::Text(bytes),
            FileContent::Binary(oid) => Content::Binary(oid.as_str()),
        }
    }
}

/// A change with its content.
pub fn changed_file(repo: &Repo, change: &Change) -> ChangedFile {
    let is_submodule =
        change.mode == EntryMode::Submodule && change.status != ChangeStatus::TypeChanged;
    let binary = change.lines.is_none() || is_submodule;
    ChangedFile {
        path: change.path.clone(),
        before: FileContent::of(repo, &change.old, binary),
        after: FileContent::of(repo, &change.new, binary),
        loses: change.lines.is_none_or(|(_, deleted)| deleted > 0)
            && change.status != ChangeStatus::Added,
    }
}

/// The files that differ between a commit and a tree.
pub fn changed_files(repo: &Repo, base: &Oid, tree: &Oid) -> Result<Vec<ChangedFile>> {
    let changes = diff::changes(repo, base, base, tree)?;
    Ok(changes.iter().map(|change| changed_file(repo, change)).collect())
}
