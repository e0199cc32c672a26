//! Reusable checkouts for judging: between two trees only the difference is written.
//!
//! Changes that a command made to a checkout are found without trusting anything on the disk. The
//! index as git wrote it is kept in memory, with the times and sizes of every tracked file; a
//! change time cannot be set by a program. Files that may have been written in the same moment as
//! the index are compared by content. Writes through a memory map on tmpfs are not detected
//! (GIT-FACTS, "Capture and diff").
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::Mode;

use crate::error::{Error, IoContext, Result};
use crate::fs::atomic;
use crate::fs::parallel;
use crate::fs::regular;
use crate::fs::stat::FileState;
use crate::fs::tree;
use crate::git::cli::nul_separated;
use crate::git::index::{ScratchIndex, read_index};
use crate::git::repo::digest;
use crate::git::worktree::Worktree;
use crate::model::oid::Oid;
use crate::model::path::{TreePath, file_name};

/// An index that is newer than a file by this much makes git trust the cached stat data. Many
/// builds of git compare whole seconds, and read every file again that is not older.
const INDEX_TRUSTED_AFTER: Duration = Duration::from_secs(2);

/// The files of an administrative entry that stay from tree to tree. `config.worktree` exists only with
/// `extensions.worktreeConfig`.
const KEPT_FILES: [&str; 3] = ["commondir", GITDIR, "config.worktree"];

/// The file with the path of the worktree's `.git` file.
const GITDIR: &str = "gitdir";

/// A worktree that can be reset to exactly the tracked files of a commit, again and again.
pub struct ReusableCheckout {
    /// The worktree.
    pub worktree: Worktree,
    /// Device and inode of the worktree's two directories, to notice if either is replaced.
    own: [(u64, u64); 2],
    kept_files: Vec<(&'static str, Vec<u8>)>,
    dot_git: Vec<u8>,
    /// A time before the first file was written.
    since: SystemTime,
    mode: u32,
    now: Option<TrackedFiles>,
}

/// The tracked files as they were when the checkout was handed out to a command.
struct TrackedFiles {
    index: WrittenIndex,
    /// The stat data for each entry of the index; none for submodules and for files that are gone.
    stamps: Vec<Option<FileState>>,
}

/// An index as git wrote it.
struct WrittenIndex {
    bytes: Vec<u8>,
    written: SystemTime,
    parsed: gix::index::File,
}

/// The contents of a directory that stay when it is cleaned.
#[derive(Default)]
struct SweptDirectory {
    /// The directories in it, with a slash.
    below: Vec<Vec<u8>>,
    /// The files in it, by their position in the index.
    kept: Vec<(usize, FileState)>,
}

impl ReusableCheckout {
    /// Takes over a worktree that was registered without files.
    pub fn new(worktree: Worktree) -> Result<ReusableCheckout> {
        let Worktree { path, admin, .. } = &worktree;
        let failed = || format!("could not read '{}'", admin.display());
        let kept_files =
            KEPT_FILES.iter().filter_map(|name| match regular::read(&admin.join(name)) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                read => Some(read.map(|bytes| (*name, bytes))),
            });
        let kept_files = kept_files.collect::<io::Result<_>>().context(failed)?;
        let dot_git = regular::read(&path.join(".git")).context(failed)?;
        let since = fs::metadata(path.join(".git")).and_then(|m| m.modified()).context(failed)?;
        let mode = fs::symlink_metadata(path).context(failed)?.mode();
        let own = [identity(path).context(failed)?, identity(admin).context(failed)?];
        Ok(ReusableCheckout { worktree, own, kept_files, dot_git, since, mode, now: None })
    }

    /// True if both directories are still the ones that were made. A command may have put a link in
    /// their place, and the link's target is not ours to clean up.
    fn is_own(&self) -> bool {
        [&self.worktree.path, &self.worktree.admin]
            .into_iter()
            .zip(self.own)
            .all(|(path, own)| identity(path).is_ok_and(|i| i == own))
    }

