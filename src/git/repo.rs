//! The user's repository, found as git finds it and read in process by gix.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use gix::bstr::{BStr, ByteSlice};
use gix::objs::{CommitRef, CommitRefIter, Kind, TreeRefIter};
use gix::odb::store::init::Slots;
use parking_lot::Mutex;

use crate::error::{Cause, Error, IoContext, Result};
use crate::fs::tree;
use crate::git::cli::{EXACT, Git, PAUSES, repeat};
use crate::git::loose::LooseObjects;
use crate::git::mode::EntryMode;
use crate::git::overrides::Overrides;
use crate::git::program;
use crate::model::layout::StateDir;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// An opened repository, as seen from the directory that the command runs in. Threads share it.
pub struct Repo {
    shared: gix::ThreadSafeRepository,
    common_dir: PathBuf,
    git_dir: PathBuf,
    work_tree: Option<PathBuf>,
    overrides: Arc<Overrides>,
    /// The reader of small objects that are not packed.
    loose: Mutex<LooseObjects>,
    /// The last result of [`Repo::index_of`]: all candidates of a run have one base.
    index: Mutex<Option<(Oid, Arc<gix::index::File>)>>,
    /// The changes of packs that this process has made and seen.
    pub(super) pack_changes: Mutex<PackChanges>,
    /// The refs that this process has moved, in order, with their new values; `None` if deleted.
    pub(super) own_moves: Mutex<Vec<(RefName, Option<Oid>)>>,
    /// The file `packed-refs` when refs were last read.
    pub(super) packed_refs: Mutex<Option<PackedRefsStamp>>,
    /// The refs of runs, if they are remembered (`ref_list`); `None` if they are read from the disk.
    pub(super) remembered: Mutex<Option<BTreeMap<RefName, Option<Oid>>>>,
}

/// Inode, time and size of a file `packed-refs`.
pub(super) type PackedRefsStamp = (u64, i64, i64, u64);

/// The times of changes in the directory of packs.
#[derive(Debug, Default)]
pub(super) struct PackChanges {
    /// The directory's time after this process wrote its last pack.
    pub(super) own: Option<SystemTime>,
    /// The last change by another process that this process has seen. A later pack of our own hides that
    /// change, but the other process may still be deleting packs.
    pub(super) foreign: Option<SystemTime>,
}

/// The parts of a commit that git-frites uses.
pub struct Commit {
    /// The commit's tree.
    pub tree: Oid,
    /// The commit's parents, in order.
    pub parents: Vec<Oid>,
    /// The commit's whole message.
    pub message: String,
    /// The commit's committer date, in seconds since 1970.
    pub time: i64,
}

/// The number of packs that gix can hold at the same time. By default that is a tenth more than there are
/// when the repository is opened. If other processes add more, no object can be read any more. Each slot
/// costs time at every start: 4096 slots took a quarter of the time of `git frites path`.
const SLOTS: Slots = Slots::AsNeededByDiskState { multiplier: 2.0, minimum: 512 };

impl Repo {
    /// Finds the repository from `dir` upwards, honouring GIT_DIR and GIT_WORK_TREE as git does (so
    /// that it works in hooks), and refuses what `safe.directory` refuses.
    pub fn discover(dir: &Path) -> Result<Repo> {
        let strict = strict_options();
        let trust = gix::sec::trust::Mapping { full: strict.clone(), reduced: strict };
        // As in git, GIT_CEILING_DIRECTORIES may name directories that are not above this one.
        let upwards = gix::discover::upwards::Options {
            match_ceiling_dir_or_error: false,
            ..Default::default()
        };
        let found = gix::ThreadSafeRepository::discover_with_environment_overrides_opts(
            dir, upwards, trust,
        );
        let found = found.map_err(|e| unusable_repository(dir, e))?;
        Repo::of(&found)
    }

    /// Opens the repository whose git directory is `dir`, whatever the environment says.
    pub fn open(dir: &Path) -> Result<Repo> {
        let opened = gix::ThreadSafeRepository::open_opts(dir, strict_options());
        Repo::of(&opened.map_err(|e| unusable_repository(dir, e))?)
    }

