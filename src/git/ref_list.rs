//! Reads and lists refs. A command that changes nothing can remember the list.
//!
//! The files of loose refs are read first, and then `packed-refs`, as git does. So even if git
//! packs a ref in between, the ref is found in its own file or in `packed-refs`.
//!
//! gix reads `packed-refs` first. So it would have to read all refs again whenever a git process
//! packs refs. It also keeps an old `packed-refs` if the file was replaced within one tick of the
//! clock.
//!
//! Without the remembered list, `git frites status` would take 1.4 times as much processor time
//! (row `status` of `make bench`).
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gix::bstr::ByteSlice;
use gix::refs::packed::Buffer;
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::error::{Error, IfExists, Result};
use crate::fs::{directory, regular};
use crate::git::index::entry_stat;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// The prefix of the refs of all runs.
pub const OF_RUNS: &str = "refs/frites/";

/// The refs of all runs at one moment, with the objects that they point to. `None` for a symbolic
/// ref whose target does not exist.
pub type RefsOfRuns = BTreeMap<RefName, Option<Oid>>;

/// The refs that were left out of lists, because their files have no value.
static BROKEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The names of refs that were left out of lists because their files have no value. A power cut can
/// leave such files. git leaves them out, too.
pub fn broken_refs() -> MutexGuard<'static, BTreeSet<String>> {
    BROKEN.lock()
}

/// Refs with their values: an object id, or `ref: ` and the target of a symbolic ref.
pub type RefValues = BTreeMap<RefName, String>;

/// The beginning of the value of a symbolic ref.
pub(super) const LINK: &str = "ref: ";

/// The refs below a directory, and the lock files there.
#[derive(Default)]
struct ListedRefs {
    values: RefValues,
    locks: Vec<PathBuf>,
}

impl ListedRefs {
    /// Reads the loose refs below `directory`, a directory in `parent`. `prefix` is the beginning
    /// of their names, and ends in a slash. Refs that are deleted during the call are left out.
    fn read_files(
        &mut self,
        parent: impl AsFd,
        directory: impl Arg,
        prefix: &str,
        git_dir: &Path,
    ) -> io::Result<()> {
        let opened = match directory::open_to_list(parent, directory).map_err(io::Error::from) {
            Err(e) if is_gone(&e) => return Ok(()),
            opened => opened?,
        };
        for (file, kind) in directory::entries(&opened)? {
            let name = format!("{prefix}{}", file.to_string_lossy());
            if kind == FileType::Directory {
                self.read_files(&opened, file.as_c_str(), &format!("{name}/"), git_dir)?;
            } else if name.ends_with(".lock") {
                self.locks.push(git_dir.join(name));
            } else if gix::refs::FullName::try_from(name.as_str()).is_ok() {
                let value = match read_start(&opened, file.as_c_str()) {
                    Err(e) if is_gone(&e) => continue,
                    Err(_) if kind != FileType::RegularFile => None,
                    text => value_of(&text?),
                };
                match value {
                    Some(value) => drop(self.values.insert(RefName::new(name), value)),
                    None => drop(broken_refs().insert(name)),
                }
            }
        }
        Ok(())
    }

    /// Adds the refs with this prefix from the bytes of `packed-refs`, except those that are
    /// already read from their files.
    fn add_packed(&mut self, packed: &[u8], prefix: &str) {
        let before_name = format!(" {prefix}");
        for at in packed.find_iter(&before_name) {
            let line = packed[..at].rfind_byte(b'\n').map_or(0, |end| end + 1);
            let name = packed[at + 1..].lines().next().unwrap_or_default().to_str_lossy();
            // A loose ref of this name has a newer value, which stays.
            if let Some(value) = value_of(&packed[line..at]) {
                self.values.entry(RefName::new(name)).or_insert(value);
            }
        }
    }
}

/// The value in the text of a ref's file; `None` if the text is not a value.
fn value_of(text: &[u8]) -> Option<String> {
    if let Some(target) = text.strip_prefix(b"ref:") {
        return Some(format!("{LINK}{}", target.trim().to_str_lossy()));
    }
    let oid = text.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    oid.to_str().ok().and_then(Oid::parse).map(String::from)
}

/// True if the error says that a file does not exist.
fn is_gone(e: &io::Error) -> bool {
    [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&e.kind())
}

