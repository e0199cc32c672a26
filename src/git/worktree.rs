//! Worktrees: making, finding and removing them without relying on git's own cleanup.
//!
//! A worktree is made in two steps (GIT-FACTS, "Worktrees"): one process at a time writes the
//! administrative entry, under the repository lock; the checkout, 95–99 % of the cost, runs in
//! parallel after it.
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, IoContext, Result};
use crate::fs::atomic;
use crate::fs::parallel;
use crate::fs::regular;
use crate::fs::trash::Bin;
use crate::fs::tree::{delete_tree, is_real_directory, nearest_real, path_bytes};
use crate::git::cli::{Git, nul_separated};
use crate::git::index::{ScratchIndex, entry_at, open_index};
use crate::git::overrides::Overrides;
use crate::git::ref_locks::{heal_packed_refs_lock, remove_when_old};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::refname::RefName;

/// A registered worktree.
#[derive(Clone, Debug)]
pub struct Worktree {
    /// The worktree's directory.
    pub path: PathBuf,
    /// The worktree's administrative entry in git's directory.
    pub admin: PathBuf,
    overrides: Arc<Overrides>,
}

impl Worktree {
    /// The worktree at `path` with the administrative entry `admin`, whole or damaged.
    pub fn at(repo: &Repo, path: &Path, admin: PathBuf) -> Worktree {
        Worktree { path: path.to_owned(), admin, overrides: repo.overrides().clone() }
    }

    /// Writes the administrative entry of a new worktree at `path` and its `.git` file, with no
    /// files checked out. HEAD is on the new branch, or detached if there is none. The caller holds the
    /// repository lock.
    ///
    /// Takes an object id and uses `--no-track`, so that git never locks `config`. A concurrent
    /// `git worktree prune` removes entries that are half made: then registering is tried again.
    pub fn register(
        repo: &Repo,
        path: &Path,
        branch: Option<&RefName>,
        at: &Oid,
    ) -> Result<Worktree> {
        let is_new = !path.exists()
            && branch.map_or(Ok(true), |name| repo.read_ref(name).map(|tip| tip.is_none()))?;
        require_readable_entries(repo)?;
        let mut tries = 0;
        loop {
            let failed = match register_once(repo, path, branch, at) {
                Ok(admin) => return Ok(Worktree::at(repo, path, admin)),
                Err(error) => error,
            };
            tries += 1;
            if !is_new || tries > 50 || admin_of(repo, path)?.is_some() {
                return Err(failed);
            }
            // A failed `git worktree add` leaves its branch and its directory behind.
            if let Some(name) =
                branch.filter(|name| repo.read_ref(name).is_ok_and(|tip| tip.as_ref() == Some(at)))
            {
                repo.update_ref(name, None, Some(at), "spawn tried again")?;
            }
            let _ = fs::remove_file(path.join(".git"));
            let _ = fs::remove_dir(path);
        }
    }

    /// The worktree that git has registered at `path`; `None` if there is none.
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

    /// Checks out the files of a tree, as if they had been changed and staged. Hooks do not run: a
    /// `post-checkout` hook may have been planted by another attempt, and `spawn.setup` is there for
    /// preparations.
    ///
    /// Not `git reset --hard`: that locks `packed-refs`, and leaves the lock behind when it is
    /// killed.
    pub fn populate(&self, tree: &str) -> Result<()> {
        self.git().call("read-tree").args(["--reset", "-u", tree]).run()
    }

    /// Removes the worktree: renames its directory and then its administrative entry into a trash directory
    /// in `root`. Gives the trash directory. Parts that are missing are no error, so that a removal that
    /// was killed can be repeated.
    ///
    /// `root` is our directory of worktrees. A path that is not a chain of real directories below
    /// it is refused.
    pub fn set_aside(&self, root: &Path) -> Result<Bin> {
        let Worktree { path, admin, .. } = self;
        let there = require_ours(root, path, true)?;
        // Only this lock is removed: another one may come from a killed `git add`, but also from the
        // user's git.
        heal_packed_refs_lock(admin, "AUTO_MERGE.lock");
        let bin = Bin::new(root)?;
        if there {
            fs::rename(path, bin.worktree())
                .context(|| format!("could not move '{}'", path.display()))?;
        }
        unregister(admin, &bin.entry())?;
        Ok(bin)
    }
}

