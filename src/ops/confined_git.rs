//! The confinement of our own git processes in worktrees in which attempts' commands have run.
use std::path::Path;

use crate::fs::tree::nearest_real;
use crate::git::filters::FilterConfinement;
use crate::git::repo::Repo;
use crate::process::world_spec::{Mount, WorldSpec};
use crate::store::Store;
use crate::world::probe;

/// Confines the filters that our own git calls start in this repository's worktrees, if the system
/// can confine them.
pub fn confine_filters(repo: &Repo) {
    repo.confine_filters(|| match probe::landlock() {
        Ok(_) => Some(FilterConfinement::Landlock),
        Err(_) if probe::guard_refusal().is_none() => Some(FilterConfinement::World),
        Err(_) => None,
    });
}

/// A world for our own git process in a worktree where an attempt's command has run. git can write
/// to the worktree and to the directory of the index. Its filters can write to their stores.
///
/// `None` if no world can be made on this system. No world is needed then, because guarded attempts
/// run under Landlock. Landlock keeps an attempt out of another worktree, even if the attempt has
/// an open descriptor of a directory there.
pub fn world_of_git(store: &Store, worktree: &Path, index: &Path) -> Option<WorldSpec> {
    if probe::guard_refusal().is_some() {
        return None;
    }
    let common = store.repo().common_dir();
    let dir = nearest_real(worktree);
    let writable = [dir.clone(), nearest_real(index)].into_iter();
    let writable = writable.chain(store.repo().stores_of_filters()).filter(|path| path.exists());
    // Our git also reads the state directory, which has the copy of the configuration that our git
    // uses while commands run.
    let read_only = [common, store.dir().path()];
    let read_only = read_only.map(|at| Mount::ReadOnly { at: at.to_owned(), from: at.to_owned() });
    let mounts = [Mount::Devices].into_iter().chain(read_only);
    let mounts = mounts.chain(writable.map(|at| Mount::Writable { at })).collect();
    Some(WorldSpec { dir, mounts, network: true, ..WorldSpec::default() })
}
