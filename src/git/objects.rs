//! Writes objects in process. Objects are first written under temporary names. They get their names
//! only when all of them are on the disk. So after a power cut there is no object without its
//! content, and no ref to such an object.
//!
//! git would need one process for each kind of object. It would also name each object before the
//! next one is on the disk.
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gix::ObjectId;
use gix::date::Time;
use gix::objs::tree::{Entry, EntryKind};
use gix::objs::{Kind, Tree, WriteTo};
use gix::zlib::stream::deflate::{Compress, FlushCompress};
use gix::zlib::{Compression, Status};
use jiff::Timestamp;
use tempfile::TempPath;

use crate::error::{Cause, Error, IoContext, Result};
use crate::fs::disk;
use crate::git::cli::{OURS, PAUSES, repeat};
use crate::git::repo::{Repo, from_oid, to_oid};
use crate::model::oid::Oid;
use crate::ui::local_time;

/// The beginning of the names of temporary files. `git prune` deletes old files with such a name.
const TEMPORARY: &str = "tmp_obj_";

/// Objects that are being written. If the value is dropped, the temporary files are deleted.
pub struct NewObjects {
    directory: PathBuf,
    written: BTreeMap<ObjectId, TempPath>,
    /// The compressor is reused for each object. Making one takes longer than compressing a small
    /// object.
    compressor: Option<Compress>,
}

impl Repo {
    /// Begins to write objects.
    pub fn new_objects(&self) -> NewObjects {
        let directory = self.common_dir().join("objects");
        NewObjects { directory, written: BTreeMap::new(), compressor: None }
    }
}

impl NewObjects {
    /// Adds an object, and returns its id. An object that already exists as a loose object is not
    /// written again. Its file gets the current time, so that `git prune` does not delete it.
    pub fn add(&mut self, kind: Kind, bytes: &[u8]) -> Result<ObjectId> {
        let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, bytes);
        let id = id.map_err(|e| Error::internal(format!("an object cannot be named: {e}")))?;
        if self.written.contains_key(&id) || freshen(&place_in(&self.directory, &id)) {
            return Ok(id);
        }
        let header = gix::objs::encode::loose_header(kind, bytes.len() as u64);
        let stream = self.compressed(&[&header, bytes].concat());
        let failed = || format!("could not write an object in '{}'", self.directory.display());
        let file = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempfile_in(&self.directory)
            .context(failed)?;
        let (mut file, path) = file.into_parts();
        stream.and_then(|stream| file.write_all(&stream)).context(failed)?;
        self.written.insert(id, path);
        Ok(id)
    }

    /// Compresses these bytes into one zlib stream.
    fn compressed(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let compressor =
            self.compressor.get_or_insert_with(|| Compress::new(Compression::BEST_SPEED));
        compressor.reset();
        let mut stream = Vec::new();
        let mut made = [0; 16 << 10];
        let mut status = Status::Ok;
        while status != Status::StreamEnd {
            let rest = &bytes[compressor.total_in() as usize..];
            let compressed = compressor.compress(rest, &mut made, FlushCompress::Finish);
            status = compressed.map_err(io::Error::other)?;
            let new = compressor.total_out() as usize - stream.len();
            stream.extend_from_slice(&made[..new]);
        }
        Ok(stream)
    }

    pub fn add_tree(&mut self, tree: &Tree) -> Result<ObjectId> {
        let mut bytes = Vec::new();
        tree.write_to(&mut bytes)
            .map_err(|e| Error::internal(format!("a tree cannot be made: {e}")))?;
        self.add(Kind::Tree, &bytes)
    }

    /// Adds a commit by git-frites with the current date. A parent that is given twice becomes a
    /// parent once.
    pub fn add_commit<'a>(
        &mut self,
        tree: &Oid,
        parents: impl IntoIterator<Item = &'a Oid>,
        message: &str,
    ) -> Result<ObjectId> {
        self.add_commit_of(now(), tree, parents, message)
    }

    /// Adds a commit by git-frites with this date. A parent that is given twice becomes a parent
    /// once.
    pub fn add_commit_of<'a>(
        &mut self,
        date: Time,
        tree: &Oid,
        parents: impl IntoIterator<Item = &'a Oid>,
        message: &str,
    ) -> Result<ObjectId> {
        let mut text = format!("tree {tree}\n");
        let mut seen: Vec<&Oid> = Vec::new();
        for parent in parents {
            if !seen.contains(&parent) {
                text.push_str(&format!("parent {parent}\n"));
                seen.push(parent);
            }
        }
        let who = format!("{} <{}> {date}", OURS.0, OURS.1);
        let end = if message.ends_with('\n') { "" } else { "\n" };
        text.push_str(&format!("author {who}\ncommitter {who}\n\n{message}{end}"));
        self.add(Kind::Commit, text.as_bytes())
    }

    /// Adds a commit by git-frites whose tree has exactly these files.
    pub fn add_files<'a>(
        &mut self,
        files: &[(String, StoredContent<'_>)],
        parents: impl IntoIterator<Item = &'a Oid>,
        message: &str,
    ) -> Result<ObjectId> {
        let mut entries = Vec::new();
        for (name, content) in files {
            let oid = match content {
                StoredContent::Bytes(bytes) => self.add(Kind::Blob, bytes)?,
                StoredContent::Stored(oid) => from_oid(oid)?,
            };
            let filename = name.as_str().into();
            entries.push(Entry { mode: EntryKind::Blob.into(), oid, filename });
        }
        entries.sort();
        let tree = self.add_tree(&Tree { entries })?;
        self.add_commit(&to_oid(tree), parents, message)
    }

    /// Waits until all objects are on the disk, and then gives them their names.
    pub fn keep(self) -> Result<()> {
        disk::sync(&self.written.values().collect::<Vec<_>>())?;
        let places: Vec<PathBuf> =
            self.written.keys().map(|id| place_in(&self.directory, id)).collect();
        // New directories get the mode of `objects`. So other users can use them in a shared
        // repository (`core.sharedRepository`).
        let mode = fs::metadata(&self.directory).map_or(0o755, |meta| meta.mode() & 0o7777);
        for (place, path) in places.iter().zip(self.written.into_values()) {
            let failed = || format!("could not write '{}'", place.display());
            let set = |path: &Path, mode: u32| {
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).context(failed)
            };
            set(&path, mode & 0o444)?;
            if let Some(directory) = place.parent()
                && fs::create_dir(directory).is_ok()
            {
                set(directory, mode)?;
            }
            path.persist(place).map_err(|e| e.error).context(failed)?;
        }
        Ok(())
    }
}

