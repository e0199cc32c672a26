//! The paths that commands can write to under Landlock: the judged checkout, and directories that
//! are thrown away.
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{IoContext, Result};
use crate::fs::lock::{self, Lock};
use crate::fs::tree;
use crate::oracle::sealed::machine_paths::{self, SandboxOptions};
use crate::process::world_spec::Restriction;
use crate::world::linked_home;

/// The beginning of the names of our directories among the temporary files. They do not lie in the
/// cache directory because the path of a Unix socket, which many a test makes there, must be short.
const PREFIX: &str = "git-frites-";

/// The lock in such a directory, beside those that commands write to.
const LOCK: &str = "lock";

/// The variable with options for every program in Java, which says so on its standard error.
const JAVA_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// The time in which a directory that has no lock yet gets one.
const TIME_TO_LOCK: Duration = Duration::from_secs(60);

/// The restrictions of the commands of one judging.
#[derive(Debug)]
pub struct Restrictions {
    /// The paths that the configuration opens.
    open: Vec<PathBuf>,
    /// True if the home directory shows what lies in the user's.
    links_home: bool,
    memory: Option<u64>,
}

/// The directories of the commands on one tree. They go with it.
#[derive(Debug)]
pub struct PrivateDirectories {
    dir: PathBuf,
    /// The variables that lead programs there.
    variables: Vec<(String, OsString)>,
    _lock: Lock,
}

impl Restrictions {
    /// The restrictions that the configuration asks for. `home` is the user's checkout.
    pub fn new(home: Option<&Path>, options: &SandboxOptions) -> Restrictions {
        let open = machine_paths::named(&options.write, home);
        Restrictions { open, links_home: !options.private_home, memory: options.memory }
    }

    /// The restrictions of an attempt, whose commands can write to the `open` paths, too.
    pub fn of_attempt(open: Vec<PathBuf>) -> Restrictions {
        Restrictions { open, links_home: true, memory: None }
    }

    /// Makes directories of their own for commands in a checkout.
    pub fn directories(&self, checkout: &Path) -> Result<PrivateDirectories> {
        let mut own = PrivateDirectories::make()?;
        let home = own.home();
        own.variables = make_private_directory(&home)
            .and_then(|()| linked_home::make(&home, self.links_home, checkout, &self.open))
            .context(|| format!("could not make '{}'", home.display()))?;
        own.variables.extend(own.java_options());
        Ok(own)
    }

    /// The restriction of commands in a checkout, with these directories of their own.
    pub fn of(&self, checkout: &Path, own: &PrivateDirectories) -> Restriction {
        let temporary = own.temporary();
        let writable = [checkout.to_owned(), temporary.clone(), own.home()];
        let writable = writable.into_iter().chain(self.open.iter().cloned()).collect();
        let variables = [("TMPDIR".to_owned(), temporary.clone().into())].into_iter();
        let variables = variables.chain(own.variables.iter().cloned()).collect();
        Restriction { writable, temporary, variables, memory: self.memory }
    }
}

impl PrivateDirectories {
    /// Makes a directory for temporary files, which only this user can read; removes those of killed
    /// processes.
    pub fn make() -> Result<PrivateDirectories> {
        let place = tree::nearest_real(&std::env::temp_dir());
        sweep(&place);
        let failed = || format!("could not use '{}'", place.display());
        let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&place).context(failed)?;
        let lock = lock::wait(&made.path().join(LOCK))?;
        let own = PrivateDirectories { dir: made.keep(), variables: Vec::new(), _lock: lock };
        make_private_directory(&own.temporary()).context(failed)?;
        Ok(own)
    }

    /// The directory for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    /// The variable by which Java finds the directories: it heeds neither TMPDIR nor HOME. `None`
    /// if a path has a blank in it, which would end an option.
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
        // This never follows a link. If it fails, the next judging sweeps.
        let _ = tree::delete_tree(&self.dir);
    }
}

fn make_private_directory(dir: &Path) -> io::Result<()> {
    fs::create_dir(dir)?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
}

/// Removes the directories that killed processes of this user left.
fn sweep(place: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && entry
                .metadata()
                .is_ok_and(|meta| meta.is_dir() && meta.uid() == user && is_old(&meta))
            && path.join(LOCK).is_file();
        if is_ours && let Ok(Some(_lock)) = lock::attempt(&path.join(LOCK)) {
            let _ = tree::delete_tree(&path);
        }
    }
}

fn is_old(meta: &fs::Metadata) -> bool {
    let age = meta.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
    age.is_some_and(|age| age > TIME_TO_LOCK)
}
