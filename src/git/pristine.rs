//! Checkouts for judging that are used again: between two trees only the difference is written.
//!
//! What a command did to a checkout is found without trusting anything on the disk. The index as git
//! wrote it is kept in memory, with the times and sizes of every tracked file; a change time cannot be
//! set by a program. What may have been written in the same moment as the index is compared by content.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gix::bstr::{BString, ByteSlice};
use gix::index::entry::Mode;

use super::capture::base_index;
use super::cli::nul_separated;
use super::repo::{Repo, digest};
use super::worktree::{self, path_bytes};
use crate::error::{Error, IoContext, Result};
use crate::model::oid::Oid;

/// How much younger than a file the clock of a file system may make it look.
const TICK: Duration = Duration::from_millis(20);

/// What git keeps in an administrative entry that is the checkout's for good.
const LASTING: [&str; 2] = ["commondir", "gitdir"];

/// A registered worktree that holds exactly the tracked files of a commit, again and again.
pub struct Pristine {
    /// Its folder.
    pub path: PathBuf,
    /// Its administrative entry.
    pub admin: PathBuf,
    /// What makes these two folders the ones that were made: device and inode.
    own: [(u64, u64); 2],
    lasting: Vec<(&'static str, Vec<u8>)>,
    dot_git: Vec<u8>,
    mode: u32,
    now: Option<Snapshot>,
}

/// The tracked files as they were when the checkout was handed out.
struct Snapshot {
    index: Vec<u8>,
    written: SystemTime,
    files: BTreeMap<BString, Stamp>,
}

/// What a command cannot leave as it was when it changes a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    mode: u32,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// For files as young as the index: what they hold.
    content: Option<String>,
}

impl Pristine {
    /// Takes over a worktree that was registered at `path` without files.
    pub fn new(admin: PathBuf, path: PathBuf) -> Result<Pristine> {
        let failed = || format!("could not read '{}'", admin.display());
        let lasting = LASTING.iter().map(|name| Ok((*name, fs::read(admin.join(name))?)));
        let lasting = lasting.collect::<io::Result<_>>().context(failed)?;
        let dot_git = fs::read(path.join(".git")).context(failed)?;
        let mode = fs::symlink_metadata(&path).context(failed)?.mode();
        let own = [identity(&path).context(failed)?, identity(&admin).context(failed)?];
        Ok(Pristine { path, admin, own, lasting, dot_git, mode, now: None })
    }

    /// Whether both folders are still the ones that were made. A command may have put a link in their place,
    /// and what is behind that is not ours to clean up.
    fn is_own(&self) -> bool {
        [&self.path, &self.admin].into_iter().zip(self.own).all(|(path, own)| identity(path).is_ok_and(|i| i == own))
    }

    /// Makes the checkout hold the tracked files of `commit` and HEAD be there: whatever was done to it,
    /// nothing else stays, but with `warm` what git ignores does.
    ///
    /// Files that differ are written and get the current time, which build tools go by. Fails where what a
    /// command did is past mending; then nothing that is not ours was touched.
    pub fn become_commit(&mut self, repo: &Repo, commit: &Oid, warm: bool) -> Result<()> {
        if let Some(snapshot) = self.now.take() {
            let failed = || format!("could not use '{}' again", self.path.display());
            if !self.is_own() {
                return Err(Error::internal(format!("{}: something else is in its place", failed())));
            }
            self.restore_admin(commit, &snapshot).context(failed)?;
            if !warm {
                let index = base_index(repo, commit)?;
                self.sweep(&self.path, &mut Vec::new(), &index).context(failed)?;
            } else {
                // A build tool must see that what is written now is younger than what it built before.
                std::thread::sleep(TICK);
            }
        }
        worktree::git(&self.admin, &self.path).call("read-tree").args(["--reset", "-u", commit.as_str()]).run()?;
        if warm {
            self.sweep_warm()?;
        }
        self.now = Some(self.look()?);
        Ok(())
    }

    /// The tracked files that are not as they were handed out, sorted.
    pub fn changed(&self) -> Result<Vec<Vec<u8>>> {
        let Some(snapshot) = &self.now else { return Ok(Vec::new()) };
        if !self.is_own() {
            return Ok(snapshot.files.keys().map(|path| path.to_vec()).collect());
        }
        let differs = |path: &BString, stamp: &Stamp| {
            let now = Stamp::of(&self.full(path), stamp.content.is_some());
            now.as_ref().ok() != Some(stamp)
        };
        if !snapshot.files.iter().any(|(path, stamp)| differs(path, stamp)) {
            return Ok(Vec::new());
        }
        // Touched is not changed: git compares the content.
        let failed = || "could not make a temporary index".to_owned();
        let dir = tempfile::tempdir().context(failed)?;
        let index = dir.path().join("index");
        write_index(&index, snapshot).context(failed)?;
        let git = worktree::git(&self.admin, &self.path).index(&index);
        git.call("update-index").args(["-q", "--refresh"]).output()?;
        let list = git.call("diff-files").args(["-z", "--name-only", "--ignore-submodules=all"]).bytes()?;
        Ok(nul_separated(&list).map(<[u8]>::to_vec).collect())
    }

