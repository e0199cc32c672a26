//! Finds foreign files in the directories around judge checkouts, up to the root of git-frites's cache, and
//! settings of build tools in the directories above that root.
//!
//! All files that git-frites makes in its own directories have known names. A file with another name could
//! influence commands that are judged in the directories below it.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::git::repo::is_key;
use crate::oracle::pool::{LAYERS, OUTCOMES, ROOM_PREFIX, WORLDS, belongs_in_room, rooms};
use crate::oracle::sealed::machine_paths::STAND_IN;

/// Files of backup programs and of macOS, and files that file systems make when an open file is deleted.
/// Build tools do not read them.
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

/// All foreign files in git-frites's directories: above the rooms, and inside the rooms next to the
/// checkouts. A room is the directory that is made for one checkout. `home` is the directory of one
/// repository in the cache.
pub fn foreign_files(home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(root) = home.parent() {
        collect(root, &|name, is_dir| is_dir && is_key(name), &mut found);
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

/// The files that build tools would now find above the cache, each with inode, mode, size and change time. A
/// directory has `None` instead, because its content may change all the time.
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
