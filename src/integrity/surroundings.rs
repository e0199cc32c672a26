//! Watches the surroundings of judge checkouts: the directories above them, and the cached outcomes. A new
//! file in one of our own directories is removed, because it could change the outcomes of all trees that are
//! judged later. A new file in a directory above our own directories is only reported, because the file may
//! be the user's.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::fs::tree::{self, path_bytes};
use crate::integrity::diff::Difference;
use crate::integrity::fingerprint::{Fact, FactKind};
use crate::integrity::{IntegrityContext, WatchedCommands, baseline};
use crate::model::path::quoted;
use crate::model::world::WorldKind;
use crate::oracle::cache::{ForeignOutcome, KnownOutcomes};
use crate::oracle::{around_checkouts, pool};

/// The surroundings to watch.
#[derive(Clone)]
pub struct WatchedSurroundings {
    /// The cached outcomes, with the information which of them git-frites itself has stored.
    pub outcomes: KnownOutcomes,
    /// The kind of world in which the commands run.
    pub world: WorldKind,
}

/// A running watch, with the surroundings as they were at the last look.
pub struct SurroundingsWatch {
    commands: WatchedCommands,
    world: WorldKind,
    /// This repository's directory in the cache.
    home: PathBuf,
    /// The files that [`above_checkouts`] found at the last look.
    above: BTreeMap<PathBuf, Option<[i64; 5]>>,
    outcomes: KnownOutcomes,
    /// The paths that were reported but could not be removed.
    stuck: BTreeSet<PathBuf>,
    /// True if another process was judging at one of the looks. Then that process may have written outcomes that
    /// this process does not know.
    others_judged: bool,
}

impl SurroundingsWatch {
    /// Removes from our directories everything that does not belong there, and begins the watch.
    pub fn begin(
        context: IntegrityContext<'_>,
        WatchedSurroundings { outcomes, world }: WatchedSurroundings,
        commands: WatchedCommands,
    ) -> Result<Self> {
        let home = pool::home(context.repo())?;
        let above = above_checkouts(world, &home);
        let (stuck, others_judged) = (BTreeSet::new(), false);
        let mut watch =
            SurroundingsWatch { commands, world, home, above, outcomes, stuck, others_judged };
        for (path, removed) in watch.remove_foreign_files() {
            context.ui.warn(format!(
                "'{}' lay above the judge's checkouts, where build tools find it{}",
                quoted(path_bytes(&path)),
                result(Some(removed))
            ));
        }
        watch.outcomes.believe_all();
        Ok(watch)
    }

    /// Removes the foreign files from our directories. Returns each with the information whether it could be
    /// removed. A file that cannot be removed is returned only once.
    fn remove_foreign_files(&mut self) -> Vec<(PathBuf, bool)> {
        let mut found = around_checkouts::foreign_files(&self.home);
        found.retain(|path| !self.stuck.contains(path));
        let mut tried = Vec::new();
        for path in found {
            let removed = tree::delete_tree(&path).is_ok();
            if !removed {
                self.stuck.insert(path.clone());
            }
            tried.push((path, removed));
        }
        tried
    }

    /// Returns the changes since the last look. `own` is the directory of the `IntegrityWatch` to which this
    /// watch belongs.
    pub fn look(&mut self, context: IntegrityContext<'_>, own: &Path) -> Vec<Difference> {
        let others = baseline::others_judge(context.store, Some(own));
        self.others_judged |= others.is_some();
        let mut found = Vec::new();
        for (path, removed) in self.remove_foreign_files() {
            found.push(above(&path, "was added", Some(removed)));
        }
        let now = above_checkouts(self.world, &self.home);
        for path in self.above.keys().chain(now.keys()).collect::<BTreeSet<_>>() {
            match (self.above.get(path), now.get(path)) {
                (None, _) => found.push(above(path, "was added", None)),
                (_, None) => found.push(above(path, "was removed", None)),
                (old, new) if old != new => found.push(above(path, "was changed", None)),
                _ => {}
            }
        }
        self.above = now;
        // Sealed commands cannot write outcomes, so other git-frites processes have written the new ones.
        let is_sealed = |commands| commands == WatchedCommands::SealedOracle;
        if is_sealed(self.commands) && others.is_none_or(is_sealed) {
            return found;
        }
        let foreign = self.outcomes.remove_foreign();
        if !self.others_judged {
            found.extend(foreign.iter().map(outcome));
        }
        found
    }
}

/// The files in the directories above our cache that build tools would find from a judge checkout. Empty for
/// sealed commands: they see their checkout at the path of the user's checkout, and cannot write to the
/// directories above that path.
fn above_checkouts(world: WorldKind, home: &Path) -> BTreeMap<PathBuf, Option<[i64; 5]>> {
    match world {
        WorldKind::Sealed => BTreeMap::new(),
        WorldKind::Landlock | WorldKind::Open => around_checkouts::sought_above(home),
    }
}

/// The difference for a change above the judge checkouts. `removed` tells whether we could remove the file;
/// `None` if it is not ours to remove.
fn above(path: &Path, happened: &str, removed: Option<bool>) -> Difference {
    let name = quoted(path_bytes(path));
    let words = format!("'{name}' {happened} above the judge's checkouts{}", result(removed));
    difference(FactKind::Surroundings, &name, words, removed == Some(true))
}

fn outcome(foreign: &ForeignOutcome) -> Difference {
    let name = quoted(path_bytes(foreign.name.as_ref()));
    let happened = if foreign.replaced { "was changed" } else { "was added" };
    let words = format!("the cached outcome '{name}' {happened}{}", result(Some(foreign.removed)));
    difference(FactKind::Outcome, &name, words, foreign.removed)
}

fn result(removed: Option<bool>) -> &'static str {
    match removed {
        None => "",
        Some(true) => "; it was removed",
        Some(false) => "; it could not be removed",
    }
}

fn difference(kind: FactKind, name: &str, words: String, reverted: bool) -> Difference {
    let fact = Fact::new(kind, "", name);
    Difference { fact, words, digest: None, texts: (None, None), reverted }
}
