//! Lays the test files of some candidates over a tree.
use crate::ecosystems::marks::adds_inner_tests;
use crate::ecosystems::touched::is_test_path;
use crate::error::Result;
use crate::git::diff::{self, Change, ChangeStatus};
use crate::git::index::{IndexEdits, edited_tree};
use crate::git::mode::EntryMode;
use crate::git::repo::Repo;
use crate::model::count::some_of;
use crate::model::oid::Oid;
use crate::ops::judge::changed_file::changed_file;

/// The test files that a capture adds or changes.
#[derive(Clone, Debug, Default)]
pub struct TestFiles {
    /// The test files that can be laid over another tree.
    pub files: Vec<Change>,
    /// The source files that contain tests. These tests cannot be moved to another tree.
    pub inseparable: Vec<String>,
}

impl TestFiles {
    /// The test files of the capture with the tree `capture`.
    pub fn of(repo: &Repo, base: &Oid, capture: &Oid) -> Result<TestFiles> {
        let mut found = TestFiles::default();
        for change in diff::since(repo, base, capture).changes()? {
            let path = change.path.lossy();
            let is_there = matches!(change.status, ChangeStatus::Added | ChangeStatus::Modified);
            let is_file = matches!(change.mode, EntryMode::File | EntryMode::Executable);
            if !is_there || !is_file {
                continue;
            }
            if is_test_path(&path) {
                found.files.push(change);
                continue;
            }
            let file = changed_file(repo, &change);
            if adds_inner_tests(&file, &path) {
                found.inseparable.push(path);
            }
        }
        Ok(found)
    }

    /// The paths of the test files, in words.
    pub fn in_words(&self) -> String {
        let paths: Vec<String> = self.files.iter().map(|file| file.path.lossy()).collect();
        some_of(&paths)
    }

    /// True if one of the test files exists in the base.
    pub fn has_edited(&self) -> bool {
        self.files.iter().any(|file| file.status == ChangeStatus::Modified)
    }

    /// True if `self` and `other` have a file with the same path but different content.
    pub fn collides(&self, other: &TestFiles) -> bool {
        let mut pairs =
            self.files.iter().flat_map(|one| other.files.iter().map(move |two| (one, two)));
        pairs.any(|(one, two)| one.path == two.path && one.new != two.new)
    }
}

pub fn lay_over(repo: &Repo, tree: &Oid, files: &[&Change]) -> Result<Oid> {
    let mut edits = IndexEdits::default();
    for file in files {
        edits.set(file.mode, file.new, &file.path);
    }
    edited_tree(repo, tree, edits)
}
