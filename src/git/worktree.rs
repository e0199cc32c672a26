//! Makes, finds and removes worktrees, without relying on git's own cleanup.
//!
//! A worktree is made in two steps (GIT-FACTS, "Worktrees"). First the administrative entry is
//! written under the repository lock, by one process at a time. Then the files are checked out, in
//! parallel with other worktrees. The second step is 95–99 % of the cost.
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gix::bstr::ByteSlice;

use crate::error::{Error, IoContext, Result};
use crate::fs::trash::Bin;
use crate::fs::tree::{delete_tree, is_real_directory, nearest_real, path_bytes};
use crate::fs::{atomic, parallel, regular};
use crate::git::cli::Git;
use crate::git::index::{ScratchIndex, entry_at, open_index};
use crate::git::overrides::Overrides;
use crate::git::ref_list::head_branch;
use crate::git::ref_locks::{heal_packed_refs_lock, remove_when_old};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::refname::RefName;

/// A registered worktree.
#[derive(Clone, Debug)]
pub struct Worktree {
    pub path: PathBuf,
    /// The worktree's administrative entry: the directory `worktrees/NAME` in the common git
    /// directory.
    pub admin: PathBuf,
    overrides: Arc<Overrides>,
}

impl Worktree {
    /// The worktree at `path` with the administrative entry `admin`. Neither is checked.
    pub fn at(repo: &Repo, path: &Path, admin: PathBuf) -> Worktree {
        Worktree { path: path.to_owned(), admin, overrides: repo.overrides().clone() }
    }

    /// The worktree that git has registered at `path`; `None` if git has registered none there.
    pub fn find(repo: &Repo, path: &Path) -> Result<Option<Worktree>> {
        Ok(admin_of(repo, path)?.map(|admin| Worktree::at(repo, path, admin)))
    }

    /// git inside the worktree.
    pub fn git(&self) -> Git {
        Git::at(&self.admin, self.overrides.clone()).work_tree(&self.path)
    }

    /// The worktree's own index.
    pub fn index(&self) -> PathBuf {
        self.admin.join("index")
    }

    /// Writes the files of a tree to the worktree and its index. HEAD does not move. No hook runs,
    /// because another attempt may have planted a `post-checkout` hook. Users can prepare worktrees
    /// with `spawn.setup`.
    ///
    /// `git reset --hard` is not used. It locks `packed-refs`, and would leave that lock behind if
    /// it were killed.
    pub fn populate(&self, tree: &str) -> Result<()> {
        self.git().call("read-tree").args(["--reset", "-u", tree]).run()
    }

    /// Removes the worktree. Moves its directory, and then its administrative entry, into a trash
    /// directory in `root`. Returns the trash directory. It is no error if the directory is
    /// missing, so a removal that was killed can be repeated.
    ///
    /// `root` is our directory of worktrees. Fails if the worktree is not below `root`, or if a
    /// link leads to it.
    pub fn set_aside(&self, root: &Path) -> Result<Bin> {
        let Worktree { path, admin, .. } = self;
        let there = require_ours(root, path, true)?;
        // If `AUTO_MERGE.lock` exists, a killed `git commit` may have left the lock of
        // `packed-refs`. After any other killed process, no lock is removed here, because it could
        // belong to the user's git.
        heal_packed_refs_lock(admin, "AUTO_MERGE.lock");
        let bin = Bin::new(root)?;
        if there {
            // A directory must be writable itself to be moved to another one. An attempt may have
            // changed its mode.
            let mode = fs::metadata(path).map(|meta| meta.permissions().mode()).unwrap_or(0o700);
            if mode & 0o200 == 0 {
                let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o700));
            }
            fs::rename(path, bin.worktree()).could_not("move", path)?;
        }
        unregister(admin, &bin.entry())?;
        Ok(bin)
    }
}

/// Fails if a file in an administrative entry is not a regular file. git reads the entries of all
/// worktrees, and would wait for ever for a FIFO.
pub(super) fn require_readable_entries(repo: &Repo) -> Result<()> {
    for entry in entries(repo)? {
        for file in ["HEAD", "gitdir", "commondir", "locked"].map(|name| entry.join(name)) {
            if regular::open(&file).is_err_and(|e| e.kind() == io::ErrorKind::InvalidData) {
                return Err(Error::fatal(format!("'{}' is not a regular file", file.display()))
                    .hint("git would wait for ever if it read this file: remove it"));
            }
        }
    }
    Ok(())
}