    fn of(found: &gix::ThreadSafeRepository) -> Result<Repo> {
        let mut gix = found.to_thread_local();
        // git heeds GIT_NAMESPACE in fetches and pushes only.
        gix.clear_namespace();
        // gix would find no ref in a repository with a reftable, and so no run.
        if gix
            .config_snapshot()
            .string("extensions.refStorage")
            .is_some_and(|s| !s.eq_ignore_ascii_case(b"files"))
        {
            return Err(Error::fatal("this repository cannot be read by git-frites: its refs are not stored as files")
                .hint("work in a clone made with `git clone --ref-format=files`, or convert it: `git help refs`"));
        }
        let canonical = |path: &Path| {
            path.canonicalize().context(|| format!("could not read '{}'", path.display()))
        };
        let common_dir = canonical(gix.common_dir())?;
        Ok(Repo {
            loose: Mutex::new(LooseObjects::new(&common_dir)),
            common_dir,
            git_dir: canonical(gix.git_dir())?,
            work_tree: gix.workdir().map(canonical).transpose()?,
            overrides: Arc::default(),
            index: Mutex::default(),
            pack_changes: Mutex::default(),
            own_moves: Mutex::default(),
            packed_refs: Mutex::default(),
            remembered: Mutex::default(),
            shared: gix.into_sync(),
        })
    }

    /// The git directory that all worktrees share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The state of git-frites in this repository.
    pub fn state_dir(&self) -> StateDir {
        StateDir::of(self.common_dir())
    }

    /// The git directory of the checkout that the command runs in.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The root of the checkout that the command runs in; `None` in a bare repository.
    pub fn work_tree(&self) -> Option<&Path> {
        self.work_tree.as_deref()
    }

    /// The root of the main worktree; `None` if the shared git directory is not its `.git`.
    pub fn main_worktree(&self) -> Option<&Path> {
        if self.common_dir.ends_with(".git") { self.common_dir.parent() } else { None }
    }

    /// True if the repository itself has no checkout; its worktrees may be elsewhere.
    pub fn is_bare(&self) -> bool {
        self.gix().config_snapshot().boolean("core.bare") == Some(true)
    }

    /// True if the modes of files on disk are meaningful, by `core.fileMode`.
    pub(super) fn trusts_modes(&self) -> bool {
        self.gix().config_snapshot().boolean("core.fileMode") != Some(false)
    }

    /// True if files have the same bytes and names as in trees, unless attributes say otherwise.
    pub(super) fn reads_files_as_they_are(&self) -> bool {
        let gix = self.gix();
        let config = gix.config_snapshot();
        let is = |key: &str, value: bool| config.boolean(key) == Some(value);
        self.trusts_modes()
            && !is("core.symlinks", false)
            && ![
                "core.ignoreCase",
                "core.sparseCheckout",
                "core.precomposeUnicode",
                "core.protectHFS",
            ]
            .iter()
            .any(|key| is(key, true))
    }

    /// The root of the checkout, for commands that change it; fails in a bare repository.
    pub fn need_work_tree(&self) -> Result<&Path> {
        self.work_tree()
            .ok_or_else(|| Error::fatal("this repository has no checkout here: it is bare"))
    }

    /// git on the shared directory, with no work tree: refs and objects.
    pub fn git(&self) -> Git {
        self.git_at(&self.common_dir)
    }

    /// git on another git directory: a worktree's administrative entry, or a submodule's.
    pub fn git_at(&self, git_dir: &Path) -> Git {
        Git::at(git_dir, self.overrides.clone())
    }

    /// The configuration that our calls use in place of the repository's.
    pub fn overrides(&self) -> &Arc<Overrides> {
        &self.overrides
    }

    /// git in the user's own checkout.
    pub fn checkout(&self) -> Git {
        let git = self.git_at(&self.git_dir).in_checkout();
        match &self.work_tree {
            Some(dir) => git.work_tree(dir),
            None => git,
        }
    }

