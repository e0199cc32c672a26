//! Checkouts for judging that are used again: between two trees only the difference is written.
//!
//! What a command did to a checkout is found without trusting anything on the disk. The index as git
//! wrote it is kept in memory, with the times and sizes of every tracked file; a change time cannot be
//! set by a program. What may have been written in the same moment as the index is compared by content.
//! What is written through a memory map on tmpfs is not seen (GIT-FACTS, "Capture and diff").
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
use crate::fs::stat::{FileState, TIMESTAMP_GRANULARITY};
use crate::fs::tree;
use crate::git::cli::nul_separated;
use crate::git::index::ScratchIndex;
use crate::git::repo::digest;
use crate::git::worktree;
use crate::model::oid::Oid;
use crate::model::path::{TreePath, file_name};
use crate::process;

/// By how much an index must be younger than a file for every git to believe its times: many builds of git compare
/// whole seconds, and read each file that is not older again.
const BELIEVED: Duration = Duration::from_secs(2);

/// What git keeps in an administrative entry that is the checkout's for good; settings only with
/// `extensions.worktreeConfig`.
const LASTING: [&str; 3] = ["commondir", "gitdir", "config.worktree"];

/// A registered worktree that holds exactly the tracked files of a commit, again and again.
pub struct Pristine {
    /// Its directory.
    pub path: PathBuf,
    /// Its administrative entry.
    pub admin: PathBuf,
    /// What makes these two directories the ones that were made: device and inode.
    own: [(u64, u64); 2],
    lasting: Vec<(&'static str, Vec<u8>)>,
    dot_git: Vec<u8>,
    /// A time before the first file was written.
    since: SystemTime,
    mode: u32,
    now: Option<Snapshot>,
}

/// The tracked files as they were when the checkout was handed out.
struct Snapshot {
    index: Index,
    /// Of each entry of the index; none of submodules, and of files that are gone by now.
    stamps: Vec<Option<FileState>>,
}

/// An index as git wrote it.
struct Index {
    bytes: Vec<u8>,
    written: SystemTime,
    parsed: gix::index::File,
}

/// What stays of a directory when it is swept.
#[derive(Default)]
struct Swept {
    /// The directories in it, with a slash.
    below: Vec<Vec<u8>>,
    /// The files in it, by their place in the index.
    kept: Vec<(usize, FileState)>,
}

impl Pristine {
    /// Takes over a worktree that was registered at `path` without files.
    pub fn new(admin: PathBuf, path: PathBuf) -> Result<Pristine> {
        let failed = || format!("could not read '{}'", admin.display());
        let lasting = LASTING.iter().filter_map(|name| match fs::read(admin.join(name)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map(|bytes| (*name, bytes))),
        });
        let lasting = lasting.collect::<io::Result<_>>().context(failed)?;
        let dot_git = fs::read(path.join(".git")).context(failed)?;
        let since = fs::metadata(path.join(".git")).and_then(|m| m.modified()).context(failed)?;
        let mode = fs::symlink_metadata(&path).context(failed)?.mode();
        let own = [identity(&path).context(failed)?, identity(&admin).context(failed)?];
        Ok(Pristine { path, admin, own, lasting, dot_git, since, mode, now: None })
    }

    /// Whether both directories are still the ones that were made. A command may have put a link in their place,
    /// and what is behind that is not ours to clean up.
    fn is_own(&self) -> bool {
        [&self.path, &self.admin]
            .into_iter()
            .zip(self.own)
            .all(|(path, own)| identity(path).is_ok_and(|i| i == own))
    }

    /// Makes the checkout hold the tracked files of `commit` and HEAD be there: whatever was done to it,
    /// nothing else stays, but with `warm` what git ignores does.
    ///
    /// Files that differ are written and get the current time, which build tools go by. Fails where what a
    /// command did is past mending; then nothing that is not ours was touched.
    pub fn become_commit(&mut self, commit: &Oid, warm: bool) -> Result<()> {
        let mut before = self.now.take();
        if let Some(before) = &mut before {
            let failed = || format!("could not use '{}' again", self.path.display());
            if !self.is_own() {
                return Err(Error::internal(format!(
                    "{}: something else is in its place",
                    failed()
                )));
            }
            if warm {
                self.restore_admin(commit, &before.index, before.index.written).context(failed)?;
                // A build tool must see that what is written now is younger than what it built before.
                std::thread::sleep(TIMESTAMP_GRANULARITY);
            } else {
                before.stamps = self.sweep(before)?;
                // What was changed is gone, so that the times of what is left can be believed.
                self.restore_admin(commit, &before.index, before.index.written + BELIEVED)
                    .context(failed)?;
            }
        }
        let known = before.as_ref().is_some_and(|before| !warm && before.is_whole());
        let mut index = self.check_out(commit, known)?;
        if before
            .as_ref()
            .is_some_and(|before| attributes_differ(&before.index.parsed, &index.parsed))
        {
            // By other attributes the same blob is another file; git writes only what has another blob.
            let file = self.admin.join("index");
            fs::remove_file(&file).context(|| format!("could not remove '{}'", file.display()))?;
            before = None;
            index = self.check_out(commit, false)?;
        }
        if warm {
            self.sweep_warm()?;
        }
        self.now = Some(self.look(index, before.as_ref().filter(|_| !warm))?);
        Ok(())
    }

