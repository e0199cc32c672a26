//! Stores baselines. A baseline is the fingerprint that is taken before commands run an attempt's
//! code. It is kept in `watches/RUN.XXXXXX/` until the changes that the commands made are reported.
//! Other processes read it, e.g. to report the changes if the watching process was killed.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{IoContext, Result};
use crate::fs::atomic;
use crate::fs::lock::{self, Lock};
use crate::fs::regular;
use crate::fs::tree;
use crate::integrity::WatchedCommands;
use crate::integrity::fingerprint::Fingerprint;
use crate::model::name::Name;
use crate::store::Store;

/// The directory of one watch. The watching process holds the lock in the directory. Several
/// processes can judge the candidates of a run, so a run can have several watches.
#[derive(Debug)]
pub struct WatchDir {
    /// The run that is watched.
    pub run: Name,
    /// The path of the directory.
    pub path: PathBuf,
    _lock: Lock,
}

/// The runs and the directories of all watches, running or interrupted; sorted.
pub fn all(store: &Store) -> Vec<(Name, PathBuf)> {
    let entries = fs::read_dir(store.dir().watches()).into_iter().flatten().flatten();
    let named = entries.map(|entry| entry.path()).filter_map(|path| {
        let (run, _) = path.file_name()?.to_str()?.rsplit_once('.')?;
        Some((run.parse().ok()?, path))
    });
    let mut found: Vec<(Name, PathBuf)> = named.collect();
    found.sort();
    found
}

/// The runs in `runs` whose commands may still run. `runs` comes from [`Store::run_activities`]. A
/// run is returned if its flag is true: work on it is under way or was killed. A run with a watch
/// is also returned.
pub fn runs_at_work(store: &Store, runs: &[(Name, bool)]) -> BTreeSet<Name> {
    let watched: BTreeSet<Name> = all(store).into_iter().map(|(run, _)| run).collect();
    let at_work = runs.iter().filter(|(run, is_active)| *is_active || watched.contains(run));
    at_work.map(|(run, _)| run.clone()).collect()
}

/// The name of a file in the directory of a watch over attempts. If the file exists, the watching
/// process also judges with `commands`.
fn beside(commands: WatchedCommands) -> String {
    format!("beside-{}", commands.file())
}

/// Tells other processes that this process judges a run while it still watches the run's attempts.
pub fn judge_beside(store: &Store, run: &Name, commands: WatchedCommands) -> Result<()> {
    for (_, path) in all(store).into_iter().filter(|(name, _)| name == run) {
        atomic::write(&path.join(beside(commands)), &[])?;
    }
    Ok(())
}

/// The kind of commands with which other processes judge at present; `None` if none judges. Looks
/// at all watches except the one at `own`. If other processes judge with both kinds, returns the
/// less confined kind.
pub fn others_judge(store: &Store, own: Option<&Path>) -> Option<WatchedCommands> {
    let others = all(store).into_iter().map(|(_, path)| path).filter(|path| Some(&**path) != own);
    let others: Vec<PathBuf> = others.collect();
    [WatchedCommands::Oracle, WatchedCommands::SealedOracle].into_iter().find(|commands| {
        let files = [commands.file().to_owned(), beside(*commands)];
        others.iter().any(|path| files.iter().any(|file| path.join(file).exists()))
    })
}

/// Reads the baseline of a watch: the fingerprint, and the kind of commands before which it was
/// taken. `None` if the commands have not started yet, or if the file is damaged.
pub fn read(path: &Path) -> Option<(Fingerprint, WatchedCommands)> {
    let commands = WatchedCommands::ALL.into_iter().find(|c| path.join(c.file()).exists())?;
    let bytes = regular::read(&path.join(commands.file())).ok()?;
    Some((Fingerprint::from_json(&bytes)?, commands))
}

impl WatchDir {
    /// Makes the directory of a new watch.
    pub fn create(store: &Store, run: &Name) -> Result<WatchDir> {
        let root = store.dir().watches();
        fs::create_dir_all(&root).could_not("use", &root)?;
        // This is done under the repository lock. Otherwise another process could see the directory
        // before it is locked, and conclude that the watch was interrupted.
        let _repository = store.lock_repository()?;
        let path = tempfile::Builder::new()
            .prefix(&format!("{run}."))
            .tempdir_in(&root)
            .could_not("use", &root)?
            .keep();
        let lock = lock::wait(&path.join("lock"))?;
        Ok(WatchDir { run: run.clone(), path, _lock: lock })
    }

    /// Takes over the watch of a process that was killed. `None` if that process is alive, or if
    /// the watch is gone.
    pub fn take_over(store: &Store, run: &Name, path: &Path) -> Result<Option<WatchDir>> {
        let _repository = store.lock_repository()?;
        if !path.is_dir() {
            return Ok(None);
        }
        let lock = lock::attempt(&path.join("lock"))?;
        Ok(lock.map(|lock| WatchDir { run: run.clone(), path: path.to_owned(), _lock: lock }))
    }

    /// Writes the baseline: the fingerprint from before these commands.
    pub fn save(&self, before: &Fingerprint, commands: WatchedCommands) -> Result<()> {
        atomic::write(&self.path.join(commands.file()), &before.to_json())
    }

    /// Removes the directory. Called after the differences were reported and stored.
    ///
    /// This is done under the repository lock. Otherwise the lock file might be removed before the
    /// other files. Then another process could conclude that the watch was interrupted.
    pub fn close(self, store: &Store) -> Result<()> {
        let _repository = store.lock_repository()?;
        tree::delete_tree(&self.path).could_not("remove", &self.path)
    }
}
