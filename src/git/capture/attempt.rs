//! The inputs of a capture, each read once. They are the base's files, the attempt's index and
//! HEAD, and the commits that the attempt made.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode};
use gix::objs::tree::{Entry, EntryKind};
use gix::objs::{Kind, Tree};

use crate::error::{Cause, Error, Result};
use crate::fs::regular;
use crate::git::capture::private_index::{remove_from_index, set_mode};
use crate::git::capture::source::CaptureSource;
use crate::git::index::{IndexEdits, ScratchIndex, entry_at, expand, open_index};
use crate::git::mode::EntryMode;
use crate::git::ref_list::head_branch;
use crate::git::repo::{Repo, from_oid, to_oid};
use crate::git::trees::{self, TreeDifference};
use crate::git::{commit, own_dir, worktree};
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The inputs of a capture. An attempt can damage its own index and HEAD, so a field is `None` if
/// its file cannot be read.
pub(super) struct CaptureInputs<'a> {
    pub repo: &'a Repo,
    pub source: &'a CaptureSource<'a>,
    /// The base's files.
    pub base: Arc<gix::index::File>,
    /// The worktree's administrative entry.
    admin: Option<PathBuf>,
    /// The commit at the attempt's HEAD.
    pub head: Option<Oid>,
    /// The attempt's own index. `None` if it cannot be read, or if it equals the base and
    /// `core.fileMode` is true. If `core.fileMode` is false, the modes on disk mean nothing, and
    /// [`CaptureInputs::mode_edits`] needs the index.
    index: Option<gix::index::File>,
}

/// The paths that are captured even if git's ignore rules exclude them.
#[derive(Default)]
pub(super) struct AttemptPaths {
    /// The files that the attempt tracks and the base does not. Also the files of the base that an
    /// earlier capture found deleted.
    pub files: BTreeSet<TreePath>,
    /// The submodules in the attempt's index, and the new ones in its HEAD, with their commits.
    pub submodules: BTreeMap<TreePath, ObjectId>,
    /// True if the files of the attempt's HEAD are not among `files`, because its tree is damaged.
    pub lacks_head: bool,
}

