//! The guard: the worlds in which the commands of attempts run. A guarded command can write to its
//! own worktree, but not to the user's checkouts, other worktrees or the repository. Its writes to
//! HOME go to layers that belong to its candidate.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

use sha2::{Digest, Sha256};

use crate::config::keys;
use crate::config::value::{GuardMode, SpawnHome};
use crate::error::{Error, IoContext, Result};
use crate::fs::lock::Lock;
use crate::fs::tree::nearest_real;
use crate::git::own_dir::OwnGitDir;
use crate::git::worktree;
use crate::integrity::WatchedCommands;
use crate::model::oid::Oid;
use crate::model::separation::{AttemptAccess, Separation};
use crate::ops::agent_state;
use crate::ops::attempt_times::when_attempts_ran;
use crate::ops::session::Session;
use crate::oracle::pool::{self, LAYERS};
use crate::oracle::restricted::{PrivateDirectories, Restrictions};
use crate::oracle::sealed::kept;
use crate::oracle::sealed::machine_paths::{TEMPORARY, named};
use crate::process::world_spec::{Confinement, Mount, WorldSpec};
use crate::store::candidate::CandidateRef;
use crate::world::probe;
use crate::world::user_directories::{self, make_room, overlays, user_home, variable, work_of};

/// The variables that name the user's directories in which agents keep their sessions. Commands
/// that share HOME can write to these directories.
const OF_SESSIONS: [&str; 5] =
    ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];

/// The way in which the commands of candidates are guarded.
#[derive(Debug)]
pub struct Guard {
    /// Paths that the commands of all candidates can write to.
    writable: Vec<PathBuf>,
    /// The user's directories over which each candidate has its own layers. The candidate's
    /// commands write to these layers. Empty if the commands of all candidates write to the user's
    /// own files.
    private: Vec<PathBuf>,
    /// The layers with the files that were downloaded while the base was judged, and the lock that
    /// keeps other processes from removing them. They are between the private layers and the user's
    /// files.
    downloads: Option<(PathBuf, Lock)>,
    access: AttemptAccess,
}

/// The confinement of a guarded command.
pub struct GuardedWorld {
    pub confinement: Confinement,
    /// The command's own directories, which are deleted after the command has ended.
    _own: Option<PrivateDirectories>,
}

/// The access of commands without a guard.
pub fn unguarded() -> AttemptAccess {
    AttemptAccess { separation: Separation::Unguarded, writes: Vec::new(), temporary: Vec::new() }
}

/// The guard for candidates' commands. `None` if they run with the user's permissions, because
/// `spawn.guard` is `off` or no guard is possible. Fails if no guard is possible but the
/// configuration requires one.
pub fn choose(session: &Session) -> Result<Option<Guard>> {
    static TOLD: Once = Once::new();
    let mode = session.config.get(keys::SPAWN_GUARD);
    if mode == GuardMode::Off {
        return Ok(None);
    }
    let made = match forbidden(session) {
        Some(reason) => Err(reason),
        None => Guard::new(session)?,
    };
    match made {
        Ok(guard) => Ok(Some(guard)),
        Err(reason) if mode == GuardMode::Auto => {
            let line = format!("attempts run unguarded, with your permissions: {reason}");
            TOLD.call_once(|| session.ui.note(line));
            Ok(None)
        }
        Err(reason) => Err(Error::fatal(format!("attempts cannot be guarded: {reason}"))
            .hint("see git-frites-sandbox(7), or run them unguarded: set `spawn.guard` to auto")),
    }
}

/// As [`choose`], for candidates with this base. If candidates have layers of their own, downloads
/// are put below these layers. The downloads were made when the base was judged, or else when its
/// nearest ancestor with kept layers was judged.
pub fn choose_for(session: &Session, base: &Oid) -> Result<Option<Guard>> {
    let mut guard = choose(session)?;
    if let Some(guard) = guard.as_mut().filter(|guard| !guard.private.is_empty()) {
        let root = pool::home(&session.repo)?.join(LAYERS);
        let distrusted = when_attempts_ran(session)?;
        let found = kept::of_nearest(&root, &session.repo, base, &distrusted)?;
        guard.downloads = found.and_then(|(layer, lock)| Some((layer.fetched()?, lock)));
    }
    Ok(guard)
}