/// Refuses an administrative entry in which a file is not a regular file: git, which reads those of
/// all worktrees, would wait for ever when it opens a FIFO.
pub(super) fn require_readable_entries(repo: &Repo) -> Result<()> {
    for entry in entries(repo)? {
        for file in ["HEAD", "gitdir", "commondir", "locked"].map(|name| entry.join(name)) {
            if regular::open(&file).is_err_and(|e| e.kind() == io::ErrorKind::InvalidData) {
                return Err(Error::fatal(format!("'{}' is not a regular file", file.display()))
                    .hint("git would wait for ever when it reads that: remove it"));
            }
        }
    }
    Ok(())
}

fn register_once(repo: &Repo, path: &Path, branch: Option<&RefName>, at: &Oid) -> Result<PathBuf> {
    let call = repo.git().call("worktree").args(["add", "--quiet", "--no-checkout"]);
    if repo.overrides().is_redirected() {
        // git uses a stand-in for the shared directory, with a link to this one. `git worktree prune` removes
        // this one with its last entry, and git cannot make it through the link. If this fails, git reports
        // that.
        let _ = fs::create_dir(repo.common_dir().join("worktrees"));
    }
    let mut change = repo.record_change(branch)?;
    let call = match branch {
        Some(full) => call.args(["--no-track", "-b", full.short()]),
        None => call.arg("--detach"),
    };
    change.run(call.arg("--").arg(path).arg(at.as_str()))?;
    admin_of(repo, path)?.ok_or_else(|| {
        Error::internal(format!("git made no administrative entry for '{}'", path.display()))
    })
}

/// The administrative entry whose `gitdir` file points at `path`.
///
/// It is never derived from the worktree's name: if several worktrees are called `c1`, git calls their
/// entries `c1`, `c11`, ….
pub fn admin_of(repo: &Repo, path: &Path) -> Result<Option<PathBuf>> {
    let wanted = path.join(".git");
    // Usually the worktree and its entry name each other.
    let named = named_by(path);
    if let Some(admin) = named
        && admin.parent() == Some(&repo.common_dir().join("worktrees"))
        && admin.file_name().is_some()
        && points_to(&admin).is_some_and(|p| p == wanted)
    {
        return Ok(Some(admin));
    }
    Ok(entries(repo)?.into_iter().find(|admin| points_to(admin).is_some_and(|p| p == wanted)))
}

/// The path that the `.git` file of a worktree names as its administrative entry; `None` if there is no
/// such file. Commands can write to that file, so it may name another entry.
pub fn named_by(worktree: &Path) -> Option<PathBuf> {
    let text = regular::read(&worktree.join(".git")).ok()?;
    let named = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
    Some(PathBuf::from(std::ffi::OsString::from_vec(named.to_vec())))
}

/// The content of the `.git` file of a worktree with this administrative entry.
pub fn link_to(admin: &Path) -> Vec<u8> {
    [b"gitdir: ", path_bytes(admin), b"\n"].concat()
}

/// Makes the `.git` file of a worktree name its administrative entry, if it names another path. Gives that
/// path; it is empty if there was no such file.
///
/// Commands of attempts can write to this file, and git runs programs that the configuration of the
/// repository there names. If a command made a directory in place of the file, that directory stays,
/// because it may have commits.
pub fn connect(worktree: &Path, admin: &Path) -> Result<Option<PathBuf>> {
    let link = worktree.join(".git");
    let named = named_by(worktree).map(|named| worktree.join(named)).unwrap_or_default();
    // git can write relative paths.
    let is_right =
        gix::path::normalize((&*named).into(), worktree).is_some_and(|path| path == admin);
    if is_right || !worktree.is_dir() || fs::symlink_metadata(&link).is_ok_and(|meta| meta.is_dir())
    {
        return Ok(None);
    }
    atomic::write(&link, &link_to(admin))?;
    Ok(Some(named))
}