/// The file in which an object is stored below `directory`, an `objects` directory.
fn place_in(directory: &Path, id: &ObjectId) -> PathBuf {
    let hex = id.to_string();
    directory.join(&hex[..2]).join(&hex[2..])
}

/// The current time, with the local offset from UTC, for commits and reflogs.
pub(super) fn now() -> Time {
    match local_time::zone() {
        Some(zone) => {
            let now = Timestamp::now();
            Time { seconds: now.as_second(), offset: zone.to_offset(now).seconds() }
        }
        None => Time::now_local_or_utc(),
    }
}

/// Sets the time of an object's file to the current time. Returns false if the file does not exist.
fn freshen(object: &Path) -> bool {
    // The owner of a file can set its times even if the file is read-only.
    File::open(object).is_ok_and(|file| {
        let _ = file.set_modified(SystemTime::now());
        true
    })
}

impl Repo {
    /// True if the repository has an object as a loose object. Asks the disk, because gix also
    /// finds objects in a deleted pack that is still open in this process.
    pub(super) fn is_loose(&self, id: &ObjectId) -> bool {
        place_in(&self.common_dir().join("objects"), id).exists()
    }

    /// Stores bytes as a blob, without filters.
    pub fn store_blob(&self, bytes: impl AsRef<[u8]>) -> Result<Oid> {
        self.store(|objects| objects.add(Kind::Blob, bytes.as_ref()))
    }

    /// Writes the objects that `add` adds, and returns the id that `add` returns.
    pub fn store(&self, add: impl Fn(&mut NewObjects) -> Result<ObjectId>) -> Result<Oid> {
        self.store_all(add).map(to_oid)
    }

    /// Writes the objects that `add` adds, and returns the value that `add` returns. Waits for the
    /// disk only once for all objects. If a file or directory is gone, tries again: a `git prune`
    /// removes temporary files and empty directories.
    pub fn store_all<T>(&self, add: impl Fn(&mut NewObjects) -> Result<T>) -> Result<T> {
        repeat(
            PAUSES,
            |done| matches!(done, Err(e) if e.cause == Cause::NotFound),
            || {
                let mut objects = self.new_objects();
                let added = add(&mut objects)?;
                objects.keep()?;
                Ok(added)
            },
        )
    }
}

