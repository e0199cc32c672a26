//! Makes a private home directory for commands that are confined by Landlock. The private directory
//! has links to the entries of the user's home directory, which commands can read. Caches are new,
//! real directories, to which commands can write.
//!
//! A sealed world has an overlay over the user's home directory instead, but Landlock cannot mount.
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::fs::tree::nearest_real;
use crate::world::user_directories::{UserDirectory, user_directories, user_home};

/// The variable that moves Gradle's directory, and its default below the home directory. No
/// variable moves only Gradle's caches.
const GRADLE: (&str, &str) = ("GRADLE_USER_HOME", ".gradle");

/// The directories in Gradle's directory that every build locks, or to which every build writes.
const WRITTEN_BY_GRADLE: [&str; 6] =
    ["caches", "daemon", "native", "notifications", ".tmp", "workers"];

/// The variable that names a directory with downloads that Gradle only reads.
const READ_BY_GRADLE: &str = "GRADLE_RO_DEP_CACHE";

/// The directory in which Gradle's wrapper stores distributions, and a number of levels. Each
/// distribution lies that many levels below the directory, beside a lock file.
const WRAPPER: (&str, usize) = ("wrapper", 3);

/// The extension of lock files. They are not linked, because programs open them for writing.
const LOCK: &str = "lck";

/// The local repository of Maven. Maven adds files to every directory that it reads. So all
/// directories in the repository are real ones.
const MAVEN: &str = ".m2/repository";

/// The file by which a project that is built with Maven is recognised.
const PROJECT_OF_MAVEN: &str = "pom.xml";

/// A number of levels that is larger than the depth of any Maven repository.
const ALL: usize = 64;

/// The largest number of directories that are made below the first level. The home directory is
/// made for each judged tree, so there is a limit.
const MOST_DIRECTORIES: usize = 5_000;

/// A directory of the private home directory that is a real directory and not a link.
struct OwnDirectory {
    /// The user's directory that this one replaces.
    of_user: PathBuf,
    /// In this many levels below the directory, entries that are directories become real
    /// directories. All other entries become links. `None` if the directory is empty at first.
    linked: Option<usize>,
}

/// The real directories of a private home directory, while it is made.
struct OwnDirectories<'a> {
    home: &'a Path,
    /// False if the private home directory shows none of the user's files.
    is_linked: bool,
    all: BTreeMap<PathBuf, OwnDirectory>,
    /// The number of directories that may still be made below the first level.
    left: Cell<usize>,
    variables: Vec<(String, OsString)>,
}

/// Turns the empty directory `home` into a private home directory. Returns the environment
/// variables that make programs use it. If `is_linked` is false, the private home directory shows
/// none of the user's files. If `checkout` is built with Maven, commands can add files to Maven's
/// local repository.
///
/// `open` are paths of the user to which commands may write. A cache that contains one of them is
/// linked and not replaced.
///
/// Fails if a directory or link cannot be made. Directories of the user that cannot be read are
/// left out.
pub fn make(
    home: &Path,
    is_linked: bool,
    checkout: &Path,
    open: &[PathBuf],
) -> io::Result<Vec<(String, OsString)>> {
    let of_user = user_home().unwrap_or_default();
    if open.iter().any(|path| of_user.starts_with(path)) {
        return Ok(Vec::new());
    }
    let variables = vec![("HOME".to_owned(), home.into())];
    let left = Cell::new(MOST_DIRECTORIES);
    let mut own = OwnDirectories { home, is_linked, all: BTreeMap::new(), left, variables };
    let uses_maven = checkout.join(PROJECT_OF_MAVEN).exists();
    for known in user_directories().filter(|known| known.default != MAVEN || uses_maven) {
        own.add_known(&known, &of_user, open)?;
    }
    if is_linked {
        own.add_gradle(&of_user, open)?;
        own.link(&of_user, home, 0)?;
        for (at, OwnDirectory { of_user, linked }) in &own.all {
            if let Some(levels) = linked {
                own.link(of_user, at, *levels)?;
            }
        }
    }
    Ok(own.variables)
}

