//! Watches the surroundings of judge checkouts: the directories above them, and the cached
//! outcomes. A new file in one of our own directories is removed, because it could change the
//! outcomes of all trees that are judged later. A new file above our own directories is only
//! reported, because it may be the user's.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::fs::tree::{self, path_bytes};
use crate::git::repo::is_key;
use crate::integrity::diff::Difference;
use crate::integrity::fingerprint::{Fact, FactKind};
use crate::integrity::{IntegrityContext, WatchedCommands, baseline};
use crate::model::path::quoted;
use crate::model::world::WorldKind;
use crate::oracle::cache::{ForeignOutcome, KnownOutcomes};
use crate::oracle::pool::{
    self, LAYERS, OUTCOMES, OWN_PREFIX, ROOM_PREFIX, WORLDS, belongs_in_room, rooms,
};
use crate::oracle::sealed::machine_paths::STAND_IN;

/// The surroundings to watch.
#[derive(Clone)]
pub struct WatchedSurroundings {
    /// The cached outcomes, and which of them git-frites itself has stored.
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
    /// True if another process was judging at one of the looks. It may have written outcomes that
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
        let stuck = BTreeSet::new();
        let others_judged = false;
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

    /// Removes the foreign files from our directories. Returns each, with true if it could be
    /// removed. A file that cannot be removed is returned only once.
    fn remove_foreign_files(&mut self) -> Vec<(PathBuf, bool)> {
        let mut found = foreign_files(&self.home);
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

    /// Returns the changes since the last look. `own` is the directory of the `IntegrityWatch` to
    /// which this watch belongs.
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
        // Sealed commands cannot write outcomes. New outcomes are from other git-frites processes,
        // or from unguarded attempts. An outcome that was written while an unguarded attempt ran is
        // not believed (`ops/attempt_times.rs`).
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

/// The files above our cache that build tools would find from a judge checkout. Empty for sealed
/// commands. They see their checkout at the path of the user's checkout, and cannot write to the
/// directories above that path.
fn above_checkouts(world: WorldKind, home: &Path) -> BTreeMap<PathBuf, Option<[i64; 5]>> {
    match world {
        WorldKind::Sealed => BTreeMap::new(),
        WorldKind::Landlock | WorldKind::Open => sought_above(home),
    }
}

/// The difference for a change above the judge checkouts. `removed` is true if we could remove the
/// file, and `None` if the file is not ours to remove.
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

/// Files of backup programs and of macOS. Also files that file systems make when an open file is
/// deleted. Build tools do not read any of them.
const HARMLESS: [&str; 2] = ["CACHEDIR.TAG", ".DS_Store"];
const HARMLESS_BEGINNINGS: [&str; 2] = [".nfs", ".fuse_hidden"];

/// Files and directories that build tools look for in every directory above a project.
const SOUGHT_ABOVE: &str = "
    .babelrc .cargo/config .cargo/config.toml .config/nextest.toml .coveragerc .eslintrc.json .mvn
    .npmrc .pnpmfile.cjs .python-version .tool-versions .yarnrc.yml BUILD.bazel Cargo.toml
    Directory.Build.props Directory.Build.targets Gemfile MODULE.bazel WORKSPACE babel.config.js
    clippy.toml conftest.py deno.json eslint.config.js global.json go.mod go.work jest.config.js
    node_modules nuget.config package.json pnpm-workspace.yaml pyproject.toml pytest.ini
    rust-toolchain rust-toolchain.toml setup.cfg tox.ini tsconfig.json uv.toml";

/// All foreign files in git-frites' directories. A room is the directory that is made for one
/// checkout. A foreign file is above the rooms, or in a room but not in its checkout. `home` is the
/// directory of one repository in the cache.
pub fn foreign_files(home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(root) = home.parent() {
        let belongs = |name: &OsStr, is_dir: bool| {
            is_dir && (is_key(name) || name.as_bytes().starts_with(OWN_PREFIX.as_bytes()))
        };
        collect(root, &belongs, &mut found);
    }
    let belongs = |name: &OsStr, is_dir: bool| {
        let ours = [OUTCOMES, WORLDS, LAYERS, STAND_IN].iter().any(|known| name == *known);
        is_dir && (ours || name.as_bytes().starts_with(ROOM_PREFIX.as_bytes()))
    };
    collect(home, &belongs, &mut found);
    for room in rooms(home) {
        collect(&room, &belongs_in_room, &mut found);
    }
    found.sort();
    found
}

fn collect(dir: &Path, belongs: &dyn Fn(&OsStr, bool) -> bool, found: &mut Vec<PathBuf>) {
    let is_foreign = |entry: &DirEntry| {
        let name = entry.file_name();
        let begins = |prefix: &str| name.as_bytes().starts_with(prefix.as_bytes());
        let is_harmless = HARMLESS.iter().any(|other| name == *other)
            || HARMLESS_BEGINNINGS.into_iter().any(begins);
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        !is_harmless && !belongs(&name, is_dir)
    };
    let listing = fs::read_dir(dir).into_iter().flatten().flatten();
    found.extend(listing.filter(is_foreign).map(|entry| entry.path()));
}

/// The files that build tools would now find above the cache, each with inode, mode, size and
/// change time. A directory has `None` instead, because its content may change all the time.
pub fn sought_above(home: &Path) -> BTreeMap<PathBuf, Option<[i64; 5]>> {
    let mut found = BTreeMap::new();
    for dir in home.ancestors().skip(2) {
        for path in SOUGHT_ABOVE.split_whitespace().map(|name| dir.join(name)) {
            let Ok(meta) = fs::metadata(&path) else { continue };
            let stamp = [
                meta.ino().cast_signed(),
                meta.mode().into(),
                meta.len().cast_signed(),
                meta.ctime(),
                meta.ctime_nsec(),
            ];
            found.insert(path, (!meta.is_dir()).then_some(stamp));
        }
    }
    found
}
