//! The paths that commands can write to under Landlock: the checkout, temporary directories, and
//! the paths that the configuration opens.
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{IoContext, Result};
use crate::fs::lock::{self, Lock};
use crate::fs::tree;
use crate::git::repo::Repo;
use crate::oracle::pool::{self, OWN_PREFIX, ROOM_LOCK};
use crate::oracle::sealed::machine_paths::{self, SandboxOptions};
use crate::process::world_spec::Restriction;
use crate::world::linked_home;

/// The variable with options for every Java program. If it is set, Java prints a line about it on
/// its standard error.
const JAVA_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// The restrictions of the commands of one judging.
#[derive(Debug)]
pub struct Restrictions {
    /// The directory in which private directories are made.
    place: PathBuf,
    /// The paths that the configuration opens.
    open: Vec<PathBuf>,
    /// True if the private home directory has links to the files in the user's home directory.
    links_home: bool,
    memory: Option<u64>,
}

/// The private directories of the commands in one checkout. They are deleted when this is dropped.
#[derive(Debug)]
pub struct PrivateDirectories {
    dir: PathBuf,
    /// The environment variables that make programs use these directories.
    variables: Vec<(String, OsString)>,
    _lock: Lock,
}

impl Restrictions {
    /// The restrictions that the configuration asks for. `home` is the user's checkout.
    pub fn new(repo: &Repo, home: Option<&Path>, options: &SandboxOptions) -> Result<Restrictions> {
        let place = pool::home_of_all(repo)?;
        let open = machine_paths::named(&options.write, home);
        let links_home = !options.private_home;
        Ok(Restrictions { place, open, links_home, memory: options.memory })
    }

    /// The restrictions of an attempt's command, which can also write to the `open` paths.
    pub fn of_attempt(repo: &Repo, open: Vec<PathBuf>) -> Result<Restrictions> {
        let place = pool::home_of_all(repo)?;
        Ok(Restrictions { place, open, links_home: true, memory: None })
    }

    /// Makes private directories for commands in a checkout.
    pub fn directories(&self, checkout: &Path) -> Result<PrivateDirectories> {
        let mut own = PrivateDirectories::make(&self.place)?;
        let home = own.home();
        own.variables = make_private_directory(&home)
            .and_then(|()| linked_home::make(&home, self.links_home, checkout, &self.open))
            .could_not("make", &home)?;
        own.variables.extend(own.java_options());
        own.variables.push(("TMPDIR".to_owned(), own.temporary().into()));
        Ok(own)
    }

    /// The restriction of commands in a checkout, with these private directories.
    pub fn of(&self, checkout: &Path, own: &PrivateDirectories) -> Restriction {
        let temporary = own.temporary();
        let writable =
            [&[checkout.to_owned(), temporary.clone(), own.home()], &self.open[..]].concat();
        let variables = own.variables.clone();
        Restriction { writable, temporary, variables, memory: self.memory }
    }
}

impl PrivateDirectories {
    /// Makes a private directory with a place for temporary files. Only this user can read it.
    fn make(place: &Path) -> Result<PrivateDirectories> {
        fs::create_dir_all(place).could_not("use", place)?;
        let place = tree::nearest_real(place);
        let made = tempfile::Builder::new()
            .prefix(OWN_PREFIX)
            .tempdir_in(&place)
            .could_not("use", &place)?
            .keep();
        let lock = lock::wait(&made.join(ROOM_LOCK))?;
        // Before the directory was locked, another process may have removed it. Then `wait` made it
        // again.
        make_private(&made).could_not("use", &place)?;
        let own = PrivateDirectories { dir: made, variables: Vec::new(), _lock: lock };
        make_private_directory(&own.temporary()).could_not("use", &place)?;
        Ok(own)
    }

    /// The directory for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    /// The environment variable that makes Java use these directories, because Java ignores TMPDIR
    /// and HOME. `None` if a path contains a blank, because a blank would end the option.
    fn java_options(&self) -> Option<(String, OsString)> {
        let home = self.variables.iter().find(|(name, _)| name == "HOME");
        let home = home.map(|(_, home)| home.clone());
        let options = [("java.io.tmpdir", Some(self.temporary().into())), ("user.home", home)];
        let mut words = std::env::var(JAVA_OPTIONS).unwrap_or_default();
        for (name, value) in options {
            let Some(value) = value else { continue };
            let path = value.to_str().filter(|path| !path.contains(char::is_whitespace))?;
            write!(words, " -D{name}={path}").ok()?;
        }
        Some((JAVA_OPTIONS.to_owned(), words.trim_start().into()))
    }

    fn home(&self) -> PathBuf {
        self.dir.join("home")
    }
}

impl Drop for PrivateDirectories {
    fn drop(&mut self) {
        // This does not follow links. If it fails, the next git-frites command deletes the
        // directory.
        let _ = tree::delete_tree(&self.dir);
    }
}

fn make_private_directory(dir: &Path) -> io::Result<()> {
    fs::create_dir(dir)?;
    make_private(dir)
}

fn make_private(dir: &Path) -> io::Result<()> {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
}
