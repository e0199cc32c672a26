//! Pristine checkouts: the tracked files of exactly one tree and the seeds, outside every checkout of the
//! repository.
//!
//! Outside, for build tools look upwards: `node_modules`, `.cargo/config.toml`, `go.work` and
//! `conftest.py` of the user's checkout must not leak into what a tree is judged by.
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, IoContext, Result};
use crate::fs::lock::{self, Lock};
use crate::fs::tree;
use crate::git::checkout::Pristine;
use crate::git::cli::{self, Git};
use crate::git::repo::Repo;
use crate::git::seed::find::Seeds;
use crate::git::worktree::{self, Head};
use crate::model::oid::Oid;
use crate::store::Store;

/// What our administrative entries are called, so that a killed judge's can be told from the user's.
const CHECKOUT_PREFIX: &str = "frites-judge-";

/// What the rooms are called.
const POOL_PREFIX: &str = "room-";

/// A directory in the user's cache that holds one process's checkouts, and goes with it.
pub struct CheckoutPool<'a> {
    store: &'a Store,
    dir: PathBuf,
    home: Option<PathBuf>,
    seeds: Seeds,
    warm: bool,
    /// Checkouts that nobody uses at the moment.
    idle: Mutex<Vec<Pristine>>,
    made: AtomicUsize,
    _lock: Lock,
}

/// One checkout, detached at a commit of its tree.
pub struct PooledCheckout {
    /// Its files.
    pub files: Pristine,
    /// Why it is not whole: a submodule at a commit that the user's checkout has not.
    pub problem: Option<String>,
}

impl<'a> CheckoutPool<'a> {
    /// Makes a room outside every checkout of the repository.
    pub fn open(repo: &Repo, store: &'a Store) -> Result<CheckoutPool<'a>> {
        let home = home(repo)?;
        fs::create_dir_all(&home).context(|| format!("could not make '{}'", home.display()))?;
        // A room appears locked: nobody sweeps between the two steps.
        let _repository = store.lock_repository()?;
        let dir = tempfile::Builder::new()
            .prefix(POOL_PREFIX)
            .tempdir_in(&home)
            .context(|| format!("could not use '{}'", home.display()))?;
        let lock = lock::wait(&dir.path().join("lock"))?;
        let (idle, made) = (Mutex::default(), AtomicUsize::default());
        let (home, seeds) = (None, Seeds::default());
        Ok(CheckoutPool {
            store,
            dir: dir.keep(),
            home,
            seeds,
            warm: false,
            idle,
            made,
            _lock: lock,
        })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The same, where each checkout gets the submodules of the user's checkout at `home`, and these seeds.
    #[must_use]
    pub fn with_seeds(mut self, home: Option<&Path>, seeds: Seeds) -> Self {
        (self.home, self.seeds) = (home.map(Path::to_owned), seeds);
        self
    }

    /// The same, where what git ignores stays from one tree to the next: faster, and no more pristine.
    #[must_use]
    pub fn warm(mut self, warm: bool) -> Self {
        self.warm = warm;
        self
    }

    /// Registers a worktree at `commit` without files.
    pub fn register(&self, repo: &Repo, commit: &Oid) -> Result<Pristine> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let path = self.dir.join(format!("{CHECKOUT_PREFIX}{number}"));
        let _repository = self.store.lock_repository()?;
        let admin = worktree::register(repo, &path, Head::Detached, commit)?;
        // git hands a sparse checkout's patterns on; without them all tracked files are there.
        match fs::remove_file(admin.join("info/sparse-checkout")) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(e).context(|| format!("could not prepare '{}'", admin.display()))
            }
            _ => Pristine::new(admin, path),
        }
    }

    /// Checks `commit` out: its tracked files, the submodules that the user's checkout has, and the room's
    /// seeds where the commit has nothing. Every tracked file that is written gets the current time, which
    /// build tools go by; seeds keep theirs, which are older.
    ///
    /// A checkout that was given back is used again, unless what commands did to it is past mending.
    pub fn acquire(&self, repo: &Repo, commit: &Oid) -> Result<PooledCheckout> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let again = idle.and_then(|files| self.fill(repo, commit, files).ok());
        again.map_or_else(|| self.fill(repo, commit, self.register(repo, commit)?), Ok)
    }

    fn fill(&self, repo: &Repo, commit: &Oid, mut files: Pristine) -> Result<PooledCheckout> {
        let filled = files.become_commit(commit, self.warm).and_then(|()| {
            let problem = export_submodules(repo, self.home.as_deref(), commit, &files.path)
                .err()
                .map(|e| e.message);
            self.seeds.put(&files.path).map(|_| problem)
        });
        match filled {
            Ok(problem) => Ok(PooledCheckout { files, problem }),
            Err(error) => {
                self.abandon(&files);
                Err(error)
            }
        }
    }

    /// Gives a checkout back, with all that commands left in it.
    pub fn release(&self, checkout: PooledCheckout) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(checkout.files);
    }

    /// Removes a worktree with all that commands left in it.
    pub fn discard(&self, files: &Pristine) -> Result<()> {
        worktree::discard(&self.dir, &files.path, Some(&files.admin)).map(drop)
    }

    /// The same; what cannot go, for something else is in its place, goes with the room.
    fn abandon(&self, files: &Pristine) {
        if self.discard(files).is_err() {
            let _ = worktree::discard(&self.dir, &self.dir.join("lost"), Some(&files.admin));
        }
    }
}