/// The content of a file for [`NewObjects::add_files`].
#[derive(Clone, Copy, Debug)]
pub enum StoredContent<'a> {
    /// The bytes of the file.
    Bytes(&'a [u8]),
    /// The id of a blob that is stored already.
    Stored(Oid),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::refname::RefName;

    #[test]
    fn the_offset_is_that_of_the_system() {
        let (first, ours, last) = (Time::now_local_or_utc(), now(), Time::now_local_or_utc());
        assert_eq!(ours.offset, first.offset);
        assert!((first.seconds..=last.seconds).contains(&ours.seconds));
    }

    #[test]
    fn stored_files_are_what_git_would_have_stored_and_leave_no_temporary_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let git = |args: &[&str]| {
            let call = duct::cmd("git", args).dir(directory.path()).stderr_to_stdout();
            call.read().expect("git works")
        };
        git(&["init", "-q"]);
        let repo = Repo::discover(directory.path()).expect("a repository");
        let blob = repo.store_blob("stored\n").expect("written");
        let files = [
            ("b.txt".to_owned(), StoredContent::Bytes(b"")),
            ("b".to_owned(), StoredContent::Stored(blob)),
            ("a".to_owned(), StoredContent::Bytes(b"bytes\0\n")),
        ];
        let root = repo.store(|objects| objects.add_files(&files, [], "root")).expect("written");
        let again = [&root, &root];
        let child =
            repo.store(|objects| objects.add_files(&files, again, "child\n")).expect("written");
        git(&["fsck", "--strict"]);
        let tree = git(&["ls-tree", "--format=%(objectmode) %(path)", child.as_str()]);
        assert_eq!(tree, "100644 a\n100644 b\n100644 b.txt");
        assert_eq!(git(&["cat-file", "-p", &format!("{child}:b")]), "stored");
        assert_eq!(
            git(&["rev-list", "--parents", "-1", child.as_str()]),
            format!("{child} {root}")
        );
        assert_eq!(
            git(&["log", "-1", "--format=%an <%ae>|%B", child.as_str()]),
            "git-frites <git-frites@localhost>|child"
        );
        let objects = directory.path().join(".git/objects");
        let left = fs::read_dir(&objects).expect("there").flatten();
        assert!(
            left.map(|e| e.file_name()).all(|name| name.len() < 5 && name != "tmp"),
            "only fan-out"
        );

        // An object that was added is not stored without `keep`.
        repo.new_objects().add(Kind::Blob, b"dropped").expect("written");
        assert_eq!(git(&["count-objects"]).split(' ').next(), Some("6"));

        // A ref moves only if the given old value is right, and its reflog says that git-frites
        // moved it.
        let name = RefName::new("refs/frites/1/c1");
        repo.update_ref(&name, Some(&root), None, "first").expect("new");
        assert!(repo.update_ref(&name, Some(&child), None, "again").is_err());
        assert!(repo.update_ref(&name, Some(&child), Some(&child), "again").is_err());
        git(&["pack-refs", "--all"]);
        repo.update_ref(&name, Some(&child), Some(&root), "second").expect("moved");
        assert_eq!(git(&["rev-parse", &name]), child.to_string());
        let log = git(&["reflog", "--format=%gn %gs", &name]);
        assert_eq!(log, "git-frites git-frites: second\ngit-frites git-frites: first");
        assert!(repo.reflog_claims_us(&name, false).expect("readable"));

        // This is the reflog of a process that was killed after it wrote the line about a move, and
        // before it wrote the ref.
        let file = directory.path().join(".git/logs").join(name.as_str());
        let lines = fs::read_to_string(&file).expect("readable");
        let add = |from: &Oid, to: &Oid, why: &str| {
            let line = format!("{from} {to} git-frites <git-frites> 1 +0000\t{why}\n");
            fs::write(&file, format!("{lines}{line}{line}")).expect("written");
        };
        add(&child, &root, "git-frites: killed");
        assert!(repo.reflog_claims_us(&name, false).expect("readable"));
        add(&root, &root, "git-frites: of a value that is gone");
        assert!(!repo.reflog_claims_us(&name, false).expect("readable"));
        add(&root, &child, "by hand");
        assert!(!repo.reflog_claims_us(&name, true).expect("readable"));
    }
}