/// Reads the first [`LONGEST_VALUE`] bytes of a ref's file. Does not wait if it is a FIFO. Like
/// git, takes a link to `refs/…` for a symbolic ref (`core.preferSymlinkRefs`), and follows other
/// links.
fn read_start(directory: impl AsFd, path: impl Arg + Copy) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let open = |more| rustix::fs::openat(&directory, path, flags | more, Mode::empty());
    let file = match open(OFlags::NOFOLLOW) {
        Err(Errno::LOOP) => {
            let target = rustix::fs::readlinkat(&directory, path, Vec::new())?.into_bytes();
            if target.starts_with(b"refs/") {
                return Ok([LINK.as_bytes(), &target].concat());
            }
            open(OFlags::empty())?
        }
        opened => opened?,
    };
    let mut start = vec![0; LONGEST_VALUE];
    let length = rustix::io::read(&file, &mut start[..])?;
    start.truncate(length);
    Ok(start)
}

/// The text of a git directory's HEAD. gix would follow a HEAD that is a link, and take it for a
/// detached one.
fn read_head(git_dir: &Path) -> io::Result<Vec<u8>> {
    read_start(CWD, &git_dir.join("HEAD"))
}

/// The branch that a git directory's HEAD is on; `None` if HEAD is detached or cannot be read, or
/// if the branch's name is not UTF-8.
pub fn head_branch(git_dir: &Path) -> Option<RefName> {
    let text = read_head(git_dir).ok()?;
    text.strip_prefix(b"ref:")?.trim().to_str().ok().map(RefName::new)
}

/// The largest number of bytes in the file of a ref. The target of a symbolic ref is a path, so it
/// has at most 4096 bytes.
const LONGEST_VALUE: usize = 4096 + LINK.len();

/// A file of this age has the stat data that it keeps until it changes.
const SETTLING_TIME: Duration = Duration::from_secs(2);

/// git follows at most this many symbolic refs, one after another.
const MOST_LINKS: usize = 5;

impl Repo {
    /// Reads the refs below a prefix that ends in `/`.
    fn list(&self, prefix: &str) -> Result<ListedRefs> {
        let unreadable =
            |e: io::Error| Error::io(format!("the refs under {prefix} cannot be read"), e);
        let mut found = ListedRefs::default();
        let git_dir = self.common_dir();
        found.read_files(CWD, git_dir.join(prefix), prefix, git_dir).map_err(unreadable)?;
        let packed = regular::read(&git_dir.join("packed-refs")).if_exists().map_err(unreadable)?;
        found.add_packed(&packed.unwrap_or_default(), prefix);
        Ok(found)
    }

    /// The value of a ref; `None` if the ref does not exist.
    pub(super) fn ref_value(&self, full: &RefName) -> Result<Option<String>> {
        let unreadable =
            |e: &dyn Display| Error::damaged(format!("the ref {full} cannot be read: {e}"));
        match read_start(CWD, &self.common_dir().join(full.as_str())) {
            Ok(text) => {
                let value = value_of(&text).ok_or_else(|| unreadable(&"its file has no value"))?;
                Ok(Some(value))
            }
            Err(e) if is_gone(&e) || e.kind() == io::ErrorKind::IsADirectory => {
                let Some(packed) = self.packed_refs().map_err(|e| unreadable(&e))? else {
                    return Ok(None);
                };
                let found = packed.try_find(full.as_str()).map_err(|e| unreadable(&e))?;
                Ok(found.map(|found| found.target().to_string()))
            }
            Err(e) => Err(unreadable(&e)),
        }
    }

    /// The refs in `packed-refs`; `None` if the file does not exist. The file is read again if it
    /// may have changed.
    fn packed_refs(&self) -> std::result::Result<Option<Arc<Buffer>>, gix::Error> {
        let stat = rustix::fs::stat(self.common_dir().join("packed-refs")).ok();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        // A younger file could be replaced by one with the same stat data.
        let settled = stat
            .map(|stat| entry_stat(&stat))
            .filter(|stat| u64::from(stat.ctime.secs) + SETTLING_TIME.as_secs() < now);
        let mut cached = self.packed.lock();
        if let (Some(stat), Some((cached, refs))) = (&settled, &*cached)
            && stat == cached
        {
            return Ok(Some(refs.clone()));
        }
        let refs = self.gix().refs.open_packed_buffer()?.map(Arc::new);
        *cached = settled.zip(refs.clone());
        Ok(refs)
    }

    /// The branch that HEAD is on. `None` if HEAD is detached, or if the branch's name is not
    /// UTF-8.
    pub fn head_branch(&self) -> Option<RefName> {
        head_branch(self.git_dir())
    }