/// Refuses the repository that was found for the directory `dir` if `dir` is in a worktree that another
/// repository around it has registered. A command of an attempt has then put another `.git` there, whose
/// configuration can name programs.
pub fn require_own_git(repo: &Repo, dir: &Path) -> Result<()> {
    let dir = nearest_real(dir);
    for above in dir.ancestors() {
        let named = named_by(above).unwrap_or_else(|| PathBuf::from(".git"));
        let common = nearest_real(&above.join(named));
        if common == repo.common_dir() {
            continue;
        }
        let checkouts = entries_in(&common)?.into_iter().filter_map(|admin| points_to(&admin));
        let mut checkouts = checkouts.filter_map(|link| Some(link.parent()?.to_owned()));
        if let Some(checkout) = checkouts.find(|checkout| dir.starts_with(checkout)) {
            let (checkout, above) = (checkout.display(), above.display());
            let found = repo.git_dir().display();
            return Err(Error::fatal(format!(
                "'{checkout}' is a worktree of the repository in '{above}', but git finds '{found}' there"
            ))
            .hint(format!(
                "a command replaced '{checkout}/.git': move that away, and then: `git -C {above} worktree repair`"
            )));
        }
    }
    Ok(())
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
        Err(e) => return Err(e).context(|| format!("could not list '{}'", directory.display())),
    };
    let mut found: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    Ok(found)
}

/// The path of the `.git` file that an administrative entry belongs to; `None` if the entry is
/// damaged.
pub fn points_to(admin: &Path) -> Option<PathBuf> {
    let mut bytes = regular::read(&admin.join("gitdir")).ok()?;
    while bytes.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
        bytes.pop();
    }
    if bytes.is_empty() {
        return None;
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
    if path.is_absolute() {
        // The path as git wrote it: links are not resolved, because a link may lead elsewhere by now.
        return Some(path);
    }
    // The path may be relative since git 2.48 (`worktree.useRelativePaths`).
    let directory = admin.join(path.parent()?).canonicalize().ok()?;
    Some(directory.join(path.file_name()?))
}

/// The roots of every checkout of the repository, the main one included.
pub fn checkouts(repo: &Repo) -> Result<Vec<PathBuf>> {
    let mut roots: Vec<PathBuf> = entries(repo)?
        .iter()
        .filter_map(|admin| Some(points_to(admin)?.parent()?.to_owned()))
        .collect();
    roots.extend(repo.work_tree().map(Path::to_owned));
    roots.extend(repo.main_worktree().map(Path::to_owned));
    Ok(roots)
}

/// The branch that a git directory's HEAD is on; `None` if HEAD is detached or cannot be read.
pub fn head_branch(git_dir: &Path) -> Option<RefName> {
    let head = regular::read_text(&git_dir.join("HEAD")).ok()?;
    head.strip_prefix("ref: ").map(|full| RefName::new(full.trim()))
}

/// The paths that are staged in a version that neither of two trees has.
pub fn staged_only(git: &Git, one: &Oid, other: &Oid) -> Result<Vec<TreePath>> {
    let differing = |tree: &Oid| -> Result<BTreeSet<TreePath>> {
        let call = git.call("diff-index").args([
            "--cached",
            "-z",
            "--name-only",
            "--no-renames",
            "--ignore-submodules=none",
            tree.as_str(),
        ]);
        Ok(nul_separated(&call.bytes()?).map(TreePath::new).collect())
    };
    Ok(differing(one)?.intersection(&differing(other)?).cloned().collect())
}

