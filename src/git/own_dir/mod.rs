//! A git directory of an attempt's own: a linked worktree sees it in place of the repository's
//! while a guarded command runs.
//!
//! It has the repository's objects as alternates, a copy of its refs, configuration and hooks, and
//! a copy of the worktree's administrative entry. So every git command works there, and none
//! reaches the repository. What the attempt made is brought back when it is captured.
mod bring_back;
mod files;
mod objects;
mod own_refs;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, IoContext, Result};
use crate::fs::regular;
use crate::fs::tree;
use crate::git::repo::Repo;
use crate::process::world_spec::Mount;

pub(super) use own_refs::saved;

/// The place of the repository's objects in an own git directory.
const SHARED_OBJECTS: &str = "frites-objects";

/// The files of the common git directory that are copied.
const COPIED_FILES: [&str; 4] = ["HEAD", "config", "config.worktree", "shallow"];

/// The directories of the common git directory that are copied.
const COPIED_DIRECTORIES: [&str; 2] = ["hooks", "info"];

/// The directories that are made anew, and those that belong to the main worktree or to git-frites.
const LEFT_OUT: [&str; 11] = [
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
    "frites-deleting",
];

/// An attempt's own git directory.
#[derive(Debug)]
pub struct OwnGitDir {
    /// The directory that holds it and the notes about it.
    room: PathBuf,
    /// The name of the worktree's administrative entry.
    entry: String,
}

impl OwnGitDir {
    /// The one that lies in this directory; none if there is none, or if making it was interrupted.
    pub fn at(room: &Path) -> Option<OwnGitDir> {
        let entry = regular::read_text(&room.join("entry")).ok()?;
        Some(OwnGitDir { room: room.to_owned(), entry })
    }

    /// Makes one in the directory `room`, in place of what is there, for the worktree with the
    /// administrative entry `admin`.
    pub fn make(repo: &Repo, admin: &Path, room: &Path) -> Result<OwnGitDir> {
        let failed = || format!("could not make a git directory in '{}'", room.display());
        let name = admin.file_name().and_then(|name| name.to_str());
        let entry = name.ok_or_else(|| Error::internal(failed()))?.to_owned();
        tree::delete_tree(room).context(failed)?;
        let own = OwnGitDir { room: room.to_owned(), entry };
        let refs = own_refs::of_repository(repo, admin)?;
        own.write(repo.common_dir(), admin, &refs).context(failed)?;
        Ok(own)
    }

    fn write(&self, common: &Path, admin: &Path, refs: &own_refs::GivenRefs) -> io::Result<()> {
        let dir = self.dir();
        for name in ["objects/info", "objects/pack", "refs/heads", "refs/tags", SHARED_OBJECTS] {
            fs::create_dir_all(dir.join(name))?;
        }
        fs::write(dir.join("objects/info/alternates"), format!("../{SHARED_OBJECTS}\n"))?;
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
        files::copy(admin, &self.entry(), |path| {
            files::is_of_the_repository(path) || own_refs::is_saved(path)
        })?;
        for name in ["commondir", "gitdir", "config.worktree"] {
            if let Ok(bytes) = regular::read(&admin.join(name)) {
                fs::write(self.entry().join(name), bytes)?;
            }
        }
        fs::create_dir_all(self.entry().join("modules"))?;
        fs::create_dir_all(admin.join("modules"))?;
        own_refs::write(refs, admin, &dir)?;
        fs::write(self.room.join("refs"), &refs.packed)?;
        fs::write(self.room.join("entry"), &self.entry)
    }

    /// The directory itself.
    pub fn dir(&self) -> PathBuf {
        self.room.join("git")
    }

    /// The copy of the worktree's administrative entry.
    fn entry(&self) -> PathBuf {
        self.dir().join("worktrees").join(&self.entry)
    }

    /// The mounts by which commands see this directory in place of the common one. The repository's
    /// objects, and directories that git does not know (of git-lfs and the like), can be read there.
    pub fn mounts(&self, common: &Path) -> Result<Vec<Mount>> {
        let failed = || format!("could not list '{}'", common.display());
        let read_only = |at: PathBuf, from: &str| Mount::ReadOnly { at, from: common.join(from) };
        let modules = Path::new("worktrees").join(&self.entry).join("modules");
        let mut mounts = vec![
            Mount::Directory { at: common.to_owned(), from: self.dir() },
            read_only(common.join(SHARED_OBJECTS), "objects"),
            Mount::Directory { at: common.join(&modules), from: common.join(&modules) },
        ];
        for found in fs::read_dir(common).context(failed)? {
            let found = found.context(failed)?;
            let Ok(name) = found.file_name().into_string() else { continue };
            let is_known =
                LEFT_OUT.contains(&name.as_str()) || COPIED_DIRECTORIES.contains(&name.as_str());
            if !is_known && found.file_type().is_ok_and(|kind| kind.is_dir()) {
                mounts.push(read_only(common.join(&name), &name));
            }
        }
        Ok(mounts)
    }
}
