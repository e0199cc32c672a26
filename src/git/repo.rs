//! The user's repository. The repository is found in the same way as git finds it, and read in
//! process by gix.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::{Mode, Stat};
use gix::objs::{CommitRef, CommitRefIter, Kind, TreeRefIter};
use gix::odb::store::init::Slots;
use gix::refs::packed::Buffer;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::error::{Cause, Error, IoContext, Result};
use crate::fs::{parallel, tree};
use crate::git::cli::{EXACT, Git, PAUSES, repeat};
use crate::git::filters::{self, ConfinedFilters, FilterConfinement};
use crate::git::loose::LooseObjects;
use crate::git::mode::EntryMode;
use crate::git::overrides::Overrides;
use crate::git::program;
use crate::model::layout::StateDir;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// An opened repository, with the checkout in which the command runs. Threads share it.
pub struct Repo {
    shared: gix::ThreadSafeRepository,
    /// The options with which gix opened the repository.
    options: gix::open::Options,
    common_dir: PathBuf,
    git_dir: PathBuf,
    work_tree: Option<PathBuf>,
    overrides: Arc<Overrides>,
    /// The reader of small loose objects.
    loose: Mutex<LooseObjects>,
    /// The last result of [`Repo::index_of`], with its commit. It is kept because all candidates of
    /// a run have the same base.
    index: Mutex<Option<(Oid, Arc<gix::index::File>)>>,
    /// The last changes of the packs by this process and by others.
    pub(super) pack_changes: Mutex<PackChanges>,
    /// The refs that this process has moved, in order, with their new values; `None` for a deleted
    /// ref.
    pub(super) own_moves: Mutex<Vec<(RefName, Option<Oid>)>>,
    /// The refs of runs that [`Repo::remember_refs`] was given; `None` if refs are read from the
    /// disk.
    pub(super) remembered: Mutex<Option<BTreeMap<RefName, Option<Oid>>>>,
    /// The refs in `packed-refs`, and the file's stat data when they were read.
    pub(super) packed: Mutex<Option<(Stat, Arc<Buffer>)>>,
}

/// The times of changes in the directory `objects/pack`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct PackChanges {
    /// The directory's mtime after this process wrote its last pack.
    pub(super) own: Option<SystemTime>,
    /// The time of the last change by another process that this process has seen. A later pack of
    /// our own hides that change, while the other process may still be deleting packs. So the time
    /// is kept.
    pub(super) foreign: Option<SystemTime>,
}

/// The parts of a commit that git-frites uses.
pub struct Commit {
    pub tree: Oid,
    pub parents: Vec<Oid>,
    /// The commit's whole message.
    pub message: String,
    /// The commit's committer date, in seconds since 1970.
    pub time: i64,
}

/// The number of packs that gix can hold at the same time. By default gix can hold a tenth more
/// than exist when the repository is opened. If other processes add more packs, gix can no longer
/// read any object. More slots cost time at every start: 4096 slots took a quarter of the time of
/// `git frites path`.
const SLOTS: Slots = Slots::AsNeededByDiskState { multiplier: 2.0, minimum: 512 };

impl Repo {
    /// Finds the repository of `dir` or of a directory above it. Like git, obeys GIT_DIR and
    /// GIT_WORK_TREE, which are set in hooks. Fails if `safe.directory` does not allow the
    /// repository.
    pub fn discover(dir: &Path) -> Result<Repo> {
        open_as_git(dir, "", |options| {
            // As in git, it is no error if GIT_CEILING_DIRECTORIES names directories that are not
            // above `dir`.
            let upwards = gix::discover::upwards::Options {
                match_ceiling_dir_or_error: false,
                ..Default::default()
            };
            let trust = gix::sec::trust::Mapping { full: options.clone(), reduced: options };
            gix::ThreadSafeRepository::discover_with_environment_overrides_opts(dir, upwards, trust)
        })
    }

