//! The candidate to capture, with the files and refs that belong to its worktree.
use std::collections::BTreeSet;
use std::path::Path;

use crate::git::capture::excludes::HiddenPaths;
use crate::git::seed::placed::PlacedSeeds;
use crate::model::candidate::Capture;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::refname::RefName;

pub struct CaptureSource<'a> {
    pub worktree: &'a Path,
    pub branch: &'a RefName,
    /// The commit that the candidate started from.
    pub base: &'a Oid,
    /// The private index.
    pub index: &'a Path,
    pub previous: Option<&'a Capture>,
    /// The paths that `diff.exclude` leaves out.
    pub hidden: &'a HiddenPaths<'a>,
    /// The seeds that the worktree was given before the attempt began.
    pub seeds: &'a PlacedSeeds,
    /// True if a command ran in the worktree.
    pub ran_command: bool,
}

impl CaptureSource<'_> {
    /// The paths in an index whose content is that of the seed at the same path.
    pub fn seeds_in(&self, index: &gix::index::File) -> BTreeSet<TreePath> {
        if self.seeds.is_empty() {
            return BTreeSet::new();
        }
        let entries = index.entries().iter();
        let seeds = entries.filter(|e| self.seeds.is_seed(e.path(index), &e.id));
        seeds.map(|e| TreePath::new(e.path(index))).collect()
    }
}