    /// Has git write the tracked files of a commit, and reads what it made of the index. Where the files that the index
    /// tells of are `known` to be there, git looks only at those that it writes.
    fn check_out(&self, commit: &Oid, known: bool) -> Result<Index> {
        let how = if known { "-m" } else { "--reset" };
        worktree::git(&self.admin, &self.path)
            .call("read-tree")
            .args([how, "-u", commit.as_str()])
            .run()?;
        let file = self.admin.join("index");
        let failed = || format!("could not read '{}'", file.display());
        let bytes = fs::read(&file).context(failed)?;
        let written = fs::metadata(&file).and_then(|m| m.modified()).context(failed)?;
        let parsed = gix::index::File::at(
            &file,
            gix::hash::Kind::Sha1,
            true,
            gix::index::decode::Options::default(),
        );
        let parsed = parsed.map_err(|e| Error::fatal(format!("{}: {e}", failed())))?;
        // The git of a command compares each file by content then. Otherwise it would by chance, or never in a checkout
        // that is used again: a file that the tree has with line ends which its attributes would not give it.
        fs::File::options()
            .write(true)
            .open(&file)
            .and_then(|f| f.set_modified(self.since))
            .context(failed)?;
        Ok(Index { bytes, written, parsed })
    }

    /// The tracked files that are not as they were handed out, sorted.
    pub fn changed(&self) -> Result<Vec<TreePath>> {
        let Some(told) = &self.now else { return Ok(Vec::new()) };
        if !self.is_own() {
            return Ok(told.files().map(|(path, _)| TreePath::new(path)).collect());
        }
        if told.holds(&self.path)? {
            return Ok(Vec::new());
        }
        let root = fs::File::open(&self.path)
            .context(|| format!("could not open '{}'", self.path.display()))?;
        // Touched is not changed: git compares the content.
        let scratch = ScratchIndex::empty(&worktree::git(&self.admin, &self.path))?;
        told.index
            .write(scratch.file(), told.index.written)
            .context(|| "could not write a temporary index".into())?;
        let git = scratch.git();
        git.call("update-index").args(["-q", "--refresh"]).output()?;
        let list = git
            .call("diff-files")
            .args(["-z", "--name-only", "--ignore-submodules=all"])
            .bytes()?;
        // Nor is what git would write back otherwise, although nobody touched it.
        let touched =
            |path: &&[u8]| !told.stamp(path).is_some_and(|stamp| stamp.holds(&root, path));
        Ok(nul_separated(&list).filter(touched).map(TreePath::new).collect())
    }

    /// Puts the administrative entry back to what it was, at another commit, with an index of that time.
    fn restore_admin(&self, commit: &Oid, index: &Index, time: SystemTime) -> io::Result<()> {
        for entry in fs::read_dir(&self.admin)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                tree::delete_tree(&entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        for (name, bytes) in &self.lasting {
            fs::write(self.admin.join(name), bytes)?;
        }
        fs::write(self.admin.join("HEAD"), format!("{commit}\n"))?;
        index.write(&self.admin.join("index"), time)?;
        let dot_git = self.path.join(".git");
        match fs::symlink_metadata(&dot_git) {
            Ok(meta) if meta.is_dir() => tree::delete_tree(&dot_git)?,
            Ok(_) => fs::remove_file(&dot_git)?,
            Err(_) => {}
        }
        fs::write(dot_git, &self.dot_git)
    }

    /// Removes all that was not handed out, or not as it is now. Gives the stamps of what stays.
    fn sweep(&self, told: &Snapshot) -> Result<Vec<Option<FileState>>> {
        let mut kept = vec![None; told.stamps.len()];
        // Level by level, so that what is looked into is known to be a directory and no link.
        let mut level = vec![Vec::new()];
        let mut directories: Vec<Vec<u8>> = Vec::new();
        while !level.is_empty() {
            let swept = process::in_parallel(process::processors(), &level, |directory| {
                self.sweep_directory(directory, told)
                    .context(|| format!("could not clean '{}'", self.path.display()))
            })?;
            level.clear();
            for directory in swept {
                level.extend(directory.below);
                directory.kept.into_iter().for_each(|(at, stamp)| kept[at] = Some(stamp));
            }
            directories.extend(level.iter().cloned());
        }
        if kept.iter().any(Option::is_none) {
            // git removes a directory with the last file in it, and not where that is gone already with a directory of its own.
            for directory in directories.iter().rev() {
                let _ = fs::remove_dir(self.path.join(OsStr::from_bytes(directory)));
            }
        }
        Ok(kept)
    }

    /// The same in one directory, given by its path with a slash.
    fn sweep_directory(&self, directory: &[u8], told: &Snapshot) -> io::Result<Swept> {
        let mut swept = Swept::default();
        let dir = self.path.join(OsStr::from_bytes(directory));
        if fs::symlink_metadata(&dir)?.mode() != self.mode {
            fs::set_permissions(&dir, fs::Permissions::from_mode(self.mode & 0o7777))?;
        }
        let root = fs::File::open(&dir)?;
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let path = [directory, name.as_bytes()].concat();
            let index = &told.index.parsed;
            let is_dir = entry.file_type()?.is_dir();
            let tracked = index.entry_index_by_path(path.as_bstr()).ok();
            if path == b".git" {
                // Ours, and put back apart.
            } else if is_dir && tracked.is_none() && index.path_is_directory(path.as_bstr()) {
                swept.below.push([path.as_slice(), b"/"].concat());
            } else if is_dir {
                tree::delete_tree(&entry.path())?;
            } else {
                let holds = |stamp: &&FileState| stamp.holds(&root, name.as_bytes());
                match tracked.and_then(|at| Some((at, told.stamps[at].as_ref().filter(holds)?))) {
                    Some((at, stamp)) => swept.kept.push((at, stamp.clone())),
                    None => fs::remove_file(entry.path())?,
                }
            }
        }
        Ok(swept)
    }

