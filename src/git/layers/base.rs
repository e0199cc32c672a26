//! The layers of a base: its checkout, and the files that the oracle commands wrote when they ran
//! on the base.
//!
//! Each judged tree is laid over these layers. So a compiler finds the base's outputs at the same
//! paths, with their original times.
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use gix::bstr::ByteSlice;
use gix::index::State;
use serde::{Deserialize, Serialize};

use crate::error::{IoContext, Result};
use crate::fs::tree::{self, TimeSpan, is_empty};
use crate::fs::walk::visit;
use crate::git::fan_out;
use crate::git::file_times::FileTimes;
use crate::git::index::read_index;
use crate::git::layers::forget_opaque;
use crate::git::layers::written::wait_for_next_step;
use crate::git::repo::{Repo, digest};
use crate::model::oid::Oid;

/// The name of the file that says how the commands ended.
const END: &str = "end";

/// The name of the directory for files that the base's setup command wrote to the user's
/// directories.
const FETCHED: &str = "fetched";

/// The name of the directory for files that the base's other commands wrote to the user's
/// directories.
const HOME: &str = "home";

/// How the commands ended on the base.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaseEnd {
    /// True if all commands passed.
    pub passed: bool,
    /// False if a command that only downloads dependencies has failed.
    pub downloaded: bool,
    /// The time in seconds that all commands took without earlier outputs, and the number of tests
    /// that they reported. If these layers were made from those of an ancestor, the numbers may be
    /// the ancestor's. `None` if they were not measured.
    pub cold: Option<(f64, u64)>,
}

/// The layers of one base. Each base has its own directory for them.
#[derive(Clone, Debug)]
pub struct BaseLayer {
    dir: PathBuf,
    /// The content of the index file, which every judged tree needs.
    tracked: Arc<OnceLock<State>>,
}

impl BaseLayer {
    pub fn at(dir: PathBuf) -> BaseLayer {
        BaseLayer { dir, tracked: Arc::default() }
    }

    /// The directory of all layers.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The base's tracked files and seeds.
    pub fn sources(&self) -> PathBuf {
        self.dir.join("src")
    }

    /// The index file with the tracked files in [`BaseLayer::sources`] and their stat data.
    pub fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    /// The tracked files. Fails if the index file cannot be read.
    pub(super) fn tracked(&self) -> Result<&State> {
        if let Some(tracked) = self.tracked.get() {
            return Ok(tracked);
        }
        let read = State::from(read_index(&self.index())?);
        Ok(self.tracked.get_or_init(|| read))
    }

    /// The layer with the files that the base's commands wrote in the checkout. `None` if no
    /// outputs were taken.
    pub fn outputs(&self) -> Option<PathBuf> {
        Some(self.outputs_dir()).filter(|dir| dir.is_dir())
    }

    fn outputs_dir(&self) -> PathBuf {
        self.dir.join("out")
    }

    /// The directory for outputs of an ancestor. It exists if these layers were made from an
    /// ancestor's layers.
    pub(super) fn ancestors_outputs(&self) -> PathBuf {
        self.dir.join("inherited")
    }

    fn inherited(&self) -> Option<PathBuf> {
        Some(self.ancestors_outputs()).filter(|dir| dir.is_dir())
    }

    /// The layers with outputs, which lie above the base's files; the topmost first.
    pub fn all_outputs(&self) -> Vec<PathBuf> {
        let found = self.outputs().into_iter().chain(self.inherited());
        found.filter(|dir| !is_empty(dir)).collect()
    }

    /// True if the base's outputs contain outputs of an ancestor.
    pub fn has_inherited(&self) -> bool {
        self.inherited().is_some_and(|dir| !is_empty(&dir))
    }

    /// The directory with the layers that the base's setup wrote in the user's directories, e.g.
    /// downloads. `None` if all of them are empty.
    pub fn fetched(&self) -> Option<PathBuf> {
        Some(self.dir.join(FETCHED)).filter(|layers| are_in_use(layers))
    }

    /// The directory with the layers that the base's other commands wrote in the user's
    /// directories. `None` if all of them are empty.
    pub fn home(&self) -> Option<PathBuf> {
        Some(self.dir.join(HOME)).filter(|layers| are_in_use(layers))
    }

    /// True if the layers that the setup wrote in the user's directories were taken, even if they
    /// are empty.
    pub fn has_downloads(&self) -> bool {
        self.dir.join(FETCHED).is_dir()
    }

    /// True if the layers that all commands wrote in the user's directories were taken, even if
    /// they are empty.
    pub fn has_home(&self) -> bool {
        self.has_downloads() && self.dir.join(HOME).is_dir()
    }

    /// True if commands left files in the checkout that can be used when another tree is judged.
    pub fn has_outputs(&self) -> bool {
        !self.all_outputs().is_empty()
    }

    /// True if there are files that could make another tree pass or fail. Such files are outputs in
    /// the checkout, and files that commands after the setup wrote to the user's directories.
    pub fn has_traces(&self) -> bool {
        self.has_outputs() || self.home().is_some()
    }

