//! Writes each file of an index to several worktrees, by its name in an open directory.
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::{Mode as EntryMode, Stat as EntryStat};
use gix::objs::Kind;
use gix::prelude::FindExt;
use rustix::fs::{AtFlags, Mode, OFlags, Timestamps};

use crate::error::{Error, IoContext, Result};
use crate::fs::directory::{DIRECTORY, open_or_make};
use crate::fs::parallel;
use crate::git::directories::directories;
use crate::git::fan_out::conversion::Conversion;
use crate::git::fan_out::sharing::Sharing;
use crate::git::index::entry_stat;
use crate::git::loose::LooseObjects;
use crate::git::repo::{Repo, to_oid};

/// The largest number of files that a thread writes in one go, all in one directory.
const UNIT: usize = 64;

/// The flags to open a new file. They fail if the path exists, even as a link.
const NEW_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A directory that gets the files of a commit, and the path of its index.
pub struct Place<'a> {
    pub path: &'a Path,
    pub index: PathBuf,
}

/// The files of a commit, and what is needed to write them.
pub struct Fan<'a> {
    /// The user's repository.
    pub repo: &'a Repo,
    /// The same repository, with the configuration for the new files.
    pub gix: gix::ThreadSafeRepository,
    /// The files to write.
    pub index: Arc<gix::index::File>,
    /// The conversion of each entry; empty if all are verbatim.
    pub conversions: Vec<Conversion>,
    /// The times that the files get; `None` if they keep the times at which they are written.
    pub times: Option<Timestamps>,
    /// Tells whether files can share their blocks.
    pub sharing: Sharing,
}

/// The result of writing the files.
#[derive(Default)]
pub struct Written {
    /// The positions in the index of the entries that were written.
    pub entries: Vec<usize>,
    /// The stat data of the files: first those of the first entry in each worktree, then those of
    /// the second entry, and so on. One flat list takes less time and memory than a list for each
    /// entry.
    pub stats: Vec<EntryStat>,
    /// The reason why a path was left to git; `None` if all files were written.
    pub left: Option<String>,
}

/// Neighbouring files of one directory. Each has its name and its position in the index.
struct Unit<'a> {
    directory: &'a [u8],
    entries: &'a [(&'a [u8], usize)],
}

/// If this many blobs in a row were not loose, the thread stops looking for loose objects.
const MOST_MISSED: usize = 32;

/// The buffers that one thread reuses for all its files.
struct Worker {
    gix: gix::Repository,
    loose: LooseObjects,
    /// The number of blobs in a row that were not loose.
    missed: usize,
    blob: Vec<u8>,
    converted: Vec<u8>,
}