/// The reason why this repository or configuration makes a guard impossible on every system.
fn forbidden(session: &Session) -> Option<String> {
    if session.config.get(keys::LIMITS_NESTING) > 1 {
        let reason = "limits.nesting lets them spawn runs, which write to the repository";
        return Some(reason.to_owned());
    }
    let home = variable("HOME").map(|home| nearest_real(&home))?;
    let is_checkout = protected_paths(session).is_ok_and(|all| all.contains(&home));
    is_checkout.then(|| format!("HOME is a checkout ('{}')", home.display()))
}

impl Guard {
    /// The guard that this system allows, or the reason why it allows none.
    fn new(session: &Session) -> Result<std::result::Result<Guard, String>> {
        static TOLD: Once = Once::new();
        // Make the cache directory now: if it did not exist, it could not be protected, and an
        // attempt could create it.
        let cache = pool::home_of_all(&session.repo)?;
        fs::create_dir_all(&cache).context(|| format!("could not make '{}'", cache.display()))?;
        let opened = named(&session.config.get(keys::SPAWN_WRITE), session.home.as_deref());
        let (private, no_layers) = private_directories(session, &opened)?;
        if private.is_empty()
            && let Some(reason) = probe::guard_refusal()
        {
            return Ok(Guard::landlocked(session, opened, &reason));
        }
        if let Some(reason) = no_layers {
            let line = format!("attempts share HOME: they can have none of their own ({reason})");
            TOLD.call_once(|| session.ui.note(line));
        }
        let shared = if private.is_empty() {
            OF_SESSIONS.iter().filter_map(|name| variable(name)).collect()
        } else {
            sockets_of_keys(&private)
        };
        let mut temporary = vec![nearest_real(&std::env::temp_dir())];
        temporary.extend(variable("XDG_RUNTIME_DIR").map(|path| nearest_real(&path)));
        let mut writable: Vec<PathBuf> = TEMPORARY
            .iter()
            .map(PathBuf::from)
            .chain(shared)
            .map(|path| nearest_real(&path))
            .collect();
        writable.extend(temporary.iter().cloned());
        let cache = nearest_real(&cache);
        let in_cache = writable.iter().filter(|path| path.starts_with(&cache));
        let writes = opened.iter().chain(in_cache);
        let names = |paths: &[PathBuf]| {
            let names = paths.iter().map(|path| path.to_string_lossy().into_owned());
            names.collect::<BTreeSet<_>>().into_iter().collect()
        };
        let writes = names(&writes.cloned().collect::<Vec<_>>());
        let temporary = names(&temporary);
        writable.extend(opened);
        // A writable mount at `/` would make everything writable.
        writable.retain(|path| path.exists() && path.parent().is_some());
        let separation =
            if private.is_empty() { Separation::SharedHome } else { Separation::PrivateHome };
        let access = AttemptAccess { separation, writes, temporary };
        Ok(Ok(Guard { writable, private, downloads: None, access }))
    }

    /// The guard by Landlock alone, for a system that allows no world. `reason` says why it allows
    /// none. If Landlock is missing as well, returns both reasons.
    fn landlocked(
        session: &Session,
        opened: Vec<PathBuf>,
        reason: &str,
    ) -> std::result::Result<Guard, String> {
        static TOLD: Once = Once::new();
        let reason = format!("no world can be made here ({reason})");
        if let Err(other) = probe::landlock() {
            return Err(format!("{reason}, and Landlock cannot be used ({other})"));
        }
        let line = format!("attempts are confined by Landlock alone: {reason}");
        TOLD.call_once(|| session.ui.note(line));
        let writes = opened.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let access =
            AttemptAccess { separation: Separation::Landlock, writes, temporary: Vec::new() };
        Ok(Guard { writable: opened, private: Vec::new(), downloads: None, access })
    }

    /// True if Landlock alone confines the commands, because no world can be made.
    fn is_landlocked(&self) -> bool {
        self.access.separation == Separation::Landlock
    }

