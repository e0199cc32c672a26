//! A separate git directory for an attempt. While the attempt's command runs guarded
//! (`spawn.guard`), the worktree uses this directory in place of the repository's git directory.
//!
//! It has the repository's objects as alternates, copies of the repository's refs, configuration
//! and hooks, and a copy of the worktree's administrative entry. So every git command works in the
//! worktree, but cannot change the repository. A capture copies the attempt's work back to the
//! repository.
//!
//! It would not be enough to make the repository's `objects/` and some of its `refs/` writable for
//! the attempt. The attempt's `git gc` would delete objects whose refs it does not see. Also,
//! `git stash` and `git commit` must write to the directories of all refs.
mod bring_back;
mod files;
mod lfs;
pub mod modules;
mod objects;
mod own_refs;

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::error::{Error, IfExists, IoContext, Result};
use crate::fs::{atomic, regular, tree};
use crate::git::filters::STORE_OF_LFS;
use crate::git::repo::Repo;
use crate::git::{gc, ref_locks, worktree};
use crate::model::count::some_of;
use crate::model::oid::Oid;
use crate::process::world_spec::Mount;

pub(super) use files::{ids_in, named};

/// The file of a git directory that lists further object directories.
const ALTERNATES: &str = "objects/info/alternates";

/// The directory of an own git directory where the repository's objects are mounted.
const SHARED_OBJECTS: &str = "frites-objects";

/// The file in [`OwnGitDir::room`] with the commit to which [`OwnGitDir::bring_back`] last moved
/// the candidate's branch. During a move, it has the old commit and the new one.
const BRANCH: &str = "branch";

/// The file in [`OwnGitDir::room`] with the name of the administrative entry. It is made last and
/// deleted first. So if it exists, the directory is complete.
const ENTRY: &str = "entry";

/// The file in [`OwnGitDir::room`] that names the commits and files that could not be brought back.
const UNREAD: &str = "unread";

/// The directory of an administrative entry for the git directories of submodules.
pub const MODULES: &str = "modules";

/// The files of the common git directory that are copied to an own git directory.
const COPIED_FILES: [&str; 4] = ["HEAD", "config", "config.worktree", "shallow"];

/// The directories of the common git directory that are copied to an own git directory.
const COPIED_DIRECTORIES: [&str; 2] = ["hooks", "info"];

/// The entries of the common git directory that commands cannot see. An own git directory has its
/// own `objects`, `refs`, `logs` and `worktrees`. The other entries belong to the main worktree or
/// to git-frites.
const LEFT_OUT: &str = "objects refs logs worktrees rr-cache rebase-merge rebase-apply sequencer
    .frites frites-entry";

/// A line for people about the commits and files that could not be brought back. They are only in
/// the attempt's git directory. `None` if there are none. `room` is the directory of
/// [`OwnGitDir::make`].
pub fn unread(room: &Path) -> Option<String> {
    let note = room.join(UNREAD);
    // A note that cannot be read may be about lost commits.
    let text = text_of(&note);
    text.unwrap_or_else(|e| Some(format!("'{}', which cannot be read: {e}", note.display())))
}

/// The text of a file in the room of an own git directory; `None` if there is no file.
fn text_of(file: &Path) -> io::Result<Option<String>> {
    regular::read_text(file).if_exists()
}

/// Deletes the own git directory in `room`, if there is one. Deletes [`ENTRY`] first, so that a
/// half-deleted directory does not count as complete. A capture would think that the attempt
/// deleted the missing refs and files.
pub fn delete(room: &Path) -> Result<()> {
    let deleted = tree::delete_tree(&room.join(ENTRY)).and_then(|()| tree::delete_tree(room));
    deleted.could_not("delete", room)
}

/// Paths as messages show them.
fn shown(paths: &[PathBuf]) -> Vec<String> {
    let shown = paths.iter().map(|path| path.display().to_string());
    shown.map(|path| format!("'{}'", path.escape_debug())).collect()
}

/// An attempt's own git directory.
#[derive(Debug)]
pub struct OwnGitDir {
    /// The directory with `dir`, and with files about `dir` such as [`UNREAD`].
    room: PathBuf,
    /// The git directory.
    dir: PathBuf,
    /// The copy of the worktree's administrative entry.
    entry: PathBuf,
}

impl OwnGitDir {
    /// The own git directory in `room`. `None` if it does not exist. Also `None` if it is
    /// incomplete, because [`OwnGitDir::make`] or [`delete`] was interrupted.
    pub fn at(room: &Path) -> Result<Option<OwnGitDir>> {
        let entry = room.join(ENTRY);
        let name = text_of(&entry).could_not("read", &entry)?;
        Ok(name.map(|name| OwnGitDir::in_room(room, &name)))
    }

