//! Watches: how everything was before commands that run an attempt's code, in `watches/RUN.XXXXXX/` until what they
//! changed is told. For other processes, and for the one that finds them interrupted.
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{IoContext, Result};
use crate::fs::atomic;
use crate::fs::lock::{self, Lock};
use crate::fs::regular;
use crate::fs::tree;
use crate::integrity::fingerprint::Fingerprint;
use crate::model::name::Name;
use crate::store::Store;

/// What was there before a run's own commands, and before those of its oracle.
const COMMANDS: &str = "before-commands.json";
const JUDGING: &str = "before-judging.json";

/// The directory of one watch, locked by the process that watches. There may be several of one run: its candidates
/// can be judged by several processes.
#[derive(Debug)]
pub struct WatchDir {
    run: Name,
    path: PathBuf,
    _lock: Lock,
}

impl Store {
    /// Makes the directory of a new watch.
    pub fn open_watch(&self, run: &Name) -> Result<WatchDir> {
        let root = self.watches_dir();
        let failed = || format!("could not use '{}'", root.display());
        fs::create_dir_all(&root).context(failed)?;
        // It appears locked: nobody takes it for a dead one's.
        let _repository = self.lock_repository()?;
        let path = tempfile::Builder::new()
            .prefix(&format!("{run}."))
            .tempdir_in(&root)
            .context(failed)?
            .keep();
        let lock = lock::wait(&path.join("lock"))?;
        Ok(WatchDir { run: run.clone(), path, _lock: lock })
    }

    /// The runs that are being watched, or were when their process was killed, with the directories of the watches.
    pub fn watches(&self) -> Vec<(Name, PathBuf)> {
        let listing =
            fs::read_dir(self.watches_dir()).into_iter().flatten().flatten().map(|e| e.path());
        let named = listing.filter_map(|path| {
            let (run, _) = path.file_name().and_then(OsStr::to_str)?.rsplit_once('.')?;
            Some((run.parse().ok()?, path))
        });
        let mut found: Vec<(Name, PathBuf)> = named.collect();
        found.sort();
        found
    }

    /// Takes over a watch whose process was killed; none if it is alive.
    pub fn inherit_watch(&self, run: &Name, path: &Path) -> Result<Option<WatchDir>> {
        let _repository = self.lock_repository()?;
        if !path.is_dir() {
            return Ok(None);
        }
        let lock = lock::attempt(&path.join("lock"))?;
        Ok(lock.map(|lock| WatchDir { run: run.clone(), path: path.to_owned(), _lock: lock }))
    }

    fn watches_dir(&self) -> PathBuf {
        self.root().join("watches")
    }
}

/// What was there when the commands of a watch started, and whether they judge; none if they have not started, or it
/// is damaged.
pub fn read(path: &Path) -> Option<(Fingerprint, bool)> {
    let (name, judging) = [(COMMANDS, false), (JUDGING, true)]
        .into_iter()
        .find(|(name, _)| path.join(name).exists())?;
    Some((Fingerprint::from_json(&regular::read(&path.join(name)).ok()?)?, judging))
}

impl WatchDir {
    /// The run.
    pub fn run(&self) -> &Name {
        &self.run
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps how everything is before commands, or before those that judge.
    pub fn save(&self, before: &Fingerprint, judging: bool) -> Result<()> {
        atomic::write(&self.path.join(if judging { JUDGING } else { COMMANDS }), &before.to_json())
    }

    /// The differences are told and kept. The lock is held until the directory is gone.
    pub fn close(self) -> Result<()> {
        tree::delete_tree(&self.path)
            .context(|| format!("could not remove '{}'", self.path.display()))
    }
}