impl<'a> CaptureInputs<'a> {
    pub fn read(repo: &'a Repo, source: &'a CaptureSource<'a>) -> Result<CaptureInputs<'a>> {
        let base = repo.index_of(source.base)?;
        let admin = worktree::admin_of(repo, source.worktree)?;
        let head = admin.as_ref().and_then(|admin| head_of(repo, admin));
        let mut index = admin.as_ref().and_then(|admin| open_index(&admin.join("index")));
        if repo.trusts_modes() {
            index = index.filter(|own| !equals_base(own, &base));
        }
        Ok(CaptureInputs { repo, source, base, admin, head, index })
    }

    /// The paths that the attempt tracks (in its index or HEAD) and the base does not. Also the
    /// paths of the base that are missing in `private`, the private index.
    pub fn tracked_paths(&self, private: Option<&gix::index::File>) -> Result<AttemptPaths> {
        let base = &self.base;
        let lacking = private.map(|private| files_only_in(base, private));
        let files = lacking.unwrap_or_default();
        let mut tracked = AttemptPaths { files, ..AttemptPaths::default() };
        // The entries of the base and of the attempt's index are sorted, and most of them are
        // equal. One pass over both finds the differences.
        let mut in_base = base.entries().iter().map(|e| e.path(base)).peekable();
        for (index, entry) in
            self.index.iter().flat_map(|i| i.entries().iter().map(move |e| (i, e)))
        {
            let path = entry.path(index);
            while in_base.next_if(|other| *other < path).is_some() {}
            if entry.mode == Mode::COMMIT {
                tracked.submodules.insert(TreePath::new(path), entry.id);
            } else if entry.mode != Mode::DIR && in_base.peek() != Some(&path) {
                tracked.files.insert(TreePath::new(path));
            }
        }
        let base = self.source.base;
        let Some(head) = self.head.filter(|head| head != base) else { return Ok(tracked) };
        tracked.lacks_head = trees::damage(self.repo, base, &head).is_some();
        if tracked.lacks_head {
            return Ok(tracked);
        }
        for TreeDifference { path, old, new } in trees::changed_paths(self.repo, base, &head)? {
            match new {
                _ if old.is_some() => {}
                Some((EntryMode::Submodule, id)) => {
                    tracked.submodules.entry(path).or_insert(id);
                }
                _ => drop(tracked.files.insert(path)),
            }
        }
        Ok(tracked)
    }

    /// The files that the attempt's sparse checkout leaves out of its worktree. Each has its mode
    /// and object from the attempt's index. A file whose object is gone is not returned.
    pub fn left_out(&self) -> Result<BTreeMap<TreePath, (Mode, ObjectId)>> {
        let is_left_out = |entry: &&gix::index::Entry| entry.flags.contains(Flags::SKIP_WORKTREE);
        let Some(own) = &self.index else { return Ok(BTreeMap::new()) };
        if !own.entries().iter().any(|entry| is_left_out(&entry)) {
            return Ok(BTreeMap::new());
        }
        let gix = self.repo.gix();
        // A sparse index has one entry for a whole directory.
        let whole = expand(&gix, gix::index::State::clone(own)).ok_or_else(|| {
            Error::damaged(
                "the sparse index of the attempt has too many files, or a directory that cannot be read",
            )
        })?;
        let files = whole.entries().iter().filter(is_left_out);
        let files = files.filter(|e| e.mode != Mode::COMMIT && gix.has_object(e.id));
        Ok(files.map(|e| (TreePath::new(e.path(&whole)), (e.mode, e.id))).collect())
    }

    /// The edits that give entries of the private index their modes from the attempt's index. This
    /// is for file systems where the modes on disk mean nothing.
    pub fn mode_edits(&self, private: &gix::index::File) -> IndexEdits {
        let mut edits = IndexEdits::default();
        let Some(own) = &self.index else { return edits };
        if self.repo.trusts_modes() {
            return edits;
        }
        let is_file = |mode: Mode| matches!(mode, Mode::FILE | Mode::FILE_EXECUTABLE);
        for entry in own.entries().iter().filter(|e| is_file(e.mode)) {
            if let Some(other) = private.entry_by_path(entry.path(own))
                && is_file(other.mode)
                && other.mode != entry.mode
            {
                set_mode(&mut edits, entry.mode, other, private);
            }
        }
        edits
    }

    /// The commits that must become parents of a capture. With these parents, the capture reaches
    /// every object that the branch, its reflog, the worktree's administrative entry or the
    /// worktree's index names. Empty if the previous capture reaches them all. `captured` is the
    /// private index.
    ///
    /// A tag cannot become a parent. So the text of a tag becomes a file, from which the tag can be
    /// made again.
    pub fn unsaved(&self, captured: &gix::index::File) -> Result<Vec<Oid>> {
        let (commits, mut others) = self.named();
        let mut unsaved = self.unsaved_commits(&commits)?;
        unsaved.extend(self.unsaved_staging(captured, &mut others)?);
        unsaved.extend(self.unsaved_others(&others)?);
        Ok(unsaved)
    }

    /// The objects that are named in HEAD, the branch, its reflog, and the files of the
    /// administrative entry. Returns the commits, and the other objects with their kinds. Reflogs
    /// also name commits that were amended, reset or made on a detached HEAD.
    fn named(&self) -> (BTreeSet<Oid>, BTreeMap<Oid, Kind>) {
        let CaptureInputs { repo, source, .. } = self;
        let branch_log = repo.common_dir().join("logs").join(source.branch.as_str());
        let mut waiting = own_dir::ids_in(&regular::read(&branch_log).unwrap_or_default());
        waiting.extend(self.head);
        waiting.extend(repo.read_ref(source.branch).ok().flatten());
        waiting.extend(self.admin.iter().flat_map(|admin| own_dir::named(admin)));
        waiting.remove(source.base);
        let gix = repo.gix();
        let mut commits = BTreeSet::new();
        let mut others = BTreeMap::new();
        while let Some(oid) = waiting.pop_first() {
            let Some(object) = from_oid(&oid).ok().and_then(|id| gix.find_object(id).ok()) else {
                continue;
            };
            if object.kind == Kind::Commit {
                commits.insert(oid);
                continue;
            }
            if object.kind == Kind::Tag {
                waiting.extend(own_dir::ids_in(object.data.lines().next().unwrap_or_default()));
            }
            others.insert(oid, object.kind);
        }
        (commits, others)
    }

    /// The members of `commits` that neither the base nor the previous capture reaches, except
    /// ancestors of other members.
    fn unsaved_commits(&self, commits: &BTreeSet<Oid>) -> Result<Vec<Oid>> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let CaptureInputs { repo, source, .. } = self;
        let saved = source.previous.map_or(source.base, |p| &p.commit);
        let mut list: String = commits.iter().map(|oid| format!("{oid}\n")).collect();
        list.push_str(&format!("^{saved}\n^{}\n", source.base));
        let call = repo.git().call("rev-list").args(["--parents", "--stdin"]);
        let answer = call.stdin(list).bytes()?;
        let mut commits = BTreeSet::new();
        let mut parents = BTreeSet::new();
        for line in String::from_utf8_lossy(&answer).lines() {
            let mut ids = line.split(' ').filter_map(Oid::parse);
            commits.extend(ids.next());
            parents.extend(ids);
        }
        Ok(commits.difference(&parents).copied().collect())
    }