    /// True if HEAD is on no branch.
    pub fn is_detached(&self) -> bool {
        read_head(self.git_dir()).is_ok_and(|text| !text.starts_with(b"ref:"))
    }

    /// The object that a ref with this value points to; `None` if the target of a symbolic ref does
    /// not exist.
    pub(super) fn object_of(&self, value: &str) -> Option<Oid> {
        let mut value = value.to_owned();
        for _ in 0..MOST_LINKS {
            let Some(target) = value.strip_prefix(LINK) else { return Oid::parse(&value) };
            value = self.ref_value(&RefName::new(target)).ok()??;
        }
        None
    }

    /// Reads the refs of all runs.
    pub fn refs_of_runs(&self) -> Result<RefsOfRuns> {
        Ok(self.refs_and_locks_of_runs()?.0)
    }

    /// Reads the refs of all runs, and lists the lock files among their files.
    pub fn refs_and_locks_of_runs(&self) -> Result<(RefsOfRuns, Vec<PathBuf>)> {
        let ListedRefs { values, locks } = self.list(OF_RUNS)?;
        let values = values.into_iter().map(|(name, value)| (name, self.object_of(&value)));
        Ok((values.collect(), locks))
    }

    /// From now on, this repository reads refs of runs from this list. Called by commands that
    /// change nothing, because they would otherwise read each ref several times.
    pub fn remember_refs(&self, refs: RefsOfRuns) {
        *self.remembered.lock() = Some(refs);
    }

    /// The remembered value of a ref of a run; `None` if the ref must be read.
    pub(super) fn remembered_ref(&self, full: &RefName) -> Option<Option<Oid>> {
        if !full.starts_with(OF_RUNS) {
            return None;
        }
        let refs = self.remembered.lock();
        match refs.as_ref()?.get(full) {
            // The target of this symbolic ref does not exist. The ref is read again to get the
            // error.
            Some(None) => None,
            known => Some(known.copied().flatten()),
        }
    }

    /// All refs under a prefix that ends in `/`, sorted by name. Each has the id of the object that
    /// it points to. The object may be missing.
    pub fn refs_under(&self, prefix: &str) -> Result<Vec<(RefName, Oid)>> {
        let values = self.list(prefix)?.values.into_iter();
        Ok(values.filter_map(|(name, value)| Some((name, self.object_of(&value)?))).collect())
    }

    /// The names of all refs under a prefix that ends in `/`, sorted.
    pub fn ref_names(&self, prefix: &str) -> Result<Vec<RefName>> {
        if prefix == OF_RUNS
            && let Some(refs) = &*self.remembered.lock()
        {
            return Ok(refs.keys().cloned().collect());
        }
        Ok(self.list(prefix)?.values.into_keys().collect())
    }

    /// The refs under a prefix that ends in `/`, with their values. Like git, leaves out symbolic
    /// refs whose targets do not exist.
    pub fn ref_values(&self, prefix: &str) -> Result<RefValues> {
        let mut values = self.list(prefix)?.values;
        values.retain(|_, value| self.object_of(value).is_some());
        Ok(values)
    }

    /// The names of the refs that are under this prefix and reach a commit, sorted.
    pub fn refs_that_contain(&self, commit: &Oid, under: &str) -> Result<Vec<RefName>> {
        let call = self.git().call("for-each-ref").args(["--format=%(refname)", "--contains"]);
        let list = call.args([commit.as_str(), under]).bytes()?;
        Ok(String::from_utf8_lossy(&list).lines().map(RefName::new).collect())
    }