/// The administrative entry of the worktree at `path`. This is the entry whose `gitdir` file names
/// `path/.git`. `None` if there is no such entry.
///
/// The entry's name does not follow from the worktree's name. If several worktrees are called `c1`,
/// git calls their entries `c1`, `c11`, ….
pub fn admin_of(repo: &Repo, path: &Path) -> Result<Option<PathBuf>> {
    let wanted = path.join(".git");
    // In most cases the `.git` file names the entry, and the entry names the `.git` file.
    if let Some(admin) = named_by(path)
        && admin.parent() == Some(&repo.common_dir().join("worktrees"))
        && admin.file_name().is_some()
        && points_to(&admin).is_some_and(|p| p == wanted)
    {
        return Ok(Some(admin));
    }
    Ok(entries(repo)?.into_iter().find(|admin| points_to(admin).is_some_and(|p| p == wanted)))
}

/// The longest `.git` file of a worktree: a path, which the system limits.
const LONGEST_LINK: u64 = 64 << 10;

/// The administrative entry that the `.git` file of a worktree names. `None` if that file cannot be
/// read. Commands can write to the file, so it may name the entry of another worktree.
pub fn named_by(worktree: &Path) -> Option<PathBuf> {
    let text = regular::read_own_at_most(&worktree.join(".git"), LONGEST_LINK).ok()?;
    let named = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
    Some(PathBuf::from(std::ffi::OsString::from_vec(named.to_vec())))
}

/// The content of the `.git` file of a worktree with this administrative entry.
pub fn link_to(admin: &Path) -> Vec<u8> {
    [b"gitdir: ", path_bytes(admin), b"\n"].concat()
}

/// If the `.git` file of a worktree does not name its administrative entry, corrects the file. Then
/// returns the path that the file named, which is empty if there was no file. Does nothing if a
/// link leads from `root` to the worktree.
///
/// Commands of attempts can write to this file. git runs programs that the configuration of the
/// named repository sets. If a command made a directory in place of the file, that directory stays,
/// because it may have commits.
pub fn connect(root: &Path, worktree: &Path, admin: &Path) -> Result<Option<PathBuf>> {
    let link = worktree.join(".git");
    let named = named_by(worktree).map(|named| worktree.join(named)).unwrap_or_default();
    // git can write relative paths.
    let is_right =
        gix::path::normalize((&*named).into(), worktree).is_some_and(|path| path == admin);
    if is_right
        || !is_real_directory(root, worktree)
        || fs::symlink_metadata(&link).is_ok_and(|meta| meta.is_dir())
    {
        return Ok(None);
    }
    atomic::write(&link, &link_to(admin))?;
    Ok(Some(named))
}

/// Refuses the repository that was found for the directory `dir` in three cases:
///
/// - It was found at the root of a worktree that another repository has registered. Then a command
///   of an attempt has replaced the worktree's `.git`.
/// - It was found below such a root, and `is_candidates` is true for the common git directory and
///   the worktree. An attempt may have made a repository of a subdirectory.
/// - It has no `.git`, and another repository around it tracks its files. An attempt may have added
///   the files of a bare repository to a directory (`safe.bareRepository` in git-config(1)).
///
/// The configuration that git finds there can name programs.
pub fn require_own_git(
    repo: &Repo,
    dir: &Path,
    is_candidates: impl Fn(&Path, &Path) -> bool,
) -> Result<()> {
    let dir = nearest_real(dir);
    let found_at = dir
        .ancestors()
        .find(|above| above.join(".git").symlink_metadata().is_ok() || *above == repo.git_dir());
    let Some(found_at) = found_at else { return Ok(()) };
    let is_bare = found_at == repo.git_dir()
        && !found_at.ends_with(".git")
        && std::env::var_os("GIT_DIR").is_none();
    for above in found_at.ancestors() {
        let named = named_by(above).unwrap_or_else(|| PathBuf::from(".git"));
        let git_dir = nearest_real(&above.join(named));
        if git_dir == repo.common_dir() {
            continue;
        }
        if is_bare && git_dir.is_dir() && tracks(repo, &git_dir, above, found_at) {
            let [place, owner] = [found_at, above].map(Path::display);
            return Err(Error::fatal(format!(
                "'{place}' looks like a repository, but is a directory of the repository in '{owner}'"
            ))
            .hint("go to a directory above it; if it is a repository of yours: `GIT_DIR=. git frites …`"));
        }
        let checkouts = entries_in(&git_dir)?.into_iter().filter_map(|admin| root_of(&admin));
        let checkouts = checkouts.map(|root| nearest_real(&root));
        let mut around = checkouts.filter(|checkout| found_at.starts_with(checkout));
        let refused =
            around.find(|checkout| checkout == found_at || is_candidates(&git_dir, checkout));
        let Some(checkout) = refused else { continue };
        let place = found_at.display();
        let found = repo.git_dir().display();
        let owner = above.to_string_lossy();
        let error = |is: &str| {
            Error::fatal(format!(
                "'{place}' is {is} of the repository in '{owner}', but git finds '{found}' there"
            ))
        };
        return Err(match checkout == found_at {
            true => error("a worktree").hint(format!(
                "a command replaced '{place}/.git': move that away, and then: `git -C {} worktree repair`",
                shell_words::quote(&owner)
            )),
            false => error("in a candidate's worktree")
                .hint(format!("go to the root of the worktree: '{}'", checkout.display())),
        });
    }
    Ok(())
}