    /// The reason why an attempt at work could influence a tree that is judged meanwhile; `None` if
    /// it could not.
    pub fn why_not_apart(&self) -> Option<&'static str> {
        let reason = "attempts confined by Landlock alone can change the modes of judged files";
        self.is_landlocked().then_some(reason)
    }

    /// How attempts are confined, in words.
    pub fn in_words(&self) -> &'static str {
        match self.is_landlocked() {
            true => "attempts are confined by Landlock alone",
            false => "attempts are guarded",
        }
    }

    /// How a watch has to treat the commands. If `spawn.write` opens paths, the commands are
    /// treated as unguarded, because such a path can be a checkout, or lead to one.
    pub fn watched_commands(&self) -> WatchedCommands {
        match self.access.separation == Separation::PrivateHome && self.access.writes.is_empty() {
            true => WatchedCommands::GuardedAttempts,
            false => WatchedCommands::Attempts,
        }
    }

    /// The access that the commands have outside of their worktree.
    pub fn access(&self) -> AttemptAccess {
        self.access.clone()
    }

    /// The world for commands in a candidate's worktree. The commands use the candidate's own git
    /// directory. A capture brings their commits from there into the repository.
    pub fn world(&self, session: &Session, candidate: CandidateRef<'_>) -> Result<GuardedWorld> {
        let dir = candidate.worktree();
        let admin = worktree::admin_of(&session.repo, &dir)?.ok_or_else(|| {
            Error::fatal(format!("git does not know '{}' as a worktree any more", dir.display()))
                .hint(format!("repair it: `git worktree repair {}`", dir.display()))
        })?;
        if self.is_landlocked() {
            let open = self.writable.clone();
            let (confinement, own) = landlocked_confinement(session, candidate, &admin, open)?;
            return Ok(GuardedWorld { confinement, _own: Some(own) });
        }
        let confinement = Confinement::Sealed(self.sealed(session, candidate, &admin)?);
        Ok(GuardedWorld { confinement, _own: None })
    }

    fn sealed(
        &self,
        session: &Session,
        candidate: CandidateRef<'_>,
        admin: &Path,
    ) -> Result<WorldSpec> {
        let dir = candidate.worktree();
        let common = session.repo.common_dir();
        let mut mounts = vec![Mount::Devices];
        // The mounts on these paths replace the directory there, so a path below one of them needs
        // a mount of its own.
        let mut replaced = vec![Path::new("/dev")];
        let home = candidate.directory().own_home();
        make_room(&self.private, &home)
            .context(|| format!("could not make '{}'", home.display()))?;
        let downloads: Vec<PathBuf> = self.downloads.iter().map(|(dir, _)| dir.clone()).collect();
        mounts.extend(overlays(&self.private, &home, &downloads));
        replaced.extend(self.private.iter().map(PathBuf::as_path));
        let own = OwnGitDir::make(&session.repo, admin, &candidate.directory().own_git())?;
        mounts.extend(own.mounts(common)?);
        replaced.push(common);
        let dir = nearest_real(&dir);
        let writable: Vec<&Path> =
            self.writable.iter().map(PathBuf::as_path).filter(|path| *path != common).collect();
        let root = candidate.worktree_root();
        let protected: Vec<PathBuf> = protected_paths(session)?
            .into_iter()
            .chain([nearest_real(&root), common.to_owned()])
            .filter(|path| path.exists() && *path != dir && !writable.contains(&path.as_path()))
            .collect();
        let state = agent_state::directories(session, candidate);
        let writable =
            writable.into_iter().chain([dir.as_path()]).chain(state.iter().map(PathBuf::as_path));
        mounts.extend(access_mounts(&replaced, writable, protected.iter().map(PathBuf::as_path)));
        // Lock files are hidden, because a process that can open a lock file can take the lock
        // (flock(2)), and keep it.
        let locked =
            [session.store.dir().locks(), nearest_real(&pool::home_of_all(&session.repo)?)];
        mounts.extend(locked.into_iter().map(|at| Mount::Hidden { at }));
        let wrapping_point = work_of(&home);
        Ok(WorldSpec {
            dir,
            mounts,
            wrapping_point,
            network: true,
            process_ids: Some(process_ids(candidate)),
            ..WorldSpec::default()
        })
    }
}

/// The part of the process ids for a candidate. Attempts share `/tmp`, so the attempts of one run
/// get different parts.
fn process_ids(candidate: CandidateRef<'_>) -> u8 {
    let CandidateRef { run, name, .. } = candidate;
    let place = run.candidates.iter().position(|other| other == name).unwrap_or_default();
    Sha256::digest(run.run.as_str())[0].wrapping_add(place as u8)
}

