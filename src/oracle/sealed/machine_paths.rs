//! Finds the paths of the machine that a sealed world replaces. The configuration and the
//! environment decide which paths these are.
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::value::Network;
use crate::error::{Error, IoContext, Result};
use crate::fs::tree::nearest_real;
use crate::git::refs;
use crate::git::repo::Repo;
use crate::oracle::pool;
use crate::oracle::sealed::plan::Surroundings;
use crate::world::user_directories::{user_home, variable, with_home, written_by_commands};

/// The settings that decide what a world is like.
#[derive(Clone, Debug, Serialize)]
pub struct SandboxOptions {
    /// Whether commands may use the network.
    pub network: Network,
    /// Paths outside of the world that commands can write to.
    pub write: Vec<String>,
    /// Paths that commands cannot see.
    pub hide: Vec<String>,
    /// Settings files in npm's format that are shown without their credentials.
    pub cut: Vec<String>,
    /// The maximum number of processes.
    pub processes: Option<u64>,
    /// The maximum address space of each process, in bytes.
    pub memory: Option<u64>,
    /// True if commands that Landlock confines get a home directory that shows none of the user's
    /// files.
    pub private_home: bool,
    /// The maximum disk space that commands may use, in bytes.
    pub disk: u64,
    /// The maximum size of all kept layers, in bytes. It is not part of the cache's key, because
    /// outcomes do not depend on it.
    #[serde(skip)]
    pub layers: u64,
}

/// A bare repository has no checkout. The directory of this name in the repository's cache
/// directory takes its place.
pub const STAND_IN: &str = "checkout";

/// The usual places of the user's keys and tokens, which are hidden unless `sandbox.hide` names
/// other paths.
const KEYS_AND_TOKENS: &str = "
    ~/.ssh ~/.gnupg ~/.aws ~/.azure ~/.config/gcloud ~/.config/gh ~/.docker/config.json ~/.kube
    ~/.netrc ~/.git-credentials ~/.config/git/credentials ~/.pypirc ~/.cargo/credentials.toml
    ~/.cargo/credentials ~/.gem/credentials ~/.config/containers/auth.json";

/// The settings file of npm. Unless `sandbox.hide` names other paths, the file is shown without its
/// credentials. It is not hidden, because npm needs the registries in it.
const NPM_SETTINGS: &str = "~/.npmrc";

/// In `sandbox.hide`, a path after this mark is shown, although it is hidden by default.
const SHOWN: char = '!';

/// The hidden paths, and the paths of files that are shown without credentials. `configured` is
/// `sandbox.hide`. `logins` are the user's files into which git-frites writes tokens of attempts.
/// These files are always hidden, except those that `configured` names after [`SHOWN`].
pub fn hidden_and_cut(configured: Option<Vec<String>>, logins: Vec<String>) -> [Vec<String>; 2] {
    let is_default = configured.as_ref().is_none_or(|entries| {
        !entries.is_empty() && entries.iter().all(|entry| entry.starts_with(SHOWN))
    });
    let configured = configured.unwrap_or_default();
    let is_hidden = |path: &String| {
        let mut entries = configured.iter();
        !path.starts_with(SHOWN) && !entries.any(|e| e.strip_prefix(SHOWN) == Some(path.as_str()))
    };
    let (named, cut) = match is_default {
        true => (
            KEYS_AND_TOKENS.split_whitespace().map(String::from).collect(),
            vec![NPM_SETTINGS.to_owned()],
        ),
        false => (configured.clone(), Vec::new()),
    };
    let hidden = named.into_iter().chain(logins);
    [hidden.filter(is_hidden).collect(), cut.into_iter().filter(is_hidden).collect()]
}

/// The directories that programs use for temporary files by default.
pub const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// The directory of POSIX semaphores and shared memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// Sockets of the machine's services and of users' terminals. They are hidden, because a program
/// can connect to a socket even below a read-only mount.
const SOCKETS: &str = "
    /run/docker.sock /run/podman /run/containerd /run/crio /run/buildkit /run/incus /run/libvirt
    /run/dbus /run/snapd.socket /run/systemd/private /run/screen /run/tmux
    /var/lib/incus/unix.socket /var/snap/lxd/common/lxd/unix.socket";

/// The directory of all users' session directories, with the sockets of D-Bus, systemd and agents.
/// `XDG_RUNTIME_DIR` may name a session directory elsewhere.
const SESSIONS: &str = "/run/user";

/// The variables that name a socket of the user's session.
const SOCKET_VARIABLES: [&str; 2] = ["SSH_AUTH_SOCK", "GPG_AGENT_INFO"];