/// True if the repository with this git directory and this work tree tracks files in a directory.
fn tracks(repo: &Repo, git_dir: &Path, work_tree: &Path, directory: &Path) -> bool {
    let git = repo.git_at(git_dir).work_tree(work_tree);
    let call = git.call("ls-files").args(["-z", "--"]).arg(directory);
    call.output().is_ok_and(|output| !output.stdout.is_empty())
}

/// All administrative entries, whole or damaged, sorted.
pub fn entries(repo: &Repo) -> Result<Vec<PathBuf>> {
    entries_in(repo.common_dir())
}

fn entries_in(common: &Path) -> Result<Vec<PathBuf>> {
    let directory = common.join("worktrees");
    let listing = match fs::read_dir(&directory) {
        Ok(listing) => listing,
        Err(e) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&e.kind()) => {
            return Ok(Vec::new());
        }
        Err(e) => return Err(e).could_not("list", &directory),
    };
    let mut found: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    Ok(found)
}

/// The path of the worktree's `.git` file that an administrative entry names; `None` if the entry
/// is damaged.
pub fn points_to(admin: &Path) -> Option<PathBuf> {
    let bytes = regular::read(&admin.join("gitdir")).ok()?;
    let path = Path::new(OsStr::from_bytes(bytes.trim_end_with(|c| matches!(c, '\n' | '\r'))));
    if path.is_absolute() {
        // The path is returned as git wrote it. Links are not resolved, because they may lead
        // elsewhere by now.
        return Some(path.to_owned());
    }
    // Since git 2.48 the path can be relative (`worktree.useRelativePaths`).
    let directory = admin.join(path.parent()?).canonicalize().ok()?;
    Some(directory.join(path.file_name()?))
}

/// The root of the worktree that an administrative entry names; `None` if the entry is damaged.
pub fn root_of(admin: &Path) -> Option<PathBuf> {
    Some(points_to(admin)?.parent()?.to_owned())
}

/// The roots of all checkouts of the repository, including the main worktree.
pub fn checkouts(repo: &Repo) -> Result<Vec<PathBuf>> {
    let mut roots: Vec<PathBuf> = entries(repo)?.iter().filter_map(|a| root_of(a)).collect();
    roots.extend(repo.work_tree().map(Path::to_owned));
    roots.extend(repo.main_worktree().map(Path::to_owned));
    Ok(roots)
}

/// The paths whose staged version is neither that of the tree `one` nor that of the tree `other`.
pub fn staged_only(git: &Git, one: &Oid, other: &Oid) -> Result<Vec<TreePath>> {
    let differing = |tree: &Oid| -> Result<BTreeSet<TreePath>> {
        let call = git.call("diff-index").words("--cached -z --name-only --no-renames");
        call.args(["--ignore-submodules=none", tree.as_str()]).paths()
    };
    Ok(differing(one)?.intersection(&differing(other)?).cloned().collect())
}

