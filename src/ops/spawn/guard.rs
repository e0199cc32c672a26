//! The worlds of attempts: their commands can write to their own worktree, and not to the user's
//! checkouts, to other worktrees or to the repository.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

use crate::config::keys;
use crate::config::value::GuardMode;
use crate::error::{Error, IoContext, Result};
use crate::fs::tree::nearest_real;
use crate::git::own_dir::OwnGitDir;
use crate::git::own_dir::mark::is_fork;
use crate::git::worktree;
use crate::ops::agent_state;
use crate::ops::mirror;
use crate::ops::session::Session;
use crate::ops::spawn::landlocked;
use crate::oracle::pool;
use crate::oracle::restricted::PrivateDirectories;
use crate::oracle::sealed::surroundings::{TEMPORARY, named};
use crate::process::world_spec::{Confinement, Mount, WorldSpec};
use crate::store::candidate::CandidateRef;
use crate::world::probe;
use crate::world::user_directories::variable;

/// The directories of the user that agents keep their sessions in, where they are not below HOME.
const OF_THE_USER: [&str; 6] = [
    "HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
];

/// The decision that commands of candidates are guarded.
#[derive(Debug)]
pub struct Guard {
    /// Paths that every command can write to.
    writable: Vec<PathBuf>,
    /// True if no command can change anything in git-frites' cache: `spawn.write` does not open it.
    pub protects_cache: bool,
    /// True if Landlock confines the commands: no world can be made.
    is_landlocked: bool,
}

/// The confinement of a guarded command.
pub struct GuardedWorld {
    pub confinement: Confinement,
    /// Directories that go with the command.
    _own: Option<PrivateDirectories>,
}

/// The guard for candidates' commands; none if they run with the user's permissions, by the
/// configuration or because the system allows no guard. Fails if the configuration requires one.
pub fn choose(session: &Session) -> Result<Option<Guard>> {
    static TOLD: Once = Once::new();
    let mode = session.config.get(keys::SPAWN_GUARD);
    if mode == GuardMode::Off {
        return Ok(None);
    }
    match confining(session) {
        Ok(is_landlocked) => {
            // What does not exist yet cannot be protected, and an attempt could make it.
            let cache = cache_of_all(session)?;
            if let Some(cache) = &cache {
                fs::create_dir_all(cache)
                    .context(|| format!("could not make '{}'", cache.display()))?;
            }
            let writable = if is_landlocked { opened(session) } else { writable(session) };
            let protects_cache = cache.is_some_and(|cache| {
                let cache = nearest_real(&cache);
                // Landlock does not restrict modes, times and attributes of files.
                !is_landlocked && !writable.iter().any(|path| path.starts_with(&cache))
            });
            Ok(Some(Guard { writable, protects_cache, is_landlocked }))
        }
        Err(reason) if mode == GuardMode::Auto => {
            let line = format!("attempts run unguarded, with your permissions: {reason}");
            TOLD.call_once(|| session.ui.note(line));
            Ok(None)
        }
        Err(reason) => Err(Error::fatal(format!("attempts cannot be guarded: {reason}"))
            .hint("see git-frites-sandbox(7), or run them unguarded: set `spawn.guard` to auto")),
    }
}

/// The confinement that guards commands of candidates here: true if it is that of Landlock. Fails with the
/// reason why there is none.
fn confining(session: &Session) -> std::result::Result<bool, String> {
    static TOLD: Once = Once::new();
    if session.config.get(keys::LIMITS_NESTING) > 1 {
        let reason = "limits.nesting lets them spawn runs, which write to the repository";
        return Err(reason.to_owned());
    }
    let home = variable("HOME").map(|home| nearest_real(&home));
    if let Some(home) = home.filter(|home| protected(session).is_ok_and(|all| all.contains(home))) {
        return Err(format!("HOME is a checkout ('{}')", home.display()));
    }
    let Some(reason) = probe::guard_refusal() else { return Ok(false) };
    let reason = format!("no world can be made here ({reason})");
    match probe::landlock() {
        Ok(_) => {
            let line = format!("attempts are confined by Landlock alone: {reason}");
            TOLD.call_once(|| session.ui.note(line));
            Ok(true)
        }
        Err(other) => Err(format!("{reason}, and Landlock cannot be used ({other})")),
    }
}

