//! The base's layers: its pristine checkout, and the files that its own commands left.
//!
//! Each judged tree is laid over them, so that a compiler finds the base's outputs with their old paths and
//! times.
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use gix::bstr::ByteSlice;

use crate::error::{IoContext, Result};
use crate::fs::tree::{self, is_empty};
use crate::fs::walk::visit;
use crate::git::fan_out;
use crate::git::file_times::FileTimes;
use crate::git::index::read_index;
use crate::git::layers::forget_opaque;
use crate::git::layers::written::wait_for_next_step;
use crate::git::repo::{Repo, digest};
use crate::model::oid::Oid;

/// The file that exists if the base passed in the run that left the outputs.
const PASSED: &str = "passed";

/// The directory for files that the base's setup left in the user's directories.
const FETCHED: &str = "fetched";

/// The directory for files that the base's other commands left in the user's directories.
const HOME: &str = "home";

/// The file that exists if the commands that only download the base's dependencies failed.
const UNDOWNLOADED: &str = "undownloaded";

/// The file with the time that a run without outputs took, in seconds.
const COLD_SECONDS: &str = "cold-seconds";

/// The end of the base's commands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaseEnd {
    /// True if all of them passed.
    pub passed: bool,
    /// False if a command failed that only downloads dependencies.
    pub downloaded: bool,
    /// The time that all of them took; `None` if they ran with an ancestor's outputs, or some did not run.
    pub cold_seconds: Option<f64>,
}

/// The layers of one base, in a directory of their own.
#[derive(Clone, Debug)]
pub struct BaseLayer {
    dir: PathBuf,
    /// The result of the function of the same name, once it is known.
    has_verbatim_files: Arc<OnceLock<bool>>,
}

impl BaseLayer {
    /// The layers in this directory.
    pub fn at(dir: PathBuf) -> BaseLayer {
        BaseLayer { dir, has_verbatim_files: Arc::default() }
    }

    /// The directory of all layers.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The base's tracked files and seeds.
    pub fn sources(&self) -> PathBuf {
        self.dir.join("src")
    }

    /// An index of the tracked files, with their stat data.
    pub fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    /// True if git would certainly write blobs as they are, whatever their paths, with the attributes of
    /// the base.
    pub(super) fn has_verbatim_files(&self, repo: &Repo) -> bool {
        *self.has_verbatim_files.get_or_init(|| {
            read_index(&self.index())
                .is_ok_and(|index| fan_out::writes_blobs_as_they_are(repo, &index))
        })
    }

    /// The layer that the base's commands left in its checkout, if they ran.
    pub fn outputs(&self) -> Option<PathBuf> {
        Some(self.dir.join("out")).filter(|dir| dir.is_dir())
    }

    /// The place for outputs from the checkout of an ancestor, if the base's layers start from these.
    pub(super) fn ancestors_outputs(&self) -> PathBuf {
        self.dir.join("inherited")
    }

    fn inherited(&self) -> Option<PathBuf> {
        Some(self.ancestors_outputs()).filter(|dir| dir.is_dir())
    }

    /// The layers with outputs above the base's files, the topmost first.
    pub fn all_outputs(&self) -> Vec<PathBuf> {
        let found = self.outputs().into_iter().chain(self.inherited());
        found.filter(|dir| !is_empty(dir)).collect()
    }

    /// True if the base's outputs contain outputs of an ancestor.
    pub fn has_inherited(&self) -> bool {
        self.inherited().is_some_and(|dir| !is_empty(&dir))
    }

    /// The layers of the user's directories with the files that the base's setup left there, such as
    /// downloads; `None` if there are no files.
    pub fn fetched(&self) -> Option<PathBuf> {
        Some(self.dir.join(FETCHED)).filter(|layers| are_in_use(layers))
    }

    /// The layers with the files that the base's other commands left there; `None` if there are no files.
    pub fn home(&self) -> Option<PathBuf> {
        Some(self.dir.join(HOME)).filter(|layers| are_in_use(layers))
    }

