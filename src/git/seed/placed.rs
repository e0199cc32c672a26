//! The record of the seeds that were placed in a worktree before the attempt began. From this
//! record a capture knows which files are seeds and which are the attempt's own work.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::error::{IoContext, Result};
use crate::fs::tree::{self, size_and_mtime};
use crate::fs::{parallel, regular};
use crate::git::repo::to_oid;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The content of one seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Seed {
    /// A file whose bytes, without filters, are this blob.
    File(Oid),
    /// A link to this target.
    Link(TreePath),
}

/// The paths of the seeds that were placed in a worktree, with their contents. This is also the
/// content of `seeds.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedSeeds(BTreeMap<TreePath, Seed>);

impl PlacedSeeds {
    /// Reads seeds. `files` has the path of each seed in a worktree, and the file to read. Anything
    /// except files and links is left out. A file with the size and mtime of its original in
    /// `originals` is not read again.
    pub fn read(
        files: impl IntoIterator<Item = (TreePath, PathBuf)>,
        originals: &SeedContents,
    ) -> Result<PlacedSeeds> {
        let mut seeds = BTreeMap::new();
        for (path, full) in files {
            let seed = read(&full, originals.0.get(&path)).could_not("read", &full)?;
            seeds.extend(seed.map(|seed| (path, seed)));
        }
        Ok(PlacedSeeds(seeds))
    }

    /// Changes the target of each link to the target that its copies have; see [`redirected`].
    pub fn redirect_links(&mut self, root: &Path) {
        for (path, seed) in &mut self.0 {
            if let Seed::Link(target) = seed {
                let moved = redirected(OsStr::from_bytes(target).into(), path, root);
                *target = TreePath::new(moved.as_os_str().as_bytes());
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn paths(&self) -> impl Iterator<Item = &TreePath> {
        self.0.keys()
    }

    pub fn forget(&mut self, path: &TreePath) {
        self.0.remove(path);
    }

    pub fn has(&self, path: &TreePath) -> bool {
        self.0.contains_key(path)
    }

    /// True if the file at a path of the worktree is still the seed that was placed there. The path
    /// of a directory ends in `/`. A directory must have seeds, and every file in it must be an
    /// unmodified seed.
    pub fn still_hold(&self, worktree: &Path, path: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let full = worktree.join(OsStr::from_bytes(path));
        if !full.parent().is_some_and(|directory| tree::is_real_directory(worktree, directory)) {
            return false;
        }
        match path.strip_suffix(b"/") {
            Some(directory) => {
                let has_seeds = self.0.keys().any(|p| p.starts_with(path));
                has_seeds && self.holds_directory(worktree, &TreePath::new(directory))
            }
            None => self.holds_file(&full, path),
        }
    }

    fn holds_directory(&self, worktree: &Path, directory: &TreePath) -> bool {
        let Ok(listing) = fs::read_dir(directory.on_disk(worktree)) else {
            return false;
        };
        listing.into_iter().all(|entry| {
            let Ok(entry) = entry else { return false };
            let path = directory.join(entry.file_name().as_bytes());
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir {
                self.holds_directory(worktree, &path)
            } else {
                self.holds_file(&entry.path(), &path)
            }
        })
    }

    fn holds_file(&self, full: &Path, path: &[u8]) -> bool {
        self.0
            .get(path)
            .is_some_and(|seed| read(full, None).is_ok_and(|now| now.as_ref() == Some(seed)))
    }

    /// True if `id`, the blob of a tree entry at this path, has the content of the seed that was
    /// placed there.
    pub fn is_seed(&self, path: &[u8], id: &gix::oid) -> bool {
        match self.0.get(path) {
            Some(Seed::File(blob)) => to_oid(id.to_owned()) == *blob,
            Some(Seed::Link(target)) => {
                blob(target.as_bytes(), target.len() as u64).is_ok_and(|own| own == id)
            }
            None => false,
        }
    }
}

/// Reads the file or the link at a path; `None` for anything else. A file with the size and mtime
/// of its `original` is a copy, so it is not read.
fn read(path: &Path, original: Option<&Original>) -> io::Result<Option<Seed>> {
    let meta = match fs::symlink_metadata(path) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        other => other?,
    };
    if meta.is_symlink() {
        let target = fs::read_link(path)?;
        return Ok(Some(Seed::Link(TreePath::new(target.as_os_str().as_bytes()))));
    }
    if !meta.is_file() {
        return Ok(None);
    }
    if let Some((stat, blob)) = original
        && *stat == size_and_mtime(&meta)
    {
        return Ok(Some(Seed::File(*blob)));
    }
    Ok(Some(Seed::File(to_oid(blob(regular::open(path)?, meta.len())?))))
}

/// The id of a blob with these bytes, without filters.
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

/// The size, the mtime, and the blob id of a file from which a seed is copied.
type Original = ((u64, Option<SystemTime>), Oid);

/// The contents of the files from which seeds are copied. They are read once for all worktrees.
#[derive(Default)]
pub struct SeedContents(BTreeMap<TreePath, Original>);

impl SeedContents {
    /// Reads files in parallel. `files` has the path of each seed in a worktree, and the file to
    /// read. A file that cannot be read is left out.
    pub fn read(files: &[(&TreePath, &PathBuf)]) -> Result<SeedContents> {
        let contents = parallel::map(files, |(path, full)| {
            let stat = fs::symlink_metadata(full).map(|meta| size_and_mtime(&meta));
            Ok(match (stat, read(full, None)) {
                (Ok(stat), Ok(Some(Seed::File(blob)))) => Some(((*path).clone(), (stat, blob))),
                _ => None,
            })
        })?;
        Ok(SeedContents(contents.into_iter().flatten().collect()))
    }

    /// True if every one of the files was last written before `time`.
    pub fn are_older_than(&self, time: SystemTime) -> bool {
        self.0.values().all(|((_, modified), _)| modified.is_some_and(|modified| modified < time))
    }
}

/// The target for the copies of a link. The link is at `path` in the checkout `root`, and has the
/// target `target`. A copy is at the same path below another directory.
///
/// A relative target that stays inside the checkout is kept. Any other target is resolved first,
/// because it may lead into the checkout through links:
///
/// - If the resolved target is inside the checkout, the result is relative. So the copy leads to
///   the same path in its own directory, wherever commands see that directory.
/// - If it is outside, the result is absolute. From a directory of another depth, a relative target
///   would lead elsewhere, perhaps back into the checkout.
pub fn redirected(target: PathBuf, path: &TreePath, root: &Path) -> PathBuf {
    let link = path.on_disk(root);
    let directory = link.parent().unwrap_or(root);
    if target.is_relative() && stays_below(root, &directory.join(&target)) {
        return target;
    }
    let real = tree::nearest_real(&tree::nearest_real(directory).join(&target));
    match real.strip_prefix(tree::nearest_real(root)) {
        Ok(below) => {
            let target = path.parents().map(|_| "..").collect::<PathBuf>().join(below);
            // No link can have an empty target.
            if target.as_os_str().is_empty() { PathBuf::from(".") } else { target }
        }
        Err(_) if target.is_absolute() => target,
        Err(_) => real,
    }
}

/// True if `path` begins with `root`, and does not leave `root` through a `..`. Links are not
/// resolved.
fn stays_below(root: &Path, path: &Path) -> bool {
    let Ok(below) = path.strip_prefix(root) else { return false };
    let mut depths = below.components().scan(0_i32, |depth, component| {
        *depth += match component {
            Component::ParentDir => -1,
            Component::Normal(_) => 1,
            _ => 0,
        };
        Some(*depth)
    });
    depths.all(|depth| depth >= 0)
}