/// The checkout that uses a branch: its HEAD is on the branch, or a rebase or a bisection in the checkout will
/// switch back to the branch or move it (`prepare_checked_out_branches` in git's branch.c). The administrative
/// entry `except` is ignored.
pub fn holder_of(repo: &Repo, branch: &RefName, except: Option<&Path>) -> Result<Option<PathBuf>> {
    let names = |file: PathBuf| {
        regular::read(&file).is_ok_and(|text| {
            // `update-refs` has three lines for each branch: its name, and two commits. Only the file of a
            // bisection leaves `refs/heads/` out.
            text.split(|byte| *byte == b'\n').any(|line| {
                let name = line.strip_prefix(b"ref: ").unwrap_or(line).trim_ascii();
                name == branch.as_bytes()
                    || file.ends_with("BISECT_START") && name == branch.short().as_bytes()
            })
        })
    };
    let files = [
        "HEAD",
        "rebase-merge/head-name",
        "rebase-apply/head-name",
        "rebase-merge/update-refs",
        "BISECT_START",
    ];
    let on = |git_dir: &Path| files.iter().any(|file| names(git_dir.join(file)));
    for admin in entries(repo)?.into_iter().filter(|a| Some(a.as_path()) != except) {
        if on(&admin) {
            return Ok(Some(
                points_to(&admin).and_then(|p| Some(p.parent()?.to_owned())).unwrap_or(admin),
            ));
        }
    }
    // A bare repository has a HEAD, and nothing checked out.
    let bare = repo.is_bare();
    Ok((!bare && on(repo.common_dir()))
        .then(|| repo.common_dir().parent().unwrap_or(repo.common_dir()).to_owned()))
}

/// Removes one administrative entry. Never `git worktree prune`: that also removes the entries of
/// worktrees on drives that are not mounted.
///
/// The entry is renamed to `aside`, or deleted if that is on another file system: git must not find
/// half an entry.
fn unregister(admin: &Path, aside: &Path) -> Result<()> {
    let in_worktrees = admin.parent().and_then(Path::file_name).is_some_and(|n| n == "worktrees");
    if !in_worktrees {
        return Err(Error::internal(format!(
            "'{}' is not an administrative entry",
            admin.display()
        )));
    }
    if fs::rename(admin, aside).is_ok() {
        return Ok(());
    }
    delete_tree(admin).context(|| format!("could not delete '{}'", admin.display()))
}

/// The approximate size of a checkout of a commit, in bytes: files in whole blocks of 4 KiB.
///
/// The index of the user's checkout knows the sizes of most files. Those of the others are read from the
/// repository, which costs about as much as writing these files once.
pub fn checkout_size(repo: &Repo, commit: &Oid) -> Result<u64> {
    let own = || open_index(&repo.git_dir().join("index"));
    let (index, own) = parallel::both(|| repo.index_of(commit), own);
    let index = index?;
    let gix = repo.gix();
    let size = |(at, entry): (usize, &gix::index::Entry)| {
        let same = own.as_ref().and_then(|own| entry_at(own, at, entry.path(&index)));
        // A size of 0 may stand for an unknown one.
        match same.filter(|same| same.id == entry.id && same.stat.size > 0) {
            Some(same) => u64::from(same.stat.size),
            None => gix.find_header(entry.id).map_or(0, |header| header.size()),
        }
    };
    let entries = index.entries().iter().enumerate();
    let blobs = entries.filter(|(_, e)| e.mode != gix::index::entry::Mode::COMMIT);
    Ok(blobs.map(|blob| size(blob).next_multiple_of(4096)).sum())
}

/// Refuses a path that is not a chain of real directories below `root`, or that is not `registered`
/// with git: somebody else put it there. Gives true if something is at the path.
pub fn require_ours(root: &Path, path: &Path, registered: bool) -> Result<bool> {
    let there = fs::symlink_metadata(path).is_ok();
    if there && !is_real_directory(root, path) {
        let what = format!(
            "'{}' is not a directory of ours any more: a link or a file is in its place",
            path.display()
        );
        return Err(Error::no(what).hint("look at it, and move it away by hand"));
    }
    if there && !registered {
        return Err(Error::no(format!(
            "git does not know '{}' as a worktree of this repository",
            path.display()
        ))
        .hint("look at it, and move it away by hand"));
    }
    Ok(there)
}

