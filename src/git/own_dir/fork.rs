//! A worktree that is a repository of its own: its `.git` is a directory, with the repository's
//! objects as alternates. The repository knows it as a linked worktree all the same.
//!
//! The state of its branch, HEAD and index is in both places. A capture brings it back; a landing
//! into the candidate gives it to the fork.
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, IoContext, Result};
use crate::fs::tree::{self, path_bytes};
use crate::fs::{atomic, regular};
use crate::git::own_dir::mark::{MARK, is_fork};
use crate::git::own_dir::{ALTERNATES, BRANCH, OwnGitDir, files};
use crate::git::repo::{Repo, digest};
use crate::git::worktree::Worktree;
use crate::model::refname::RefName;

/// The directory in which a fork's git directory is put together.
const STAGE: &str = ".git-frites-new";

/// The files of a fork's git directory that belong to the state of a worktree, beside those whose
/// names end in `HEAD`.
const OF_A_WORKTREE: [&str; 7] =
    ["index", "logs", "rebase-merge", "rebase-apply", "sequencer", "MERGE_MSG", "AUTO_MERGE"];

/// Makes a worktree, whose files and index are there, a fork. `room` is the directory for notes.
pub fn make(repo: &Repo, worktree: &Worktree, branch: &RefName, room: &Path) -> Result<()> {
    let Worktree { path, admin, .. } = worktree;
    let failed = || format!("could not make '{}' a repository", path.display());
    let tip = repo.read_ref(branch)?.ok_or_else(|| Error::internal(failed()))?;
    tree::delete_tree(room).context(failed)?;
    fs::create_dir_all(room).context(failed)?;
    let line = format!("{tip} {branch}\n");
    let stage = path.join(STAGE);
    write(repo.common_dir(), admin, &stage, &line).context(failed)?;
    let config = stage.join("config");
    let set = |words: &[&str]| {
        repo.git().call("config").arg("--file").arg(&config).args(words).output().map(drop)
    };
    set(&["--unset-all", "core.worktree"])?;
    set(&["core.bare", "false"])?;
    fs::write(room.join("refs"), line).context(failed)?;
    fs::remove_file(path.join(".git"))
        .and_then(|()| fs::rename(&stage, path.join(".git")))
        .context(failed)?;
    let own = OwnGitDir::at(room, path).ok_or_else(|| Error::internal(failed()))?;
    own.note_state(repo, admin, branch)
}

fn write(common: &Path, admin: &Path, dir: &Path, refs: &str) -> io::Result<()> {
    for name in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
        fs::create_dir_all(dir.join(name))?;
    }
    fs::write(dir.join(ALTERNATES), alternates(common))?;
    for name in ["config", "shallow"] {
        match regular::read(&common.join(name)) {
            Ok(bytes) => fs::write(dir.join(name), bytes)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    files::copy(&common.join("hooks"), &dir.join("hooks"), |_| false)?;
    files::copy(&common.join("info"), &dir.join("info"), |_| false)?;
    // Hidden in the entry, because the repository has its own.
    for name in ["config.worktree", "info/sparse-checkout"] {
        if let Ok(bytes) = regular::read(&admin.join(name)) {
            fs::write(dir.join(name), bytes)?;
        }
    }
    files::copy(admin, dir, |path| {
        files::is_of_the_repository(path) || path.starts_with("refs") || path.starts_with("info")
    })?;
    fs::write(dir.join("packed-refs"), refs)?;
    fs::write(dir.join(MARK), [path_bytes(admin), b"\n"].concat())
}

fn alternates(common: &Path) -> Vec<u8> {
    [path_bytes(&common.join("objects")), b"\n"].concat()
}

/// Writes a fork's list of object directories again if something else took its place, so that git
/// works there.
pub(super) fn heal_alternates(repo: &Repo, dir: &Path) -> Result<()> {
    let file = dir.join(ALTERNATES);
    let is_file = fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file());
    let is_ours = |name: &str| files::is_directory(&dir.join(name));
    if is_file || !is_ours("objects") || !is_ours("objects/info") || files::is_directory(&file) {
        return Ok(());
    }
    atomic::write(&file, &alternates(repo.common_dir()))
}

/// True if a path in a fork's git directory, relative to it, is not part of a worktree's state.
pub(super) fn is_of_the_fork(path: &Path) -> bool {
    let first = path.components().next().map(|first| first.as_os_str().to_string_lossy());
    let first = first.unwrap_or_default();
    !(OF_A_WORKTREE.contains(&first.as_ref()) || first.ends_with("HEAD"))
        || path.starts_with("logs/refs")
        || files::is_of_the_repository(path)
}

impl OwnGitDir {
    /// The fork in this worktree; none if it is a linked one.
    pub(super) fn fork(room: &Path, worktree: &Path) -> Option<OwnGitDir> {
        let dir = worktree.join(".git");
        is_fork(worktree).then(|| OwnGitDir {
            room: room.to_owned(),
            entry: dir.clone(),
            dir,
            is_fork: true,
        })
    }

    /// The state of the branch, HEAD and index in the repository.
    fn state(&self, repo: &Repo, admin: &Path, branch: &RefName) -> Result<String> {
        let read = |name: &str| regular::read(&admin.join(name)).unwrap_or_default();
        let tip = repo.read_ref(branch)?.map(String::from).unwrap_or_default();
        let all = [tip.as_bytes(), &read("HEAD"), &read("index")];
        Ok(all.map(digest).join("\n"))
    }

    /// Notes the state that the repository and the fork both have.
    pub(super) fn note_state(&self, repo: &Repo, admin: &Path, branch: &RefName) -> Result<()> {
        atomic::write(&self.room.join("state"), self.state(repo, admin, branch)?.as_bytes())
    }

    /// True if somebody has changed the branch, HEAD or index in the repository since they were the
    /// same there and in the fork, as a landing into the candidate does.
    pub(super) fn has_moved(&self, repo: &Repo, admin: &Path, branch: &RefName) -> Result<bool> {
        let noted = regular::read_text(&self.room.join("state"));
        let now = self.state(repo, admin, branch)?;
        Ok(noted.is_ok_and(|noted| noted != now))
    }

    /// Gives the fork the branch, HEAD and index of the repository.
    pub(super) fn give(&self, repo: &Repo, admin: &Path, branch: &RefName) -> Result<()> {
        let mut state: BTreeMap<PathBuf, Vec<u8>> = files::read(admin, is_of_the_fork);
        if let Some(tip) = repo.read_ref(branch)? {
            state.insert(branch.as_str().into(), format!("{tip}\n").into_bytes());
            atomic::write(&self.room.join(BRANCH), tip.as_str().as_bytes())?;
        }
        let failed = || format!("could not write to '{}'", self.dir.display());
        files::write(&self.dir, &state).context(failed)?;
        self.note_state(repo, admin, branch)
    }
}