/// The confinement of a candidate's command by Landlock. `admin` is the administrative entry of the
/// worktree. The command can also write to the paths in `open`. It can always write to the
/// worktree, to the candidate's own git directory and to its temporary directories.
///
/// After this call, the worktree's `.git` points to the candidate's own git directory. A capture
/// connects the worktree with the repository again.
fn landlocked_confinement(
    session: &Session,
    candidate: CandidateRef<'_>,
    admin: &Path,
    open: Vec<PathBuf>,
) -> Result<(Confinement, PrivateDirectories)> {
    let restrictions = Restrictions::of_attempt(&session.repo, open)?;
    let dir = candidate.worktree();
    let own = restrictions.directories(&dir)?;
    let mut restriction = restrictions.of(&nearest_real(&dir), &own);
    restriction.writable.extend(agent_state::directories(session, candidate));
    let of_agent = agent_state::variables(session, candidate);
    restriction.variables.retain(|(name, _)| !of_agent.contains(name));
    let git = OwnGitDir::make(&session.repo, admin, &candidate.directory().own_git())?;
    let modules = git.enter(session.repo.common_dir(), admin, &dir)?;
    restriction.writable.extend([git.dir().to_owned(), modules]);
    Ok((Confinement::Landlock(restriction), own))
}

/// The user's directories for which each candidate gets layers of its own. Directories that
/// `spawn.write` opens, and directories in a protected path, are left out. Empty if the
/// configuration or the system allows no layers. If the system allows none, also returns the
/// reason.
fn private_directories(
    session: &Session,
    opened: &[PathBuf],
) -> Result<(Vec<PathBuf>, Option<String>)> {
    if session.config.get(keys::SPAWN_HOME) == SpawnHome::Shared {
        return Ok((Vec::new(), None));
    }
    let others = [opened.to_vec(), protected_paths(session)?].concat();
    let mut private = user_directories::written_by_commands();
    private.retain(|path| !others.iter().any(|other| path.starts_with(other)));
    let home = user_home().filter(|home| private.iter().any(|path| home.starts_with(path)));
    let Some(inside) = home.or_else(|| private.first().cloned()) else {
        return Ok((private, None));
    };
    let room = session.store.probe_room()?;
    Ok(match probe::refusal_of_layers(&private, &inside, &room) {
        None => (private, None),
        refusal => (Vec::new(), refusal),
    })
}

