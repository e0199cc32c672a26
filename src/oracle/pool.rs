//! Makes judge checkouts in plain directories. Each of them has the tracked files of exactly one
//! tree and the seeds, and is outside of every other checkout of the repository.
//!
//! Judge checkouts are outside of the user's checkout, because build tools search parent
//! directories. `node_modules`, `.cargo/config.toml`, `go.work` and `conftest.py` of the user's
//! checkout must not affect the results. Each tree gets a new checkout in a parent directory of its
//! own with a random name. So code under test can neither guess the path of another checkout nor
//! leave files for the next one.
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, IfExists, IoContext, Result};
use crate::fs::lock::{self, Lock};
use crate::fs::removals::Removals;
use crate::fs::trash::{self, Bin};
use crate::fs::tree;
use crate::git::cli::{self, Git};
use crate::git::fan_out;
use crate::git::file_times::FileTimes;
use crate::git::layers::written::{CompleteIndex, wait_for_next_step};
use crate::git::registration;
use crate::git::repo::Repo;
use crate::git::seed::find::Seeds;
use crate::git::worktree::{self, Worktree};
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::store::Store;
use crate::world::user_directories::variable;

/// The prefix of the names of our worktrees' administrative entries. By this prefix, git-frites
/// distinguishes the entries of killed processes from entries of the user.
pub(super) const CHECKOUT_PREFIX: &str = "frites-judge-";

/// The name of a checkout in its room. A room is a directory that is made for one checkout.
const CHECKOUT: &str = "frites-judge-tree";

/// The prefix of a room's name. A room that an older git-frites made may contain several checkouts;
/// it is removed in the same way.
pub const ROOM_PREFIX: &str = "room-";

/// The prefix of the names of private directories for commands under Landlock, next to the
/// repositories' directories. They are in the cache, because attempts can write to the system's
/// directory for temporary files while other trees are judged. Tests make Unix sockets in them, and
/// the path of a socket must be short, so they are not in a repository's directory.
pub const OWN_PREFIX: &str = "own-";

/// The name of our directory in the user's cache directory.
const OURS: &str = "git-frites";

/// The name of the directory of cached outcomes, next to the rooms.
pub const OUTCOMES: &str = "outcomes";

/// The name of the directory that has the rooms of sealed worlds, in a repository's directory in
/// the cache.
pub const WORLDS: &str = "worlds";

/// The name of the directory of the bases' layers, next to the rooms.
pub const LAYERS: &str = "layers";

/// The name of the lock file in a room, and in a private directory.
pub(super) const ROOM_LOCK: &str = "lock";

/// Makes judge checkouts in the user's cache.
pub struct Checkouts<'a> {
    store: &'a Store,
    /// This repository's directory in the cache, which holds the rooms.
    pub dir: PathBuf,
    home: Option<PathBuf>,
    seeds: Seeds,
}

/// A room: the parent directory of one checkout. It contains only the checkout and a lock file.
/// When this is dropped, the room is deleted in the background. git-frites waits for the deletion
/// only before it exits.
#[derive(Debug)]
pub struct CheckoutRoom {
    /// The room's directory.
    pub dir: PathBuf,
    /// The lock of the room, which is held until the room is deleted.
    lock: Option<Lock>,
    /// The checkout, once it was moved to the trash.
    trash: Option<Bin>,
    removals: Arc<Removals>,
}

/// A worktree in a room of its own. When this is dropped, the room is removed with all files that
/// commands left there.
pub struct RoomedWorktree {
    pub worktree: Worktree,
    room: CheckoutRoom,
}

/// The tree of one commit, checked out in a worktree of its own. HEAD is detached at this commit.
pub struct PlainCheckout {
    place: RoomedWorktree,
    index: CompleteIndex,
    /// The device and inode of the directory, by which git-frites detects that it was replaced.
    identity: (u64, u64),
    /// The reason why the checkout is incomplete, e.g. that the user's checkout does not have the
    /// commit of a submodule; `None` if it is complete.
    pub problem: Option<String>,
}

