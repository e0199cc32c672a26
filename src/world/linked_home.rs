//! A separate home directory for commands that Landlock confines. It consists of links to the entries of
//! the user's home directory, which can be read; caches are new directories, which can be written to.
//!
//! A sealed world lays an overlay over the user's directory instead, but Landlock cannot mount.
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::fs::tree::nearest_real;
use crate::world::user_directories::{USER_DIRECTORIES, UserDirectory, user_home};

/// The directory of Gradle, and the variable that moves it. There is no variable that moves only its
/// caches.
const GRADLE: (&str, &str) = ("GRADLE_USER_HOME", ".gradle");

/// The directories of Gradle that every build locks or writes to.
const WRITTEN_BY_GRADLE: [&str; 6] =
    ["caches", "daemon", "native", "notifications", ".tmp", "workers"];

/// The variable that names a read-only directory with downloads for Gradle.
const READ_BY_GRADLE: &str = "GRADLE_RO_DEP_CACHE";

/// The directory of the distributions that Gradle's wrapper has downloaded. Each is three levels below it,
/// beside a lock.
const WRAPPER: (&str, usize) = ("wrapper", 3);

/// The ending of the names of locks that programs open to write.
const LOCK: &str = "lck";

/// The local repository of Maven, which adds files to every directory that it reads.
const MAVEN: &str = ".m2/repository";

/// The file of a project that is built with Maven.
const PROJECT_OF_MAVEN: &str = "pom.xml";

/// More levels than any repository of Maven has.
const ALL: usize = 64;

/// The most directories that are made below the first level, because making them takes time for each tree.
const MOST_DIRECTORIES: usize = 5_000;

/// A real directory of the private home, not a link.
struct OwnDirectory {
    /// The user's directory at the same place.
    of_user: PathBuf,
    /// The number of levels below it on which directories are also real ones; `None` if the directory begins
    /// empty.
    linked: Option<usize>,
}

/// The real directories of a private home.
struct OwnDirectories<'a> {
    home: &'a Path,
    /// False if the home directory shows none of the user's files: programs make the files that they need.
    is_linked: bool,
    all: BTreeMap<PathBuf, OwnDirectory>,
    /// The number of directories that may still be made for deeper levels.
    left: Cell<usize>,
    variables: Vec<(String, OsString)>,
}

/// Makes the empty directory `home` a private home directory, and gives the variables that lead programs
/// there. Without `is_linked` it shows none of the user's files. A cache that contains an `open` path stays
/// the user's own, to which commands can write. If `checkout` is built with Maven, files can be added to
/// Maven's repository.
///
/// Fails if a directory or link cannot be made. Unreadable directories of the user are left out.
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
    for known in USER_DIRECTORIES.iter().filter(|known| known.default != MAVEN || uses_maven) {
        own.add_known(known, &of_user, open)?;
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
    /// Adds a directory to which most programs write: a cache, or a directory in which programs make
    /// directories.
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
        // Two variables can move the same directory: the one that is set counts.
        if named.is_none() && self.all.contains_key(&at) {
            return Ok(());
        }
        self.add(at, OwnDirectory { of_user, linked })
    }

    fn add_gradle(&mut self, home_of_user: &Path, open: &[PathBuf]) -> io::Result<()> {
        let (variable, default) = GRADLE;
        let known = USER_DIRECTORIES.iter().find(|known| known.variable == variable);
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

    /// Links the entries of one of the user's directories, except those that are real directories in the
    /// private home. On the first `levels` levels, directories are made and not linked.
    fn link(&self, from: &Path, to: &Path, levels: usize) -> io::Result<()> {
        for entry in fs::read_dir(from).into_iter().flatten().flatten() {
            let source = entry.path();
            let at = to.join(entry.file_name());
            if self.all.contains_key(&at) || source.extension().is_some_and(|end| end == LOCK) {
                continue;
            }
            if at.is_dir() {
                // The private home has a real directory somewhere below this one.
                self.link(&source, &at, levels)?;
            } else if levels > 0 && self.left.get() > 0 && is_directory(&entry) {
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

fn is_directory(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}