/// The paths of the machine that the worlds of a repository replace.
///
/// * `home`: the user's checkout.
/// * `cache`: the repository's directory in the cache.
/// * `worktrees`: the directories that have the worktrees of attempts.
pub fn of(
    repo: &Repo,
    home: Option<&Path>,
    cache: &Path,
    worktrees: impl Iterator<Item = PathBuf>,
    options: &SandboxOptions,
) -> Result<Surroundings> {
    let user_home = user_home();
    // A bare repository has no checkout, so a fixed directory takes its place.
    let checkout = match home {
        Some(home) => nearest_real(home),
        None => {
            let place = cache.join(STAND_IN);
            std::fs::create_dir_all(&place).could_not("make", &place)?;
            place
        }
    };
    let git_dir = nearest_real(repo.common_dir());
    let of_the_user: Vec<PathBuf> =
        written_by_commands().into_iter().filter(|path| !path.starts_with(&checkout)).collect();
    let configured = [std::env::temp_dir()].into_iter().chain(variable("XDG_RUNTIME_DIR"));
    let temporary = TEMPORARY.iter().map(PathBuf::from).chain(configured);
    let temporary = temporary.map(|path| nearest_real(&path)).filter(|path| {
        path.is_dir() && path.parent().is_some() && *path != checkout && !of_the_user.contains(path)
    });
    // Every world has /dev/shm, so it is added by this name, even if it is a link on this machine.
    // In the world, a directory of the world's room (its directory in the cache) is mounted there,
    // because writes to a separate tmpfs would escape the disk limit.
    let mut temporary = distinct(temporary.filter(|path| path != Path::new(SHARED_MEMORY)));
    temporary.push(SHARED_MEMORY.into());
    let mut hidden = Vec::new();
    for entry in &options.hide {
        let path = expand(entry, user_home.as_deref(), Some(&checkout));
        if let Some(reason) = why_not_hidden(entry, path.as_deref(), &checkout) {
            return Err(Error::fatal(format!("sandbox.hide: '{entry}' {reason}"))
                .hint("write full paths that do not contain the checkout: `git config --edit`"));
        }
        hidden.extend(path);
    }
    hidden.extend(SOCKETS.split_whitespace().map(PathBuf::from));
    let sessions = std::fs::read_dir(SESSIONS).into_iter().flatten().flatten();
    hidden.extend(sessions.map(|entry| entry.path()).filter(|path| !temporary.contains(path)));
    hidden.extend(SOCKET_VARIABLES.iter().filter_map(|name| variable(name)));
    hidden.extend(worktrees);
    let mut hidden = distinct(
        hidden
            .into_iter()
            .map(|path| nearest_real(&path))
            .filter(|path| path.exists() && !checkout.starts_with(path)),
    );
    // These directories are hidden, too. If the checkout or the git directory is inside one of
    // them, the world still shows the checkout or git directory.
    let ours = cache.parent().map(Path::to_owned).into_iter().chain([pool::mirrors()]);
    let ours = ours.chain([repo.state_dir().path().to_owned()]).map(|path| nearest_real(&path));
    hidden.extend(ours.filter(|path| path.exists()));
    // These directories are hidden even if they do not exist yet, because a ref in them can be made
    // while commands run.
    hidden.extend(directories_of_our_refs(&git_dir));
    let writable = named(&options.write, Some(&checkout));
    let mut cut = named(&options.cut, Some(&checkout));
    cut.retain(|path| path.is_file() && !path.starts_with(&checkout));
    Ok(Surroundings { checkout, git_dir, of_the_user, temporary, hidden, cut, writable })
}

/// The reason why a path of `sandbox.hide` cannot be hidden; `None` if it can.
fn why_not_hidden(entry: &str, path: Option<&Path>, checkout: &Path) -> Option<&'static str> {
    if entry.strip_prefix('~').is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')) {
        return Some("names a user's home directory, but only `~` and `~/` can be resolved");
    }
    let is_above = path.is_some_and(|path| checkout.starts_with(nearest_real(path)));
    is_above.then_some("contains the checkout, which commands have to see")
}

/// The directories of our refs and of their reflogs in a git directory.
pub fn directories_of_our_refs(git_dir: &Path) -> impl Iterator<Item = PathBuf> {
    refs::OUR_REFS.iter().flat_map(|refs| [git_dir.join(refs), git_dir.join("logs").join(refs)])
}

/// The configured paths that exist, with links resolved. A relative path begins at the user's
/// checkout.
pub fn named(paths: &[String], checkout: Option<&Path>) -> Vec<PathBuf> {
    let home = user_home();
    let found = paths.iter().filter_map(|path| expand(path, home.as_deref(), checkout));
    distinct(found.map(|path| nearest_real(&path)).filter(|path| path.exists()))
}

/// A configured path: `~` is the home directory, and a relative path begins at the checkout.
fn expand(path: &str, home: Option<&Path>, checkout: Option<&Path>) -> Option<PathBuf> {
    let path = with_home(path, home)?;
    if path.is_absolute() { Some(path) } else { Some(checkout?.join(path)) }
}

fn distinct(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = paths.collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_hidden_unless_they_are_named_as_shown() {
        for (configured, expected) in [
            (&["~/.x"][..], &["~/.x", "~/.login"][..]),
            (&["~/.x", "!~/.login"], &["~/.x"]),
            (&[], &["~/.login"]),
        ] {
            let configured = configured.iter().map(|&path| path.to_owned()).collect();
            let [hidden, _] = hidden_and_cut(Some(configured), vec!["~/.login".to_owned()]);
            assert_eq!(hidden, expected);
        }
        let [hidden, cut] = hidden_and_cut(None, vec!["~/.login".to_owned()]);
        assert_eq!(hidden.len(), KEYS_AND_TOKENS.split_whitespace().count() + 1);
        assert_eq!(cut, [NPM_SETTINGS]);
    }

    #[test]
    fn path_that_would_not_be_hidden_is_refused() {
        let home = Path::new("/h/u");
        let is_refused = |entry: &str| {
            let checkout = home.join("src/repo");
            let path = expand(entry, Some(home), Some(&checkout));
            why_not_hidden(entry, path.as_deref(), &checkout).is_some()
        };
        for entry in ["~", "~/src", "/", ".", "~root/.ssh"] {
            assert!(is_refused(entry), "{entry}");
        }
        for entry in ["~/.ssh", "~/src/repo2", "/h/v", "keys"] {
            assert!(!is_refused(entry), "{entry}");
        }
    }
}
