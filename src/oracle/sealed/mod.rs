//! Checkouts in sealed worlds. In each world, one tree is at the path of the user's own checkout.
//!
//! * A warm tree is in an overlay over the layers of the base. If an overlay layer cannot express
//!   the differences between the base and the tree, the tree is in a plain directory.
//! * A cold tree is in a plain directory ([`Warmth`]).
//!
//! The commands' writes go to a room ([`CheckoutRoom`]): a temporary directory that is deleted
//! together with the world. But two kinds of files stay:
//!
//! * files that the base's commands wrote: they are moved into the base's layers;
//! * files at the paths of `sandbox.write`: these paths are not in the room.
//!
//! Layers are *kept* if they are stored in the cache directory for later git-frites commands
//! ([`kept`]). The *user's directories* are the home directory and the directories of tools.
pub mod kept;
pub mod machine_paths;
mod npm_settings;
pub mod plan;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::config::value::Network;
use crate::ecosystems::downloads;
use crate::error::{Cause, IfExists, IoContext, Result};
use crate::fs::lock::Lock;
use crate::fs::tree::{TimeSpan, disk_usage_and_files};
use crate::git::fan_out;
use crate::git::file_times::FileTimes;
use crate::git::layers::base::{BaseEnd, BaseLayer};
use crate::git::layers::written::{CompleteIndex, wait_for_next_step};
use crate::git::layers::{difference, inherited};
use crate::git::ref_locks::CHANGING;
use crate::git::refs;
use crate::git::repo::Repo;
use crate::git::seed::find::Seeds;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::model::path::TreePath;
use crate::oracle::pool::{self, CheckoutRoom, LAYERS};
use crate::oracle::sealed::kept::{KeptLayer, LayerName, LayerStart};
use crate::oracle::sealed::machine_paths::{SandboxOptions, directories_of_our_refs};
use crate::oracle::sealed::plan::{Layers, Surroundings, WorldRoom, mounts};
use crate::process::world_spec::{DiskLimit, WorldSpec};
use crate::store::Store;
use crate::world::user_directories::make_room;

/// Files with credentials of package managers. They are hidden by default.
const PACKAGE_LOGINS: [&str; 2] = ["~/.netrc", "~/.pypirc"];

/// Makes the checkouts in sealed worlds for one base, in one process.
pub struct SealedCheckouts<'a> {
    store: &'a Store,
    /// The user's checkout, from which submodules are taken.
    checkout: Option<PathBuf>,
    seeds: Seeds,
    base: Oid,
    /// This repository's directory in the cache.
    dir: PathBuf,
    /// The paths of the machine that each world replaces.
    pub surroundings: Surroundings,
    options: SandboxOptions,
    /// The commands that download the base's dependencies, if there is no setup command for that.
    downloads: Vec<OracleCommand>,
    base_layer: Mutex<Option<Arc<BaseInUse>>>,
    /// The place where the base's layers are kept; unset if they are not kept.
    kept: OnceLock<KeptLayer>,
    /// An ancestor's layers, from which the base's layers are made; unset if there are none.
    ancestor: OnceLock<LayerStart>,
    /// True if attempts could have changed the layers. Then the layers are not kept.
    are_doubtful: AtomicBool,
    /// True if this process judges while attempts run. Then the layers are not kept.
    is_beside_attempts: bool,
    /// True if this process judges while attempts run, and these attempts can write to files in
    /// the home directory that the oracle's commands read.
    attempts_reach_home: bool,
}

/// The base's layers while this process uses them.
#[derive(Debug)]
pub struct BaseInUse {
    layer: BaseLayer,
    /// A digest of the stat data of everything in the layers. It is set when the base's commands
    /// have ended.
    stamp: OnceLock<String>,
    /// The place to which the layers are moved when this process no longer uses them, and the limit
    /// in bytes for all kept layers. Unset if the layers are not kept.
    keep_at: OnceLock<(KeptLayer, u64)>,
    /// Prevents other processes from removing the layers.
    guard: LayerGuard,
}

/// The lock that prevents other processes from removing the directory of layers.
#[derive(Debug)]
enum LayerGuard {
    /// The layers are in a room of this process, and are deleted together with the room. But if
    /// they are to be kept, they are moved out of the room first.
    Room { _room: CheckoutRoom },
    /// The layers are kept, and this process has locked them.
    Kept { _lock: Lock },
}

