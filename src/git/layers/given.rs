//! The outputs of a base's layers that new worktrees of the base get, so that the first build there
//! is incremental.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{IoContext, Result};
use crate::fs::walk::{is_nameable, visit};
use crate::fs::{parallel, tree};
use crate::git::cli::{Git, nul_separated};
use crate::git::file_times;
use crate::git::layers::base::BaseLayer;
use crate::git::layers::placed::PlacedOutputs;
use crate::git::layers::{copied, is_opaque};
use crate::git::seed::find::Seeds;
use crate::git::seed::leads_back;
use crate::git::worktree::Worktree;
use crate::model::path::TreePath;

/// The outputs that worktrees get, each with its file in a layer.
pub struct GivenOutputs {
    sources: PathBuf,
    files: Vec<(TreePath, PathBuf)>,
}

impl GivenOutputs {
    /// The outputs in these layers that git ignores in a new worktree of the base.
    ///
    /// A directory at the top is left out as a whole if it has seeds, or if a file in it leads to
    /// `checkout`, the path at which the outputs were made, as in a virtual environment. All is
    /// left out if a file at the top leads there.
    pub fn read(
        layer: &BaseLayer,
        worktree: &Worktree,
        seeds: &Seeds,
        checkout: &Path,
    ) -> Result<GivenOutputs> {
        let found = merged(&layer.all_outputs())
            .context(|| format!("could not read '{}'", layer.dir().display()))?;
        let leads = found.iter().filter(|(path, file)| leads_back::leads_to(path, file, checkout));
        let leading: BTreeSet<TreePath> = leads.map(|(path, _)| top(path)).collect();
        let is_ignored = ignored(&worktree.git(), found.keys())?;
        let is_given = |path: &TreePath| {
            let top = top(path);
            !leading.contains(&top) && !seeds.hold(&top) && is_ignored.contains(path)
        };
        let is_lead_at_top = leading.iter().any(|top| found.contains_key(top));
        let usable = found.iter().filter(|(path, _)| !is_lead_at_top && is_given(path));
        let files = usable.map(|(path, file)| (path.clone(), file.clone())).collect();
        Ok(GivenOutputs { sources: layer.sources(), files })
    }

    /// True if there is nothing to give.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Copies the outputs into a new worktree of the base, and gives its files the times that they
    /// have in the layers: they are older than what was built from them. No existing file is
    /// replaced, and nothing is written through a link. Lists what was copied in the file `record`.
    pub fn place(&self, worktree: &Worktree, record: &Path) -> Result<()> {
        let into = &worktree.path;
        let mut ready = BTreeSet::new();
        for (path, _) in &self.files {
            let full = path.on_disk(into);
            let Some(parent) = full.parent() else { continue };
            if ready.insert(parent.to_owned())
                && tree::nearest_real(parent).starts_with(tree::nearest_real(into))
            {
                // A file may be in its place.
                let _ = fs::create_dir_all(parent);
            }
        }
        ready.retain(|parent| tree::is_real_directory(into, parent));
        let placed = parallel::map(&self.files, |(path, from)| {
            let to = path.on_disk(into);
            let is_free = is_nameable(&to)
                && to.parent().is_some_and(|parent| ready.contains(parent))
                && fs::symlink_metadata(&to).is_err();
            if is_free {
                copied::copy_one(from, &to)
                    .context(|| format!("could not make '{}'", to.display()))?;
            }
            Ok(is_free.then(|| path.clone()))
        })?;
        PlacedOutputs::record(record, into, placed.iter().flatten())?;
        file_times::take_from(&self.sources, into, &worktree.index())
    }
}

/// The directory or file at the top of the checkout that a path is below.
fn top(path: &TreePath) -> TreePath {
    path.parents().next().unwrap_or_else(|| path.clone())
}

/// The files and links that these layers show together, the topmost first, each in its layer.
fn merged(layers: &[PathBuf]) -> io::Result<BTreeMap<TreePath, PathBuf>> {
    let mut found: BTreeMap<TreePath, PathBuf> = BTreeMap::new();
    for layer in layers.iter().rev() {
        let mut hidden = BTreeSet::new();
        let mut own = Vec::new();
        visit(layer, &mut |path, meta| {
            let full = layer.join(OsStr::from_bytes(path));
            let path = TreePath::new(path);
            if !meta.is_dir() || meta.is_whiteout() || is_opaque(&full) {
                hidden.insert(path.clone());
            }
            // No build tool finds an output by another path.
            if (meta.is_file() || meta.is_symlink()) && is_nameable(&full) {
                own.push((path, full));
            }
        })?;
        found.retain(|path, _| {
            !hidden.contains(path) && !path.parents().any(|parent| hidden.contains(&parent))
        });
        found.extend(own);
    }
    Ok(found)
}

/// Those of the paths that git ignores in its work tree.
fn ignored<'a>(git: &Git, paths: impl Iterator<Item = &'a TreePath>) -> Result<BTreeSet<TreePath>> {
    let list = TreePath::nul_terminated(paths);
    if list.is_empty() {
        return Ok(BTreeSet::new());
    }
    let output = git.call("check-ignore").args(["-z", "--stdin"]).stdin(list).output()?;
    match output.code {
        0 | 1 => Ok(nul_separated(&output.stdout).map(TreePath::new).collect()),
        _ => Err(output.error("check-ignore")),
    }
}