    /// Resolves a revision that a user typed to a commit.
    pub fn resolve_commit(&self, revision: &str) -> Result<Oid> {
        // HEAD is asked for most often, and needs no git process.
        if revision == "HEAD" {
            let head = match self.head_branch() {
                Some(branch) => self.read_ref(&branch).unwrap_or_default(),
                None => self.head(),
            };
            if let Some(head) = head.filter(|head| self.is_commit(head)) {
                return Ok(head);
            }
        }
        let output = self
            .checkout()
            .call("rev-parse")
            .args(["--verify", "--quiet", "--end-of-options"])
            .arg(format!("{revision}^{{commit}}"))
            .output()?;
        if let Some(oid) = Oid::parse(String::from_utf8_lossy(&output.stdout).trim()) {
            return Ok(oid);
        }
        if revision == "HEAD" {
            return Err(Error::fatal("HEAD has no commit yet")
                .hint("commit something first: `git commit --allow-empty -m start`"));
        }
        Err(Error::fatal(format!("'{revision}' does not name a commit"))
            .hint("name a commit, a branch or a tag; `git log --oneline` lists commits"))
    }

    /// The commit at HEAD; `None` while HEAD is unborn.
    pub fn head(&self) -> Option<Oid> {
        self.gix().head_id().ok().map(|id| to_oid(id.detach()))
    }

    /// The branch that HEAD is on; `None` when detached.
    pub fn head_branch(&self) -> Option<RefName> {
        let name = self.gix().head_name().ok()??;
        Some(RefName::new(name.as_bstr().to_str_lossy()))
    }

    /// Reads a commit.
    pub fn commit(&self, oid: &Oid) -> Result<Commit> {
        let bytes = self.object(oid, Kind::Commit)?;
        let decoded = CommitRef::from_bytes(&bytes, gix::hash::Kind::Sha1)
            .map_err(|e| unreadable_commit(oid, &e))?;
        Ok(Commit {
            tree: to_oid(decoded.tree()),
            parents: decoded.parents().map(to_oid).collect(),
            message: decoded.message.to_str_lossy().into_owned(),
            time: decoded.time().map_or(0, |time| time.seconds),
        })
    }

    /// The bytes of a file in a tree or a commit's tree; `None` if there is no such file.
    pub fn file(&self, tree: &Oid, path: &str) -> Result<Option<Vec<u8>>> {
        match self.entry(tree, path.into())? {
            Some((EntryMode::File | EntryMode::Executable, id)) => self.blob(&to_oid(id)).map(Some),
            _ => Ok(None),
        }
    }

    /// The bytes of the file to which a path leads in a tree or a commit's tree, also through symbolic links;
    /// `None` if there is no such file, or a link leads out of the tree.
    pub fn file_by_links(&self, tree: &Oid, path: &str) -> Result<Option<Vec<u8>>> {
        match self.file(tree, path)? {
            Some(bytes) => Ok(Some(bytes)),
            None => match self.place_by_links(tree, path)? {
                Some(place) => self.file(tree, &place),
                None => Ok(None),
            },
        }
    }