    /// Tells git that somebody has moved the checkout to another directory at the same depth: a
    /// `.git` file with a relative path stays right.
    pub fn moved_to(&mut self, path: PathBuf) -> Result<()> {
        self.worktree.path = path;
        if !self.is_own() {
            let path = self.worktree.path.display();
            return Err(Error::internal(format!("'{path}': something else is in its place")));
        }
        let mut bytes = tree::path_bytes(&self.worktree.path.join(".git")).to_owned();
        bytes.push(b'\n');
        atomic::write(&self.worktree.admin.join(GITDIR), &bytes)?;
        self.kept_files.retain(|(name, _)| *name != GITDIR);
        self.kept_files.push((GITDIR, bytes));
        Ok(())
    }

    /// Resets the checkout to HEAD at `commit` and exactly the commit's tracked files, whatever
    /// commands did to it.
    ///
    /// Files that differ are written and get the current time, so that build tools notice. Fails if
    /// a command left the checkout in a state that cannot be reset; then nothing outside it was
    /// touched.
    pub fn reset_to(&mut self, commit: &Oid) -> Result<()> {
        let mut before = self.now.take();
        if let Some(before) = &mut before {
            let failed = || format!("could not use '{}' again", self.worktree.path.display());
            if !self.is_own() {
                return Err(Error::internal(format!(
                    "{}: something else is in its place",
                    failed()
                )));
            }
            before.stamps = self.sweep(before)?;
            // Files that were changed are gone, so that the cached stat data of the others can be
            // trusted.
            self.restore_admin(commit, &before.index, before.index.written + INDEX_TRUSTED_AFTER)
                .context(failed)?;
        }
        let present = before.as_ref().is_some_and(TrackedFiles::is_whole);
        let mut index = self.check_out(commit, present)?;
        if before
            .as_ref()
            .is_some_and(|before| attributes_differ(&before.index.parsed, &index.parsed))
        {
            // With other attributes the same blob gives another file, but git writes only files
            // with another blob.
            let file = self.worktree.admin.join("index");
            fs::remove_file(&file).context(|| format!("could not remove '{}'", file.display()))?;
            before = None;
            index = self.check_out(commit, false)?;
        }
        self.now = Some(self.scan(index, before.as_ref())?);
        Ok(())
    }

    /// Has git write the tracked files of a commit and the index, and reads that index. If every
    /// file of the old index is `present`, git checks only the files that it writes.
    fn check_out(&self, commit: &Oid, present: bool) -> Result<WrittenIndex> {
        let how = if present { "-m" } else { "--reset" };
        self.worktree.git().call("read-tree").args([how, "-u", commit.as_str()]).run()?;
        let file = self.worktree.admin.join("index");
        let failed = || format!("could not read '{}'", file.display());
        let bytes = regular::read(&file).context(failed)?;
        let written = fs::metadata(&file).and_then(|m| m.modified()).context(failed)?;
        let parsed = read_index(&file)?;
        // Back-date the index so that every entry is racily clean: a git that a command runs then
        // compares contents, always. It matters for files whose line ends are not those that their
        // attributes would give.
        fs::File::options()
            .write(true)
            .open(&file)
            .and_then(|f| f.set_modified(self.since))
            .context(failed)?;
        Ok(WrittenIndex { bytes, written, parsed })
    }

    /// The tracked files that commands have changed since the checkout was handed out, sorted.
    pub fn changed(&self) -> Result<Vec<TreePath>> {
        let Some(handed_out) = &self.now else { return Ok(Vec::new()) };
        if !self.is_own() {
            return Ok(handed_out.files().map(|(path, _)| TreePath::new(path)).collect());
        }
        if handed_out.holds(&self.worktree.path)? {
            return Ok(Vec::new());
        }
        let root = fs::File::open(&self.worktree.path)
            .context(|| format!("could not open '{}'", self.worktree.path.display()))?;
        // A file with new stat data may have its old content: git compares it.
        let scratch = ScratchIndex::empty(&self.worktree.git())?;
        handed_out
            .index
            .write(scratch.file(), handed_out.index.written)
            .context(|| "could not write a temporary index".into())?;
        let git = scratch.git();
        git.call("update-index").args(["-q", "--refresh"]).output()?;
        let list = git
            .call("diff-files")
            .args(["-z", "--name-only", "--ignore-submodules=all"])
            .bytes()?;
        // A file that nobody touched is not changed, even if git would write it differently.
        let touched =
            |path: &&[u8]| !handed_out.stamp(path).is_some_and(|stamp| stamp.holds(&root, path));
        Ok(nul_separated(&list).filter(touched).map(TreePath::new).collect())
    }

