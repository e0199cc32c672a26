//! A separate git directory for an attempt. While a guarded command runs, the attempt's worktree uses it in
//! place of the repository's.
//!
//! It has the repository's objects as alternates, a copy of its refs, configuration and hooks, and a copy
//! of the worktree's administrative entry. So every git command works there, and none reaches the
//! repository. The attempt's work is brought back when the attempt is captured.
//!
//! The repository's own `objects/` and `refs/` cannot be made writable instead: `git gc` would delete
//! objects whose refs it does not see, and `stash` and `commit` need the directories of all refs.
mod bring_back;
mod files;
mod objects;
mod own_refs;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, IoContext, Result};
use crate::fs::tree;
use crate::fs::{atomic, regular};
use crate::git::repo::Repo;
use crate::git::{gc, ref_locks, worktree};
use crate::model::count::some_of;
use crate::model::oid::Oid;
use crate::process::world_spec::Mount;

pub(super) use own_refs::{logged, saved};

/// The directory in which git-lfs stores files in a git directory.
pub const STORE_OF_LFS: &str = "lfs";

/// The list of further object directories in a git directory.
const ALTERNATES: &str = "objects/info/alternates";

/// The place of the repository's objects in an own git directory.
const SHARED_OBJECTS: &str = "frites-objects";

/// The note about the commit to which the candidate's branch was moved last.
const BRANCH: &str = "branch";

/// The note about commits that could not be brought back.
const UNREAD: &str = "unread";

/// The files of the common git directory that are copied.
const COPIED_FILES: [&str; 4] = ["HEAD", "config", "config.worktree", "shallow"];

/// The directories of the common git directory that are copied.
const COPIED_DIRECTORIES: [&str; 2] = ["hooks", "info"];

/// The entries of the common git directory that an own one does not get: it has some of its own, and the
/// others belong to the main worktree or to git-frites.
const LEFT_OUT: [&str; 12] = [
    "objects",
    "refs",
    "logs",
    "worktrees",
    "rr-cache",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    ".frites",
    "frites-entry",
    ref_locks::CHANGING,
    gc::PACKED,
];

/// The line about commits of an attempt that could not be brought back and stay in its git directory;
/// `None` if there are none. `room` is the candidate's directory for notes.
pub fn unread(room: &Path) -> Option<String> {
    regular::read_text(&room.join(UNREAD)).ok()
}

/// An attempt's own git directory.
#[derive(Debug)]
pub struct OwnGitDir {
    /// The directory for notes about it.
    room: PathBuf,
    /// The directory itself.
    dir: PathBuf,
    /// The copy of the worktree's administrative entry.
    entry: PathBuf,
}

impl OwnGitDir {
    /// The own git directory in `room`; `None` if there is none, or if making it was interrupted.
    pub fn at(room: &Path) -> Option<OwnGitDir> {
        let name = regular::read_text(&room.join("entry")).ok()?;
        Some(OwnGitDir::in_room(room, &name))
    }