    /// The place to which a path leads in a tree or a commit's tree through symbolic links; `None` if a
    /// link leads out of the tree, or the links form a circle.
    pub fn place_by_links(&self, tree: &Oid, path: &str) -> Result<Option<String>> {
        let mut left: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let mut found: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = left.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." if found.pop().is_some() => continue,
                ".." => return Ok(None),
                _ => found.push(part),
            }
            let Some(target) = self.link_at(tree, &found.join("/"))? else { continue };
            links += 1;
            if target.starts_with('/') || links > MOST_LINKS {
                return Ok(None);
            }
            found.pop();
            left.extend(target.rsplit('/').map(str::to_owned));
        }
        Ok(Some(found.join("/")))
    }

    /// The target of a symbolic link in a tree; `None` if there is none at this path.
    fn link_at(&self, tree: &Oid, path: &str) -> Result<Option<String>> {
        match self.entry(tree, path.into())? {
            Some((EntryMode::Link, id)) => {
                let target = self.blob(&to_oid(id))?;
                Ok(Some(target.to_str_lossy().into_owned()))
            }
            _ => Ok(None),
        }
    }

    /// The blob at a path of a commit, which is a file's content or a symbolic link's target; `None` if
    /// there is none or it cannot be read.
    pub fn bytes_at(&self, commit: &Oid, path: &str) -> Option<Vec<u8>> {
        self.blob(&to_oid(self.id_at(commit, path.into())?)).ok()
    }

    /// True if a tree has a directory at this path.
    pub fn has_directory(&self, tree: &Oid, path: &str) -> Result<bool> {
        Ok(matches!(self.entry(tree, path.into())?, Some((EntryMode::Directory, _))))
    }

    /// The names in the directory to which a path leads in a tree, also through symbolic links; `None` if
    /// there is none. The empty path is the root.
    pub fn names_by_links(&self, tree: &Oid, path: &str) -> Result<Option<Vec<String>>> {
        let Some(place) = self.place_by_links(tree, path)? else { return Ok(None) };
        let directory = if place.is_empty() {
            *tree
        } else {
            match self.entry(tree, place.as_str().into())? {
                Some((EntryMode::Directory, id)) => to_oid(id),
                _ => return Ok(None),
            }
        };
        Ok(Some(self.entries_of(&directory)?.into_iter().map(|(name, _, _)| name).collect()))
    }

    /// The id of the object at a path of a tree, or of a commit's tree; `None` if there is none or it
    /// cannot be read.
    pub(super) fn id_at(&self, tree: &Oid, path: &BStr) -> Option<gix::ObjectId> {
        self.entry(tree, path).ok()?.map(|(_, id)| id)
    }

    /// The entry of a tree, or of a commit's tree, at a path.
    pub(super) fn entry(&self, tree: &Oid, path: &BStr) -> Result<Option<TreeEntry>> {
        let unreadable =
            |e: gix::Error| Error::damaged(format!("'{path}' of {tree} cannot be read: {e}"));
        self.read_again(|gix| {
            let root = gix.find_object(from_oid(tree)?).and_then(gix::Object::peel_to_tree);
            let root = root.map_err(unreadable)?;
            let found = match root.lookup_entry(path.split_str("/")) {
                Err(_) if is_in_submodule(&root, path) => None,
                found => found.map_err(unreadable)?,
            };
            Ok(found.map(|entry| (entry.mode().kind().into(), entry.object_id())))
        })
    }

    /// True if the repository has that object, and it is a commit.
    pub fn is_commit(&self, oid: &Oid) -> bool {
        let header = from_oid(oid).ok().and_then(|id| self.gix().find_header(id).ok());
        header.is_some_and(|header| header.kind() == Kind::Commit)
    }

    /// The bytes of a blob.
    pub fn blob(&self, oid: &Oid) -> Result<Vec<u8>> {
        self.object(oid, Kind::Blob)
    }

    /// The bytes of an object of that kind.
    fn object(&self, oid: &Oid, kind: Kind) -> Result<Vec<u8>> {
        let id = from_oid(oid)?;
        if let Some(bytes) = self.loose_object(&id, kind) {
            return Ok(bytes);
        }
        let lost =
            |e: &dyn std::fmt::Display| Error::damaged(format!("{kind} {oid} cannot be read: {e}"));
        self.read_again(|gix| {
            let found = gix.find_object(id).map_err(|e| lost(&e))?.detach();
            if found.kind != kind {
                return Err(lost(&format_args!("it is a {}", found.kind)));
            }
            Ok(found.data)
        })
    }

    /// The bytes of a small object of that kind, if it is loose. This is faster than gix.
    pub(super) fn loose_object(&self, id: &gix::ObjectId, kind: Kind) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut loose = self.loose.lock();
        loose.read(kind, id, &mut bytes).map(|()| bytes)
    }

    /// The bytes of an object of that kind, loose or not; `None` if it cannot be read.
    pub(super) fn any_object(
        &self,
        gix: &gix::Repository,
        id: &gix::ObjectId,
        kind: Kind,
    ) -> Option<Vec<u8>> {
        self.loose_object(id, kind).or_else(|| {
            let packed = gix.find_object(*id).ok().filter(|found| found.kind == kind)?;
            Some(packed.detach().data)
        })
    }

    /// The names of the files in the root of a commit's tree, with their blobs.
    pub fn root_files(&self, commit: &Oid) -> Result<BTreeMap<String, Oid>> {
        let bytes = self.object(commit, Kind::Commit)?;
        // Only the line of the tree is parsed, because `status` asks for the files of all runs.
        let tree = CommitRefIter::from_bytes(&bytes, gix::hash::Kind::Sha1).tree_id();
        let tree = &to_oid(tree.map_err(|e| unreadable_commit(commit, &e))?);
        let files = self.entries_of(tree)?.into_iter().filter(|(_, mode, _)| mode.is_blob());
        Ok(files.map(|(name, _, blob)| (name, blob)).collect())
    }

    /// The names in a tree's root, each with true if it is a directory or a link to one.
    pub fn root_entries(&self, tree: &Oid) -> Result<Vec<(String, bool)>> {
        let mut found = Vec::new();
        for (name, mode, _) in self.entries_of(tree)? {
            let place = if mode.is_link() { self.place_by_links(tree, &name)? } else { None };
            let is_directory = match place {
                Some(place) => self.has_directory(tree, &place)?,
                None => mode.is_tree(),
            };
            found.push((name, is_directory));
        }
        Ok(found)
    }

    fn entries_of(&self, tree: &Oid) -> Result<Vec<(String, gix::objs::tree::EntryMode, Oid)>> {
        let bytes = self.object(tree, Kind::Tree)?;
        let entries = TreeRefIter::from_bytes(&bytes, gix::hash::Kind::Sha1).map(|entry| {
            let entry =
                entry.map_err(|e| Error::damaged(format!("tree {tree} cannot be read: {e}")))?;
            let name = entry.filename.to_str_lossy().into_owned();
            Ok((name, entry.mode, to_oid(entry.oid.to_owned())))
        });
        entries.collect()
    }

    /// The size of an object in bytes; 0 for the null id and for a submodule's commit.
    pub fn size(&self, oid: &Oid) -> u64 {
        let header = from_oid(oid).ok().and_then(|id| self.gix().find_header(id).ok());
        header.map_or(0, |h| h.size())
    }

    /// True if `ancestor` is reachable from `of`; a commit is reachable from itself.
    pub fn is_ancestor(&self, ancestor: &Oid, of: &Oid) -> Result<bool> {
        let call =
            self.git().call("merge-base").args(["--is-ancestor", ancestor.as_str(), of.as_str()]);
        let output = call.output()?;
        match output.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(output.error("merge-base")),
        }
    }

    /// The best common ancestor of two commits; `None` if their histories are unrelated.
    pub fn merge_base(&self, one: &Oid, other: &Oid) -> Result<Option<Oid>> {
        let output = self.git().call("merge-base").args([one.as_str(), other.as_str()]).output()?;
        match output.code {
            0 => Ok(Oid::parse(String::from_utf8_lossy(&output.stdout).trim())),
            1 => Ok(None),
            _ => Err(output.error("merge-base")),
        }
    }

    /// The bytes on disk of the objects that `tips` reach and `others` do not.
    pub fn bytes_of(
        &self,
        tips: impl Iterator<Item = Oid>,
        others: impl Iterator<Item = Oid>,
    ) -> Result<u64> {
        let list: String =
            tips.map(|o| format!("{o}\n")).chain(others.map(|o| format!("^{o}\n"))).collect();
        let call = self.git().call("rev-list").args([
            "--objects",
            "--disk-usage",
            "--ignore-missing",
            "--stdin",
        ]);
        Ok(call.stdin(list).line()?.to_string_lossy().trim().parse().unwrap_or(0))
    }

    /// git's settings of a section, as `git config -z --show-origin` prints them; empty if there
    /// are none.
    pub fn settings_of(&self, section: &str) -> Result<Vec<u8>> {
        if !self.may_have_section(section) {
            return Ok(Vec::new());
        }
        let call = self.checkout().for_user().call("config").args([
            "-z",
            "--show-origin",
            "--get-regexp",
            &format!(r"^{section}\."),
        ]);
        let output = call.output()?;
        match output.code {
            // 1 means that no setting matches.
            0 | 1 => Ok(output.stdout),
            _ => Err(output.error("config")),
        }
    }

    /// False if git's configuration certainly has no such section, which saves most commands a git
    /// process at their start.
    fn may_have_section(&self, section: &str) -> bool {
        // gix does not read the settings of `git -c`.
        if ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"]
            .iter()
            .any(|v| std::env::var_os(v).is_some())
        {
            return true;
        }
        // Nor does gix read Apple's own file, or that of a git with its own prefix.
        if cfg!(target_os = "macos") || program::file_of_prefix("etc/gitconfig").is_some() {
            return true;
        }
        let gix = self.gix();
        let config = gix.config_snapshot();
        // gix may evaluate the conditions of `includeIf` in another way than git.
        ["includeIf", section].iter().any(|name| config.plumbing().sections_by_name(name).is_some())
    }

    /// A short name for this repository, made from its path: each repository has its own cache.
    pub fn key(&self) -> String {
        key_of(&self.common_dir)
    }

    /// A short name for the checkout that the command runs in.
    pub fn checkout_key(&self) -> String {
        key_of(&self.git_dir)
    }

    /// A commit's tree as an index without stat data.
    pub(super) fn index_of(&self, commit: &Oid) -> Result<Arc<gix::index::File>> {
        let mut last = self.index.lock();
        if let Some((_, index)) = last.as_ref().filter(|(of, _)| of == commit) {
            return Ok(index.clone());
        }
        let index = self.read_again(|gix| {
            let tree = gix.find_commit(from_oid(commit)?).ok().and_then(|c| c.tree_id().ok());
            let index = tree.and_then(|tree| gix.index_from_tree(&tree).ok());
            index.ok_or_else(|| Error::damaged(format!("the tree of {commit} cannot be read")))
        })?;
        Ok(last.insert((*commit, Arc::new(index))).1.clone())
    }

    /// The paths of all files of a commit.
    pub fn paths_of(&self, commit: &Oid) -> Result<Vec<String>> {
        Ok(self.paths_and_modes_of(commit)?.into_iter().map(|(path, _)| path).collect())
    }

    /// The paths of all files of a commit, with their modes.
    pub fn paths_and_modes_of(&self, commit: &Oid) -> Result<Vec<(String, EntryMode)>> {
        let index = self.index_of(commit)?;
        let each = index.entries().iter().map(|entry| {
            let mode =
                entry.mode.to_tree_entry_mode().map_or(EntryMode::File, |mode| mode.kind().into());
            (entry.path(&index).to_str_lossy().into_owned(), mode)
        });
        Ok(each.collect())
    }

    /// Reads objects, and reads them again if that failed: another git may be moving them into a
    /// pack, or from one pack into another.
    fn read_again<T>(&self, read: impl Fn(&gix::Repository) -> Result<T>) -> Result<T> {
        repeat(PAUSES, Result::is_err, || read(&self.gix()))
    }

    /// Opens one of our own worktrees, with the configuration that git's calls in it have.
    pub(super) fn open_worktree(&self, path: &Path) -> Result<gix::Repository> {
        let options = strict_options().config_overrides(EXACT).config_overrides([REPLACE_NOTHING]);
        let opened = gix::open_opts(path, options);
        opened.map_err(|e| Error::damaged(format!("'{}' cannot be read: {e}", path.display())))
    }

    /// gix's own handle, for the other modules of `git/`.
    pub(super) fn gix(&self) -> gix::Repository {
        self.shared.to_thread_local()
    }
}