impl Fan<'_> {
    /// Writes the files to each of `places`. The directories must have no files yet.
    pub fn write(&self, places: &[Place<'_>]) -> Result<Written> {
        let open = |place: &Place<'_>| {
            let root = rustix::fs::open(place.path, DIRECTORY, Mode::empty());
            root.map_err(io::Error::from).could_not("open", place.path)
        };
        let roots: Vec<OwnedFd> = places.iter().map(open).collect::<Result<_>>()?;
        let directories = directories(&self.index)
            .ok_or_else(|| Error::internal("the files of an index are not sorted"))?;
        let mut units = Vec::new();
        for directory in &directories {
            let chunks = directory.files.chunks(UNIT);
            units.extend(chunks.map(|entries| Unit { directory: directory.path, entries }));
        }
        let worker = || Worker {
            gix: self.gix.to_thread_local(),
            loose: LooseObjects::new(self.repo.common_dir()),
            missed: 0,
            blob: Vec::new(),
            converted: Vec::new(),
        };
        let parts = parallel::map_with(&units, worker, |worker, unit| {
            self.write_unit(worker, unit, &roots)
        })?;
        let mut written = Written::default();
        for part in parts {
            written.entries.extend(part.entries);
            written.stats.extend(part.stats);
            written.left = written.left.or(part.left);
        }
        Ok(written)
    }

    fn write_unit(
        &self,
        worker: &mut Worker,
        unit: &Unit<'_>,
        roots: &[OwnedFd],
    ) -> Result<Written> {
        let failed = |path: &BStr| format!("could not write '{path}'");
        let mut written = Written::default();
        let open = |root: &OwnedFd| open_below(root, unit.directory);
        let directories: Vec<OwnedFd> = roots
            .iter()
            .map(open)
            .collect::<io::Result<_>>()
            .context(|| failed(unit.directory.as_bstr()))?;
        for (name, at) in unit.entries {
            let entry = &self.index.entries()[*at];
            let path = entry.path(&self.index);
            let conversion = self.conversions.get(*at).copied().unwrap_or(Conversion::Verbatim);
            let Some(kind) = worker.new_entry(self.repo, entry, path, conversion)? else {
                written.left.get_or_insert_with(|| format!("an attribute of '{path}'"));
                continue;
            };
            let original = match &kind {
                NewEntry::File { content, .. } if directories.len() > 1 => {
                    self.sharing.original(&directories[0], content)
                }
                _ => None,
            };
            written.entries.push(*at);
            for directory in &directories {
                let stat = self.make(directory, name, &kind, original.as_ref());
                written.stats.push(stat.context(|| failed(path))?);
            }
        }
        Ok(written)
    }

    /// Makes one file, one link, or the directory of a submodule, and returns its stat data. If
    /// there is an `original`, the new file shares its blocks.
    fn make(
        &self,
        directory: &OwnedFd,
        name: &[u8],
        entry: &NewEntry<'_>,
        original: Option<&File>,
    ) -> io::Result<EntryStat> {
        let stat = match entry {
            NewEntry::File { content, mode } => {
                let mut file = File::from(rustix::fs::openat(directory, name, NEW_FILE, *mode)?);
                if !original.is_some_and(|original| self.sharing.share(original, &file)) {
                    file.write_all(content)?;
                }
                if let Some(times) = &self.times {
                    rustix::fs::futimens(&file, times)?;
                }
                rustix::fs::fstat(&file)?
            }
            NewEntry::Link { target } => {
                rustix::fs::symlinkat(*target, directory, name)?;
                if let Some(times) = &self.times {
                    rustix::fs::utimensat(directory, name, times, AtFlags::SYMLINK_NOFOLLOW)?;
                }
                rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?
            }
            NewEntry::Submodule => {
                rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o777))?;
                rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?
            }
        };
        Ok(entry_stat(&stat))
    }
}

/// The entry to make at a path.
enum NewEntry<'a> {
    File { content: &'a [u8], mode: Mode },
    Link { target: &'a [u8] },
    Submodule,
}

impl Worker {
    /// Reads a blob into `self.blob`.
    fn read(&mut self, repo: &Repo, id: gix::ObjectId) -> Result<()> {
        if self.missed < MOST_MISSED {
            if self.loose.read(Kind::Blob, &id, &mut self.blob).is_some() {
                self.missed = 0;
                return Ok(());
            }
            self.missed += 1;
        }
        match self.gix.objects.find_blob(&id, &mut self.blob) {
            // For the empty blob, gix does not change the buffer.
            Ok(blob) if blob.data.is_empty() => self.blob.clear(),
            Ok(_) => {}
            Err(_) => self.blob = repo.blob(&to_oid(id))?,
        }
        Ok(())
    }

    /// Reads and converts the blob of an entry; `None` if git must write the file.
    fn new_entry<'a>(
        &'a mut self,
        repo: &Repo,
        entry: &gix::index::Entry,
        path: &BStr,
        conversion: Conversion,
    ) -> Result<Option<NewEntry<'a>>> {
        if entry.mode == EntryMode::COMMIT {
            return Ok(Some(NewEntry::Submodule));
        }
        let is_link = entry.mode == EntryMode::SYMLINK;
        if conversion == Conversion::ByGit && !is_link {
            return Ok(None);
        }
        self.read(repo, entry.id)?;
        let permissions = match entry.mode {
            _ if is_link => return Ok(Some(NewEntry::Link { target: &self.blob })),
            EntryMode::FILE => 0o666,
            EntryMode::FILE_EXECUTABLE => 0o777,
            other => return Err(Error::internal(format!("'{path}' has the mode {other:?}"))),
        };
        let content = conversion.apply(&self.blob, &mut self.converted)?;
        Ok(Some(NewEntry::File { content, mode: Mode::from_raw_mode(permissions) }))
    }
}

/// Opens a directory below `root`. Makes missing directories on the way. Follows no link.
fn open_below(root: &OwnedFd, directory: &[u8]) -> io::Result<OwnedFd> {
    let mut at = root.try_clone()?;
    for name in directory.split_str("/").filter(|name| !name.is_empty()) {
        at = open_or_make(&at, name)?;
    }
    Ok(at)
}