/// Writes a submodule's files at `commit` into a directory. `git_dir` is the submodule's git directory in
/// the user's checkout. Fails if the submodule does not have that commit.
pub fn export(repo: &Repo, git_dir: &Path, commit: &Oid, into: &Path) -> Result<()> {
    fs::create_dir_all(into).context(|| format!("could not make '{}'", into.display()))?;
    let scratch = ScratchIndex::empty(&repo.git_at(git_dir).work_tree(into))?;
    scratch.git().call("read-tree").args(["--reset", "-u", commit.as_str()]).run()
}

/// Removes the locks that killed processes left in an administrative entry. To be called when no
/// command runs in the worktree; a lock that a person's git holds is young.
pub fn heal_locks(admin: &Path) {
    for name in ["index.lock", "HEAD.lock"] {
        remove_when_old(&admin.join(name), Duration::from_secs(1));
    }
}

/// The beginning of the reasons for which we lock worktrees.
const LOCKED_BY_US: &str = "git-frites: ";

/// A worktree's lock, as `git worktree lock` makes it: git does not remove, move or prune the worktree. The
/// lock is removed when this is dropped.
pub struct WorktreeLock {
    admin: PathBuf,
}

impl WorktreeLock {
    /// Locks the worktree with this administrative entry for a reason. A lock of the user stays as
    /// it is. One of ours is replaced, because a killed process left it.
    pub fn new(admin: PathBuf, reason: &str) -> Result<WorktreeLock> {
        let lock = admin.join("locked");
        unlock_ours(&admin);
        let failed = || format!("could not write '{}'", lock.display());
        // Written before it gets its name: an empty lock is that of a person who gave no reason.
        let readable = fs::Permissions::from_mode(0o644);
        let file = tempfile::Builder::new().permissions(readable).tempfile_in(&admin);
        let mut file = file.context(failed)?;
        file.write_all(format!("{LOCKED_BY_US}{reason}\n").as_bytes()).context(failed)?;
        match file.persist_noclobber(&lock) {
            Err(e) if e.error.kind() != io::ErrorKind::AlreadyExists => {
                Err(e.error).context(failed)
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

/// The reason for which a person has locked a worktree, which may be empty; `None` if it is not
/// locked or the lock is ours.
pub fn lock_of_user(admin: &Path) -> Option<String> {
    let lock = admin.join("locked");
    let text = match regular::read(&lock) {
        Ok(text) => String::from_utf8_lossy(&text).trim().to_owned(),
        Err(_) => fs::symlink_metadata(&lock).is_ok().then(String::new)?,
    };
    (!text.starts_with(LOCKED_BY_US)).then_some(text)
}

/// Removes our lock from a worktree's administrative entry, if it has one. To be called when no
/// command runs in the worktree.
pub fn unlock_ours(admin: &Path) {
    unlock(admin, |reason| reason.starts_with(LOCKED_BY_US.as_bytes()));
}

fn unlock(admin: &Path, is_ours: impl Fn(&[u8]) -> bool) {
    let lock = admin.join("locked");
    if regular::read(&lock).is_ok_and(|reason| is_ours(&reason)) {
        let _ = fs::remove_file(lock);
    }
}

/// The reason for which an entry is locked, by git and by us, until its worktree is registered.
pub(super) const INITIALIZING: &str = "initializing";

/// Removes the lock of an entry that a killed process was making. To be called when no process makes
/// the worktree.
pub fn unlock_half_made(admin: &Path) {
    unlock(admin, |reason| reason.trim_ascii_end() == INITIALIZING.as_bytes());
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