    fn in_room(room: &Path, entry: &str) -> OwnGitDir {
        let dir = room.join("git");
        let entry = dir.join("worktrees").join(entry);
        OwnGitDir { room: room.to_owned(), dir, entry }
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The copy of the worktree's administrative entry.
    pub fn entry(&self) -> &Path {
        &self.entry
    }

    /// The line about FIFOs, links and the like in the directory, which are not read; `None` if there are
    /// none.
    pub fn special_files(&self) -> Option<String> {
        let mut found: Vec<PathBuf> =
            files::special(&self.dir).iter().map(|path| self.dir.join(path)).collect();
        found.extend(files::special(&self.entry).iter().map(|path| self.entry.join(path)));
        let shown = found.iter().map(|path| path.display().to_string());
        let names: Vec<_> = shown.map(|path| format!("'{}'", path.escape_debug())).collect();
        let line = format!("not read, because it is not a regular file: {}", some_of(&names));
        (!found.is_empty()).then_some(line)
    }

    /// Notes the commits that could not be brought back.
    fn note_unread<'a>(&self, commits: impl Iterator<Item = &'a Oid>) -> Result<()> {
        let names: Vec<String> = commits.map(Oid::to_string).collect();
        let note = self.room.join(UNREAD);
        if names.is_empty() {
            return match fs::remove_file(&note) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            }
            .context(|| format!("could not delete '{}'", note.display()));
        }
        let dir = self.dir.display();
        let names = some_of(&names);
        let line = format!("commits that were not brought back, kept in '{dir}': {names}");
        atomic::write(&note, line.as_bytes())
    }

    /// Makes an own git directory in `room` for the worktree with the administrative entry `admin`. It
    /// replaces an earlier one; fails if that has commits that could not be brought back.
    pub fn make(repo: &Repo, admin: &Path, room: &Path) -> Result<OwnGitDir> {
        let failed = || format!("could not make a git directory in '{}'", room.display());
        let name = admin.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| Error::internal(failed()))?;
        if let Some(line) = unread(room) {
            return Err(Error::fatal(format!("an earlier command left {line}"))
                .hint(format!("repair it, or remove it for good: `rm -r {}`", room.display())));
        }
        tree::delete_tree(room).context(failed)?;
        let own = OwnGitDir::in_room(room, name);
        let refs = own_refs::of_repository(repo, admin)?;
        own.write(repo.common_dir(), admin, &refs)
            .and_then(|()| fs::write(room.join("entry"), name))
            .context(failed)?;
        Ok(own)
    }

    fn write(&self, common: &Path, admin: &Path, refs: &own_refs::GivenRefs) -> io::Result<()> {
        let OwnGitDir { dir, entry, .. } = self;
        for name in ["objects/info", "objects/pack", "refs/heads", "refs/tags", SHARED_OBJECTS] {
            fs::create_dir_all(dir.join(name))?;
        }
        fs::write(dir.join(ALTERNATES), format!("../{SHARED_OBJECTS}\n"))?;
        for name in COPIED_FILES {
            match regular::read(&common.join(name)) {
                Ok(bytes) => fs::write(dir.join(name), bytes)?,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        for name in COPIED_DIRECTORIES {
            files::copy(&common.join(name), &dir.join(name), |_| false)?;
        }
        files::copy(admin, entry, |path| {
            files::is_of_the_repository(path) || own_refs::is_saved(path)
        })?;
        for name in ["commondir", "gitdir", "config.worktree"] {
            if let Ok(bytes) = regular::read(&admin.join(name)) {
                fs::write(entry.join(name), bytes)?;
            }
        }
        fs::create_dir_all(self.room.join(STORE_OF_LFS))?;
        fs::create_dir_all(self.room.join(STORE_OF_LFS).with_extension("work"))?;
        fs::create_dir_all(entry.join("modules"))?;
        fs::create_dir_all(admin.join("modules"))?;
        own_refs::write(refs, admin, dir)?;
        fs::write(self.room.join("refs"), &refs.packed)
    }

    /// The mount for the store of git-lfs, to which `git add` writes. Files that commands add stay in this
    /// directory: a capture runs the filter again and so fills the repository's own store.
    fn writable_store(&self, common: &Path) -> Mount {
        let at = common.join(STORE_OF_LFS);
        let upper = self.room.join(STORE_OF_LFS);
        let lower = vec![at.clone()];
        let work = upper.with_extension("work");
        Mount::Overlay { at, lower, upper, work, is_optional: false }
    }

    /// The mounts by which commands see this directory in place of the common one. In it they can read the
    /// repository's objects, and directories that git does not know.
    pub fn mounts(&self, common: &Path) -> Result<Vec<Mount>> {
        let failed = || format!("could not list '{}'", common.display());
        let read_only = |at: PathBuf, from: &str| Mount::ReadOnly { at, from: common.join(from) };
        let modules = Path::new("worktrees").join(self.entry.file_name().unwrap_or_default());
        let modules = modules.join("modules");
        let mut mounts = vec![
            Mount::Directory { at: common.to_owned(), from: self.dir.clone() },
            read_only(common.join(SHARED_OBJECTS), "objects"),
            Mount::Directory { at: common.join(&modules), from: common.join(&modules) },
        ];
        for found in fs::read_dir(common).context(failed)? {
            let found = found.context(failed)?;
            let Ok(name) = found.file_name().into_string() else { continue };
            let is_known =
                LEFT_OUT.contains(&name.as_str()) || COPIED_DIRECTORIES.contains(&name.as_str());
            if is_known || !found.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            mounts.push(match name.as_str() {
                STORE_OF_LFS => self.writable_store(common),
                name => read_only(common.join(name), name),
            });
        }
        Ok(mounts)
    }

    /// Lets git find this directory from the worktree until [`worktree::connect`], without any mount. The
    /// objects of the repository are read at their own path; directories in `common` that git does not know
    /// are not shown.
    pub fn enter(&self, common: &Path, worktree: &Path) -> Result<()> {
        let file = self.dir.join(ALTERNATES);
        fs::write(&file, objects::alternates(common)?)
            .context(|| format!("could not write '{}'", file.display()))?;
        atomic::write(&worktree.join(".git"), &worktree::link_to(&self.entry))
    }
}