/// Which layers of the base a judged tree gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warmth {
    /// Only the files that the base's setup left in the user's directories, e.g. downloads. The
    /// tree is in a plain directory, where tools cannot have trouble with an overlay.
    Cold,
    /// All layers of the base: all files that its commands left in the checkout and in the user's
    /// directories.
    Warm,
}

/// A tree that is checked out in a room.
struct CheckedOut {
    /// The layers of the checkout's overlay, the topmost first; empty if the tree is in a plain
    /// directory.
    layers: Vec<PathBuf>,
    /// True if the checkout's layers have files that the base's commands wrote.
    has_outputs: bool,
    /// The reason why the tree is incomplete; `None` if it is complete.
    problem: Option<String>,
}

/// One tree in a sealed world.
pub struct SealedCheckout {
    room: WorldRoom,
    _room: CheckoutRoom,
    surroundings: Surroundings,
    layers: Layers,
    /// The world without its mounts, which are different for each stage.
    spec: WorldSpec,
    network: Network,
    /// The commands that download those dependencies of the tree that are missing in the world.
    pub downloads: Vec<OracleCommand>,
    /// True if the commands see files that the base's commands wrote, in the checkout or in the
    /// user's directories. Files of the setup command are not counted.
    pub has_outputs: bool,
    /// True if the checkout is an overlay, in which a directory of the base cannot be renamed
    /// (GIT-FACTS, "Worlds").
    pub is_overlay: bool,
    index: CompleteIndex,
    /// The reason why the tree is incomplete, e.g. that the user's checkout does not have the
    /// commit of a submodule; `None` if it is complete.
    pub problem: Option<String>,
}

