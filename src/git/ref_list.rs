//! Lists of refs, and the memory of a command that only looks at runs.
//!
//! Reading all refs of runs in one pass is for the rows `log` and `path` of `make bench`, which take 1.1 times the
//! processor time with gix; remembering them is for the row `status`, which takes 1.4 times without.
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice;
use gix::refs::TargetRef;
use gix::refs::file::find::ReferenceDecode;
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::error::{Error, Result};
use crate::fs::{directory, regular};
use crate::git::repo::{Repo, to_oid};
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// The prefix of the refs of all runs.
pub const OF_RUNS: &str = "refs/frites/";

/// The refs of all runs at one moment, with the objects that they point to; `None` for a link that
/// leads nowhere.
pub type RefsOfRuns = BTreeMap<RefName, Option<Oid>>;

/// The refs that lists left out, because their files hold no value.
static BROKEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The names of refs that were left out of lists, because their files hold no value: a power cut
/// leaves such files. git leaves them out, too.
pub fn broken_refs() -> MutexGuard<'static, BTreeSet<String>> {
    BROKEN.lock()
}

/// The refs that are files of their own.
#[derive(Default)]
struct LooseRefs {
    refs: RefsOfRuns,
    locks: Vec<PathBuf>,
}

impl LooseRefs {
    /// Reads the refs in a directory of `parent` and below; `prefix` is its whole name, and ends in
    /// a slash. What is deleted meanwhile is left out.
    fn read_below(
        &mut self,
        parent: impl AsFd,
        directory: impl Arg,
        prefix: &str,
        git_dir: &Path,
    ) -> io::Result<()> {
        let mut listing = match directory::open_to_list(parent, directory).map_err(io::Error::from)
        {
            Err(e) if is_gone(&e) => return Ok(()),
            opened => opened?,
        };
        for entry in directory::entries(&mut listing)? {
            let file = entry.file_name();
            let name = format!("{prefix}{}", file.to_string_lossy());
            let kind = match directory::kind(&listing, &entry) {
                Err(Errno::NOENT) => continue,
                kind => kind?,
            };
            if kind == FileType::Directory {
                self.read_below(listing.fd()?, file, &format!("{name}/"), git_dir)?;
            } else if name.ends_with(".lock") {
                self.locks.push(git_dir.join(name));
            } else if gix::refs::FullName::try_from(name.as_str()).is_ok() {
                match read_start(listing.fd()?, file) {
                    Err(e) if is_gone(&e) => {}
                    Err(_) if kind == FileType::Symlink => drop(broken_refs().insert(name)),
                    text => self.add(name, &text?),
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, name: String, text: &[u8]) {
        match oid_of(text) {
            Some(oid) => drop(self.refs.insert(RefName::new(name), Some(oid))),
            None if text.starts_with(b"ref:") => drop(self.refs.insert(RefName::new(name), None)),
            None => drop(broken_refs().insert(name)),
        }
    }
}

/// The object that a ref's file names; `None` if it is no object.
fn oid_of(text: &[u8]) -> Option<Oid> {
    let oid = text.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    oid.to_str().ok().and_then(Oid::parse)
}

/// True for the error that there is no file of a ref.
fn is_gone(e: &io::Error) -> bool {
    [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&e.kind())
}

/// The beginning of a file: all of one that holds an object id. Does not wait for a FIFO.
fn read_start(directory: impl AsFd, path: impl Arg) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::openat(directory, path, flags, Mode::empty())?;
    let mut start = vec![0; 128];
    let length = rustix::io::read(&file, &mut start[..])?;
    start.truncate(length);
    Ok(start)
}

impl Repo {
    /// Reads the refs of all runs: the loose ones first, as git does, so that one that is being packed
    /// meanwhile is in one of both places.
    pub fn refs_of_runs(&self) -> Result<RefsOfRuns> {
        let mut refs = self.look_at_refs_of_runs()?.0;
        // A link leads to an object, or nowhere.
        for (name, oid) in refs.iter_mut().filter(|(_, oid)| oid.is_none()) {
            let gix = self.gix();
            let linked = gix.try_find_reference(name.as_str()).ok().flatten();
            *oid = linked.and_then(|mut found| Some(to_oid(found.peel_to_id().ok()?.detach())));
        }
        Ok(refs)
    }

    /// Reads the refs of all runs in one pass (`None` for a link), and lists the locks among their files.
    pub fn look_at_refs_of_runs(&self) -> Result<(RefsOfRuns, Vec<PathBuf>)> {
        let unreadable = |e: io::Error| Error::io("the refs of runs cannot be read", e);
        let mut found = LooseRefs::default();
        let git_dir = self.common_dir();
        let directory = self.common_dir().join(OF_RUNS);
        found.read_below(CWD, directory, OF_RUNS, git_dir).map_err(unreadable)?;
        let packed = match regular::read(&self.common_dir().join("packed-refs")) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(unreadable)?,
        };
        let before_name = format!(" {OF_RUNS}");
        for at in packed.find_iter(&before_name) {
            let line = packed[..at].rfind_byte(b'\n').map_or(0, |end| end + 1);
            let name = packed[at + 1..].lines().next().unwrap_or_default().to_str_lossy();
            let oid = packed[line..at].to_str().ok().and_then(Oid::parse);
            // The loose one is newer.
            if let Some(oid) = oid {
                found.refs.entry(RefName::new(name)).or_insert(Some(oid));
            }
        }
        Ok((found.refs, found.locks))
    }

    /// Answers all questions about refs of runs from this list from now on: for a command that only
    /// looks, and would read each of them several times.
    pub fn remember_refs(&self, refs: RefsOfRuns) {
        *self.remembered.lock() = Some(refs);
    }

    /// The value of a ref of a run, as far as it is remembered.
    pub(super) fn remembered_ref(&self, full: &RefName) -> Option<Option<Oid>> {
        if !full.starts_with(OF_RUNS) {
            return None;
        }
        let refs = self.remembered.lock();
        match refs.as_ref()?.get(full) {
            // It is a link that leads nowhere: reading it says why.
            Some(None) => None,
            known => Some(known.copied().flatten()),
        }
    }

    fn remembered_names(&self, prefix: &str) -> Option<Vec<RefName>> {
        if prefix != OF_RUNS {
            return None;
        }
        let refs = self.remembered.lock();
        Some(refs.as_ref()?.keys().cloned().collect())
    }

    /// All refs under a prefix that ends in `/`, sorted by name, with the objects they point to.
    pub fn refs_under(&self, prefix: &str) -> Result<Vec<(RefName, Oid)>> {
        let found = self.each_ref(prefix, |name, mut reference| {
            let own = reference.try_id().map(gix::Id::detach);
            // The object may be missing: the ref is there all the same.
            let peeled = reference.peel_to_id().ok().map(gix::Id::detach).or(own);
            Some((name, to_oid(peeled?)))
        })?;
        found.map_or_else(|| self.list_refs(prefix), Ok)
    }

    /// The names of all refs under a prefix that ends in `/`, sorted. Much faster than
    /// [`Repo::refs_under`], because no object is read.
    pub fn ref_names(&self, prefix: &str) -> Result<Vec<RefName>> {
        if let Some(names) = self.remembered_names(prefix) {
            return Ok(names);
        }
        if prefix == OF_RUNS {
            return Ok(self.look_at_refs_of_runs()?.0.into_keys().collect());
        }
        match self.each_ref(prefix, |name, _| Some(name))? {
            Some(names) => Ok(names),
            None => Ok(self.list_refs(prefix)?.into_iter().map(|(name, _)| name).collect()),
        }
    }

    /// The refs under a prefix that ends in `/`, sorted by name: the object of each, or `ref: ` and
    /// the name of the ref that it links to. `None` if another git moved refs all the time.
    pub(super) fn ref_values(&self, prefix: &str) -> Result<Option<Vec<(RefName, String)>>> {
        self.each_ref(prefix, |name, mut reference| {
            let value = match reference.target() {
                TargetRef::Object(id) => id.to_string(),
                TargetRef::Symbolic(target) => {
                    let value = format!("ref: {}", target.as_bstr());
                    // git leaves a link to nothing out.
                    reference.peel_to_id().ok()?;
                    value
                }
            };
            Some((name, value))
        })
    }

    /// Reads refs in process; `None` if another git moved refs all the time.
    fn each_ref<T: Ord>(
        &self,
        prefix: &str,
        read: impl Fn(RefName, gix::Reference<'_>) -> Option<T>,
    ) -> Result<Option<Vec<T>>> {
        let unreadable = |e: &dyn std::fmt::Display| {
            Error::damaged(format!("the refs under {prefix} cannot be read: {e}"))
        };
        self.read_refs_at_rest(|gix| {
            let platform = gix.references().map_err(|e| unreadable(&e))?;
            let mut found = Vec::new();
            for reference in platform.prefixed(prefix).map_err(|e| unreadable(&e))? {
                let reference = match reference {
                    Ok(reference) => reference,
                    Err(e) => match e.downcast_any_ref::<ReferenceDecode>() {
                        Some(broken) => {
                            broken_refs().insert(broken.relative_path.display().to_string());
                            continue;
                        }
                        None => return Err(unreadable(&e)),
                    },
                };
                let name = RefName::new(reference.name().as_bstr().to_str_lossy());
                found.extend(read(name, reference));
            }
            found.sort();
            Ok(found)
        })
    }

    /// The names of the refs under this prefix from which a commit can be reached, sorted.
    pub fn refs_that_contain(&self, commit: &Oid, under: &str) -> Result<Vec<RefName>> {
        let call = self.git().call("for-each-ref").args(["--format=%(refname)", "--contains"]);
        let list = call.args([commit.as_str(), under]).bytes()?;
        Ok(String::from_utf8_lossy(&list).lines().map(RefName::new).collect())
    }

    /// All refs under a prefix, or the ref of that name, as git reads them: it looks at the loose
    /// files first, and so misses none that is being packed.
    pub(super) fn list_refs(&self, prefix: &str) -> Result<Vec<(RefName, Oid)>> {
        let call = self.git().call("for-each-ref").args(["--format=%(objectname) %(refname)"]);
        let list = call.arg(prefix).bytes()?;
        let list = String::from_utf8_lossy(&list);
        let each = list.lines().filter_map(|line| {
            let (oid, name) = line.split_once(' ')?;
            Some((RefName::new(name), Oid::parse(oid)?))
        });
        let mut found: Vec<(RefName, Oid)> = each.collect();
        found.sort();
        Ok(found)
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
        let commits =
            ["one", "other"].map(|message| repo.store_files(&[], [], message).expect("a commit"));
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