/// The checkout that uses a branch (see [`uses`]). The checkout with the git directory `except` is
/// ignored.
pub fn holder_of(repo: &Repo, branch: &RefName, except: Option<&Path>) -> Result<Option<PathBuf>> {
    // A bare repository has a HEAD, but no checkout.
    let main = (!repo.is_bare()).then(|| repo.common_dir().to_owned());
    let mut all = entries(repo)?.into_iter().chain(main);
    let Some(holder) = all.find(|dir| Some(dir.as_path()) != except && uses(dir, branch)) else {
        return Ok(None);
    };
    let root = match holder == repo.common_dir() {
        true => repo.main_worktree().map(Path::to_owned),
        false => root_of(&holder),
    };
    Ok(Some(root.unwrap_or(holder)))
}

/// True if the checkout with this git directory uses a branch. Either its HEAD is on the branch, or
/// a rebase or bisection there will switch back to the branch or move it
/// (`prepare_checked_out_branches` in git's branch.c).
fn uses(git_dir: &Path, branch: &RefName) -> bool {
    // `update-refs` has three lines for each branch: its full name, and two commits. Only
    // `BISECT_START` has the short name of a branch.
    let names: [(&str, &str); 5] = [
        ("rebase-merge/head-name", branch),
        ("rebase-apply/head-name", branch),
        ("rebase-merge/update-refs", branch),
        ("BISECT_START", branch),
        ("BISECT_START", branch.short()),
    ];
    head_branch(git_dir).as_ref() == Some(branch)
        || names.iter().any(|(file, name)| {
            let text = regular::read(&git_dir.join(file)).unwrap_or_default();
            text.split(|byte| *byte == b'\n').any(|line| line.trim_ascii() == name.as_bytes())
        })
}

/// Removes one administrative entry. `git worktree prune` is not used, because it also removes the
/// entries of worktrees on drives that are not mounted.
///
/// The entry is renamed to `aside`, so that git never finds an incomplete entry. If `aside` is on
/// another file system, the entry is deleted in place.
fn unregister(admin: &Path, aside: &Path) -> Result<()> {
    if !admin.parent().is_some_and(|above| above.ends_with("worktrees")) {
        let what = format!("'{}' is not an administrative entry", admin.display());
        return Err(Error::internal(what));
    }
    fs::rename(admin, aside).or_else(|_| delete_tree(admin)).could_not("delete", admin)
}

/// The approximate disk space of a checkout of a commit, in bytes. Each file takes whole blocks of
/// 4 KiB.
///
/// Most sizes are in the index of the user's checkout. The sizes of the other files are read from
/// the repository. That takes about as long as writing those files to one checkout.
pub fn checkout_size(repo: &Repo, commit: &Oid) -> Result<u64> {
    let own = || open_index(&repo.git_dir().join("index"));
    let (index, own) = parallel::both(|| repo.index_of(commit), own);
    let index = index?;
    let gix = repo.gix();
    let size = |(at, entry): (usize, &gix::index::Entry)| {
        let same = own.as_ref().and_then(|own| entry_at(own, at, entry.path(&index)));
        // git also writes the size 0 if it does not trust the other stat data. So 0 may be wrong.
        match same.filter(|same| same.id == entry.id && same.stat.size > 0) {
            Some(same) => u64::from(same.stat.size),
            None => gix.find_header(entry.id).map_or(0, |header| header.size()),
        }
    };
    let entries = index.entries().iter().enumerate();
    let blobs = entries.filter(|(_, e)| e.mode != gix::index::entry::Mode::COMMIT);
    Ok(blobs.map(|blob| size(blob).next_multiple_of(4096)).sum())
}

/// Fails if the directory at `path` is not ours. It is not ours in three cases: a link leads to it,
/// it is no directory, or it is not `registered` with git. Returns false if nothing is at the path.
pub fn require_ours(root: &Path, path: &Path, registered: bool) -> Result<bool> {
    let shown = path.display();
    let what = match fs::symlink_metadata(path).is_ok() {
        true if !is_real_directory(root, path) => format!(
            "'{shown}' is not a directory of ours any more: a link or a file is in its place"
        ),
        true if !registered => {
            format!("git does not know '{shown}' as a worktree of this repository")
        }
        there => return Ok(there),
    };
    Err(Error::no(what).hint("look at it, and move it away by hand"))
}

/// Writes a submodule's files at `commit` into a directory. `git_dir` is the submodule's git
/// directory in the user's checkout. Fails if the submodule does not have that commit.
pub fn export(repo: &Repo, git_dir: &Path, commit: &Oid, into: &Path) -> Result<()> {
    fs::create_dir_all(into).could_not("make", into)?;
    let scratch = ScratchIndex::empty(&repo.git_at(git_dir).work_tree(into))?;
    scratch.git().call("read-tree").args(["--reset", "-u", commit.as_str()]).run()
}