impl<'a> SealedCheckouts<'a> {
    /// Prepares to make checkouts for a base and its candidates, which the commands in `oracle`
    /// judge. The checkouts get these seeds, and the submodules of the user's checkout.
    pub fn open(
        store: &'a Store,
        checkout: Option<&Path>,
        (base, seeds): (Oid, Seeds),
        options: SandboxOptions,
        oracle: &[OracleCommand],
    ) -> Result<SealedCheckouts<'a>> {
        let repo = store.repo();
        let dir = pool::home(repo)?;
        pool::note_repository(repo, &dir)?;
        let runs = store.runs()?;
        let worktrees = runs.iter().map(|run| store.worktrees(run.worktree_root.as_deref()));
        let surroundings = machine_paths::of(repo, checkout, &dir, worktrees, &options)?;
        let downloads = downloads::of_base(repo, &base, oracle)?;
        Ok(SealedCheckouts {
            store,
            checkout: checkout.map(Path::to_owned),
            seeds,
            base,
            dir,
            surroundings,
            options,
            downloads,
            base_layer: Mutex::default(),
            kept: OnceLock::new(),
            ancestor: OnceLock::new(),
            are_doubtful: AtomicBool::default(),
            is_beside_attempts: false,
            attempts_reach_home: false,
        })
    }

    /// Notes that attempts run from now on. So layers are not kept.
    ///
    /// With `reach_home`, these attempts can write to files in the home directory that the oracle's
    /// commands read. Such a file can name the server for downloads. So even this process uses
    /// downloads only for the tree for which they were made.
    pub fn note_running_attempts(&mut self, reach_home: bool) {
        (self.is_beside_attempts, self.attempts_reach_home) = (true, reach_home);
    }

    /// Checks out the tree of a commit in a world of its own. If the disk is full, files in rooms
    /// that are no longer used may have filled it. So this function waits until such rooms are
    /// deleted, and tries once more.
    pub fn acquire(&self, commit: &Oid, warmth: Warmth) -> Result<SealedCheckout> {
        match self.make(commit, warmth) {
            Err(e) if e.cause == Cause::StorageFull => {
                self.store.removals().wait();
                self.make(commit, warmth)
            }
            made => made,
        }
    }

    fn make(&self, commit: &Oid, warmth: Warmth) -> Result<SealedCheckout> {
        let guard = CheckoutRoom::sealed(self.store, &self.dir)?;
        let room = WorldRoom(guard.dir.clone());
        for (directory, mode) in room.directories(&self.surroundings) {
            fs::create_dir(&directory)
                .and_then(|()| fs::set_permissions(&directory, fs::Permissions::from_mode(mode)))
                .could_not("make", &directory)?;
        }
        for layers in [room.fetched(), room.home()] {
            make_room(&self.surroundings.of_the_user, &layers).could_not("make", &layers)?;
        }
        for (number, settings) in self.surroundings.cut.iter().enumerate() {
            let shown = room.cut(number);
            fs::write(&shown, npm_settings::shown_of(settings)).could_not("write", &shown)?;
        }
        let own = room.own_git_dir(&self.surroundings);
        fs::create_dir_all(&own).could_not("make", &own)?;
        let over_base = match warmth {
            Warmth::Warm => self.over_base(commit, &room)?,
            Warmth::Cold => None,
        };
        let CheckedOut { layers, has_outputs, problem } = match over_base {
            Some(laid) => laid,
            None => self.check_out(commit, &room)?,
        };
        let index = self.write_git_dir(commit, &room)?;
        let is_overlay = !layers.is_empty();
        if !is_overlay {
            wait_for_next_step(&guard.dir).could_not("use", &guard.dir)?;
        }
        let base = self.layers();
        let downloads = self.missing_downloads(commit, warmth, base.as_ref())?;
        let fetched = base.as_ref().and_then(BaseLayer::fetched);
        let left = base.filter(|_| warmth == Warmth::Warm).and_then(|base| base.home());
        let has_outputs = has_outputs || left.is_some();
        let home = left.into_iter().chain(fetched).collect();
        let layers = Layers { checkout: layers, home };
        let spec = WorldSpec {
            dir: self.surroundings.checkout.clone(),
            mounts: Vec::new(),
            wrapping_point: room.wrapping_point(),
            network: true,
            hides_sockets: true,
            processes: self.options.processes,
            memory: self.options.memory,
            disk: Some(DiskLimit {
                before: disk_usage_and_files(&guard.dir),
                bytes: self.options.disk,
                dir: guard.dir.clone(),
            }),
            process_ids: None,
        };
        let network = self.options.network;
        Ok(SealedCheckout {
            room,
            _room: guard,
            surroundings: self.surroundings.clone(),
            layers,
            spec,
            network,
            downloads,
            has_outputs,
            is_overlay,
            index,
            problem,
        })
    }

    /// The commands that download those dependencies of a tree that are missing in its world:
    ///
    /// * If the base's downloads have failed: all commands for the base, and none for other trees.
    /// * If the base's layers have no downloads yet: all commands for the base and for cold trees.
    /// * Otherwise: the commands for the dependencies in which the tree differs from the base.
    fn missing_downloads(
        &self,
        commit: &Oid,
        warmth: Warmth,
        base: Option<&BaseLayer>,
    ) -> Result<Vec<OracleCommand>> {
        let cannot_download = base.is_some_and(|base| !base.end().downloaded);
        let may_download = *commit == self.base || warmth == Warmth::Cold && !cannot_download;
        if may_download && !base.is_some_and(BaseLayer::has_downloads) {
            return Ok(self.downloads.clone());
        }
        if cannot_download {
            return Ok(Vec::new());
        }
        let repo = self.store.repo();
        let [first, second] = [&self.base, commit].map(|commit| repo.commit(commit));
        downloads::that_differ(repo, &self.downloads, [&first?.tree, &second?.tree])
    }

    /// Checks a tree out into a plain directory, without the base's layers of the checkout.
    fn check_out(&self, commit: &Oid, room: &WorldRoom) -> Result<CheckedOut> {
        let directory = room.checkout();
        fan_out::check_out(
            self.store.repo(),
            commit,
            &directory,
            &room.index(&self.surroundings),
            FileTimes::Current,
        )?;
        let problem = self.add_submodules_and_seeds(commit, &directory)?;
        Ok(CheckedOut { layers: Vec::new(), has_outputs: false, problem })
    }

    /// Makes the layers of a tree, with the base's checkout at the bottom. `None` if an overlay
    /// layer cannot express the differences between the base and the tree.
    fn over_base(&self, commit: &Oid, room: &WorldRoom) -> Result<Option<CheckedOut>> {
        let layer = self.base_in_use()?.layer.clone();
        let mut layers = layer.all_outputs();
        let has_outputs = !layers.is_empty();
        layers.push(layer.sources());
        let index = room.index(&self.surroundings);
        if *commit == self.base {
            fs::copy(layer.index(), &index).could_not("write", &index)?;
        } else {
            let (trees, into) = ([&self.base, commit], room.difference());
            if !difference::write(self.store.repo(), &layer, trees, &self.seeds, &into, &index)? {
                return Ok(None);
            }
            layers.insert(0, into);
        }
        Ok(Some(CheckedOut { layers, has_outputs, problem: None }))
    }

    /// From now on, the base's layers are kept under this name. If kept layers of this name exist,
    /// uses them, unless they were changed in a `distrusted` span of time: when attempts ran.
    ///
    /// If there are no such layers and `warm` is true, the base's layers are made from those of the
    /// nearest ancestor that has kept layers.
    pub fn use_and_keep(&self, name: LayerName, distrusted: &[TimeSpan], warm: bool) -> Result<()> {
        let kept = KeptLayer { root: self.dir.join(LAYERS), name };
        match kept.start(self.store.repo(), &self.base, distrusted, warm)? {
            Some(LayerStart { is_own: true, layer, lock, .. }) => {
                let guard = LayerGuard::Kept { _lock: lock };
                *self.base_layer.lock() = Some(Arc::new(BaseInUse::new(layer, guard)));
            }
            Some(ancestor) => drop(self.ancestor.set(ancestor)),
            None => {}
        }
        let _ = self.kept.set(kept);
        Ok(())
    }

    /// Uses the layers that an earlier judging in this process made while attempts ran. But does
    /// nothing if the layers have changed since the base's commands ended. If a file in them was
    /// written in a `distrusted` span of time, the layers are used, but not kept.
    pub fn adopt(&self, base: Arc<BaseInUse>, distrusted: &[TimeSpan]) -> Result<()> {
        let is_unchanged = base.stamp.get() == Some(&base.layer.stamp()?);
        if is_unchanged && matches!(base.guard, LayerGuard::Room { .. }) {
            let is_doubtful = !base.layer.is_unchanged_in(distrusted);
            self.are_doubtful.store(is_doubtful, Ordering::Relaxed);
            *self.base_layer.lock() = Some(base);
        }
        Ok(())
    }

    /// The base's layers, together with the lock that prevents their removal. `None` if they do not
    /// exist yet.
    pub fn layers_in_use(&self) -> Option<Arc<BaseInUse>> {
        self.base_layer.lock().clone()
    }

    /// Makes layers for later checkouts from the files that the base's commands left in this
    /// checkout and in the user's directories. If layers exist, they are not changed, with one
    /// exception: kept layers without files of the user's directories get these files.
    pub fn keep_outputs(&self, checkout: &SealedCheckout, end: BaseEnd) -> Result<()> {
        // Downloads are used for all trees, even cold ones, so attempts must not have been able to
        // influence them.
        let takes_home = !self.surroundings.of_the_user.is_empty() && !self.attempts_reach_home;
        let room = takes_home.then_some(&checkout.room);
        match (checkout.is_overlay, room, self.layers_in_use()) {
            (true, ..) => self.take_outputs(&checkout.room.checkout(), room, end),
            (false, Some(room), Some(base)) => self.take_home_late(&base, room, end),
            _ => Ok(()),
        }
    }

    /// Moves the outputs in `checkout` into the base's layers. If `room` is given, also moves the
    /// files of the user's directories that are in this room.
    fn take_outputs(&self, checkout: &Path, room: Option<&WorldRoom>, end: BaseEnd) -> Result<()> {
        let base = self.base_in_use()?;
        if base.layer.outputs().is_some() {
            return room.map_or(Ok(()), |room| self.take_home_late(&base, room, end));
        }
        base.layer.take_outputs(checkout)?;
        if let Some(room) = room {
            base.layer.take_home(&room.fetched(), &room.home(), end)?;
        }
        base.layer.note_end(end)?;
        let _ = base.stamp.set(base.layer.stamp()?);
        Ok(())
    }

    /// If kept layers have no files of the user's directories, adds these files. Kept layers lack
    /// them if they were made while attempts ran, or if a download failed.
    fn take_home_late(&self, base: &BaseInUse, room: &WorldRoom, end: BaseEnd) -> Result<()> {
        let are_kept = matches!(base.guard, LayerGuard::Kept { .. });
        if !are_kept || base.layer.has_home() {
            return Ok(());
        }
        base.layer.take_home(&room.fetched(), &room.home(), end)?;
        KeptLayer::note_size(&base.layer)
    }

    /// The existing files with credentials of package managers that are hidden from commands, or
    /// shown without the credentials. Each is spelled as in `sandbox.hide`.
    pub fn hidden_credentials(&self) -> Vec<String> {
        let options = &self.options;
        let is_there =
            |name: &&String| !machine_paths::named(std::slice::from_ref(*name), None).is_empty();
        let hidden = options.hide.iter().filter(|name| PACKAGE_LOGINS.contains(&name.as_str()));
        let mut found: Vec<String> = hidden.filter(is_there).cloned().collect();
        if self.surroundings.cut.iter().any(|path| npm_settings::has_credentials(path)) {
            found.extend_from_slice(&options.cut);
        }
        found
    }

    /// The base's layers, without the lock; `None` if they do not exist yet.
    pub fn layers(&self) -> Option<BaseLayer> {
        self.layers_in_use().map(|base| base.layer.clone())
    }

    /// Forgets the base's layers and removes the kept ones, so that no later judging uses them.
    pub fn forget_layers(&self) -> Result<()> {
        if let Some(base) = self.base_layer.lock().take()
            && matches!(base.guard, LayerGuard::Room { .. })
        {
            base.layer.forget_outputs()?;
        }
        self.kept.get().map_or(Ok(()), KeptLayer::remove)
    }

    /// The base's layers. Makes them if they do not exist yet.
    fn base_in_use(&self) -> Result<Arc<BaseInUse>> {
        let mut in_use = self.base_layer.lock();
        if let Some(base) = &*in_use {
            return Ok(base.clone());
        }
        let room = CheckoutRoom::sealed(self.store, &self.dir)?;
        let layer = BaseLayer::at(room.dir.join("base"));
        if !self.start_from_ancestor(&layer)? {
            layer.check_out(self.store.repo(), &self.base)?;
            self.add_submodules_and_seeds(&self.base, &layer.sources())?;
        }
        let guard = LayerGuard::Room { _room: room };
        let base = Arc::new(BaseInUse::new(layer, guard));
        *in_use = Some(base.clone());
        Ok(base)
    }

    /// Makes the base's layers from the layers of an ancestor. Returns false if there is no such
    /// ancestor, or if its layers cannot be used.
    fn start_from_ancestor(&self, layer: &BaseLayer) -> Result<bool> {
        let Some(ancestor) = self.ancestor.get() else { return Ok(false) };
        let trees = [&ancestor.tree, &self.base];
        inherited::start(layer, self.store.repo(), &ancestor.layer, trees, &self.seeds)
    }

    /// Adds submodules and seeds to a commit's tracked files. If a submodule cannot be added,
    /// returns the reason.
    fn add_submodules_and_seeds(&self, commit: &Oid, sources: &Path) -> Result<Option<String>> {
        let exported =
            pool::export_submodules(self.store.repo(), self.checkout.as_deref(), commit, sources);
        let problem = exported.err().map(|e| e.message);
        self.seeds.place(sources).map(|_| problem)
    }

    /// Prepares the upper layer of the git directory, which has the index of the commit's tree
    /// already: HEAD is at the commit.
    fn write_git_dir(&self, commit: &Oid, room: &WorldRoom) -> Result<CompleteIndex> {
        let failed = || "could not prepare the git directory of a sealed world".to_owned();
        let Surroundings { checkout, git_dir, .. } = &self.surroundings;
        let own = room.own_git_dir(&self.surroundings);
        if own == room.git_dir() {
            fs::create_dir(room.checkout().join(".git")).context(failed)?;
        } else {
            let write = |path: PathBuf, target: &Path| {
                fs::write(path, [target.as_os_str().as_bytes(), b"\n"].concat()).context(failed)
            };
            write(own.join("commondir"), Path::new("../.."))?;
            write(own.join("gitdir"), &checkout.join(".git"))?;
            let entry = git_dir.join("worktrees/frites");
            let mut link = OsString::from("gitdir: ");
            link.push(entry);
            write(room.checkout().join(".git"), Path::new(&link))?;
        }
        fs::write(own.join("HEAD"), format!("{commit}\n")).context(failed)?;
        for refs in directories_of_our_refs(&room.git_dir()) {
            fs::create_dir_all(refs).context(failed)?;
        }
        copy_lists_of_refs(git_dir, &room.git_dir()).context(failed)?;
        CompleteIndex::hand_out(&room.index(&self.surroundings)).context(failed)
    }
}

