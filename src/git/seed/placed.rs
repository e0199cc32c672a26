//! What a worktree was given before the attempt began, so that a capture can tell it from the attempt's
//! own work.
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gix::bstr::{ByteSlice, ByteVec};
use serde::{Deserialize, Serialize};

use crate::error::{IoContext, Result};
use crate::fs::tree;
use crate::git::repo::to_oid;
use crate::git::seed::find;
use crate::model::FORMAT;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::process;

/// One seed, as it was put there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seed {
    /// A file with the content of this blob, unfiltered.
    File(Oid),
    /// A link to this target.
    Link(Vec<u8>),
}

/// The seeds of a worktree by their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Record", into = "Record")]
pub struct Seeded(BTreeMap<TreePath, Seed>);

/// `seeds.toml`. Bytes that are not UTF-8, and backslashes, are escaped (`\xff`, `\\`).
#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    #[serde(default)]
    files: BTreeMap<String, Oid>,
    #[serde(default)]
    links: BTreeMap<String, String>,
}

impl From<Record> for Seeded {
    fn from(record: Record) -> Seeded {
        let path = |text: &str| TreePath::from(Vec::unescape_bytes(text));
        let files = record.files.into_iter().map(|(p, blob)| (path(&p), Seed::File(blob)));
        let links = record
            .links
            .into_iter()
            .map(|(p, target)| (path(&p), Seed::Link(Vec::unescape_bytes(target))));
        Seeded(files.chain(links).collect())
    }
}

impl From<Seeded> for Record {
    fn from(seeded: Seeded) -> Record {
        let mut record = Record { version: FORMAT, files: BTreeMap::new(), links: BTreeMap::new() };
        for (path, seed) in seeded.0 {
            let path = path.escape_bytes().to_string();
            match seed {
                Seed::File(blob) => drop(record.files.insert(path, blob)),
                Seed::Link(target) => {
                    drop(record.links.insert(path, target.escape_bytes().to_string()));
                }
            }
        }
        record
    }
}

impl Seeded {
    /// Remembers what lies at `paths` in a worktree.
    pub fn look(
        worktree: &Path,
        paths: impl IntoIterator<Item = TreePath>,
        known: &Known,
    ) -> Result<Seeded> {
        let full = |path: TreePath| {
            let full = path.on_disk(worktree);
            (path, full)
        };
        Seeded::read(paths.into_iter().map(full), known)
    }

    /// What these files hold, each by the path that it has in a worktree.
    pub fn read(
        files: impl IntoIterator<Item = (TreePath, PathBuf)>,
        known: &Known,
    ) -> Result<Seeded> {
        let mut seeded = BTreeMap::new();
        for (path, full) in files {
            let seed = read(&full, known.0.get(&path))
                .context(|| format!("could not read '{}'", full.display()))?;
            seeded.extend(seed.map(|seed| (path, seed)));
        }
        Ok(Seeded(seeded))
    }

    /// Lets each link that leads to something below `root` lead to the same below `into`.
    pub fn move_links(&mut self, root: &Path, into: &Path) {
        for seed in self.0.values_mut() {
            if let Seed::Link(target) = seed {
                let moved = find::moved(
                    PathBuf::from(OsString::from_vec(std::mem::take(target))),
                    root,
                    into,
                );
                *target = moved.into_os_string().into_vec();
            }
        }
    }

    /// Whether there is nothing to tell apart.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The paths that got a seed.
    pub fn paths(&self) -> impl Iterator<Item = &TreePath> {
        self.0.keys()
    }

    /// Whether a path of the worktree still holds its seed; a directory (its path ends in `/`) when that goes
    /// for everything in it.
    pub fn hold(&self, worktree: &Path, path: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let full = worktree.join(OsStr::from_bytes(path));
        if !full.parent().is_some_and(|directory| tree::is_real_directory(worktree, directory)) {
            return false;
        }
        match path.strip_suffix(b"/") {
            Some(directory) => {
                self.0.keys().any(|p| p.starts_with(path)) && self.hold_all(worktree, directory)
            }
            None => self.holds(&full, path),
        }
    }

    fn hold_all(&self, worktree: &Path, directory: &[u8]) -> bool {
        let Ok(listing) = fs::read_dir(worktree.join(OsStr::from_bytes(directory))) else {
            return false;
        };
        listing.into_iter().all(|entry| {
            let Ok(entry) = entry else { return false };
            let path = [directory, b"/", entry.file_name().as_bytes()].concat();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir { self.hold_all(worktree, &path) } else { self.holds(&entry.path(), &path) }
        })
    }

    fn holds(&self, full: &Path, path: &[u8]) -> bool {
        self.0
            .get(path)
            .is_some_and(|seed| read(full, None).is_ok_and(|now| now.as_ref() == Some(seed)))
    }

    /// Whether an entry of a tree is the seed of its path.
    pub fn is(&self, path: &[u8], id: &gix::oid) -> bool {
        match self.0.get(path) {
            Some(Seed::File(blob)) => to_oid(id.to_owned()) == *blob,
            Some(Seed::Link(target)) => {
                blob(target.as_slice(), target.len() as u64).is_ok_and(|own| own == id)
            }
            None => false,
        }
    }
}

/// What lies at a path, if it is a file or a link.
fn read(path: &Path, known: Option<&(Stamp, Oid)>) -> io::Result<Option<Seed>> {
    let meta = match fs::symlink_metadata(path) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        other => other?,
    };
    if meta.is_symlink() {
        return Ok(Some(Seed::Link(fs::read_link(path)?.into_os_string().into_vec())));
    }
    if !meta.is_file() {
        return Ok(None);
    }
    if let Some((_, blob)) = known.filter(|(stamp, _)| *stamp == Stamp::of(&meta)) {
        return Ok(Some(Seed::File(*blob)));
    }
    Ok(Some(Seed::File(to_oid(blob(File::open(path)?, meta.len())?))))
}

/// The id that git gives to these bytes as they stand.
fn blob(mut bytes: impl Read, len: u64) -> io::Result<gix::ObjectId> {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&gix::objs::encode::loose_header(gix::objs::Kind::Blob, len));
    let mut buffer = vec![0; 1 << 16];
    loop {
        match bytes.read(&mut buffer)? {
            0 => return hasher.try_finalize().map_err(io::Error::other),
            n => hasher.update(&buffer[..n]),
        }
    }
}

/// When a file was written and how long it is: copies have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp(u64, Option<SystemTime>);

impl Stamp {
    fn of(meta: &Metadata) -> Stamp {
        Stamp(meta.len(), meta.modified().ok())
    }
}

/// What the originals of copies hold, so that it is read once and not in every worktree.
#[derive(Default)]
pub struct Known(BTreeMap<TreePath, (Stamp, Oid)>);

impl Known {
    /// Reads these files, each with the path that it has in a worktree, several at once. What cannot be
    /// read is not known.
    pub fn read(files: &[(&TreePath, &PathBuf)]) -> Result<Known> {
        let known = process::in_parallel(process::processors(), files, |(path, full)| {
            let stamp = fs::symlink_metadata(full).map(|meta| Stamp::of(&meta));
            Ok(match (stamp, read(full, None)) {
                (Ok(stamp), Ok(Some(Seed::File(blob)))) => Some(((*path).clone(), (stamp, blob))),
                _ => None,
            })
        })?;
        Ok(Known(known.into_iter().flatten().collect()))
    }
}