/// Does for gix what GIT_NO_REPLACE_OBJECTS does for our calls: no ref in `refs/replace/` that an attempt
/// made may change the objects that are read.
const REPLACE_NOTHING: &str = "core.useReplaceRefs=false";

/// The options with which we open repositories.
fn strict_options() -> gix::open::Options {
    gix::open::Options::default()
        .object_store_slots(SLOTS)
        .bail_if_untrusted(true)
        .config_overrides([REPLACE_NOTHING])
}

fn unreadable_commit(oid: &Oid, e: &dyn std::fmt::Display) -> Error {
    Error::damaged(format!("commit {oid} cannot be read: {e}"))
}

/// A short name for a path, which may not be UTF-8.
fn key_of(path: &Path) -> String {
    digest(tree::path_bytes(path)).get(..KEY_LENGTH).unwrap_or_default().to_owned()
}

/// The length of [`Repo::key`].
const KEY_LENGTH: usize = 16;

/// The most links through which a path is followed, as on Linux.
const MOST_LINKS: usize = 40;

/// True if a path leads through a submodule, whose commit the repository need not have.
fn is_in_submodule(tree: &gix::Tree<'_>, path: &BStr) -> bool {
    path.find_iter("/").any(|at| {
        let above = tree.lookup_entry(path[..at].split_str("/"));
        above.is_ok_and(|entry| entry.is_some_and(|entry| entry.mode().is_commit()))
    })
}