impl<'a> Checkouts<'a> {
    /// Prepares to make judge checkouts in a directory outside of every checkout of the repository.
    pub fn open(store: &'a Store) -> Result<Checkouts<'a>> {
        let dir = home(store.repo())?;
        make(&dir)?;
        Ok(Checkouts { store, dir, home: None, seeds: Seeds::default() })
    }

    /// Each checkout gets these seeds, and the submodules of the user's checkout at `home`.
    #[must_use]
    pub fn with_seeds(mut self, home: Option<&Path>, seeds: Seeds) -> Self {
        self.home = home.map(Path::to_owned);
        self.seeds = seeds;
        self
    }

    /// Registers a worktree at `commit`, in a room of its own, without files.
    pub fn register(&self, commit: &Oid) -> Result<RoomedWorktree> {
        let repo = self.store.repo();
        let _repository = self.store.lock_repository()?;
        let room = CheckoutRoom::make(self.store, &self.dir)?;
        let path = room.dir.join(CHECKOUT);
        let registered = registration::register_detached(repo, &path, commit);
        let worktree = registered.inspect_err(|_| {
            // A killed git may have left an incomplete entry, about which every `git fsck` would
            // complain.
            let _ = remove_entries(repo, &room.dir);
        })?;
        // git copies the patterns of the user's sparse checkout. Delete them, so that all tracked
        // files are checked out.
        fs::remove_file(worktree.admin.join("info/sparse-checkout"))
            .if_exists()
            .could_not("prepare", &worktree.admin)?;
        Ok(RoomedWorktree { worktree, room })
    }

    /// A checkout of `commit`. It has the tracked files, the submodules that the user's checkout
    /// has, and the seeds at paths that the commit does not have. Every tracked file gets the
    /// current time, because build tools decide by file times which outputs are out of date. Seeds
    /// keep their own, older times.
    pub fn acquire(&self, commit: &Oid) -> Result<PlainCheckout> {
        let repo = self.store.repo();
        let place = self.register(commit)?;
        let path = &place.worktree.path;
        let index = place.worktree.index();
        fan_out::check_out(repo, commit, path, &index, FileTimes::Current)?;
        let exported = export_submodules(repo, self.home.as_deref(), commit, path);
        let problem = exported.err().map(|e| e.message);
        self.seeds.place(path)?;
        let index = CompleteIndex::hand_out(&index).could_not("prepare", path)?;
        let identity = identity(path).could_not("prepare", path)?;
        wait_for_next_step(&place.room.dir).could_not("prepare", path)?;
        Ok(PlainCheckout { place, index, identity, problem })
    }
}

impl PlainCheckout {
    /// The checkout's directory.
    pub fn path(&self) -> &Path {
        &self.place.worktree.path
    }

