//! Mirrors: bare repositories in the user's cache that stand for a remote repository. Parts of the
//! remote repository's runs are judged in a mirror, and attempts of these runs are made in a
//! mirror. Only one process at a time uses a mirror. A mirror is kept after its use, so that the
//! next process fetches only new objects.
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::error::{Cause, Error, IoContext, Result};
use crate::fs::lock::{self, Lock};
use crate::fs::tree;
use crate::git::repo::{Repo, digest};
use crate::ops::session::Session;
use crate::oracle::pool;
use crate::store::Store;
use crate::ui::Ui;

/// The time for which an unused mirror is kept.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The largest number of mirrors of one repository on one host.
const MOST_MIRRORS: u32 = 4096;

/// The use of a mirror. No mirror has both uses, because a mirror for attempts may hold the only
/// copy of an attempt until the attempt is pushed.
#[derive(Clone, Copy, Debug)]
pub enum MirrorUse {
    /// Parts of runs are judged in the mirror.
    Judging,
    /// Attempts are made in the mirror.
    Attempts,
}

impl MirrorUse {
    /// The directory with the mirrors for this use has a name that ends in this.
    fn suffix(self) -> &'static str {
        match self {
            MirrorUse::Judging => "",
            MirrorUse::Attempts => "-attempts",
        }
    }
}

/// Opens the repository in which to work with the remote `place`. If the repository of the current
/// directory has a remote called `place`, or if `here` is true, opens that repository. Otherwise
/// opens a mirror of `place`.
pub fn session_with(ui: Ui, place: &str, here: bool, kind: MirrorUse) -> Result<Session> {
    let found = match std::env::current_dir().map(|dir| Repo::discover(&dir)) {
        Ok(Ok(repo)) => Some(repo),
        Ok(Err(error)) if error.cause != Cause::NotFound && here => return Err(error),
        _ => None,
    };
    let is_named = found.as_ref().map_or(Ok(false), |repo| repo.has_remote(place))?;
    if is_named || here && found.is_some() {
        return Session::open(ui);
    }
    if !place.contains(['/', ':']) {
        return Err(match found {
            Some(_) => Error::fatal(format!("this repository has no remote '{place}'"))
                .hint("`git remote -v` lists its remotes; a URL or a path works as well"),
            None => Error::fatal(format!(
                "'{place}' is not a URL, and here is no repository whose remote it could be"
            ))
            .hint("write the URL: `git remote get-url NAME` shows it in the repository"),
        });
    }
    let (repo, lock) = open(place, kind)?;
    Session::in_mirror(ui, repo, lock)
}

/// Opens a mirror of the repository at a URL, and locks it for this process.
fn open(url: &str, kind: MirrorUse) -> Result<(Repo, Lock)> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // A relative path and an absolute path to one repository share their mirrors.
    let real = Path::new(url).canonicalize();
    let url = real.as_deref().map_or(url.as_bytes(), tree::path_bytes);
    let key = digest(&[host.as_bytes(), b" ", url].concat());
    let directory = pool::mirrors().join(format!("{}{}", &key[..16], kind.suffix()));
    for number in 1..=MOST_MIRRORS {
        let lock_file = directory.join(format!("{number}.lock"));
        let Some(lock) = lock::attempt(&lock_file)? else { continue };
        // The modification time of the lock file is the time of the last use.
        let touched = File::options().write(true).open(&lock_file);
        let _ = touched.and_then(|file| file.set_modified(SystemTime::now()));
        // A failure is ignored, because this command does not need the space of the unused mirrors.
        for mirror in idle(KEPT_FOR) {
            let _ = mirror.delete();
        }
        return Ok((open_at(&directory.join(format!("{number}.git")))?, lock));
    }
    Err(Error::fatal(format!("all {MOST_MIRRORS} mirrors in '{}' are in use", directory.display()))
        .hint("wait until other processes have ended"))
}

/// Opens the mirror at `path`. If it does not exist, or cannot be opened because a killed process
/// left it incomplete, creates it anew. If it cannot be opened but may hold an attempt, fails.
fn open_at(path: &Path) -> Result<Repo> {
    match Repo::open(path) {
        Ok(repo) => return Ok(repo),
        Err(error) if may_hold_attempts(path) => {
            let what = format!("could not open the mirror '{}': {error}", path.display());
            return Err(Error::fatal(what).hint(
                "it may hold attempts that are stored nowhere else: repair it, or move it away",
            ));
        }
        Err(_) => {}
    }
    tree::delete_tree(path).context(|| format!("could not remove '{}'", path.display()))?;
    Repo::make_bare(path)
}

/// An unused mirror. This value holds its lock, so no other process can use it.
pub struct IdleMirror {
    path: PathBuf,
    _lock: Lock,
}

impl IdleMirror {
    /// The disk space of the mirror, in bytes.
    pub fn disk_usage(&self) -> u64 {
        tree::disk_usage(&self.path)
    }

    /// Deletes the mirror. The next process that needs it creates it again.
    pub fn delete(self) -> Result<()> {
        let path = self.path.display();
        tree::delete_tree(&self.path).context(|| format!("could not delete '{path}'"))
    }
}

/// The mirrors whose last use is at least `unused_for` ago, except mirrors that hold the only copy
/// of an attempt.
pub fn idle(unused_for: Duration) -> Vec<IdleMirror> {
    let listed = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    let files = listed(&pool::mirrors()).flat_map(|directory| listed(&directory.path()));
    files
        .filter_map(|file| {
            let lock_file = file.path();
            let path = lock_file.with_extension("git");
            let is_lock = lock_file.extension().is_some_and(|extension| extension == "lock");
            let age = file.metadata().ok()?.modified().ok()?.elapsed().unwrap_or_default();
            if !is_lock || age < unused_for || !path.exists() {
                return None;
            }
            let lock = lock::attempt(&lock_file).ok()??;
            (!holds_attempt(&path).unwrap_or(true)).then_some(IdleMirror { path, _lock: lock })
        })
        .collect()
}

/// True if the mirror is for attempts and contains files or refs of git-frites. It may then have a
/// capture or a worktree.
fn may_hold_attempts(mirror: &Path) -> bool {
    let is_for_attempts = mirror.parent().is_some_and(|directory| {
        tree::path_bytes(directory).ends_with(MirrorUse::Attempts.suffix().as_bytes())
    });
    let states = [".frites", "refs/frites", "packed-refs"];
    is_for_attempts && states.iter().any(|state| mirror.join(state).exists())
}

/// True if the mirror has a candidate that was not cleaned. A candidate is cleaned once its capture
/// is pushed. Until then, the capture may be the only copy of the attempt.
fn holds_attempt(mirror: &Path) -> Result<bool> {
    let Ok(repo) = Repo::open(mirror) else { return Ok(may_hold_attempts(mirror)) };
    let store = Store::of(&Arc::new(repo));
    for run in store.runs()? {
        for candidate in store.candidates(&run) {
            if !candidate.record()?.cleaned {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