/// The sockets of key agents (ssh-agent, gpg-agent) in these directories. A socket does not work
/// through an overlay, so each socket is made writable by a mount of its own.
fn sockets_of_keys(directories: &[PathBuf]) -> Vec<PathBuf> {
    let gnupg = variable("GNUPGHOME").or_else(|| Some(user_home()?.join(".gnupg")));
    let entries = gnupg.and_then(|dir| fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let named = entries.map(|entry| entry.path()).chain(variable("SSH_AUTH_SOCK"));
    let mut found: Vec<PathBuf> = named.map(|path| nearest_real(&path)).collect();
    found.retain(|path| {
        let is_socket = fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
        is_socket && directories.iter().any(|above| path.starts_with(above))
    });
    found
}

/// The paths that guarded commands must not write to: the checkouts of the repository, the objects
/// that it borrows, and the state and the cache of git-frites.
fn protected_paths(session: &Session) -> Result<Vec<PathBuf>> {
    let Session { repo, store, .. } = session;
    let mut all = worktree::checkouts(repo)?;
    all.extend(repo.borrowed_objects());
    all.push(store.dir().path().to_owned());
    all.push(pool::home_of_all(repo)?);
    all.push(pool::mirrors());
    Ok(all.iter().map(|path| nearest_real(path)).collect())
}

/// The mounts that make the `writable` paths writable in a read-only world, and the `protected`
/// paths in them read-only. A path below a `replaced` directory always needs a mount of its own. So
/// does each writable directory above a protected or replaced path: a mount point cannot be
/// renamed, so a command cannot put another directory in its place.
fn access_mounts<'a>(
    replaced: &[&'a Path],
    writable: impl Iterator<Item = &'a Path>,
    protected: impl Iterator<Item = &'a Path>,
) -> Vec<Mount> {
    let mut all: BTreeMap<&Path, bool> = protected.map(|path| (path, false)).collect();
    all.extend(writable.map(|path| (path, true)));
    let above_any = pinned(&all, replaced);
    all.extend(above_any.iter().map(|path| (*path, true)));
    all.retain(|path, _| !replaced.contains(path));
    // The map is sorted, so the loop reaches a path after the directories above it.
    let mut done = vec![(Path::new("/"), false)];
    done.extend(replaced.iter().map(|path| (*path, true)));
    let mut mounts = Vec::new();
    for (path, can_write) in all {
        let above = done.iter().filter(|(above, _)| path.starts_with(above));
        let nearest = above.max_by_key(|(above, _)| above.components().count());
        let is_replaced = nearest.is_some_and(|(nearest, _)| replaced.contains(nearest));
        let is_same = nearest.is_some_and(|(_, above)| *above == can_write);
        if !is_replaced && is_same && !above_any.contains(path) {
            continue;
        }
        let at = path.to_owned();
        mounts.push(match can_write {
            true => Mount::Writable { at },
            false => Mount::ReadOnly { from: at.clone(), at },
        });
        done.push((path, can_write));
    }
    mounts
}

/// The writable directories above the read-only paths of `all` and above the `replaced` paths.
/// Directories inside a replaced one are left out, because the mount there is not the user's
/// directory.
fn pinned<'a>(all: &BTreeMap<&'a Path, bool>, replaced: &[&'a Path]) -> BTreeSet<&'a Path> {
    let can_write = |path: &Path| {
        path.ancestors()
            .find_map(|above| {
                all.get(above).copied().or_else(|| replaced.contains(&above).then_some(false))
            })
            .unwrap_or_default()
    };
    let protected = all.iter().filter(|(_, can_write)| !**can_write).map(|(path, _)| *path);
    let above = protected.chain(replaced.iter().copied()).flat_map(|path| path.ancestors().skip(1));
    above.filter(|path| can_write(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(replaced: &[&str], writable: &[&str], protected: &[&str]) -> Vec<String> {
        let replaced: Vec<&Path> = ["/dev"].iter().chain(replaced).map(Path::new).collect();
        let (writable, protected) =
            (writable.iter().map(Path::new), protected.iter().map(Path::new));
        let name = |mount: Mount| match mount {
            Mount::Writable { at } => format!("+{}", at.display()),
            other => format!("-{}", other.at().display()),
        };
        access_mounts(&replaced, writable, protected).into_iter().map(name).collect()
    }

    #[test]
    fn a_path_is_mounted_only_if_the_mount_above_gives_other_access() {
        let common = "/home/u/src/.git";
        let worktree = "/home/u/src/.frites/worktrees/1/a";
        let protected =
            ["/home/u/src", "/home/u/src/.frites", "/home/u/.cache/git-frites", "/srv/w"];
        let mounts = made(&[common], &["/home/u", "/tmp", "/tmp/mine", worktree], &protected);
        let expected = [
            "+/home/u",
            "+/home/u/.cache",
            "-/home/u/.cache/git-frites",
            "-/home/u/src",
            "+/home/u/src/.frites/worktrees/1/a",
            "+/tmp",
        ];
        assert_eq!(mounts, expected);
    }

    #[test]
    fn paths_in_a_replaced_directory_are_mounted_again() {
        let protected = ["/srv/bare/.frites", "/dev/shm/other"];
        let worktree = "/srv/bare/.frites/worktrees/1/a";
        let mounts = made(&["/srv/bare"], &[worktree], &protected);
        let expected =
            ["-/dev/shm/other", "-/srv/bare/.frites", "+/srv/bare/.frites/worktrees/1/a"];
        assert_eq!(mounts, expected);
    }

    #[test]
    fn no_directory_above_a_protected_path_is_mounted_in_a_replaced_one() {
        let home = "/tmp/u";
        let worktree = "/tmp/u/code/repo/.frites/worktrees/1/a";
        let writable = ["/tmp", "/tmp/u/opened", worktree];
        let protected = ["/tmp/u/code/repo", "/tmp/u/.cache/git-frites"];
        let mounts = made(&[home, "/tmp/u/code/repo/.git"], &writable, &protected);
        let expected = [
            "+/tmp",
            "-/tmp/u/.cache/git-frites",
            "-/tmp/u/code/repo",
            "+/tmp/u/code/repo/.frites/worktrees/1/a",
            "+/tmp/u/opened",
        ];
        assert_eq!(mounts, expected);
    }
}