impl OwnDirectories<'_> {
    /// Adds the directory `known` if it is a cache. Also adds it if it is one of the `XDG_*`
    /// directories, in which programs make directories. Does nothing for other directories.
    fn add_known(
        &mut self,
        known: &UserDirectory,
        home_of_user: &Path,
        open: &[PathBuf],
    ) -> io::Result<()> {
        let is_shared = known.variable.starts_with("XDG_");
        let named = known.named().into_iter().next().map(|path| nearest_real(&path));
        let of_user = named.clone().unwrap_or_else(|| home_of_user.join(known.default));
        let is_open = |path: &PathBuf| {
            of_user.starts_with(path) || (known.is_cache && path.starts_with(&of_user))
        };
        if !(is_shared || known.is_cache) || open.iter().any(is_open) {
            return Ok(());
        }
        let linked = match known.default {
            MAVEN => Some(ALL),
            _ => is_shared.then_some(0),
        };
        let at = self.home.join(known.default);
        if named.is_some() {
            self.variables.push((known.variable.to_owned(), known.leading_to(&at)));
        }
        // Two variables can move the same directory. If only one of them is set, it decides.
        if named.is_none() && self.all.contains_key(&at) {
            return Ok(());
        }
        self.add(at, OwnDirectory { of_user, linked })
    }

    fn add_gradle(&mut self, home_of_user: &Path, open: &[PathBuf]) -> io::Result<()> {
        let (variable, default) = GRADLE;
        let known = user_directories().find(|known| known.variable == variable);
        let named = known.and_then(|known| known.named().into_iter().next());
        let of_user = named.map_or_else(|| home_of_user.join(default), |path| nearest_real(&path));
        if open.iter().any(|path| of_user.starts_with(path) || path.starts_with(&of_user)) {
            return Ok(());
        }
        let at = self.home.join(default);
        if std::env::var_os(variable).is_some() {
            self.variables.push((variable.to_owned(), at.clone().into()));
        }
        if of_user.join("caches/modules-2").is_dir() {
            self.variables.push((READ_BY_GRADLE.to_owned(), of_user.join("caches").into()));
        }
        for name in WRITTEN_BY_GRADLE {
            let empty = OwnDirectory { of_user: of_user.join(name), linked: None };
            self.add(at.join(name), empty)?;
        }
        let (wrapper, levels) = WRAPPER;
        let linked = OwnDirectory { of_user: of_user.join(wrapper), linked: Some(levels) };
        self.add(at.join(wrapper), linked)?;
        self.add(at, OwnDirectory { of_user, linked: Some(0) })
    }

    fn add(&mut self, at: PathBuf, directory: OwnDirectory) -> io::Result<()> {
        if self.is_linked {
            fs::create_dir_all(&at)?;
            self.all.insert(at, directory);
        }
        Ok(())
    }

    /// Makes links in `to` to the entries of `from`, one of the user's directories. Leaves real
    /// directories of the private home directory as they are. In the first `levels` levels, makes
    /// directories instead of links.
    fn link(&self, from: &Path, to: &Path, levels: usize) -> io::Result<()> {
        for entry in fs::read_dir(from).into_iter().flatten().flatten() {
            let source = entry.path();
            let at = to.join(entry.file_name());
            if self.all.contains_key(&at) || source.extension().is_some_and(|end| end == LOCK) {
                continue;
            }
            if at.is_dir() {
                // This directory was made because a real directory of the private home directory
                // lies below it.
                self.link(&source, &at, levels)?;
            } else if levels > 0
                && self.left.get() > 0
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
            {
                self.left.set(self.left.get() - 1);
                fs::create_dir(&at)?;
                self.link(&source, &at, levels - 1)?;
            } else {
                symlink(&source, &at)?;
            }
        }
        Ok(())
    }
}