    /// Makes the directory of the base's files, and checks out a commit into it. The times of these
    /// files are earlier than those of anything that is written later, even in whole seconds.
    pub fn check_out(&self, repo: &Repo, commit: &Oid) -> Result<()> {
        let sources = self.sources();
        fs::create_dir_all(&sources).could_not("make", &sources)?;
        fan_out::check_out(repo, commit, &sources, &self.index(), FileTimes::LastSecond)
    }

    /// Moves the outputs of the base's commands into [`BaseLayer::dir`], for trees that are judged
    /// later. `checkout` is the upper layer of the checkout in a world that has ended.
    ///
    /// Changes of tracked files are dropped. Outputs with a time in the future get the present
    /// time: the files of a judged tree must be younger than all outputs (GIT-FACTS, "Worlds").
    pub fn take_outputs(&self, checkout: &Path) -> Result<()> {
        let failed = || format!("could not keep the base's outputs in '{}'", self.dir.display());
        clean_outputs(checkout, &self.index())?;
        fs::rename(checkout, self.outputs_dir()).context(failed)?;
        // Without this wait, an output could have the same time as a file of the judged tree. Then
        // `make` would think that the output is up to date.
        wait_for_next_step(&self.dir).context(failed)
    }

    /// Moves the layers of the user's directories into [`BaseLayer::dir`]. `fetched` are the layers
    /// that the base's setup wrote, and `home` those that the other commands wrote. Layers that
    /// exist already are kept.
    ///
    /// If a download failed, `fetched` is not taken. Then the download is tried again when the base
    /// is judged again.
    pub fn take_home(&self, fetched: &Path, home: &Path, end: BaseEnd) -> Result<()> {
        let fetched = end.downloaded.then_some((fetched, FETCHED));
        if fetched.is_some() {
            self.write_end(BaseEnd { downloaded: true, ..self.end() })?;
        }
        for (from, name) in fetched.into_iter().chain([(home, HOME)]) {
            let to = self.dir.join(name);
            match clean(from, &|_| Tracked::No).and_then(|()| fs::rename(from, &to)) {
                Err(_) if to.is_dir() => {}
                other => other.could_not("keep", from)?,
            }
        }
        Ok(())
    }

    /// The end of the commands that left the outputs. Without a record, they count as not passed.
    pub fn end(&self) -> BaseEnd {
        let text = fs::read_to_string(self.dir.join(END)).unwrap_or_default();
        let unknown = BaseEnd { passed: false, downloaded: true, cold: None };
        serde_json::from_str(&text).unwrap_or(unknown)
    }

    /// Records the end of the commands that left the outputs. If its `cold` is `None`, the
    /// ancestor's stays.
    pub fn note_end(&self, end: BaseEnd) -> Result<()> {
        self.write_end(BaseEnd { cold: end.cold.or(self.end().cold), ..end })
    }

    fn write_end(&self, end: BaseEnd) -> Result<()> {
        let file = self.dir.join(END);
        fs::write(&file, serde_json::json!(end).to_string()).could_not("write", &file)
    }

    /// True if the base's commands left outputs, and no record says that they passed.
    pub fn has_failed(&self) -> bool {
        self.outputs().is_some() && !self.end().passed
    }

    /// Deletes the outputs that the base's commands left in its checkout.
    pub fn forget_outputs(&self) -> Result<()> {
        let outputs = self.outputs_dir();
        tree::delete_tree(&outputs).could_not("delete", &outputs)
    }

    /// A digest of the stat data of everything in the layers. No program can set a change time. So
    /// if the digest is unchanged, nobody has written to the layers.
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
        .could_not("read", &self.dir)?;
        Ok(digest(&text))
    }

    /// True if nothing in the layers was changed during any of these spans of time.
    pub fn is_unchanged_in(&self, spans: &[TimeSpan]) -> bool {
        if spans.is_empty() {
            return true;
        }
        let mut is_clean = true;
        let visited = visit(&self.dir, &mut |_, meta| {
            let changed = meta.changed();
            is_clean &= !spans.iter().any(|span| span.contains(&changed));
        });
        visited.is_ok() && is_clean
    }
}

/// True if one of the layers in the directory `layers` is not empty.
fn are_in_use(layers: &Path) -> bool {
    let found = fs::read_dir(layers).into_iter().flatten().flatten();
    found.map(|entry| entry.path()).any(|layer| !is_empty(&layer))
}

/// The entry that a tree has at a path.
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

/// Prepares the upper layer of a checkout for use as a lower layer above the tree that `index`
/// lists.
pub(super) fn clean_outputs(layer: &Path, index: &Path) -> Result<()> {
    let index = read_index(index)?;
    clean(layer, &|path| tracked(&index, path)).could_not("keep the outputs in", layer)
}

/// Prepares an upper layer for use as a lower layer. Removes `.git`, and everything that changes or
/// hides a tracked file. Sets times in the future to the present time.
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
            // The path may be gone, because this loop may have deleted a directory above it.
            Tracked::No if (full.is_file() || full.is_dir()) && !state.is_symlink() => {
                fs::File::open(&full)?.set_modified(now)?;
            }
            Tracked::No => {}
        }
    }
    Ok(())
}