    /// Opens the repository whose git directory is `dir`. Ignores GIT_DIR and the like.
    pub fn open(dir: &Path) -> Result<Repo> {
        open_as_git(dir, OF_REPOSITORY, |options| {
            gix::ThreadSafeRepository::open_opts(dir, options)
        })
    }

    fn of(found: &gix::ThreadSafeRepository, options: gix::open::Options) -> Result<Repo> {
        let mut gix = found.to_thread_local();
        // gix would apply GIT_NAMESPACE to all refs, but git obeys it only in fetches and pushes.
        gix.clear_namespace();
        // gix finds no refs in a reftable, so git-frites would find no runs.
        if gix
            .config_snapshot()
            .string("extensions.refStorage")
            .is_some_and(|s| !s.eq_ignore_ascii_case(b"files"))
        {
            return Err(Error::fatal("this repository cannot be read by git-frites: its refs are not stored as files")
                .hint("work in a clone made with `git clone --ref-format=files`, or convert it: `git help refs`"));
        }
        let canonical = |path: &Path| path.canonicalize().could_not("read", path);
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
            remembered: Mutex::default(),
            packed: Mutex::default(),
            options,
            shared: gix.into_sync(),
        })
    }

    /// The object directories of other repositories from which this one borrows objects
    /// (gitrepository-layout(5), "alternates"). Empty if git could not follow the list, either.
    pub fn borrowed_objects(&self) -> Vec<PathBuf> {
        let objects = self.common_dir.join("objects");
        gix::odb::alternate::resolve(objects, &self.common_dir).unwrap_or_default()
    }

    /// From now on, our own calls in this repository's worktrees confine the filters that git
    /// starts. `choose` returns the way to confine them, or `None` if the system cannot. It is
    /// called only if the configuration names filters. Filters of a later configuration are not
    /// confined.
    pub fn confine_filters(&self, choose: impl FnOnce() -> Option<FilterConfinement>) {
        if let Some(filters) = ConfinedFilters::of(&self.gix(), &self.common_dir, choose) {
            self.overrides.confine_filters(filters);
        }
    }

    /// The stores of git-lfs and git-annex, to which filters write.
    pub fn stores_of_filters(&self) -> [PathBuf; 2] {
        filters::stores(&self.gix(), &self.common_dir)
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

    /// The root of the main worktree. In a linked worktree, `None` if the common git directory is
    /// not called `.git`, because nothing else names the main worktree.
    pub fn main_worktree(&self) -> Option<&Path> {
        match self.git_dir == self.common_dir {
            true => self.work_tree(),
            false if self.common_dir.ends_with(".git") => self.common_dir.parent(),
            false => None,
        }
    }

    /// True if the repository is bare. It may still have linked worktrees.
    pub fn is_bare(&self) -> bool {
        self.gix().config_snapshot().boolean("core.bare") == Some(true)
    }

    /// True if the executable bits of files on disk are meaningful (`core.fileMode`).
    pub(super) fn trusts_modes(&self) -> bool {
        self.gix().config_snapshot().boolean("core.fileMode") != Some(false)
    }

    /// True if no setting makes files differ from trees in their bytes, names or modes. Attributes
    /// can still make bytes differ.
    pub(super) fn reads_files_as_they_are(&self) -> bool {
        let gix = self.gix();
        let config = gix.config_snapshot();
        let is = |key: &str, value: bool| config.boolean(key) == Some(value);
        let off = ["ignoreCase", "sparseCheckout", "precomposeUnicode", "protectHFS"];
        self.trusts_modes()
            && !is("core.symlinks", false)
            && !off.iter().any(|key| is(&format!("core.{key}"), true))
    }

    /// The root of the checkout, for commands that change it; fails in a bare repository.
    pub fn need_work_tree(&self) -> Result<&Path> {
        self.work_tree()
            .ok_or_else(|| Error::fatal("this repository has no checkout here: it is bare"))
    }

    /// git on the common git directory, without a work tree: for refs and objects.
    pub fn git(&self) -> Git {
        self.git_at(&self.common_dir)
    }

    /// git on another git directory: a worktree's administrative entry, or the git directory of a
    /// submodule.
    pub fn git_at(&self, git_dir: &Path) -> Git {
        Git::at(git_dir, self.overrides.clone())
    }

    /// The settings that our calls use in place of the repository's.
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

    /// Finds the commit for a revision that the user typed.
    pub fn resolve_commit(&self, revision: &str) -> Result<Oid> {
        // Most calls are for HEAD, which can be resolved without a git process.
        if revision == "HEAD" {
            let head = match self.head_branch() {
                Some(branch) => self.read_ref(&branch).unwrap_or_default(),
                None => self.head(),
            };
            if let Some(head) = head.filter(|head| self.is_commit(head)) {
                return Ok(head);
            }
        }
        let call = self.checkout().call("rev-parse").words("--verify --quiet --end-of-options");
        let output = call.arg(format!("{revision}^{{commit}}")).output()?;
        if let Some(oid) = Oid::parse(String::from_utf8_lossy(&output.stdout).trim()) {
            return Ok(oid);
        }
        if revision == "HEAD" {
            return Err(self.no_commit_at_head());
        }
        Err(Error::fatal(format!("'{revision}' does not name a commit"))
            .hint("name a commit, a branch or a tag; `git log --oneline` lists commits"))
    }

    /// The error for a HEAD that leads to no commit.
    pub fn no_commit_at_head(&self) -> Error {
        let branch = self.head_branch();
        match branch.is_some_and(|branch| matches!(self.read_ref(&branch), Ok(None))) {
            true => Error::fatal("HEAD has no commit yet")
                .hint("commit something first: `git commit --allow-empty -m start`"),
            false => Error::fatal("HEAD leads to no commit that can be read")
                .hint("`git fsck` finds damage"),
        }
    }

    /// The commit at HEAD; `None` while HEAD is unborn.
    pub fn head(&self) -> Option<Oid> {
        self.gix().head_id().ok().map(|id| to_oid(id.detach()))
    }

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

    /// The bytes of a file; `None` if the file does not exist. `tree` is a tree or a commit.
    pub fn file(&self, tree: &Oid, path: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        match self.entry(tree, path.as_ref().into())? {
            Some((EntryMode::File | EntryMode::Executable, id)) => self.blob(&to_oid(id)).map(Some),
            _ => Ok(None),
        }
    }

    /// The bytes of the file to which a path leads after symbolic links are followed. `None` if
    /// there is no such file, or if a link leads out of the tree. `tree` is a tree or a commit.
    pub fn file_by_links(&self, tree: &Oid, path: &str) -> Result<Option<Vec<u8>>> {
        if let Some(bytes) = self.file(tree, path)? {
            return Ok(Some(bytes));
        }
        let place = self.place_by_links(tree, path)?;
        place.map_or(Ok(None), |place| self.file(tree, &place))
    }

    /// The path in the tree to which `path` leads after symbolic links are followed. Nothing need
    /// exist there. `None` if a link leads out of the tree, or if the links form a loop. `tree` is
    /// a tree or a commit.
    pub fn place_by_links(&self, tree: &Oid, path: &str) -> Result<Option<String>> {
        // No link can lead back into a directory of this name.
        follow_links("/\0", path, |at| match at.strip_prefix("/\0/") {
            Some(inside) => self.link_at(tree, inside),
            None => Ok(None),
        })
    }

    /// The target of a symbolic link in a tree; `None` if the path is not a symbolic link.
    pub fn link_at(&self, tree: &Oid, path: &str) -> Result<Option<String>> {
        let Some((EntryMode::Link, id)) = self.entry(tree, path.into())? else { return Ok(None) };
        Ok(Some(self.blob(&to_oid(id))?.to_str_lossy().into_owned()))
    }

    /// The bytes of the blob at a path of a commit: a file's content, or a symbolic link's target.
    /// `None` if there is no blob, or if the blob cannot be read.
    pub fn bytes_at(&self, commit: &Oid, path: &str) -> Option<Vec<u8>> {
        self.blob(&to_oid(self.id_at(commit, path.into())?)).ok()
    }

    /// True if a tree has a directory at this path.
    pub fn has_directory(&self, tree: &Oid, path: &str) -> Result<bool> {
        Ok(matches!(self.entry(tree, path.into())?, Some((EntryMode::Directory, _))))
    }

    /// The id of the object at a path; `None` if the path does not exist, or if the trees cannot be
    /// read. `tree` is a tree or a commit.
    pub(super) fn id_at(&self, tree: &Oid, path: &BStr) -> Option<gix::ObjectId> {
        self.entry(tree, path).ok()?.map(|(_, id)| id)
    }

    /// The entry at a path; `None` if the path does not exist. `tree` is a tree or a commit.
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

    /// True if the repository has this object and the object is a commit.
    pub fn is_commit(&self, oid: &Oid) -> bool {
        self.header(oid).is_some_and(|header| header.kind() == Kind::Commit)
    }

    /// True if the repository has this object.
    pub(super) fn has(&self, oid: &Oid) -> bool {
        self.header(oid).is_some()
    }

    fn header(&self, oid: &Oid) -> Option<gix::odb::find::Header> {
        self.gix().find_header(from_oid(oid).ok()?).ok()
    }

    pub fn blob(&self, oid: &Oid) -> Result<Vec<u8>> {
        self.object(oid, Kind::Blob)
    }

    /// The bytes of an object. Fails if the object is not of this kind.
    pub(super) fn object(&self, oid: &Oid, kind: Kind) -> Result<Vec<u8>> {
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

    /// The bytes of an object of this kind, if the object is loose and small. This is faster than
    /// gix.
    pub(super) fn loose_object(&self, id: &gix::ObjectId, kind: Kind) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut loose = self.loose.lock();
        loose.read(kind, id, &mut bytes).map(|()| bytes)
    }

    /// The bytes of an object of this kind, loose or packed. `None` if it does not exist or cannot
    /// be read.
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
        // Only the `tree` line of the commit is parsed, to save time: `status` calls this for every
        // run.
        let tree = CommitRefIter::from_bytes(&bytes, gix::hash::Kind::Sha1).tree_id();
        let tree = &to_oid(tree.map_err(|e| unreadable_commit(commit, &e))?);
        let files = self.entries_of(tree)?.into_iter().filter(|(_, mode, _)| mode.is_blob());
        Ok(files.map(|(name, _, blob)| (name, blob)).collect())
    }

    /// The names in a tree's root. The flag is true if the name is that of a directory, or of a
    /// link to one.
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
        self.header(oid).map_or(0, |header| header.size())
    }

    /// True if `ancestor` is reachable from `of`, or is the same commit.
    pub fn is_ancestor(&self, ancestor: &Oid, of: &Oid) -> Result<bool> {
        let call = self.git().call("merge-base").arg("--is-ancestor");
        Ok(call.args([ancestor.as_str(), of.as_str()]).bytes_if_any()?.is_some())
    }

    /// The best common ancestor of two commits; `None` if their histories are unrelated.
    pub fn merge_base(&self, one: &Oid, other: &Oid) -> Result<Option<Oid>> {
        let call = self.git().call("merge-base").args([one.as_str(), other.as_str()]);
        let found = call.bytes_if_any()?;
        Ok(found.and_then(|found| Oid::parse(String::from_utf8_lossy(&found).trim())))
    }

    /// The disk space in bytes of the objects that are reachable from `tips`, and not from
    /// `others`.
    pub fn bytes_of(
        &self,
        tips: impl Iterator<Item = Oid>,
        others: impl Iterator<Item = Oid>,
    ) -> Result<u64> {
        let list: String =
            tips.map(|o| format!("{o}\n")).chain(others.map(|o| format!("^{o}\n"))).collect();
        let call = self.git().call("rev-list");
        let call = call.words("--objects --disk-usage --ignore-missing --stdin");
        Ok(call.stdin(list).line()?.to_string_lossy().trim().parse().unwrap_or(0))
    }

    /// The settings in a section of git's configuration, as `git config -z --show-origin` prints
    /// them; empty if there are none.
    pub fn settings_of(&self, section: &str) -> Result<Vec<u8>> {
        if !self.may_have_section(section) {
            return Ok(Vec::new());
        }
        let call = self.checkout().for_user().call("config");
        let call = call.words("-z --show-origin --get-regexp").arg(format!(r"^{section}\."));
        Ok(call.bytes_if_any()?.unwrap_or_default())
    }

    /// False only if git's configuration has no such section. Then no git process is needed to read
    /// the section, and most commands start faster.
    fn may_have_section(&self, section: &str) -> bool {
        // gix does not read the settings of `git -c`.
        if ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"]
            .iter()
            .any(|v| std::env::var_os(v).is_some())
        {
            return true;
        }
        // gix does not read the file of Apple's git, either, or the `etc/gitconfig` in the
        // directory where git is installed.
        if cfg!(target_os = "macos") || program::file_of_prefix("etc/gitconfig").is_some() {
            return true;
        }
        let gix = self.gix();
        let config = gix.config_snapshot();
        // If there is an `includeIf`, git is asked, because gix may evaluate its condition
        // differently.
        ["includeIf", section].iter().any(|name| config.plumbing().sections_by_name(name).is_some())
    }

    /// A short name for this repository, made from its path. It names the repository's cache
    /// directory.
    pub fn key(&self) -> String {
        key_of(&self.common_dir)
    }

    /// A short name for the checkout that the command runs in.
    pub fn checkout_key(&self) -> String {
        key_of(&self.git_dir)
    }

    /// An index of a commit's tree, without stat data.
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

    /// Calls `work` in parallel for each regular file of a commit whose path is `wanted`. `work`
    /// gets the path and the bytes. Returns the results in the order of the paths. Fails if a file
    /// cannot be read.
    pub fn map_files<R: Send>(
        &self,
        commit: &Oid,
        wanted: impl Fn(&str) -> bool,
        work: impl Fn(&str, &[u8]) -> R + Sync,
    ) -> Result<Vec<R>> {
        let index = self.index_of(commit)?;
        let files = index
            .entries()
            .iter()
            .filter(|entry| matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE));
        let files = files.map(|entry| (entry.path(&index).to_str_lossy(), entry.id));
        let files: Vec<_> = files.filter(|(path, _)| wanted(path)).collect();
        let done = parallel::map_chunks(&files, |files| {
            // Each thread has a reader of its own, so that no thread waits for another one.
            let mut loose = LooseObjects::new(&self.common_dir);
            let gix = self.gix();
            let mut bytes = Vec::new();
            let each = files.iter().map(|(path, id)| {
                if loose.read(Kind::Blob, id, &mut bytes).is_none() {
                    let lost = |e| Error::damaged(format!("'{path}' cannot be read: {e}"));
                    bytes = gix.find_blob(*id).map_err(lost)?.take_data();
                }
                Ok(work(path, &bytes))
            });
            each.collect::<Result<Vec<R>>>()
        });
        Ok(done?.into_iter().flatten().collect())
    }

    /// Calls `read`, and calls it again if it failed. Another git may be moving the objects into a
    /// pack, or from one pack into another.
    fn read_again<T>(&self, read: impl Fn(&gix::Repository) -> Result<T>) -> Result<T> {
        repeat(PAUSES, Result::is_err, || read(&self.gix()))
    }

    /// Opens one of our own worktrees. The settings are those of our git calls in the worktree.
    pub(super) fn open_worktree(&self, path: &Path) -> Result<gix::Repository> {
        let settings = EXACT.split_whitespace().chain([REPLACE_NOTHING]);
        let options = self.options.clone().config_overrides(settings);
        let opened = gix::open_opts(path, options);
        opened.map_err(|e| Error::damaged(format!("'{}' cannot be read: {e}", path.display())))
    }

    /// The repository as gix has it, for the other modules of `git/`.
    pub(super) fn gix(&self) -> gix::Repository {
        self.shared.to_thread_local()
    }
}