    /// Commits the attempt's index if it has a version of a file that is neither in the capture
    /// (`captured`, the private index) nor in the base, HEAD or the seeds. Otherwise returns
    /// `None`. Also returns `None` if the previous capture already has this commit as an ancestor.
    ///
    /// git makes no tree from an index with conflicts. So the versions of conflicted files are
    /// added to `others`.
    fn unsaved_staging(
        &self,
        captured: &gix::index::File,
        others: &mut BTreeMap<Oid, Kind>,
    ) -> Result<Option<Oid>> {
        let Some(own) = &self.index else { return Ok(None) };
        let CaptureInputs { repo, source, base, .. } = self;
        // If the attempt has staged nothing or everything, as most attempts have, nothing needs to
        // be saved.
        if have_equal_files(own, base) || have_equal_files(own, captured) {
            return Ok(None);
        }
        let is_unsaved = |entry: &gix::index::Entry| {
            let path = entry.path(own);
            let is_in = |index: &gix::index::File| {
                index.entry_by_path(path).is_some_and(|other| other.id == entry.id)
            };
            entry.mode != Mode::COMMIT
                && entry.mode != Mode::DIR
                && !entry.flags.contains(Flags::INTENT_TO_ADD)
                && !is_in(captured)
                && !is_in(base)
                && self.head.is_none_or(|head| repo.id_at(&head, path) != Some(entry.id))
                && !source.seeds.is_seed(path, &entry.id)
        };
        let is_in_conflict = |entry: &gix::index::Entry| entry.flags.intersects(Flags::STAGE_MASK);
        let gix = repo.gix();
        let versions = own
            .entries()
            .iter()
            .filter(|entry| is_in_conflict(entry) && is_unsaved(entry) && gix.has_object(entry.id));
        others.extend(versions.map(|entry| (to_oid(entry.id), Kind::Blob)));
        let has_unsaved =
            own.entries().iter().any(|entry| !is_in_conflict(entry) && is_unsaved(entry));
        if !has_unsaved {
            return Ok(None);
        }
        let scratch = ScratchIndex::empty(&repo.git())?;
        let mut staged = own.clone();
        staged.remove_entries(|_, _, entry| is_in_conflict(entry));
        scratch.write(&staged)?;
        remove_from_index(scratch.git(), source.base, &source.seeds_in(own))?;
        let tree = match scratch.write_tree() {
            Err(error) if error.cause == Cause::Damaged => {
                remove_from_index(scratch.git(), source.base, &lost_files(repo, own))?;
                scratch.write_tree()
            }
            other => other,
        };
        let tree = match tree {
            // The index is damaged in some other way, so no tree can be made from it.
            Err(error) if error.cause == Cause::Damaged => return Ok(None),
            other => other?,
        };
        self.committed(&tree)
    }

    /// Commits a tree with `others`, which are objects of other kinds than commits. Returns `None`
    /// if there are none, or if the previous capture already has this commit as an ancestor.
    fn unsaved_others(&self, others: &BTreeMap<Oid, Kind>) -> Result<Option<Oid>> {
        if others.is_empty() {
            return Ok(None);
        }
        let tree = self.repo.store(|objects| {
            let mut entries = Vec::new();
            for (named, kind) in others {
                let (mode, oid) = match kind {
                    Kind::Tag => {
                        let text = self.repo.object(named, Kind::Tag)?;
                        (EntryKind::Blob, objects.add(Kind::Blob, &text)?)
                    }
                    Kind::Tree => (EntryKind::Tree, from_oid(named)?),
                    _ => (EntryKind::Blob, from_oid(named)?),
                };
                let filename = format!("{kind}-{named}").into();
                entries.push(Entry { mode: mode.into(), filename, oid });
            }
            entries.sort();
            objects.add_tree(&Tree { entries })
        })?;
        self.committed(&tree)
    }

