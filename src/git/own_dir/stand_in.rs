//! A git directory of an attempt's own where nothing can be mounted: the worktree's `.git` file names it
//! while a command runs.
use std::fs;
use std::path::Path;

use crate::error::{Error, IoContext, Result};
use crate::fs::atomic;
use crate::fs::tree::path_bytes;
use crate::git::own_dir::{ALTERNATES, OwnGitDir};
use crate::git::worktree;

impl OwnGitDir {
    /// Lets git find this directory from the worktree until [`OwnGitDir::leave`], without any mount. The
    /// objects of the repository are read where they lie; directories in `common` that git does not know
    /// are not shown.
    pub fn enter(&self, common: &Path, worktree: &Path) -> Result<()> {
        if path_bytes(common).contains(&b'\n') {
            return Err(Error::fatal("a path of the repository has a line break in it")
                .hint("move the repository, or set `spawn.guard` to off"));
        }
        let file = self.dir.join(ALTERNATES);
        fs::write(&file, [path_bytes(&common.join("objects")), b"\n"].concat())
            .context(|| format!("could not write '{}'", file.display()))?;
        atomic::write(&worktree.join(".git"), &worktree::link_to(&self.entry))
    }

    /// Lets git find the repository from the worktree again, if its `.git` file names this directory.
    /// `admin` is the worktree's administrative entry there.
    pub fn leave(&self, worktree: &Path, admin: &Path) -> Result<()> {
        if worktree::named_by(worktree).as_ref() != Some(&self.entry) {
            return Ok(());
        }
        atomic::write(&worktree.join(".git"), &worktree::link_to(admin))
    }
}