/// An entry of a tree.
pub(super) type TreeEntry = (EntryMode, gix::ObjectId);

/// True if a name has the form of [`Repo::key`].
pub fn is_key(name: &OsStr) -> bool {
    name.len() == KEY_LENGTH && name.as_bytes().iter().all(u8::is_ascii_hexdigit)
}

/// A name for these bytes: the id that git would give to a blob of them.
pub fn digest(bytes: &[u8]) -> String {
    let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Blob, bytes);
    id.map(|id| id.to_string()).unwrap_or_default()
}

/// Converts gix's id to ours.
pub(super) fn to_oid(id: gix::ObjectId) -> Oid {
    Oid::parse(&id.to_string()).expect("gix prints full lowercase ids")
}

/// Converts our id to gix's; fails if this build of gix does not support its hash.
pub(super) fn from_oid(oid: &Oid) -> Result<gix::ObjectId> {
    gix::ObjectId::from_hex(oid.as_str().as_bytes())
        .map_err(|_| Error::damaged(format!("{oid} is not an object id that this build can read")))
}

/// The error for a directory that is not a usable repository, with git's own message if git has one.
fn unusable_repository(dir: &Path, e: gix::Error) -> Error {
    let probe = duct::cmd!("git", "-C", dir, "rev-parse", "--git-dir")
        .stdout_null()
        .stderr_capture()
        .unchecked()
        .run();
    let Ok(output) = probe else {
        return Error::fatal("could not start git").hint("git must be on PATH");
    };
    if output.status.success() {
        // git accepts the repository, but gix does not: SHA-256, a newer format, or damage.
        let mut source = std::error::Error::source(&e);
        let mut text = e.to_string();
        while let Some(cause) = source {
            text = cause.to_string();
            source = cause.source();
        }
        return Error::fatal(format!(
            "this repository cannot be read by git-frites: {}",
            text.lines().next().unwrap_or_default()
        ))
        .hint("it needs SHA-1 object ids: see `git rev-parse --show-object-format`; `git fsck` finds damage")
        .with_source(e);
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let first = stderr.lines().next().unwrap_or_default().trim_start_matches("fatal: ").to_owned();
    if e.is_not_found() {
        return Error::fatal(first)
            .because(Cause::NotFound)
            .with_source(e)
            .hint("make one here with `git init`, or go to one with `git -C DIR frites …`");
    }
    let mut error = Error::fatal(first).with_source(e);
    if let Some(line) = stderr.lines().find(|l| l.trim_start().starts_with("git config")) {
        error = error.hint(format!("trust it with `{}`", line.trim()));
    }
    error
}