    /// True if the layers of the setup were taken.
    pub fn has_downloads(&self) -> bool {
        self.dir.join(FETCHED).is_dir()
    }

    /// True if the layers of all commands were taken.
    pub fn has_home(&self) -> bool {
        self.has_downloads() && self.dir.join(HOME).is_dir()
    }

    /// True if commands left something in the checkout that another judging could use.
    pub fn has_outputs(&self) -> bool {
        !self.all_outputs().is_empty()
    }

    /// True if the base's own commands left files that could make another tree pass or fail: in its
    /// checkout, or, after the setup, in the home directory.
    pub fn has_traces(&self) -> bool {
        self.has_outputs() || self.home().is_some()
    }

    /// Makes the directory, and checks out a commit into it. Its files are older, in whole seconds, than
    /// everything that is written later.
    pub fn check_out(&self, repo: &Repo, commit: &Oid) -> Result<()> {
        let sources = self.sources();
        fs::create_dir_all(&sources)
            .context(|| format!("could not make '{}'", sources.display()))?;
        fan_out::check_out(repo, commit, &sources, &self.index(), FileTimes::LastSecond)
    }

    /// Takes the files that the base's commands wrote, so that the trees that are judged later find them.
    /// The directory is the upper layer of a world that has ended.
    ///
    /// Tracked files stay as they were checked out, whatever the commands did to them; and no output is
    /// younger than this moment, because the files of a judged tree must be younger than all outputs
    /// (GIT-FACTS, "Worlds").
    pub fn take_outputs(&self, checkout: &Path) -> Result<()> {
        let failed = || format!("could not keep the base's outputs in '{}'", self.dir.display());
        clean_outputs(checkout, &self.index())?;
        fs::rename(checkout, self.dir.join("out")).context(failed)?;
        // Otherwise an output could have the same time as a tree's own file, and `make` would take it for
        // up to date.
        wait_for_next_step(&self.dir).context(failed)
    }

    /// Takes the layers of the user's directories: those that the base's setup wrote, and those that its
    /// other commands wrote. Layers that are here already stay. Incomplete downloads are not taken, so that
    /// the next judging of the base tries again.
    pub fn take_home(&self, fetched: &Path, home: &Path, end: BaseEnd) -> Result<()> {
        let fetched = end.downloaded.then_some((fetched, FETCHED));
        if fetched.is_some() {
            let _ = fs::remove_file(self.dir.join(UNDOWNLOADED));
        }
        for (from, name) in fetched.into_iter().chain([(home, HOME)]) {
            let to = self.dir.join(name);
            match clean(from, &|_| Tracked::No).and_then(|()| fs::rename(from, &to)) {
                Err(_) if to.is_dir() => {}
                other => other.context(|| format!("could not keep '{}'", from.display()))?,
            }
        }
        Ok(())
    }

    /// Notes how the commands that left these outputs ended.
    pub fn note_end(&self, end: BaseEnd) -> Result<()> {
        for (name, is_so) in [(PASSED, end.passed), (UNDOWNLOADED, !end.downloaded)] {
            let file = self.dir.join(name);
            if is_so {
                fs::write(&file, "").context(|| format!("could not write '{}'", file.display()))?;
            }
        }
        if let Some(seconds) = end.cold_seconds {
            let _ = fs::write(self.dir.join(COLD_SECONDS), seconds.to_string());
        }
        Ok(())
    }

    /// True if a command failed that only downloads the base's dependencies.
    pub fn cannot_download(&self) -> bool {
        self.dir.join(UNDOWNLOADED).exists()
    }

    /// The time that all commands took without outputs: on this base, or on the ancestor from whose layers
    /// these were made. `None` if it was not measured.
    pub fn cold_seconds(&self) -> Option<f64> {
        fs::read_to_string(self.dir.join(COLD_SECONDS)).ok()?.parse().ok()
    }