/// Copies the lists of refs (`packed-refs` and `info/refs`) into the upper layer of a git
/// directory. Leaves out our refs. A list that does not exist is written as an empty file, because
/// a git process can pack refs while commands run. The files of unfinished lists become empty, too.
fn copy_lists_of_refs(git_dir: &Path, upper: &Path) -> io::Result<()> {
    fs::create_dir_all(upper.join("info"))?;
    for name in ["packed-refs", "info/refs"] {
        let list = fs::read(git_dir.join(name)).if_exists()?.unwrap_or_default();
        fs::write(upper.join(name), without_our_refs(&list))?;
    }
    fs::write(upper.join(CHANGING), "")?;
    // git first writes `info/refs` to a file whose name begins with `refs_`. If git is killed, this
    // file stays.
    for entry in fs::read_dir(git_dir.join("info")).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().starts_with(b"refs_") {
            fs::write(upper.join("info").join(entry.file_name()), "")?;
        }
    }
    Ok(())
}

/// The lines of `packed-refs` or of `info/refs`, without those of our refs.
fn without_our_refs(list: &[u8]) -> Vec<u8> {
    let mut is_hidden = false;
    let mut shown = Vec::new();
    for line in list.split_inclusive(|byte| *byte == b'\n') {
        // A line that begins with `^` belongs to the annotated tag in the line before it.
        if !line.starts_with(b"^") {
            let name = line.splitn(2, |byte| b" \t".contains(byte)).nth(1).unwrap_or_default();
            is_hidden = refs::OUR_REFS.iter().any(|refs| name.starts_with(refs.as_bytes()));
        }
        if !is_hidden {
            shown.extend_from_slice(line);
        }
    }
    shown
}

