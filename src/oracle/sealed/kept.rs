//! Kept layers: layers of bases that are stored in the cache directory for later git-frites
//! commands, up to a total size.
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{IoContext, Result};
use crate::fs::lock::{self, Lock};
use crate::fs::tree::{self, TimeSpan};
use crate::git::layers::base::BaseLayer;
use crate::git::repo::Repo;
use crate::git::trees;
use crate::model::oid::Oid;
use crate::oracle::pool::LAYERS;

/// The extension of the lock file next to a directory of layers. The lock file's modification time
/// is the time of the last use.
const LOCK: &str = "lock";

/// The name of the file that has the size of a directory of layers, in bytes. The size is stored,
/// because counting takes long.
const SIZE: &str = "size";

/// At most this many commits are searched for an ancestor with layers.
const MOST_COMMITS: usize = 1000;

/// The name of one base's layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerName {
    /// A digest of everything that the base's commands depend on, except the base's tree.
    pub conditions: String,
    /// The base's tree.
    pub tree: Oid,
}

impl fmt::Display for LayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.conditions, self.tree)
    }
}

impl LayerName {
    /// Reads the name of a directory of layers.
    fn parse(text: &str) -> Option<LayerName> {
        let (conditions, tree) = text.split_once('-')?;
        Some(LayerName { conditions: conditions.to_owned(), tree: Oid::parse(tree)? })
    }
}

/// The place where the layers of one base are kept.
#[derive(Clone, Debug)]
pub struct KeptLayer {
    /// The repository's directory of layers.
    pub root: PathBuf,
    pub name: LayerName,
}

/// The kept layers that a base uses, or from which the base's own layers are made.
pub struct LayerStart {
    /// The commit whose layers these are: the base or an ancestor.
    pub commit: Oid,
    pub tree: Oid,
    /// True if these are the base's own layers.
    pub is_own: bool,
    pub layer: BaseLayer,
    /// Prevents other processes from removing the layers.
    pub lock: Lock,
}

impl KeptLayer {
    /// The directory of the layers. It need not exist.
    pub fn dir(&self) -> PathBuf {
        self.root.join(self.name.to_string())
    }

    /// Finds kept layers that the base at `commit` can use: its own layers. If they are not kept
    /// and `warm` is true, finds the layers of the nearest ancestor that has kept layers; these are
    /// used only if they have outputs.
    ///
    /// Layers that were changed in a `distrusted` span of time (when attempts ran) are not used.
    pub fn start(
        &self,
        repo: &Repo,
        commit: &Oid,
        distrusted: &[TimeSpan],
        warm: bool,
    ) -> Result<Option<LayerStart>> {
        let LayerName { conditions, tree } = &self.name;
        if let Some((layer, lock)) = self.open_unchanged(distrusted)? {
            let tree = *tree;
            return Ok(Some(LayerStart { commit: *commit, tree, is_own: true, layer, lock }));
        }
        let ancestor =
            nearest(&self.root, repo, commit, |name| warm && name.conditions == *conditions);
        let Some((commit, tree)) = ancestor.filter(|(_, of)| of != tree) else { return Ok(None) };
        let name = LayerName { tree, ..self.name.clone() };
        let found = KeptLayer { name, ..self.clone() }.open_unchanged(distrusted)?;
        let found = found.filter(|(layer, _)| layer.has_outputs());
        Ok(found.map(|(layer, lock)| LayerStart { commit, tree, is_own: false, layer, lock }))
    }

    fn lock(&self) -> PathBuf {
        self.dir().with_extension(LOCK)
    }

    /// The layers, and a lock that prevents other processes from removing them. `None` if the
    /// layers do not exist or another process is changing them. Also `None` if they were changed in
    /// a `distrusted` span of time.
    fn open_unchanged(&self, distrusted: &[TimeSpan]) -> Result<Option<(BaseLayer, Lock)>> {
        if !self.dir().is_dir() {
            return Ok(None);
        }
        let Some(lock) = lock::attempt_shared(&self.lock())? else { return Ok(None) };
        if !self.dir().is_dir() {
            return Ok(None);
        }
        if let Ok(file) = fs::File::open(self.lock()) {
            let _ = file.set_modified(SystemTime::now());
        }
        let layer = BaseLayer::at(self.dir());
        Ok(layer.is_unchanged_in(distrusted).then_some((layer, lock)))
    }

    /// Removes the layers, unless another process uses them.
    pub fn remove(&self) -> Result<()> {
        if let Some(_lock) = lock::attempt(&self.lock())? {
            remove(&self.dir(), &self.lock())?;
        }
        Ok(())
    }

    /// Records the size of layers, so that [`list`] need not measure them.
    pub fn note_size(layer: &BaseLayer) -> Result<()> {
        let file = layer.dir().join(SIZE);
        fs::write(&file, tree::disk_usage(layer.dir()).to_string()).could_not("write", &file)
    }