/// The setting that has the same effect on gix as GIT_NO_REPLACE_OBJECTS has on our git calls. An
/// attempt can make refs in `refs/replace/`, and these must not change which objects are read.
const REPLACE_NOTHING: &str = "core.useReplaceRefs=false";

fn strict_options() -> gix::open::Options {
    gix::open::Options::default()
        .object_store_slots(SLOTS)
        .bail_if_untrusted(true)
        .config_overrides([REPLACE_NOTHING])
}

fn unreadable_commit(oid: &Oid, e: &dyn std::fmt::Display) -> Error {
    Error::damaged(format!("commit {oid} cannot be read: {e}"))
}

/// A short name for a path. The path need not be UTF-8.
fn key_of(path: &Path) -> String {
    digest(tree::path_bytes(path)).get(..KEY_LENGTH).unwrap_or_default().to_owned()
}

/// The length of [`Repo::key`].
const KEY_LENGTH: usize = 16;

/// True if a directory above a path is a submodule. gix cannot look up such a path, because the
/// submodule's commit may be missing in this repository.
fn is_in_submodule(tree: &gix::Tree<'_>, path: &BStr) -> bool {
    path.find_iter("/").any(|at| {
        let above = tree.lookup_entry(path[..at].split_str("/"));
        above.is_ok_and(|entry| entry.is_some_and(|entry| entry.mode().is_commit()))
    })
}

