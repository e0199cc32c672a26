//! Trees with the test files of some candidates laid over them.
use crate::ecosystems::touched::{adds_inner_tests, is_test_path};
use crate::error::Result;
use crate::git::commit::neutral_commit;
use crate::git::diff::{self, Change, ChangeStatus};
use crate::git::index::{IndexEdits, ScratchIndex};
use crate::git::merge::{self, MergeResult};
use crate::git::mode::EntryMode;
use crate::git::repo::Repo;
use crate::model::count::some_of;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::ops::judge::changed_file::changed_file;

/// The test files that a capture adds or changes.
#[derive(Clone, Debug, Default)]
pub struct TestFiles {
    /// The files.
    pub files: Vec<Change>,
    /// The source files with tests of their own, which cannot be moved.
    pub inseparable: Vec<String>,
}

impl TestFiles {
    /// The test files of the capture with this tree.
    pub fn of(repo: &Repo, base: &Oid, capture: &Oid) -> Result<TestFiles> {
        let mut found = TestFiles::default();
        for change in diff::changes(repo, base, base, capture)? {
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
            if adds_inner_tests(&path, file.before.text(), file.after.text()) {
                found.inseparable.push(path);
            }
        }
        Ok(found)
    }

    /// The paths in words.
    pub fn in_words(&self) -> String {
        let paths: Vec<String> = self.files.iter().map(|file| file.path.lossy()).collect();
        some_of(&paths)
    }

    /// True if one of the files existed before.
    pub fn has_edited(&self) -> bool {
        self.files.iter().any(|file| file.status == ChangeStatus::Modified)
    }

    /// True if both have a file with one path and two contents.
    pub fn collides(&self, other: &TestFiles) -> bool {
        let is_other = |one: &Change, two: &Change| one.path == two.path && one.new != two.new;
        self.files.iter().any(|one| other.files.iter().any(|two| is_other(one, two)))
    }
}

/// A tree with test files laid over it.
pub struct LaidOver {
    /// The tree.
    pub tree: Oid,
    /// The paths that could not be merged: they are as in the files.
    pub conflicts: Vec<TreePath>,
}

/// Lays these files over a tree, which has its own changes from the commit `base`. A path that both
/// change is merged.
pub fn lay_over(repo: &Repo, base: &Oid, tree: &Oid, files: &[&Change]) -> Result<LaidOver> {
    let on_base = with_files(repo, &repo.commit(base)?.tree, files)?;
    if *tree == repo.commit(base)?.tree {
        return Ok(LaidOver { tree: on_base, conflicts: Vec::new() });
    }
    let [ours, theirs] = [neutral_commit(repo, tree, base)?, neutral_commit(repo, &on_base, base)?];
    let merged = merge::merge(&repo.git(), base, ours.as_str(), theirs.as_str())?;
    let conflicts = match merged {
        MergeResult::Clean(tree) => return Ok(LaidOver { tree, conflicts: Vec::new() }),
        MergeResult::Conflicts(conflicts) => conflicts,
    };
    let is_conflict = |file: &&&Change| conflicts.stages.contains_key(&file.path);
    let taken: Vec<&Change> = files.iter().filter(is_conflict).copied().collect();
    let tree = with_files(repo, &conflicts.tree, &taken)?;
    Ok(LaidOver { tree, conflicts: taken.iter().map(|file| file.path.clone()).collect() })
}

fn with_files(repo: &Repo, tree: &Oid, files: &[&Change]) -> Result<Oid> {
    let mut edits = IndexEdits::default();
    for file in files {
        edits.set(file.mode, file.new, &file.path);
    }
    if edits.is_empty() {
        return Ok(*tree);
    }
    let scratch = ScratchIndex::from_tree(&repo.git(), tree)?;
    scratch.edit(edits)?;
    scratch.write_tree()
}