    /// Removes what is neither tracked nor ignored; and compiled Python, for an equal-sized source of the
    /// same second would be taken for what it was compiled from (GIT-FACTS, "Not safe for build tools").
    fn sweep_warm(&self) -> Result<()> {
        worktree::git(&self.admin, &self.path).call("clean").args(["-ffdq"]).run()?;
        let git = worktree::git(&self.admin, &self.path);
        git.call("clean")
            .args(["-ffdxq", "--", ":(glob)**/__pycache__/**", ":(glob)**/*.pyc"])
            .run()
    }

    /// Stamps the files of an index. Those that git did not write, since they were there `before`, keep theirs: what
    /// happens to a file in the meantime is found out with the next command.
    fn look(&self, index: Index, before: Option<&Snapshot>) -> Result<Snapshot> {
        let root = fs::File::open(&self.path)
            .context(|| format!("could not open '{}'", self.path.display()))?;
        let known = |entry: &gix::index::Entry, path: &BStr| {
            let Snapshot { index, stamps, .. } = before?;
            let at = index.parsed.entry_index_by_path(path).ok()?;
            let old = &index.parsed.entries()[at];
            stamps[at].as_ref().filter(|_| (old.id, old.mode) == (entry.id, entry.mode))
        };
        let mut stamps = Vec::with_capacity(index.parsed.entries().len());
        for entry in index.parsed.entries() {
            let path = entry.path(&index.parsed);
            stamps.push(match known(entry, path) {
                _ if entry.mode == Mode::COMMIT => None,
                Some(stamp) => Some(stamp.aged(index.written)),
                None => Some(
                    FileState::read(&root, path, index.written, digest)
                        .context(|| format!("could not read '{path}'"))?,
                ),
            });
        }
        Ok(Snapshot { index, stamps })
    }
}

/// Whether git would write files otherwise by the one than by the other.
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

impl Snapshot {
    /// What can be told of the files that are there.
    fn files(&self) -> impl Iterator<Item = (&BStr, &FileState)> {
        let entries = self.index.parsed.entries().iter().zip(&self.stamps);
        entries.filter_map(|(entry, stamp)| Some((entry.path(&self.index.parsed), stamp.as_ref()?)))
    }

    /// What can be told of one file.
    fn stamp(&self, path: &[u8]) -> Option<&FileState> {
        let at = self.index.parsed.entry_index_by_path(path.as_bstr()).ok()?;
        self.stamps[at].as_ref()
    }

    /// Whether every tracked file is there. Where there are submodules that cannot be told.
    fn is_whole(&self) -> bool {
        self.stamps.iter().all(Option::is_some)
    }

    /// Whether all files are as they were stamped, in a checkout at `path`.
    fn holds(&self, path: &Path) -> Result<bool> {
        let root =
            fs::File::open(path).context(|| format!("could not open '{}'", path.display()))?;
        let files: Vec<(&BStr, &FileState)> = self.files().collect();
        let hold =
            process::in_parallel(process::processors(), &process::shares(&files), |files| {
                Ok(files.iter().all(|(path, stamp)| stamp.holds(&root, path)))
            })?;
        Ok(hold.into_iter().all(|holds| holds))
    }
}

impl Index {
    /// Writes it with a time: by that git knows which files to compare by content.
    fn write(&self, path: &Path, time: SystemTime) -> io::Result<()> {
        fs::write(path, &self.bytes)?;
        fs::File::options().write(true).open(path)?.set_modified(time)
    }
}

/// What makes a directory itself, whatever it is called; a link has none.
fn identity(directory: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::symlink_metadata(directory)?;
    if meta.is_dir() {
        Ok((meta.dev(), meta.ino()))
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}