pub(super) type TreeEntry = (EntryMode, gix::ObjectId);

/// True if a name has the form of [`Repo::key`].
pub fn is_key(name: &OsStr) -> bool {
    name.len() == KEY_LENGTH && name.as_bytes().iter().all(u8::is_ascii_hexdigit)
}

/// A digest of these bytes: the id that git would give to a blob with this content.
pub fn digest(bytes: &[u8]) -> String {
    let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Blob, bytes);
    id.map(|id| id.to_string()).unwrap_or_default()
}

/// Converts gix's id to ours.
pub(super) fn to_oid(id: gix::ObjectId) -> Oid {
    Oid::parse(&id.to_string()).expect("gix prints full lowercase ids")
}

/// Converts our id to gix's. Fails if this build of gix does not support the hash of the id.
pub(super) fn from_oid(oid: &Oid) -> Result<gix::ObjectId> {
    gix::ObjectId::from_hex(oid.as_str().as_bytes())
        .map_err(|_| Error::damaged(format!("{oid} is not an object id that this build can read")))
}

/// The variables that select a repository.
const OF_REPOSITORY: &str = "GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR";

/// Opens a repository if git would use it. git itself is asked only if gix refuses the repository,
/// because gix does not read `safe.directory` from `git -c` and GIT_CONFIG_COUNT. `hidden` are
/// variables that git must not read.
fn open_as_git(
    dir: &Path,
    hidden: &str,
    open: impl Fn(gix::open::Options) -> gix::Result<gix::ThreadSafeRepository>,
) -> Result<Repo> {
    let strict = strict_options();
    let error = match open(strict.clone()) {
        Ok(found) => return Repo::of(&found, strict),
        Err(e) => e,
    };
    let probe = duct::cmd!("git", "-C", dir, "rev-parse", "--git-dir", "--show-object-format");
    let probe = hidden.split_whitespace().fold(probe, |probe, name| probe.env_remove(name));
    let output = probe.env("LC_ALL", "C").stdout_capture().stderr_capture().unchecked().run();
    let Ok(output) = output else {
        return Err(Error::fatal("could not start git").hint("git must be on PATH"));
    };
    if !output.status.success() {
        return Err(refused_by_git(&output.stderr, error));
    }
    let trusting = strict.bail_if_untrusted(false).filter_config_section(|_| true);
    match open(trusting.clone()) {
        Ok(found) => Repo::of(&found, trusting),
        Err(e) => Err(unreadable_repository(dir, &output.stdout, e)),
    }
}