/// Whether a directory is such a checkout, of whichever process.
pub fn is_pristine(path: &Path) -> bool {
    let begins = |path: Option<&Path>, prefix: &[u8]| {
        path.and_then(Path::file_name).is_some_and(|name| name.as_bytes().starts_with(prefix))
    };
    begins(Some(path), CHECKOUT_PREFIX.as_bytes()) && begins(path.parent(), POOL_PREFIX.as_bytes())
}

impl Drop for CheckoutPool<'_> {
    fn drop(&mut self) {
        // What cannot go now (an entry still registered after an error) is swept by the next command.
        let idle = std::mem::take(self.idle.get_mut().unwrap_or_else(PoisonError::into_inner));
        idle.iter().for_each(|files| self.abandon(files));
        // Never through a link. The lock is held until the directory is gone, and with it the lock's name.
        let _ = tree::delete_tree(&self.dir);
    }
}

/// Removes the rooms of killed processes, with their administrative entries.
pub fn sweep(repo: &Repo, store: &Store) -> Result<()> {
    let Ok(home) = home(repo) else { return Ok(()) };
    let Ok(listing) = fs::read_dir(&home) else { return Ok(()) };
    let ours = |e: &fs::DirEntry| {
        e.file_name().as_bytes().starts_with(POOL_PREFIX.as_bytes())
            && e.file_type().is_ok_and(|t| t.is_dir())
    };
    let dirs: Vec<PathBuf> = listing.flatten().filter(ours).map(|e| e.path()).collect();
    if dirs.is_empty() {
        return Ok(());
    }
    let _repository = store.lock_repository()?;
    for dir in dirs {
        let Some(_lock) = lock::attempt(&dir.join("lock"))? else { continue };
        for admin in worktree::entries(repo)? {
            let inside = worktree::points_to(&admin).is_some_and(|p| p.starts_with(&dir));
            let damaged = worktree::points_to(&admin).is_none()
                && admin
                    .file_name()
                    .is_some_and(|n| n.as_bytes().starts_with(CHECKOUT_PREFIX.as_bytes()));
            if inside || damaged {
                worktree::discard(&dir, &dir.join("swept"), Some(&admin))?;
            }
        }
        tree::delete_tree(&dir).context(|| format!("could not delete '{}'", dir.display()))?;
    }
    Ok(())
}

/// Where this repository's rooms and known outcomes are: the user's cache directory, or the temporary one when that lies in
/// a checkout of the repository (a home directory under version control).
pub fn home(repo: &Repo) -> Result<PathBuf> {
    let checkouts = worktree::checkouts(repo)?;
    let mut places: Vec<PathBuf> = Vec::new();
    if let Some(dir) =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute())
    {
        places.push(dir);
    } else if let Some(home) =
        std::env::var_os("HOME").map(PathBuf::from).filter(|p| p.is_absolute())
    {
        places.push(home.join(if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" }));
    }
    places.push(std::env::temp_dir());
    let outside = |place: &PathBuf| {
        let real = tree::nearest_real(place);
        !checkouts.iter().any(|root| real.starts_with(root))
    };
    let place = places.into_iter().find(outside).ok_or_else(|| {
        Error::fatal(
            "the cache directory and the temporary directory both lie inside this repository's checkout",
        )
        .hint("set XDG_CACHE_HOME to a directory outside it")
    })?;
    Ok(tree::nearest_real(&place).join("git-frites").join(repo.key()))
}

/// The submodules of a commit that the user's checkout at `home` has initialised, and those within them: their
/// paths, and the commits that the judged tree names. What holds others comes before them.
pub fn submodules(repo: &Repo, home: Option<&Path>, commit: &Oid) -> Result<Vec<(PathBuf, Oid)>> {
    let Some(home) = home else { return Ok(Vec::new()) };
    if repo.file(&repo.commit(commit)?.tree, ".gitmodules")?.is_none() {
        return Ok(Vec::new());
    }
    let mut found = submodules_of(&repo.git(), commit, home, Path::new(""))?;
    let mut at = 0;
    while let Some((path, commit)) = found.get(at).cloned() {
        let directory = home.join(&path);
        if directory.join(".gitmodules").exists() {
            found.extend(submodules_of(&Git::at(&directory.join(".git")), &commit, home, &path)?);
        }
        at += 1;
    }
    Ok(found)
}

/// The same of one repository, whose directory is `within` that checkout; none where it has no such commit.
fn submodules_of(
    git: &Git,
    commit: &Oid,
    home: &Path,
    within: &Path,
) -> Result<Vec<(PathBuf, Oid)>> {
    let listing = git.call("ls-tree").args(["-r", "-z", commit.as_str()]).output()?.stdout;
    let mut found = Vec::new();
    for record in cli::nul_separated(&listing) {
        let Some(rest) = record.strip_prefix(b"160000 commit ") else { continue };
        let Some(tab) = rest.iter().position(|b| *b == b'\t') else { continue };
        let wanted = std::str::from_utf8(&rest[..tab]).ok().and_then(Oid::parse);
        let path = within.join(OsStr::from_bytes(&rest[tab + 1..]));
        if let Some(wanted) = wanted.filter(|_| home.join(&path).join(".git").exists()) {
            found.push((path, wanted));
        }
    }
    Ok(found)
}

/// Fills the directories of these submodules.
fn export_submodules(repo: &Repo, home: Option<&Path>, commit: &Oid, into: &Path) -> Result<()> {
    let Some(root) = home else { return Ok(()) };
    for (path, wanted) in submodules(repo, home, commit)? {
        worktree::export(&root.join(&path).join(".git"), &wanted, &into.join(&path)).map_err(
            |e| {
                let (path, wanted) = (path.display(), wanted.short());
                e.context(format!("your checkout of the submodule '{path}' has no commit {wanted}"))
            },
        )?;
    }
    Ok(())
}