    /// Restores the administrative entry, with HEAD at `commit` and an index with this modification
    /// time.
    fn restore_admin(
        &self,
        commit: &Oid,
        index: &WrittenIndex,
        time: SystemTime,
    ) -> io::Result<()> {
        for entry in fs::read_dir(&self.worktree.admin)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                tree::delete_tree(&entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        for (name, bytes) in &self.kept_files {
            fs::write(self.worktree.admin.join(name), bytes)?;
        }
        fs::write(self.worktree.admin.join("HEAD"), format!("{commit}\n"))?;
        index.write(&self.worktree.admin.join("index"), time)?;
        let dot_git = self.worktree.path.join(".git");
        match fs::symlink_metadata(&dot_git) {
            Ok(meta) if meta.is_dir() => tree::delete_tree(&dot_git)?,
            Ok(_) => fs::remove_file(&dot_git)?,
            Err(_) => {}
        }
        fs::write(dot_git, &self.dot_git)
    }

    /// Removes every file that was not handed out, or that has changed since. Gives the stat data
    /// of the others.
    fn sweep(&self, handed_out: &TrackedFiles) -> Result<Vec<Option<FileState>>> {
        let mut kept = vec![None; handed_out.stamps.len()];
        // Level by level, so that every path that is listed is a directory and not a link.
        let mut level = vec![Vec::new()];
        let mut directories: Vec<Vec<u8>> = Vec::new();
        while !level.is_empty() {
            let swept = parallel::map(&level, |directory| {
                self.sweep_directory(directory, handed_out)
                    .context(|| format!("could not clean '{}'", self.worktree.path.display()))
            })?;
            level.clear();
            for directory in swept {
                level.extend(directory.below);
                directory.kept.into_iter().for_each(|(at, stamp)| kept[at] = Some(stamp));
            }
            directories.extend(level.iter().cloned());
        }
        if kept.iter().any(Option::is_none) {
            // git removes a directory together with its last file, but not one that is empty
            // already.
            for directory in directories.iter().rev() {
                let _ = fs::remove_dir(self.worktree.path.join(OsStr::from_bytes(directory)));
            }
        }
        Ok(kept)
    }

    /// Cleans one directory, given by its path with a slash at the end.
    fn sweep_directory(
        &self,
        directory: &[u8],
        handed_out: &TrackedFiles,
    ) -> io::Result<SweptDirectory> {
        let mut swept = SweptDirectory::default();
        let dir = self.worktree.path.join(OsStr::from_bytes(directory));
        if fs::symlink_metadata(&dir)?.mode() != self.mode {
            fs::set_permissions(&dir, fs::Permissions::from_mode(self.mode & 0o7777))?;
        }
        let root = fs::File::open(&dir)?;
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let path = [directory, name.as_bytes()].concat();
            let index = &handed_out.index.parsed;
            let is_dir = entry.file_type()?.is_dir();
            let tracked = index.entry_index_by_path(path.as_bstr()).ok();
            if path == b".git" {
                // Restored with the administrative entry.
            } else if is_dir && tracked.is_none() && index.path_is_directory(path.as_bstr()) {
                swept.below.push([path.as_slice(), b"/"].concat());
            } else if is_dir {
                tree::delete_tree(&entry.path())?;
            } else {
                let holds = |stamp: &&FileState| stamp.holds(&root, name.as_bytes());
                match tracked
                    .and_then(|at| Some((at, handed_out.stamps[at].as_ref().filter(holds)?)))
                {
                    Some((at, stamp)) => swept.kept.push((at, stamp.clone())),
                    None => fs::remove_file(entry.path())?,
                }
            }
        }
        Ok(swept)
    }