/// The error for a repository that git refuses, with git's message. `e` is the error of gix.
fn refused_by_git(stderr: &[u8], e: gix::Error) -> Error {
    let stderr = stderr.to_str_lossy();
    let first = stderr.lines().next().unwrap_or_default();
    let first =
        ["fatal: ", "error: "].iter().find_map(|word| first.strip_prefix(word)).unwrap_or(first);
    let is_missing = e.is_not_found();
    let error = Error::fatal(first).with_source(e);
    if let Some(line) = stderr.lines().find(|l| l.trim_start().starts_with("git config")) {
        return error.hint(format!("trust it with `{}`", line.trim()));
    }
    match is_missing {
        true => error
            .because(Cause::NotFound)
            .hint("make one here with `git init`, or go to one with `git -C DIR frites …`"),
        false => error.hint("git cannot use it, either: correct it until `git status` works"),
    }
}

/// The error for a repository that git can read and gix cannot. `answers` are git's: the git
/// directory, and the format of object ids.
fn unreadable_repository(dir: &Path, answers: &[u8], e: gix::Error) -> Error {
    let mut answers = answers.lines().map(|line| line.to_path_lossy());
    let head = dir.join(answers.next().unwrap_or_default()).join("HEAD");
    let format = answers.next().filter(|format| format.as_ref() != Path::new("sha1"));
    let error =
        |why: &str| Error::fatal(format!("this repository cannot be read by git-frites: {why}"));
    if let Some(format) = format {
        return error(&format!("its object ids are not SHA-1, but {}", format.display()))
            .hint(
                "make a copy: `git init --object-format=sha1 COPY`, \
                 then `git fast-export --all | git -C COPY fast-import`",
            )
            .with_source(e);
    }
    if let Ok(target) = std::fs::read_link(&head) {
        let target = target.display();
        return error(&format!("HEAD is a link to '{target}', which is no file"))
            .hint(format!(
                "make HEAD a file: `git -c core.preferSymlinkRefs=false symbolic-ref HEAD {target}`"
            ))
            .with_source(e);
    }
    let causes = std::iter::successors(Some(&e as &dyn std::error::Error), |e| e.source());
    let text = causes.last().map(ToString::to_string).unwrap_or_default();
    error(text.lines().next().unwrap_or_default()).hint("`git fsck` finds damage").with_source(e)
}

/// True if objects that a remote has promised may be missing.
pub fn is_partial_clone(gix: &gix::Repository) -> bool {
    let config = gix.config_snapshot();
    let remotes = config.plumbing().sections_by_name("remote");
    config.string("extensions.partialClone").is_some()
        || remotes.is_some_and(|mut all| all.any(|remote| remote.value("promisor").is_some()))
}

/// Follows symbolic links (path_resolution(7)). `root` is an absolute path, and `path` is relative
/// to it. Returns the relative path to which `path` leads. A link may leave `root` and come back.
/// `None` if the links end outside of `root` or form a loop.
///
/// `target` returns the target of the link at an absolute path, or `None` if there is no link.
pub fn follow_links(
    root: &str,
    path: &str,
    target: impl Fn(&str) -> Result<Option<String>>,
) -> Result<Option<String>> {
    let found = tree::follow(Path::new(&format!("{root}/{path}")), |at| {
        let target = at.to_str().map(&target).transpose()?;
        Ok(target.flatten().map(PathBuf::from))
    })?;
    if found.len() > tree::MOST_LINKS {
        return Ok(None);
    }
    let inside = found.last().and_then(|real| real.strip_prefix(root).ok()?.to_str());
    Ok(inside.map(str::to_owned))
}