    /// Copies that time from the layers of an ancestor. It is only for estimates.
    pub fn take_cold_seconds(&self, ancestor: &BaseLayer) {
        let _ = fs::copy(ancestor.dir.join(COLD_SECONDS), self.dir.join(COLD_SECONDS));
    }

    /// True if the base's own commands left outputs, and are not known to have passed.
    pub fn has_failed(&self) -> bool {
        self.outputs().is_some() && !self.dir.join(PASSED).exists()
    }

    /// Deletes the outputs that the base's commands left in its checkout.
    pub fn forget_outputs(&self) -> Result<()> {
        let outputs = self.dir.join("out");
        tree::delete_tree(&outputs).context(|| format!("could not delete '{}'", outputs.display()))
    }

    /// A digest of the stat data of everything in the layers: if it is the same, nobody has written to
    /// them, because no program can set a change time.
    pub fn stamp(&self) -> Result<String> {
        let mut text = Vec::new();
        visit(&self.dir, &mut |path, meta| {
            let (_, inode) = meta.identity();
            let mode = meta.mode();
            let size = meta.size();
            let changed = meta.changed().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            text.extend_from_slice(path);
            text.extend(format!("\0{inode} {mode} {size} {changed:?}\n").into_bytes());
        })
        .context(|| format!("could not read '{}'", self.dir.display()))?;
        Ok(digest(&text))
    }

    /// True if nothing in the layers was changed in one of these spans of time.
    pub fn is_unchanged_in(&self, spans: &[(SystemTime, SystemTime)]) -> bool {
        if spans.is_empty() {
            return true;
        }
        let mut is_clean = true;
        let visited = visit(&self.dir, &mut |_, meta| {
            let changed = meta.changed();
            is_clean &= !spans.iter().any(|(start, end)| (*start..=*end).contains(&changed));
        });
        visited.is_ok() && is_clean
    }
}

/// True if there is anything in one of these layers.
fn are_in_use(layers: &Path) -> bool {
    let found = fs::read_dir(layers).into_iter().flatten().flatten();
    found.map(|entry| entry.path()).any(|layer| !is_empty(&layer))
}

/// The entry of a tree at a path.
enum Tracked {
    File,
    Directory,
    No,
}

fn tracked(index: &gix::index::File, path: &[u8]) -> Tracked {
    match path.as_bstr() {
        path if index.entry_by_path(path).is_some() => Tracked::File,
        path if index.path_is_directory(path) => Tracked::Directory,
        _ => Tracked::No,
    }
}

/// Prepares the upper layer of a checkout to be a lower one above the tree that `index` lists.
pub(super) fn clean_outputs(layer: &Path, index: &Path) -> Result<()> {
    let index = read_index(index)?;
    clean(layer, &|path| tracked(&index, path))
        .context(|| format!("could not keep the outputs in '{}'", layer.display()))
}

/// Prepares an upper layer to be a lower one: removes git's own directory, and everything that changes or
/// hides a tracked file.
fn clean(layer: &Path, tracked: &dyn Fn(&[u8]) -> Tracked) -> io::Result<()> {
    let now = SystemTime::now();
    let git = layer.join(".git");
    tree::delete_tree(&git)?;
    let mut found = Vec::new();
    visit(layer, &mut |path, state| {
        let tracked = tracked(path);
        if !matches!(tracked, Tracked::No) || state.modified() > now {
            found.push((path.to_vec(), *state, tracked));
        }
    })?;
    for (path, state, tracked) in found {
        let full = layer.join(OsStr::from_bytes(&path));
        match tracked {
            Tracked::Directory if state.is_dir() => forget_opaque(&full)?,
            Tracked::File | Tracked::Directory => tree::delete_tree(&full)?,
            // A directory above it, and so the path itself, may have been deleted just now.
            Tracked::No if (full.is_file() || full.is_dir()) && !state.is_symlink() => {
                fs::File::open(&full)?.set_modified(now)?;
            }
            Tracked::No => {}
        }
    }
    Ok(())
}