    /// Moves layers to this place, and replaces the layers that are there. But if another process
    /// uses those, moves nothing. In both cases, also removes the least recently used layers, until
    /// the layers of all repositories take at most `limit` bytes.
    pub fn publish(&self, layer: &BaseLayer, limit: u64) -> Result<()> {
        if let Some(_lock) = lock::attempt(&self.lock())? {
            tree::delete_tree(&self.dir()).could_not("keep layers in", &self.root)?;
            KeptLayer::note_size(layer)?;
            fs::rename(layer.dir(), self.dir()).could_not("keep layers in", &self.root)?;
        }
        match self.root.parent().and_then(Path::parent) {
            Some(homes) => remove_oldest(of_all(homes), limit),
            None => Ok(()),
        }
    }
}

/// The kept layers of a commit. If it has none, those of the nearest ancestor that has kept layers.
///
/// The [`LayerName::conditions`] do not matter. If a tree has several kept layers, takes the ones
/// that were used last. Layers that were changed in a `distrusted` span of time are not used.
pub fn of_nearest(
    root: &Path,
    repo: &Repo,
    commit: &Oid,
    distrusted: &[TimeSpan],
) -> Result<Option<(BaseLayer, Lock)>> {
    let Some((_, tree)) = nearest(root, repo, commit, |_| true) else { return Ok(None) };
    let mut layers = list_in(root);
    layers.sort_by_key(|(_, _, used)| std::cmp::Reverse(*used));
    for (dir, _, _) in layers {
        let name = dir.file_name().and_then(|name| LayerName::parse(name.to_str()?));
        let Some(name) = name.filter(|name| name.tree == tree) else { continue };
        let kept = KeptLayer { root: root.to_owned(), name };
        if let Some(found) = kept.open_unchanged(distrusted)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Finds the nearest commit, `commit` itself or an ancestor, whose tree has layers with a suitable
/// name. `will_do` returns true for such a name. Returns the commit and its tree.
fn nearest(
    root: &Path,
    repo: &Repo,
    commit: &Oid,
    will_do: impl Fn(&LayerName) -> bool,
) -> Option<(Oid, Oid)> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| LayerName::parse(entry.file_name().to_str()?));
    let trees: BTreeSet<Oid> = names.filter(will_do).map(|name| name.tree).collect();
    if trees.is_empty() {
        return None;
    }
    trees::nearest(repo, commit, MOST_COMMITS, |tree| trees.contains(tree))
}

/// Kept layers: their directory, their size in bytes, and the time of their last use.
type KeptLayers = (PathBuf, u64, SystemTime);

/// The kept layers of all repositories. Each repository has a directory in `homes`.
fn of_all(homes: &Path) -> Vec<KeptLayers> {
    let homes = fs::read_dir(homes).into_iter().flatten().flatten();
    homes.flat_map(|home| list(&home.path())).collect()
}

/// The kept layers of one repository. `home` is its directory in the cache.
pub fn list(home: &Path) -> Vec<KeptLayers> {
    list_in(&home.join(LAYERS))
}

/// The kept layers in one directory of layers.
fn list_in(root: &Path) -> Vec<KeptLayers> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let found = entries.filter(|path| path.is_dir()).map(|dir| {
        let size = fs::read_to_string(dir.join(SIZE)).ok().and_then(|text| text.parse().ok());
        let used = fs::metadata(dir.with_extension(LOCK)).and_then(|meta| meta.modified());
        (dir, size.unwrap_or_default(), used.unwrap_or(SystemTime::UNIX_EPOCH))
    });
    found.collect()
}

/// Removes the least recently used layers until the rest take at most `limit` bytes. Layers in use
/// are not removed.
pub fn remove_oldest(mut layers: Vec<KeptLayers>, limit: u64) -> Result<()> {
    layers.sort_by_key(|(_, _, used)| *used);
    let mut total: u64 = layers.iter().map(|(_, size, _)| size).sum();
    for (dir, size, _) in layers {
        if total <= limit {
            return Ok(());
        }
        let file = dir.with_extension(LOCK);
        if let Some(_lock) = lock::attempt(&file)? {
            remove(&dir, &file)?;
            total -= size;
        }
    }
    Ok(())
}

fn remove(dir: &Path, lock: &Path) -> Result<()> {
    tree::delete_tree(dir).could_not("delete", dir)?;
    let _ = fs::remove_file(lock);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn limit_is_for_all_repositories_and_the_least_used_goes_first() {
        let homes = tempfile::tempdir().expect("a directory");
        let add = |name: &str, size: u64, age: u64| {
            let dir = homes.path().join(name.replace('/', "/layers/"));
            fs::create_dir_all(&dir).expect("a layer");
            fs::write(dir.join(SIZE), size.to_string()).expect("its size");
            let lock = fs::File::create(dir.with_extension(LOCK)).expect("its lock");
            lock.set_modified(SystemTime::now() - Duration::from_secs(age)).expect("its time");
            dir
        };
        let (old, new) = (add("one/x", 10, 300), add("one/y", 10, 100));
        let other = add("other/z", 10, 200);
        remove_oldest(of_all(homes.path()), 20).expect("removed");
        assert_eq!([&old, &other, &new].map(|dir| dir.exists()), [false, true, true]);
        remove_oldest(of_all(homes.path()), 10).expect("removed");
        assert_eq!([&other, &new].map(|dir| dir.exists()), [false, true]);
    }
}