    /// Commits a tree, so that its objects are kept. `None` if the previous capture already has
    /// this commit as an ancestor.
    fn committed(&self, tree: &Oid) -> Result<Option<Oid>> {
        let CaptureInputs { repo, source, .. } = self;
        let commit = commit::neutral(repo, tree, source.base, commit::STAGED)?;
        match source.previous {
            Some(previous) if repo.is_ancestor(&commit, &previous.commit)? => Ok(None),
            _ => Ok(Some(commit)),
        }
    }
}

/// True if an attempt's index has exactly the files of the base, no submodule, and no flag except
/// assume-unchanged.
fn equals_base(own: &gix::index::File, base: &gix::index::File) -> bool {
    let allowed = Flags::PATH_LEN | Flags::ASSUME_VALID;
    own.entries().len() == base.entries().len()
        && own.entries().iter().zip(base.entries()).all(|(entry, in_base)| {
            (entry.mode, entry.id) == (in_base.mode, in_base.id)
                && entry.mode != Mode::COMMIT
                && entry.flags.difference(allowed).is_empty()
                && entry.path(own) == in_base.path(base)
        })
}

/// The paths in an index whose blobs are missing in the repository.
fn lost_files(repo: &Repo, index: &gix::index::File) -> BTreeSet<TreePath> {
    let gix = repo.gix();
    let lost = index
        .entries()
        .iter()
        .filter(|entry| entry.mode != Mode::COMMIT && !gix.has_object(entry.id));
    lost.map(|entry| TreePath::new(entry.path(index))).collect()
}

/// The files that `one` has and `other` does not.
fn files_only_in(one: &gix::index::File, other: &gix::index::File) -> BTreeSet<TreePath> {
    let found = one.entries().iter().enumerate().filter(|(at, entry)| {
        entry.mode != Mode::COMMIT && entry_at(other, *at, entry.path(one)).is_none()
    });
    found.map(|(_, entry)| TreePath::new(entry.path(one))).collect()
}

/// True if two indexes hold the same objects at the same paths.
fn have_equal_files(one: &gix::index::File, other: &gix::index::File) -> bool {
    let mut pairs = one.entries().iter().zip(other.entries());
    one.entries().len() == other.entries().len()
        && pairs.all(|(a, b)| a.id == b.id && a.path(one) == b.path(other))
}

/// The commit at HEAD of the worktree with this admin directory. `None` if HEAD cannot be read, or
/// is a branch without a commit.
fn head_of(repo: &Repo, admin: &Path) -> Option<Oid> {
    match head_branch(admin) {
        Some(branch) => repo.read_ref(&branch).ok().flatten(),
        None => Oid::parse(regular::read_text(&admin.join("HEAD")).ok()?.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::index::tests::git;

    #[test]
    fn an_index_equals_the_base_if_its_entries_do() {
        let place = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(place.path().join("sub")).expect("a directory");
        for name in ["a", "a-b", "sub/x"] {
            std::fs::write(place.path().join(name), name).expect("a file");
        }
        git(place.path(), "init -q");
        git(place.path(), "add -A");
        let read = || open_index(&place.path().join(".git/index")).expect("an index");
        let base = read();
        for same in [
            "write-tree",
            "update-index --assume-unchanged a",
            "update-index --index-version 4",
            "update-index --split-index",
        ] {
            git(place.path(), same);
            assert!(equals_base(&read(), &base), "{same}");
        }
        for (other, undo) in [
            ("update-index --chmod=+x a", "update-index --chmod=-x a"),
            ("rm -q --cached sub/x", "add sub/x"),
            ("update-index --skip-worktree a", "update-index --no-skip-worktree a"),
        ] {
            git(place.path(), other);
            assert!(!equals_base(&read(), &base), "{other}");
            git(place.path(), undo);
            assert!(equals_base(&read(), &base), "{undo}");
        }
        git(place.path(), "rm -q --cached sub/x");
        git(place.path(), "add -N sub/x");
        assert!(!equals_base(&read(), &base), "intended");
        git(place.path(), "add sub/x");
        std::fs::write(place.path().join("a-b"), "b").expect("written");
        git(place.path(), "add a-b");
        assert!(!equals_base(&read(), &base), "another blob");
    }
}
