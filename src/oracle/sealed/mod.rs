//! Checkouts in sealed worlds: at the path of the user's own checkout each shows one tree, above
//! the layers of the run's base, and everything that commands write is thrown away.
pub mod kept;
pub mod plan;
pub mod surroundings;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use crate::config::value::Network;
use crate::error::{IoContext, Result};
use crate::fs::lock::Lock;
use crate::git::layers::base::BaseLayer;
use crate::git::layers::{self, difference, written};
use crate::git::repo::Repo;
use crate::git::seed::find::Seeds;
use crate::model::oid::Oid;
use crate::model::outcome::Stage;
use crate::model::path::TreePath;
use crate::oracle::pool::{self, CheckoutRoom, LAYERS};
use crate::oracle::sealed::kept::KeptLayer;
use crate::oracle::sealed::plan::{Layers, Surroundings, WorldRoom, mounts};
use crate::oracle::sealed::surroundings::SandboxOptions;
use crate::process::world_spec::WorldSpec;
use crate::store::Store;

/// The checkouts in sealed worlds of one process, for one base.
pub struct SealedCheckouts<'a> {
    store: &'a Store,
    repo: &'a Repo,
    /// The user's checkout, which has the submodules.
    home: Option<PathBuf>,
    seeds: Seeds,
    base: Oid,
    /// This repository's directory in the cache.
    dir: PathBuf,
    surroundings: Surroundings,
    options: SandboxOptions,
    base_layer: Mutex<Option<Arc<BaseInUse>>>,
    /// The place at which the base's layers are kept for later commands, if they may be.
    kept: OnceLock<KeptLayer>,
    /// True if the layers were made while attempts ran: then they are not kept.
    is_adopted: AtomicBool,
}

/// The base's layers while this process uses them.
#[derive(Debug)]
pub struct BaseInUse {
    layer: BaseLayer,
    /// A digest of the stat data of everything in the layers, once the base's commands have ended.
    stamp: OnceLock<String>,
    /// Keeps others from removing the layers.
    guard: LayerGuard,
}

/// The reason why layers stay where they are.
#[derive(Debug)]
enum LayerGuard {
    /// They lie in a room of this process, and go with it.
    Room { _room: CheckoutRoom },
    /// They are kept for later commands.
    Kept { _lock: Lock },
}

/// The share of the base's outputs that a tree is judged over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmth {
    /// None: only what the base's commands left in the home directory, such as downloads.
    Cold,
    /// All outputs that there are.
    Warm,
}

/// One tree in a sealed world.
pub struct SealedCheckout {
    room: WorldRoom,
    _room: CheckoutRoom,
    spec: WorldSpec,
    network: Network,
    /// True if outputs of the base lie below the tree.
    pub is_warm: bool,
    /// The reason why the tree is incomplete: a submodule at a commit that the user's checkout has
    /// not.
    pub problem: Option<String>,
}