    fn in_room(room: &Path, entry: &str) -> OwnGitDir {
        let dir = room.join("git");
        let entry = dir.join("worktrees").join(entry);
        OwnGitDir { room: room.to_owned(), dir, entry }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn entry(&self) -> &Path {
        &self.entry
    }

    /// A line for people about FIFOs, links and the like in the directory, which are not read.
    /// `None` if there are none.
    pub fn special_files(&self) -> Option<String> {
        let dirs = [&self.dir, &self.entry];
        let found: Vec<PathBuf> = dirs.into_iter().flat_map(|dir| files::special(dir)).collect();
        let names = some_of(&shown(&found));
        let line = format!("not read, because it is not a regular file: {names}");
        (!found.is_empty()).then_some(line)
    }

    /// Writes a note about commits that could not be brought back, files that could not be read,
    /// and `submodules` with commits that are nowhere else. If there are none, deletes the note.
    fn note_unread<'a>(
        &self,
        commits: impl Iterator<Item = &'a Oid>,
        unread: &[PathBuf],
        submodules: Vec<String>,
    ) -> Result<()> {
        let names: Vec<String> = commits.map(Oid::to_string).collect();
        let dir = self.dir.display();
        let mut parts = submodules;
        if !names.is_empty() {
            let names = some_of(&names);
            parts.push(format!("commits that were not brought back, kept in '{dir}': {names}"));
        }
        if !unread.is_empty() {
            let names = some_of(&shown(unread));
            parts.push(format!("files that were not brought back: {names}"));
        }
        let note = self.room.join(UNREAD);
        if parts.is_empty() {
            let removed = fs::remove_file(&note).if_exists().map(drop);
            return removed.could_not("delete", &note);
        }
        atomic::write(&note, parts.join("; ").as_bytes())
    }

    /// The directories that hold git directories of submodules and are deleted with this directory.
    /// The submodules of the worktree itself are in its administrative entry in the repository.
    fn modules(&self) -> Vec<PathBuf> {
        let of_entry = self.entry.join(MODULES);
        let worktrees = self.dir.join("worktrees");
        let mut found = vec![self.dir.join(MODULES)];
        if files::is_directory(&worktrees) {
            let entries = fs::read_dir(&worktrees).into_iter().flatten().flatten();
            let entries = entries.map(|entry| entry.path()).filter(|at| files::is_directory(at));
            found.extend(entries.map(|entry| entry.join(MODULES)));
        }
        found.retain(|modules| *modules != of_entry || !modules.is_symlink());
        found
    }

    /// Makes an own git directory in `room` for the worktree with the administrative entry `admin`.
    /// Deletes an earlier one in `room`. Fails if the earlier one has commits that could not be
    /// brought back.
    pub fn make(repo: &Repo, admin: &Path, room: &Path) -> Result<OwnGitDir> {
        let failed = || format!("could not make a git directory in '{}'", room.display());
        let name = admin.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| Error::internal(failed()))?;
        if let Some(line) = unread(room) {
            return Err(Error::fatal(format!("an earlier command left {line}"))
                .hint(format!("repair it, or remove it for good: `rm -r {}`", room.display())));
        }
        delete(room)?;
        let own = OwnGitDir::in_room(room, name);
        let refs = own_refs::of_repository(repo, admin)?;
        own.write(repo.common_dir(), admin, &refs)
            .and_then(|()| fs::write(room.join(ENTRY), name))
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
            if let Some(bytes) = regular::read(&common.join(name)).if_exists()? {
                fs::write(dir.join(name), bytes)?;
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
        fs::create_dir_all(entry.join(MODULES))?;
        fs::create_dir_all(admin.join(MODULES))?;
        own_refs::write(refs, admin, dir)?;
        fs::write(self.room.join("refs"), &refs.packed)
    }

    /// The mount for the store of git-lfs, to which `git add` writes. Files that commands add to
    /// the store stay in `self.room` until they are brought back.
    fn writable_store(&self, common: &Path) -> Mount {
        let at = common.join(STORE_OF_LFS);
        let upper = self.room.join(STORE_OF_LFS);
        let lower = vec![at.clone()];
        let work = upper.with_extension("work");
        Mount::Overlay { at, lower, upper, work, is_optional: false }
    }

    /// The mounts that let commands see this directory at the path of the common git directory. Two
    /// things are mounted read-only below that path:
    ///
    /// - the repository's objects;
    /// - those directories of the common git directory that git does not know.
    pub fn mounts(&self, common: &Path) -> Result<Vec<Mount>> {
        let read_only = |at: PathBuf, from: &str| Mount::ReadOnly { at, from: common.join(from) };
        let modules = Path::new("worktrees").join(self.entry.file_name().unwrap_or_default());
        let modules = modules.join(MODULES);
        let mut mounts = vec![
            Mount::Directory { at: common.to_owned(), from: self.dir.clone() },
            read_only(common.join(SHARED_OBJECTS), "objects"),
            Mount::Directory { at: common.join(&modules), from: common.join(&modules) },
        ];
        for found in fs::read_dir(common).could_not("list", common)? {
            let found = found.could_not("list", common)?;
            let Ok(name) = found.file_name().into_string() else { continue };
            let is_known = [ref_locks::CHANGING, gc::PACKED]
                .into_iter()
                .chain(COPIED_DIRECTORIES)
                .chain(LEFT_OUT.split_whitespace())
                .any(|known| known == name);
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

    /// Writes the path of this directory to the worktree's `.git` file, for systems without mounts.
    /// Then git reads the repository's objects at their own path. Commands cannot see those
    /// directories in `common` that git does not know. [`worktree::connect`] undoes this.
    ///
    /// Returns the directory for the git directories of submodules. It is in the worktree's
    /// administrative entry `admin`, as with mounts, so that it stays when the attempt ends.
    pub fn enter(&self, common: &Path, admin: &Path, worktree: &Path) -> Result<PathBuf> {
        let link = self.entry.join(MODULES);
        let modules = admin.join(MODULES);
        fs::remove_dir(&link)
            .and_then(|()| symlink(&modules, &link))
            .could_not("replace", &link)?;
        let file = self.dir.join(ALTERNATES);
        fs::write(&file, objects::alternates(common)?).could_not("write", &file)?;
        atomic::write(&worktree.join(".git"), &worktree::link_to(&self.entry))?;
        Ok(modules)
    }
}