    /// The tracked files that commands have changed, sorted. If the directory was replaced, returns
    /// all tracked files.
    pub fn changed(&self) -> Result<Vec<TreePath>> {
        match identity(self.path()) {
            Ok(now) if now == self.identity => {
                self.index.changed_in(&self.place.worktree.git(), self.path())
            }
            _ => self.index.paths(),
        }
    }
}

impl Drop for RoomedWorktree {
    fn drop(&mut self) {
        // If this fails, e.g. because the administrative entry cannot be moved, the next git-frites
        // command removes the room.
        let set_aside = self.worktree.set_aside(&self.room.dir).or_else(|_| {
            // Something else is at the worktree's path now. It is removed together with the room.
            self.worktree.path = self.room.dir.join("lost");
            self.worktree.set_aside(&self.room.dir)
        });
        self.room.trash = set_aside.ok();
    }
}

/// The device and inode of a directory. Fails if the path is a symbolic link.
fn identity(directory: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::symlink_metadata(directory)?;
    if meta.is_dir() {
        Ok((meta.dev(), meta.ino()))
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

impl CheckoutRoom {
    /// Makes a room, with a random name, that only this user can read. The caller holds the
    /// repository's lock, so that no other process removes the room before it is locked.
    fn make(store: &Store, parent: &Path) -> Result<CheckoutRoom> {
        let made = tempfile::Builder::new().prefix(ROOM_PREFIX).tempdir_in(parent);
        let dir = made.could_not("use", parent)?.keep();
        let lock = lock::wait(&dir.join(ROOM_LOCK))?;
        Ok(CheckoutRoom { dir, lock: Some(lock), trash: None, removals: store.removals().clone() })
    }

    /// Makes a room for a sealed world. `home` is the repository's directory in the cache.
    pub fn sealed(store: &Store, home: &Path) -> Result<CheckoutRoom> {
        let worlds = home.join(WORLDS);
        make(&worlds)?;
        let _repository = store.lock_repository()?;
        CheckoutRoom::make(store, &worlds)
    }
}

impl Drop for CheckoutRoom {
    fn drop(&mut self) {
        let (dir, lock) = (std::mem::take(&mut self.dir), self.lock.take());
        let trash = self.trash.take();
        self.removals.start(move || {
            let is_watched = trash.is_some();
            // The checkout is deleted first. If a part of it cannot be deleted, that part stays in
            // the trash. It has the checkout's name there, so it is not taken for a foreign file.
            let _ = trash.map(Bin::delete);
            if is_watched && has_foreign_files(&dir) {
                // The room stays, because the watch over the judged commands has to find and remove
                // the foreign files. The next git-frites command removes the room.
                let _ = fs::remove_file(dir.join(ROOM_LOCK));
            } else {
                // This does not follow links. If it fails, the next git-frites command removes the
                // room.
                let _ = tree::delete_tree(&dir);
            }
            drop(lock);
        });
    }
}

/// True if git-frites makes files or directories with this name in a room. Also true for a file in
/// place of a checkout. A command may replace its own checkout, because this does not influence
/// other checkouts.
pub fn belongs_in_room(name: &OsStr, is_dir: bool) -> bool {
    let begins = |prefix: &str| name.as_bytes().starts_with(prefix.as_bytes());
    begins(CHECKOUT_PREFIX) || if is_dir { begins(trash::PREFIX) } else { name == ROOM_LOCK }
}

fn has_foreign_files(room: &Path) -> bool {
    fs::read_dir(room).into_iter().flatten().flatten().any(|entry| {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        !belongs_in_room(&entry.file_name(), is_dir)
    })
}

/// True if a directory is a judge checkout of any process.
pub fn is_pool_checkout(path: &Path) -> bool {
    let begins = |path: Option<&Path>, prefix: &[u8]| {
        path.and_then(Path::file_name).is_some_and(|name| name.as_bytes().starts_with(prefix))
    };
    begins(Some(path), CHECKOUT_PREFIX.as_bytes()) && begins(path.parent(), ROOM_PREFIX.as_bytes())
}

/// Removes the rooms and private directories of killed processes, and the administrative entries of
/// their checkouts. Returns a message for each room that cannot be removed, e.g. because commands
/// left files of another user there.
pub fn sweep(repo: &Repo, store: &Store) -> Result<Vec<String>> {
    places().iter().for_each(|place| sweep_private(&place.join(OURS)));
    // Usually there are no rooms. Then `home`, which is slower, need not be called.
    if places().iter().all(|place| all_rooms(&home_in(place, repo)).is_empty()) {
        return Ok(Vec::new());
    }
    let Ok(home) = home(repo) else { return Ok(Vec::new()) };
    let _repository = store.lock_repository()?;
    let kept = all_rooms(&home).into_iter().filter_map(|dir| sweep_room(repo, &dir).err());
    Ok(kept.map(|e| format!("{}; every command tries again", e.message)).collect())
}

/// Removes the private directories that killed processes of this user left.
fn sweep_private(place: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let lock = entry.path().join(ROOM_LOCK);
        let is_own = entry.file_name().as_bytes().starts_with(OWN_PREFIX.as_bytes())
            && entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == user)
            // A process makes the lock file right after the directory, and locks it at once.
            && lock.is_file();
        if is_own && let Ok(Some(_lock)) = lock::attempt(&lock) {
            let _ = tree::delete_tree(&entry.path());
        }
    }
}

/// Removes a room if its process does not run any more.
fn sweep_room(repo: &Repo, dir: &Path) -> Result<()> {
    let Some(_lock) = lock::attempt(&dir.join(ROOM_LOCK))? else { return Ok(()) };
    remove_entries(repo, dir)?;
    tree::delete_tree(dir).could_not("delete", dir)
}

/// Removes the administrative entries of checkouts in a room, and incomplete entries of judge
/// checkouts in any room. The caller holds the repository's lock, so that no process is making an
/// entry at this moment.
fn remove_entries(repo: &Repo, dir: &Path) -> Result<()> {
    for admin in worktree::entries(repo)? {
        let is_removed = match worktree::points_to(&admin) {
            None => admin
                .file_name()
                .is_some_and(|n| n.as_bytes().starts_with(CHECKOUT_PREFIX.as_bytes())),
            Some(git_file) => git_file.starts_with(dir),
        };
        if is_removed {
            Worktree::at(repo, &dir.join("swept"), admin).set_aside(dir)?.delete()?;
        }
    }
    Ok(())
}

/// The rooms of all processes, including the rooms of sealed worlds.
fn all_rooms(home: &Path) -> Vec<PathBuf> {
    [rooms(home), rooms(&home.join(WORLDS))].concat()
}

/// The rooms of all processes, without the rooms of sealed worlds.
pub fn rooms(home: &Path) -> Vec<PathBuf> {
    let mut found: Vec<DirEntry> = fs::read_dir(home).into_iter().flatten().flatten().collect();
    found.retain(|entry| {
        entry.file_name().as_bytes().starts_with(ROOM_PREFIX.as_bytes())
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    found.iter().map(DirEntry::path).collect()
}

/// The directory in the cache that has the directories of all repositories.
pub fn home_of_all(repo: &Repo) -> Result<PathBuf> {
    let own = home(repo)?;
    Ok(own.parent().map_or_else(|| own.clone(), Path::to_owned))
}

/// The file in a repository's cache directory that names the repository. It is in the directory of
/// layers, where judged commands cannot write.
const REPOSITORY: &str = "repository";

/// Notes in the cache directory `home` to which repository it belongs.
pub fn note_repository(repo: &Repo, home: &Path) -> Result<()> {
    let layers = home.join(LAYERS);
    fs::create_dir_all(&layers).could_not("write to", &layers)?;
    let note = layers.join(REPOSITORY);
    if !note.is_file() {
        fs::write(note, repo.common_dir().as_os_str().as_bytes()).could_not("write to", &layers)?;
    }
    Ok(())
}

/// Removes the cache directories next to `home` whose repositories do not exist any more.
pub fn remove_gone(home: &Path) {
    let Some(homes) = home.parent() else { return };
    for entry in fs::read_dir(homes).into_iter().flatten().flatten() {
        let home = entry.path();
        let Ok(repository) = fs::read(home.join(LAYERS).join(REPOSITORY)) else { continue };
        let repository = Path::new(OsStr::from_bytes(&repository));
        let metadata = repository.symlink_metadata();
        // The repository's parent directory must exist: otherwise the repository may be on a disk
        // that is not mounted at the moment.
        if metadata.is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
            && repository.ancestors().nth(2).is_some_and(Path::is_dir)
        {
            // An error is ignored, because the next judging tries again.
            let _ = tree::delete_tree(&home);
        }
    }
}

/// The directory for this repository's rooms and cached outcomes. It is in the user's cache
/// directory, or in the temporary directory if the cache directory is inside a checkout of the
/// repository (e.g. a home directory under version control).
pub fn home(repo: &Repo) -> Result<PathBuf> {
    let checkouts = worktree::checkouts(repo)?;
    for place in places() {
        let real = tree::nearest_real(&place);
        if !checkouts.iter().any(|root| real.starts_with(root)) {
            return Ok(home_in(&place, repo));
        }
    }
    Err(Error::fatal(
        "the cache directory and the temporary directory both lie inside this repository's checkout",
    )
    .hint("set XDG_CACHE_HOME to a directory outside it"))
}

fn home_in(place: &Path, repo: &Repo) -> PathBuf {
    tree::nearest_real(place).join(OURS).join(repo.key())
}

/// Makes a directory below the cache directory.
fn make(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(|e| {
        Error::io(format!("could not make '{}'", dir.display()), e)
            .hint("set XDG_CACHE_HOME to a directory that you can write to")
    })
}

/// The user's cache directory, or the temporary directory if there is none.
pub fn cache_dir() -> PathBuf {
    places().into_iter().next().unwrap_or_else(std::env::temp_dir)
}

/// The directory of all mirrors: bare repositories in which the runs of other repositories are
/// judged.
pub fn mirrors() -> PathBuf {
    tree::nearest_real(&cache_dir()).join("git-frites-remotes")
}

/// Fails if files in `dir` cannot share blocks. Leaves two files in `dir`.
pub fn share_blocks(dir: &Path) -> io::Result<()> {
    let [from, to] = ["reflink-from", "reflink-to"].map(|name| dir.join(name));
    fs::write(&from, "x").and_then(|()| reflink_copy::reflink(&from, &to))
}

/// The directories in which the cache may be, the preferred one first.
fn places() -> Vec<PathBuf> {
    let below_home = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let own = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(below_home)));
    own.into_iter().chain([std::env::temp_dir()]).collect()
}

/// The submodules of a commit that are initialised in the user's checkout at `home`, and the
/// submodules within them. Each has its path, and the commit that the judged tree records for it.
/// An outer submodule comes before those within it.
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
            found.extend(submodules_of(
                &repo.git_at(&directory.join(".git")),
                &commit,
                home,
                &path,
            )?);
        }
        at += 1;
    }
    Ok(found)
}

/// The submodules of a commit of one repository. `within` is the path of this repository in the
/// checkout at `home`. Empty if the repository does not have the commit.
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
        if let Some(wanted) = wanted
            && home.join(&path).join(".git").exists()
        {
            found.push((path, wanted));
        }
    }
    Ok(found)
}

/// Checks out the submodules of a commit into their directories below `into`.
pub(super) fn export_submodules(
    repo: &Repo,
    home: Option<&Path>,
    commit: &Oid,
    into: &Path,
) -> Result<()> {
    let Some(root) = home else { return Ok(()) };
    for (path, wanted) in submodules(repo, home, commit)? {
        worktree::export(repo, &root.join(&path).join(".git"), &wanted, &into.join(&path))
            .map_err(|e| {
                let path = path.display();
                let wanted = wanted.short();
                e.context(format!("your checkout of the submodule '{path}' has no commit {wanted}"))
            })?;
    }
    Ok(())
}