impl<'a> SealedCheckouts<'a> {
    /// Checkouts for a base, with these seeds and the submodules of the user's checkout at `home`.
    pub fn open(
        store: &'a Store,
        home: Option<&Path>,
        seeds: Seeds,
        base: Oid,
        options: SandboxOptions,
    ) -> Result<SealedCheckouts<'a>> {
        let repo = store.repo();
        let dir = pool::home(repo)?;
        let surroundings = surroundings::of(repo, home, &dir, &options)?;
        let home = home.map(Path::to_owned);
        let base_layer = Mutex::default();
        let kept = OnceLock::new();
        Ok(SealedCheckouts {
            store,
            repo,
            home,
            seeds,
            base,
            dir,
            surroundings,
            options,
            base_layer,
            kept,
            is_adopted: AtomicBool::default(),
        })
    }

    /// The tree of a commit in a world of its own.
    pub fn acquire(&self, commit: &Oid, warmth: Warmth) -> Result<SealedCheckout> {
        let layer = self.base_layer()?;
        let guard = CheckoutRoom::sealed(self.store, &self.dir)?;
        let room = WorldRoom::at(guard.path());
        for directory in room.directories(&self.surroundings) {
            fs::create_dir(&directory)
                .and_then(|()| fs::set_permissions(&directory, room.mode(&directory)))
                .context(|| format!("could not make '{}'", directory.display()))?;
        }
        let mut problem = None;
        let (mut checkout, is_above_base) = if *commit == self.base {
            let index = layer.index();
            fs::copy(&index, room.index())
                .context(|| format!("could not copy '{}'", index.display()))?;
            (vec![layer.sources()], true)
        } else if difference::write(
            self.repo,
            &layer,
            [&self.base, commit],
            &self.seeds,
            &room.difference(),
            &room.index(),
        )? {
            (vec![room.difference(), layer.sources()], true)
        } else {
            let sources = room.sources();
            fs::create_dir(&sources)
                .context(|| format!("could not make '{}'", sources.display()))?;
            layers::check_out(&self.repo.git(), commit, &sources, &room.index())?;
            problem = self.complete(commit, &sources)?;
            (vec![sources], false)
        };
        let may_be_warm = warmth == Warmth::Warm && is_above_base;
        let outputs = layer.outputs().filter(|_| may_be_warm && layer.has_outputs());
        let is_warm = outputs.is_some();
        if let Some(outputs) = outputs {
            checkout.insert(checkout.len() - 1, outputs);
        }
        self.write_git_dir(commit, &room)?;
        let above = Layers { checkout, home: layer.home().into_iter().collect() };
        let spec = WorldSpec {
            dir: self.surroundings.checkout.clone(),
            mounts: mounts(&self.surroundings, above, &room),
            stage: room.stage(),
            network: true,
            processes: self.options.processes,
            memory: self.options.memory,
        };
        let network = self.options.network;
        Ok(SealedCheckout { room, _room: guard, spec, network, is_warm, problem })
    }

    /// Keeps the base's layers under this name for later commands, and uses those that are kept
    /// there, unless something changed them in one of these spans of time.
    pub fn use_kept(&self, name: &str, distrusted: &[(SystemTime, SystemTime)]) -> Result<()> {
        let kept = KeptLayer::at(self.dir.join(LAYERS), name);
        if let Some((layer, lock)) = kept.open()?
            && layer.is_unchanged_in(distrusted)
        {
            let guard = LayerGuard::Kept { _lock: lock };
            *self.lock() = Some(Arc::new(BaseInUse { layer, stamp: OnceLock::new(), guard }));
        }
        let _ = self.kept.set(kept);
        Ok(())
    }

    /// Uses the layers that an earlier part of this process made, if nobody has changed them since.
    ///
    /// Attempts ran meanwhile. Downloads that they could have changed are not used: trees are judged
    /// over outputs only as a claim, but over downloads always.
    pub fn adopt(&self, base: Arc<BaseInUse>) -> Result<()> {
        let is_whole = base.stamp.get() == Some(&base.layer.stamp()?);
        if is_whole && matches!(base.guard, LayerGuard::Room { .. }) {
            base.layer.forget_home()?;
            *self.lock() = Some(base);
            self.is_adopted.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The base's layers, if there are any by now.
    pub fn layer_in_use(&self) -> Option<Arc<BaseInUse>> {
        self.lock().clone()
    }

    /// Makes what the base's commands left in this checkout the layers of every later one, unless
    /// there are such layers.
    pub fn keep_outputs(&self, checkout: &SealedCheckout) -> Result<()> {
        let base = self.base_in_use()?;
        if base.layer.outputs().is_some() {
            return Ok(());
        }
        let home = self.surroundings.home.is_some().then(|| checkout.room.home());
        base.layer.take_outputs(&checkout.room.checkout(), home.as_deref())?;
        let _ = base.stamp.set(base.layer.stamp()?);
        Ok(())
    }

    /// True if there are outputs of the base to judge over.
    pub fn has_outputs(&self) -> bool {
        self.lock().as_ref().is_some_and(|base| base.layer.has_outputs())
    }

    fn base_layer(&self) -> Result<BaseLayer> {
        Ok(self.base_in_use()?.layer.clone())
    }

    /// The base's layers, which are made when they are first needed.
    fn base_in_use(&self) -> Result<Arc<BaseInUse>> {
        let mut in_use = self.lock();
        if let Some(base) = &*in_use {
            return Ok(base.clone());
        }
        let room = CheckoutRoom::sealed(self.store, &self.dir)?;
        let layer = BaseLayer::at(room.path().join("base"));
        layer.check_out(&self.repo.git(), &self.base)?;
        self.complete(&self.base, &layer.sources())?;
        let guard = LayerGuard::Room { _room: room };
        let base = Arc::new(BaseInUse { layer, stamp: OnceLock::new(), guard });
        *in_use = Some(base.clone());
        Ok(base)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<BaseInUse>>> {
        self.base_layer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds submodules and seeds to a commit's tracked files. Gives the reason why a submodule is
    /// missing.
    fn complete(&self, commit: &Oid, sources: &Path) -> Result<Option<String>> {
        let exported = pool::export_submodules(self.repo, self.home.as_deref(), commit, sources);
        let problem = exported.err().map(|e| e.message);
        self.seeds.place(sources).map(|_| problem)
    }

    /// Prepares the upper layer of the git directory: HEAD is at the commit, and the index is that
    /// of its tree.
    fn write_git_dir(&self, commit: &Oid, room: &WorldRoom) -> Result<()> {
        let failed = || "could not prepare the git directory of a sealed world".to_owned();
        let Surroundings { checkout, git_dir, .. } = &self.surroundings;
        let upper = room.git_dir();
        let own = if *git_dir == checkout.join(".git") {
            fs::create_dir(room.checkout().join(".git")).context(failed)?;
            upper
        } else {
            // The entry of a linked worktree (gitrepository-layout(5), "worktrees").
            let own = upper.join("worktrees/frites");
            fs::create_dir_all(&own).context(failed)?;
            let write = |path: PathBuf, target: &Path| {
                fs::write(path, [target.as_os_str().as_bytes(), b"\n"].concat()).context(failed)
            };
            write(own.join("commondir"), Path::new("../.."))?;
            write(own.join("gitdir"), &checkout.join(".git"))?;
            let entry = git_dir.join("worktrees/frites");
            let mut link = OsString::from("gitdir: ");
            link.push(entry);
            write(room.checkout().join(".git"), Path::new(&link))?;
            own
        };
        fs::write(own.join("HEAD"), format!("{commit}\n")).context(failed)?;
        let index = own.join("index");
        fs::copy(room.index(), &index).context(failed)?;
        // Every entry is racily clean: a git that a command runs then compares contents, always.
        let file = fs::File::options().write(true).open(&index).context(failed)?;
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).context(failed)
    }
}

impl Drop for SealedCheckouts<'_> {
    fn drop(&mut self) {
        let Some(kept) = self.kept.get().filter(|_| !self.is_adopted.load(Ordering::Relaxed))
        else {
            return;
        };
        let base = self.lock().take();
        if let Some(base) = base.and_then(Arc::into_inner)
            && matches!(base.guard, LayerGuard::Room { .. })
            && base.layer.is_worth_keeping()
            && let Err(error) = kept.publish(&base.layer, self.options.layers)
        {
            // The next command builds them again.
            tracing::debug!(error = error.message, "the base's layers are not kept");
        }
    }
}

impl SealedCheckout {
    /// The directory in which commands start, as the world has it.
    pub fn dir(&self) -> &Path {
        &self.spec.dir
    }

    /// The directory that gets everything that commands write to the checkout.
    pub fn written(&self) -> PathBuf {
        self.room.checkout()
    }

    /// The world in which the command of a stage runs.
    pub fn world(&self, stage: Stage) -> WorldSpec {
        let network = match self.network {
            Network::On => true,
            Network::Off => false,
            Network::Setup => stage == Stage::Setup,
        };
        WorldSpec { network, ..self.spec.clone() }
    }

    /// The tracked files that commands have changed, sorted.
    pub fn changed(&self, repo: &Repo) -> Result<Vec<TreePath>> {
        written::changed(&repo.git(), &self.room.index(), &self.written())
    }
}