impl Guard {
    /// The words for the confinement.
    pub fn in_words(&self) -> &'static str {
        match self.is_landlocked {
            true => "attempts are confined by Landlock alone",
            false => "attempts are guarded",
        }
    }

    /// The world for commands in a candidate's worktree, with a git directory of its own. What they
    /// do there is brought back when the candidate is captured.
    pub fn world(&self, session: &Session, candidate: CandidateRef<'_>) -> Result<GuardedWorld> {
        let dir = candidate.worktree();
        let admin = worktree::admin_of(&session.repo, &dir)?.ok_or_else(|| {
            Error::fatal(format!("git does not know '{}' as a worktree any more", dir.display()))
                .hint(format!("repair it: `git worktree repair {}`", dir.display()))
        })?;
        if self.is_landlocked {
            let open = self.writable.clone();
            let (confinement, own) = landlocked::confinement(session, candidate, &admin, open)?;
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
        // What lies below a mount that replaces a directory needs a mount of its own.
        let mut replaced = vec![Path::new("/dev")];
        if !is_fork(&dir) {
            let own = OwnGitDir::make(&session.repo, admin, &candidate.own_git())?;
            mounts.extend(own.mounts(common)?);
            replaced.push(common);
        }
        let dir = nearest_real(&dir);
        let writable: Vec<&Path> =
            self.writable.iter().map(PathBuf::as_path).filter(|path| *path != common).collect();
        let root = candidate.worktree_root();
        let protected: Vec<PathBuf> = protected(session)?
            .into_iter()
            .chain([nearest_real(&root), common.to_owned()])
            .filter(|path| path.exists() && *path != dir && !writable.contains(&path.as_path()))
            .collect();
        let state = agent_state::directory(candidate);
        let writable = writable.into_iter().chain([dir.as_path()]).chain(state.as_deref());
        mounts.extend(needed(&replaced, writable, protected.iter().map(PathBuf::as_path)));
        Ok(WorldSpec { dir, mounts, network: true, ..WorldSpec::default() })
    }
}

/// The paths that every guarded command can write to: directories of the user's, those for
/// temporary files, and `spawn.write`.
fn writable(session: &Session) -> Vec<PathBuf> {
    let opened = opened(session);
    let of_the_user = OF_THE_USER.iter().filter_map(|name| variable(name));
    let temporary = TEMPORARY.iter().map(PathBuf::from).chain([std::env::temp_dir()]);
    let all = of_the_user.chain(temporary).map(|path| nearest_real(&path)).chain(opened);
    // A mount at `/` would open everything.
    all.filter(|path| path.exists() && path.parent().is_some()).collect()
}

/// The paths that the configuration opens for guarded commands.
fn opened(session: &Session) -> Vec<PathBuf> {
    named(&session.config.get(keys::SPAWN_WRITE), session.home.as_deref())
}

/// The paths that no command can write to, wherever they are: checkouts of the repository, and the
/// state and cache of git-frites.
fn protected(session: &Session) -> Result<Vec<PathBuf>> {
    let Session { repo, store, .. } = session;
    let mut all = worktree::checkouts(repo)?;
    all.push(store.root().to_owned());
    all.extend(cache_of_all(session)?);
    all.push(mirror::all());
    Ok(all.iter().map(|path| nearest_real(path)).collect())
}

/// The cache of all repositories.
fn cache_of_all(session: &Session) -> Result<Option<PathBuf>> {
    Ok(pool::home(&session.repo)?.parent().map(Path::to_owned))
}

/// The mounts that make paths writable in a world that is read-only elsewhere, and others read-only
/// below those. What lies below the `replaced` directories needs a mount in any case. So do the writable
/// directories above a path that is not: nobody can rename a mount point, and put something else in
/// its place.
fn needed<'a>(
    replaced: &[&'a Path],
    writable: impl Iterator<Item = &'a Path>,
    protected: impl Iterator<Item = &'a Path>,
) -> Vec<Mount> {
    let mut all: BTreeMap<&Path, bool> = protected.map(|path| (path, false)).collect();
    all.extend(writable.map(|path| (path, true)));
    let above_any = pinned(&all, replaced);
    all.extend(above_any.iter().map(|path| (*path, true)));
    all.retain(|path, _| !replaced.contains(path));
    // A path comes after those above it.
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

/// The writable directories above those of `all` that are not, and above the `replaced` ones.
fn pinned<'a>(all: &BTreeMap<&'a Path, bool>, replaced: &[&'a Path]) -> BTreeSet<&'a Path> {
    let can_write = |path: &Path| {
        path.ancestors().find_map(|above| all.get(above)).copied().unwrap_or_default()
    };
    let protected = all.iter().filter(|(_, can_write)| !**can_write).map(|(path, _)| *path);
    let above = protected.chain(replaced.iter().copied()).flat_map(|path| path.ancestors().skip(1));
    above.filter(|path| can_write(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(common: &str, writable: &[&str], protected: &[&str]) -> Vec<String> {
        let (writable, protected) =
            (writable.iter().map(Path::new), protected.iter().map(Path::new));
        let name = |mount: Mount| match mount {
            Mount::Writable { at } => format!("+{}", at.display()),
            other => format!("-{}", other.at().display()),
        };
        needed(&[Path::new("/dev"), Path::new(common)], writable, protected)
            .into_iter()
            .map(name)
            .collect()
    }

    #[test]
    fn only_what_differs_from_the_mount_above_it_is_mounted() {
        let common = "/home/u/src/.git";
        let worktree = "/home/u/src/.frites/worktrees/1/a";
        let protected =
            ["/home/u/src", "/home/u/src/.frites", "/home/u/.cache/git-frites", "/srv/w"];
        let mounts = made(common, &["/home/u", "/tmp", "/tmp/mine", worktree], &protected);
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
    fn what_lies_in_a_replaced_directory_is_mounted_again() {
        let protected = ["/srv/bare/.frites", "/dev/shm/other"];
        let worktree = "/srv/bare/.frites/worktrees/1/a";
        let mounts = made("/srv/bare", &[worktree], &protected);
        let expected =
            ["-/dev/shm/other", "-/srv/bare/.frites", "+/srv/bare/.frites/worktrees/1/a"];
        assert_eq!(mounts, expected);
    }
}
