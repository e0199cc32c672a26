//! What commands can write to where Landlock confines them: the judged checkout, and directories
//! that are thrown away.
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{IoContext, Result};
use crate::fs::lock::{self, Lock};
use crate::fs::tree;
use crate::oracle::sealed::surroundings::{self, SHARED_MEMORY, SandboxOptions};
use crate::process::world_spec::Restriction;

/// The beginning of the names of our directories among the temporary files. They do not lie in the
/// cache directory because the path of a Unix socket, which many a test makes there, must be short.
const PREFIX: &str = "git-frites-";

/// The lock in such a directory, beside those that commands write to.
const LOCK: &str = "lock";

/// The time in which a directory that has no lock yet gets one.
const TIME_TO_LOCK: Duration = Duration::from_secs(60);

/// The restrictions of the commands of one judging.
#[derive(Debug)]
pub struct Restrictions {
    /// The paths that the configuration opens.
    open: Vec<PathBuf>,
    private_home: bool,
    memory: Option<u64>,
}

/// The directories of the commands on one tree. They go with it.
#[derive(Debug)]
pub struct PrivateDirectories {
    dir: PathBuf,
    _lock: Lock,
}

impl Restrictions {
    /// The restrictions that the configuration asks for. `home` is the user's checkout. Nothing that is
    /// `protected` lies in a directory that is opened by default.
    pub fn new(
        home: Option<&Path>,
        protected: &[PathBuf],
        options: &SandboxOptions,
    ) -> Restrictions {
        let mut open = surroundings::named(&options.write, home);
        let shares_memory =
            !protected.iter().any(|path| tree::nearest_real(path).starts_with(SHARED_MEMORY));
        open.extend(shares_memory.then(|| SHARED_MEMORY.into()));
        Restrictions { open, private_home: options.private_home, memory: options.memory }
    }

    /// The restriction of commands in a checkout, with these directories of their own.
    pub fn of(&self, checkout: &Path, own: &PrivateDirectories) -> Restriction {
        let (temporary, home) = (own.temporary(), self.private_home.then(|| own.home()));
        let own = [checkout.to_owned(), temporary.clone()].into_iter().chain(home.clone());
        let writable = own.chain(self.open.iter().cloned()).collect();
        Restriction { writable, temporary, home, memory: self.memory }
    }
}

impl PrivateDirectories {
    /// Makes the directories, which only this user can read; removes those of killed processes.
    pub fn make() -> Result<PrivateDirectories> {
        let place = tree::nearest_real(&std::env::temp_dir());
        sweep(&place);
        let failed = || format!("could not use '{}'", place.display());
        let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&place).context(failed)?;
        let lock = lock::wait(&made.path().join(LOCK))?;
        let own = PrivateDirectories { dir: made.keep(), _lock: lock };
        for dir in [own.temporary(), own.home()] {
            fs::create_dir(&dir).context(failed)?;
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).context(failed)?;
        }
        Ok(own)
    }

    /// The directory for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.dir.join("tmp")
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
