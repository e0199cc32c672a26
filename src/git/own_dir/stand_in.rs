//! A git directory of an attempt's own where nothing can be mounted: the worktree's `.git` file names it
//! while a command runs.
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::error::{Error, IoContext, Result};
use crate::fs::atomic;
use crate::fs::tree::path_bytes;
use crate::git::own_dir::{ALTERNATES, COPIED_DIRECTORIES, LEFT_OUT, OwnGitDir, STORE_OF_LFS};
use crate::git::worktree;

impl OwnGitDir {
    /// Lets git find this directory from the worktree until [`OwnGitDir::leave`], without any mount. The
    /// objects of the repository, and directories in `common` that git does not know, are read where
    /// they lie.
    pub fn enter(&self, common: &Path, worktree: &Path) -> Result<()> {
        if path_bytes(common).contains(&b'\n') {
            return Err(Error::fatal("a path of the repository has a line break in it")
                .hint("move the repository, or set `spawn.guard` to off"));
        }
        self.show(common).context(|| format!("could not write to '{}'", self.dir.display()))?;
        atomic::write(&worktree.join(".git"), &worktree::link_to(&self.entry))
    }

    fn show(&self, common: &Path) -> io::Result<()> {
        let objects = common.join("objects");
        fs::write(self.dir.join(ALTERNATES), [path_bytes(&objects), b"\n"].concat())?;
        for found in fs::read_dir(common)? {
            let (name, path) = found.map(|found| (found.file_name(), found.path()))?;
            let is_known = LEFT_OUT.iter().chain(&COPIED_DIRECTORIES).any(|known| *known == name);
            if !is_known && name != STORE_OF_LFS && path.is_dir() {
                symlink(path, self.dir.join(name))?;
            }
        }
        Ok(())
    }

    /// Lets git find the repository from the worktree again, if its `.git` file names this directory.
    /// `admin` is the worktree's administrative entry there.
    pub fn leave(&self, worktree: &Path, admin: &Path) -> Result<()> {
        if self.is_fork || worktree::named_by(worktree).as_ref() != Some(&self.entry) {
            return Ok(());
        }
        atomic::write(&worktree.join(".git"), &worktree::link_to(admin))
    }
}