    /// The oldest commit in the history of `commit` that a ref of an attempt reaches; `None` if
    /// there is none. Commits do not count if they are reachable from `known`, or from a branch,
    /// tag or remote-tracking branch of the user.
    pub fn first_of_attempts<'a>(
        &self,
        commit: &Oid,
        known: impl Iterator<Item = &'a Oid>,
    ) -> Result<Option<Oid>> {
        let known: Vec<&str> = known.map(Oid::as_str).collect();
        let unknown_from = |tips: &[&str]| -> Result<Vec<Oid>> {
            let call = self.git().call("rev-list").args(["--topo-order", "--ignore-missing"]);
            let call = call.args(tips).args(["--not", "--exclude=frites/run/*", "--branches"]);
            let call = call.args(["--tags", "--exclude=*/frites/run/*", "--remotes"]);
            let list = call.args(known.iter().copied()).bytes()?;
            Ok(String::from_utf8_lossy(&list).lines().filter_map(Oid::parse).collect())
        };
        let own = unknown_from(&[commit.as_str()])?;
        if own.is_empty() {
            return Ok(None);
        }
        let of_attempts = unknown_from(&["--glob=refs/frites", "--glob=refs/heads/frites/run"])?;
        let of_attempts = BTreeSet::from_iter(of_attempts);
        Ok(own.into_iter().rev().find(|commit| of_attempts.contains(commit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with two commits that no ref names.
    fn repository() -> (tempfile::TempDir, Repo, [Oid; 2]) {
        let directory = tempfile::tempdir().expect("a directory");
        let made = duct::cmd!("git", "init", "-q", directory.path()).run();
        made.expect("git is installed");
        let repo = Repo::discover(directory.path()).expect("a repository");
        let commits = ["one", "other"].map(|message| {
            repo.store(|objects| objects.add_files(&[], [], message)).expect("a commit")
        });
        (directory, repo, commits)
    }

    #[test]
    fn a_ref_without_a_file_is_the_packed_one_also_after_it_changed() {
        let (_directory, repo, [one, other]) = &repository();
        let find = |name: &str| repo.read_ref(&RefName::new(name));
        let read = |name: &str| find(name).expect("readable");
        let git = |args: &[&str]| repo.git().call(args[0]).args(&args[1..]).run().expect("done");
        assert_eq!(read("refs/frites/1/c1"), None, "nothing is packed yet");
        git(&["update-ref", "refs/frites/1/c1", one.as_str()]);
        git(&["pack-refs", "--all"]);
        assert_eq!(read("refs/frites/1/c1"), Some(*one));
        git(&["update-ref", "refs/heads/refs/frites/1/c", one.as_str()]);
        for absent in ["refs/frites/1", "refs/frites/1/c", "refs/frites/1/c1/x", "refs/heads"] {
            assert_eq!(read(absent), None, "{absent}");
        }
        git(&["update-ref", "refs/frites/1/c1", other.as_str()]);
        assert_eq!(read("refs/frites/1/c1"), Some(*other), "the file of its own is newer");
        let packed_refs = repo.common_dir().join("packed-refs");
        let time = std::fs::metadata(&packed_refs).and_then(|meta| meta.modified()).expect("there");
        git(&["pack-refs", "--all"]);
        let file = std::fs::File::options().append(true).open(&packed_refs).expect("there");
        file.set_modified(time).expect("set");
        assert_eq!(read("refs/frites/1/c1"), Some(*other), "also within one tick of the clock");
        git(&["update-ref", "-d", "refs/frites/1/c1"]);
        assert_eq!(read("refs/frites/1/c1"), None);
        std::fs::write(&packed_refs, "no refs\n").expect("written");
        assert!(find("refs/frites/1/c1").is_err());
    }

    #[test]
    fn a_ref_is_read_although_its_object_is_gone() {
        let (_directory, repo, [one, _]) = &repository();
        let name = RefName::new("refs/frites/1/c1");
        repo.update_ref(&name, Some(one), None, "new").expect("made");
        let object = repo.common_dir().join("objects").join(&one.as_str()[..2]);
        std::fs::remove_dir_all(object).expect("removed");
        assert_eq!(repo.read_ref(&name).expect("readable"), Some(*one));
    }

    #[test]
    fn remembered_refs_are_those_of_one_moment_and_others_are_read() {
        let (_directory, repo, [one, other]) = &repository();
        let [record, user] = ["refs/frites/1/@record", "refs/heads/main"].map(RefName::new);
        let set = |name: &RefName, oid: &Oid| {
            let call = repo.git().call("update-ref");
            call.args([name.as_str(), oid.as_str()]).run().expect("moved");
        };
        set(&record, one);
        set(&user, one);
        repo.git().call("pack-refs").arg("--all").run().expect("packed");
        let loose = RefName::new("refs/frites/1/c1");
        set(&loose, other);
        repo.remember_refs(repo.refs_of_runs().expect("readable"));
        [&record, &user].into_iter().for_each(|name| set(name, other));
        set(&RefName::new("refs/frites/2/@record"), one);
        let read = |name: &RefName| repo.read_ref(name).expect("readable");
        assert_eq!(
            [read(&record), read(&user), read(&loose)],
            [Some(*one), Some(*other), Some(*other)]
        );
        assert_eq!(read(&RefName::new("refs/frites/2/@record")), None);
        let names = repo.ref_names(OF_RUNS).expect("readable");
        assert_eq!(names, [record, loose]);
    }
}
