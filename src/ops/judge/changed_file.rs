//! The files that a candidate changes, with their content before and after the change.
use crate::ecosystems::put_back::is_read_as_text;
use crate::error::Result;
use crate::git::diff::{self, Change, ChangeStatus};
use crate::git::mode::EntryMode;
use crate::git::repo::Repo;
use crate::model::changed_file::{ChangedFile, FileContent};
use crate::model::oid::Oid;

fn content_of(repo: &Repo, oid: &Oid, kind: ContentKind) -> FileContent {
    if oid.is_null() {
        return FileContent::Missing;
    }
    // Do not look up an object that does not exist here, such as a submodule's commit: git would
    // search for it several times.
    let bytes = if kind == ContentKind::NotRead { None } else { repo.blob(oid).ok() };
    match bytes {
        Some(text) if kind == ContentKind::Text => FileContent::Text(text),
        bytes => FileContent::Binary(*oid, bytes.unwrap_or_default()),
    }
}

/// How the content of a changed file is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentKind {
    Text,
    /// git treats the file as binary, because of a NUL or of its attributes. But a compiler or a
    /// package manager reads it as text.
    BinaryThatToolsRead,
    NotRead,
}

/// The size of the largest file that is read although git treats it as binary.
const LARGEST_READ: u64 = 64 << 20;

/// The changed file of a change, with its content.
pub fn changed_file(repo: &Repo, change: &Change) -> ChangedFile {
    let is_submodule =
        change.mode == EntryMode::Submodule && change.status != ChangeStatus::TypeChanged;
    let kind = match change.lines {
        _ if is_submodule => ContentKind::NotRead,
        Some(_) => ContentKind::Text,
        None if is_read_as_text(&change.path.lossy())
            && [change.old, change.new].iter().all(|side| repo.size(side) <= LARGEST_READ) =>
        {
            ContentKind::BinaryThatToolsRead
        }
        None => ContentKind::NotRead,
    };
    ChangedFile {
        path: change.path.clone(),
        before: content_of(repo, &change.old, kind),
        after: content_of(repo, &change.new, kind),
        loses: change.lines.is_none_or(|(_, deleted)| deleted > 0)
            && change.status != ChangeStatus::Added,
        changes_mode: change.status == ChangeStatus::Modified && change.old_mode != change.mode,
        is_submodule: change.mode == EntryMode::Submodule,
        is_link: [change.old_mode, change.mode].contains(&EntryMode::Link),
    }
}

/// The files that differ between a commit and a tree.
pub fn changed_files(repo: &Repo, base: &Oid, tree: &Oid) -> Result<Vec<ChangedFile>> {
    Ok(files_of(repo, &diff::since(repo, base, tree).changes()?))
}

/// The changed files with their contents.
pub fn files_of(repo: &Repo, changes: &[Change]) -> Vec<ChangedFile> {
    changes.iter().map(|change| changed_file(repo, change)).collect()
}