impl Drop for SealedCheckouts<'_> {
    fn drop(&mut self) {
        let is_doubtful = self.are_doubtful.load(Ordering::Relaxed) || self.is_beside_attempts;
        if let (false, Some(kept), Some(base)) =
            (is_doubtful, self.kept.get(), self.base_layer.lock().take())
        {
            let _ = base.keep_at.set((kept.clone(), self.options.layers));
        }
    }
}

impl BaseInUse {
    fn new(layer: BaseLayer, guard: LayerGuard) -> BaseInUse {
        BaseInUse { layer, stamp: OnceLock::new(), keep_at: OnceLock::new(), guard }
    }
}

impl Drop for BaseInUse {
    fn drop(&mut self) {
        if let Some((kept, limit)) = self.keep_at.get()
            && matches!(self.guard, LayerGuard::Room { .. })
            // Layers are kept even if their outputs are empty. Then the next judging need not check
            // out the base.
            && self.layer.outputs().is_some()
            && let Err(error) = kept.publish(&self.layer, *limit)
        {
            // The next command makes the layers again.
            tracing::debug!(error = error.message, "the base's layers are not kept");
        }
    }
}

impl SealedCheckout {
    /// The path, in the world, of the directory in which commands start.
    pub fn dir(&self) -> &Path {
        &self.spec.dir
    }

    /// The directory outside of the world that gets the commands' writes to the checkout.
    pub fn writes_dir(&self) -> PathBuf {
        self.room.checkout()
    }

    /// The world in which the command of a stage runs. The stages after the setup see the files
    /// that the setup left.
    pub fn world(&self, stage: Stage) -> WorldSpec {
        let network = match self.network {
            Network::On => true,
            Network::Off => false,
            Network::Setup => stage == Stage::Setup,
        };
        let mounts = mounts(&self.surroundings, self.layers.clone(), &self.room, stage);
        WorldSpec { network, mounts, ..self.spec.clone() }
    }

    /// The tracked files that commands have changed, sorted.
    pub fn changed(&self, repo: &Repo) -> Result<Vec<TreePath>> {
        match self.is_overlay {
            true => self.index.changed_over(&repo.git(), &self.writes_dir()),
            false => self.index.changed_in(&repo.git(), &self.writes_dir()),
        }
    }
}