    /// Reads the stat data of an index's files. Files that git did not write keep the stat data of
    /// `before`, so that a change in between is found after the next command.
    fn scan(&self, index: WrittenIndex, before: Option<&TrackedFiles>) -> Result<TrackedFiles> {
        let root = fs::File::open(&self.worktree.path)
            .context(|| format!("could not open '{}'", self.worktree.path.display()))?;
        let old_stamp = |entry: &gix::index::Entry, path: &BStr| {
            let TrackedFiles { index, stamps, .. } = before?;
            let at = index.parsed.entry_index_by_path(path).ok()?;
            let old = &index.parsed.entries()[at];
            if (old.id, old.mode) != (entry.id, entry.mode) {
                return None;
            }
            stamps[at].as_ref()
        };
        let mut stamps = Vec::with_capacity(index.parsed.entries().len());
        for entry in index.parsed.entries() {
            let path = entry.path(&index.parsed);
            stamps.push(match old_stamp(entry, path) {
                _ if entry.mode == Mode::COMMIT => None,
                Some(stamp) => Some(stamp.aged(index.written)),
                None => Some(
                    FileState::read(&root, path, index.written, digest)
                        .context(|| format!("could not read '{path}'"))?,
                ),
            });
        }
        Ok(TrackedFiles { index, stamps })
    }
}

/// True if the two indexes have different attributes, so that git may write files differently.
fn attributes_differ(one: &gix::index::File, other: &gix::index::File) -> bool {
    let attributes = |index: &gix::index::File| -> Vec<(TreePath, gix::ObjectId, Mode)> {
        let named = index.entries().iter().map(|e| (e.path(index), e.id, e.mode));
        let read = |path: &[u8]| file_name(path) == b".gitattributes";
        named
            .filter(|(path, ..)| read(path))
            .map(|(path, id, mode)| (TreePath::new(path), id, mode))
            .collect()
    };
    attributes(one) != attributes(other)
}

impl TrackedFiles {
    /// The files that have stat data, with it.
    fn files(&self) -> impl Iterator<Item = (&BStr, &FileState)> {
        let entries = self.index.parsed.entries().iter().zip(&self.stamps);
        entries.filter_map(|(entry, stamp)| Some((entry.path(&self.index.parsed), stamp.as_ref()?)))
    }

    /// The stat data of one file.
    fn stamp(&self, path: &[u8]) -> Option<&FileState> {
        let at = self.index.parsed.entry_index_by_path(path.as_bstr()).ok()?;
        self.stamps[at].as_ref()
    }

    /// True if every tracked file is there. Always false if there are submodules.
    fn is_whole(&self) -> bool {
        self.stamps.iter().all(Option::is_some)
    }

    /// True if all files in the checkout at `path` still have their stat data.
    fn holds(&self, path: &Path) -> Result<bool> {
        let root =
            fs::File::open(path).context(|| format!("could not open '{}'", path.display()))?;
        let files: Vec<(&BStr, &FileState)> = self.files().collect();
        let hold = parallel::map_chunks(&files, |files| {
            Ok(files.iter().all(|(path, stamp)| stamp.holds(&root, path)))
        })?;
        Ok(hold.into_iter().all(|holds| holds))
    }
}

impl WrittenIndex {
    /// Writes the index with a modification time, from which git derives which files to compare by
    /// content.
    fn write(&self, path: &Path, time: SystemTime) -> io::Result<()> {
        fs::write(path, &self.bytes)?;
        fs::File::options().write(true).open(path)?.set_modified(time)
    }
}

/// Device and inode of a directory. Fails for a link.
fn identity(directory: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::symlink_metadata(directory)?;
    if meta.is_dir() {
        Ok((meta.dev(), meta.ino()))
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}