/// Removes the locks that killed processes have left in an administrative entry. Must be called
/// only when no command runs in the worktree. A person's git may run there, but it holds a lock for
/// less than a second.
pub fn heal_locks(admin: &Path) {
    for name in ["index.lock", "HEAD.lock"] {
        remove_when_old(&admin.join(name), Duration::from_secs(1));
    }
}

/// The beginning of the reason in our own locks of worktrees.
const LOCKED_BY_US: &str = "git-frites: ";

/// A lock of a worktree, as `git worktree lock` makes it. While it exists, git does not remove,
/// move or prune the worktree. The lock is removed when this is dropped.
pub struct WorktreeLock {
    admin: PathBuf,
}

impl WorktreeLock {
    /// Locks the worktree with this administrative entry. A lock of the user stays as it is. A lock
    /// of ours was left by a killed process, and is replaced.
    pub fn new(admin: PathBuf, reason: &str) -> Result<WorktreeLock> {
        let lock = admin.join("locked");
        unlock_ours(&admin);
        // The text is written before the file gets its name. git-frites would take an empty lock
        // for the lock of a user who gave no reason.
        let readable = fs::Permissions::from_mode(0o644);
        let file = tempfile::Builder::new().permissions(readable).tempfile_in(&admin);
        let mut file = file.could_not("write", &lock)?;
        file.write_all(format!("{LOCKED_BY_US}{reason}\n").as_bytes()).could_not("write", &lock)?;
        match file.persist_noclobber(&lock) {
            Err(e) if e.error.kind() != io::ErrorKind::AlreadyExists => {
                Err(e.error).could_not("write", &lock)
            }
            _ => Ok(WorktreeLock { admin }),
        }
    }
}

impl Drop for WorktreeLock {
    fn drop(&mut self) {
        unlock_ours(&self.admin);
    }
}

/// The reason for which the user has locked a worktree, or an empty text if the user gave none.
/// `None` if the worktree is not locked, or if the lock is ours.
pub fn lock_of_user(admin: &Path) -> Option<String> {
    let lock = admin.join("locked");
    let text = match regular::read(&lock) {
        Ok(text) => String::from_utf8_lossy(&text).trim().to_owned(),
        Err(_) => fs::symlink_metadata(&lock).is_ok().then(String::new)?,
    };
    (!text.starts_with(LOCKED_BY_US)).then_some(text)
}

/// Removes our lock from a worktree's administrative entry, if there is one. Must be called only
/// when no command runs in the worktree.
pub fn unlock_ours(admin: &Path) {
    let lock = admin.join("locked");
    if regular::read(&lock).is_ok_and(|reason| reason.starts_with(LOCKED_BY_US.as_bytes())) {
        let _ = fs::remove_file(lock);
    }
}

/// The reason with which git and git-frites lock an administrative entry until the worktree is
/// complete.
pub(super) const INITIALIZING: &str = "initializing";

/// True if git or git-frites has not completed the worktree of an administrative entry.
pub fn is_half_made(admin: &Path) -> bool {
    let reason = regular::read(&admin.join("locked"));
    reason.is_ok_and(|reason| reason.trim_ascii_end() == INITIALIZING.as_bytes())
}

/// Removes the lock of an administrative entry that is incomplete because a process was killed.
/// Must be called only when no process makes the worktree.
pub fn unlock_half_made(admin: &Path) {
    if is_half_made(admin) {
        let _ = fs::remove_file(admin.join("locked"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn an_entry_points_to_what_git_wrote_into_it_and_a_damaged_one_nowhere(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'/'), Just(b'.'), Just(b'\n')], 0..12),
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            let path = [b"/w/", &bytes[..], b"x/.git"].concat();
            fs::write(directory.path().join("gitdir"), [&path, &b"\n"[..]].concat()).expect("written");
            prop_assert_eq!(points_to(directory.path()).map(|p| p.into_os_string().into_vec()), Some(path));
            fs::write(directory.path().join("gitdir"), &bytes).expect("written");
            prop_assert!(points_to(directory.path()).is_none_or(|p| p.is_absolute()));
        }
    }
}