    fn full(&self, path: &[u8]) -> PathBuf {
        self.path.join(OsStr::from_bytes(path))
    }

    /// Puts the administrative entry back to what it was, at another commit.
    fn restore_admin(&self, commit: &Oid, snapshot: &Snapshot) -> io::Result<()> {
        for entry in fs::read_dir(&self.admin)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                worktree::delete_tree(&entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        for (name, bytes) in &self.lasting {
            fs::write(self.admin.join(name), bytes)?;
        }
        fs::write(self.admin.join("HEAD"), format!("{commit}\n"))?;
        write_index(&self.admin.join("index"), snapshot)?;
        let dot_git = self.path.join(".git");
        match fs::symlink_metadata(&dot_git) {
            Ok(meta) if meta.is_dir() => worktree::delete_tree(&dot_git)?,
            Ok(_) => fs::remove_file(&dot_git)?,
            Err(_) => {}
        }
        fs::write(dot_git, &self.dot_git)
    }

    /// Removes all that `index` does not track, never through a link. Tracked files that were changed are
    /// left for git to write.
    fn sweep(&self, dir: &Path, prefix: &mut Vec<u8>, index: &gix::index::File) -> io::Result<()> {
        let meta = fs::symlink_metadata(dir)?;
        if meta.mode() != self.mode {
            fs::set_permissions(dir, fs::Permissions::from_mode(self.mode & 0o7777))?;
        }
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let length = prefix.len();
            prefix.extend(entry.file_name().as_bytes());
            let is_dir = entry.file_type()?.is_dir();
            let tracked = index.entry_by_path(prefix.as_bstr()).map(|e| e.mode);
            if length == 0 && *prefix == b".git" {
                // Ours, and just put back.
            } else if is_dir && tracked.is_none() && index.path_is_directory(prefix.as_bstr()) {
                prefix.push(b'/');
                self.sweep(&entry.path(), prefix, index)?;
            } else if is_dir {
                worktree::delete_tree(&entry.path())?;
            } else if tracked.is_none_or(|mode| mode == Mode::COMMIT) {
                fs::remove_file(entry.path())?;
            }
            prefix.truncate(length);
        }
        Ok(())
    }

    /// Removes what is neither tracked nor ignored; and compiled Python, for an equal-sized source of the
    /// same second would be taken for what it was compiled from (GIT-FACTS, "Not safe for build tools").
    fn sweep_warm(&self) -> Result<()> {
        worktree::git(&self.admin, &self.path).call("clean").args(["-ffdq"]).run()?;
        let git = worktree::git(&self.admin, &self.path);
        git.call("clean").args(["-ffdxq", "--", ":(glob)**/__pycache__/**", ":(glob)**/*.pyc"]).run()
    }

    fn look(&self) -> Result<Snapshot> {
        let file = self.admin.join("index");
        let failed = || format!("could not read '{}'", file.display());
        let index = fs::read(&file).context(failed)?;
        let written = fs::metadata(&file).and_then(|m| m.modified()).context(failed)?;
        let parsed = gix::index::File::at(&file, gix::hash::Kind::Sha1, true, gix::index::decode::Options::default());
        let parsed = parsed.map_err(|e| Error::fatal(format!("{}: {e}", failed())))?;
        let mut files = BTreeMap::new();
        for entry in parsed.entries().iter().filter(|e| e.mode != Mode::COMMIT) {
            let path = entry.path(&parsed).to_owned();
            let full = self.full(&path);
            let young = u64::from(entry.stat.mtime.secs) * 1000 + u64::from(entry.stat.mtime.nsecs / 1_000_000);
            let young = SystemTime::UNIX_EPOCH + Duration::from_millis(young) + TICK >= written;
            let stamp = Stamp::of(&full, young).context(|| format!("could not read '{}'", full.display()))?;
            files.insert(path, stamp);
        }
        Ok(Snapshot { index, written, files })
    }
}

impl Stamp {
    fn of(path: &Path, content: bool) -> io::Result<Stamp> {
        let meta = fs::symlink_metadata(path)?;
        let read = |path: &Path| {
            if meta.is_symlink() { fs::read_link(path).map(|t| path_bytes(&t).to_vec()) } else { fs::read(path) }
        };
        let content = (content && (meta.is_file() || meta.is_symlink())).then(|| read(path)).transpose()?;
        Ok(Stamp {
            inode: meta.ino(),
            mode: meta.mode(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
            content: content.map(|bytes| digest(&bytes)),
        })
    }
}

/// What makes a folder itself, whatever it is called; a link has none.
fn identity(folder: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::symlink_metadata(folder)?;
    if meta.is_dir() { Ok((meta.dev(), meta.ino())) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Writes an index as it was, with its time: by that git knows which files to compare by content.
fn write_index(path: &Path, snapshot: &Snapshot) -> io::Result<()> {
    fs::write(path, &snapshot.index)?;
    fs::File::options().write(true).open(path)?.set_modified(snapshot.written)
}
