//! Plans the mounts of a sealed world. The mounts decide what the world's commands see, and where
//! the writes of these commands go.
use std::path::{Path, PathBuf};

use crate::model::outcome::Stage;
use crate::process::world_spec::Mount;
use crate::world::user_directories::{overlays, work_of};

/// The paths of the machine that a world replaces. Links in them are resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The user's checkout, or the directory that takes its place for a bare repository.
    pub checkout: PathBuf,
    /// The repository's git directory, with objects and refs.
    pub git_dir: PathBuf,
    /// The user's directories that commands write to, such as the home directory.
    pub of_the_user: Vec<PathBuf>,
    /// The directories for temporary files. In the world, they are private and empty.
    pub temporary: Vec<PathBuf>,
    /// Paths that cannot be seen.
    pub hidden: Vec<PathBuf>,
    /// Settings files that are shown without their credentials.
    pub cut: Vec<PathBuf>,
    /// Paths outside of the world that commands can write to.
    pub writable: Vec<PathBuf>,
}

impl Surroundings {
    /// True if commands in the world can read the machine's file at this path. The innermost mount
    /// around the path decides.
    pub fn shows(&self, path: &Path) -> bool {
        let entries = self.git_dir.join("worktrees");
        let shown = [&self.git_dir].into_iter().chain(&self.of_the_user).chain(&self.writable);
        let shown = shown.map(|at| (at, true));
        let covered = [&self.checkout, &entries].into_iter();
        let covered = covered.chain(&self.temporary).chain(&self.hidden).map(|at| (at, false));
        // Of two mounts at the same path, the later one decides.
        let all = shown.chain(covered).filter(|(at, _)| path.starts_with(at));
        all.max_by_key(|(at, _)| at.components().count()).is_none_or(|(_, is_shown)| is_shown)
    }
}

/// The room of one world: a temporary directory. Its subdirectories get everything that the world's
/// commands write, except at the paths in [`Surroundings::writable`].
#[derive(Clone, Debug)]
pub struct WorldRoom(pub PathBuf);

impl WorldRoom {
    /// The upper layer of the checkout. If the checkout is a plain directory, this is the whole
    /// checkout.
    pub fn checkout(&self) -> PathBuf {
        self.0.join("checkout")
    }

    /// The upper layers of the home directory and of the user's other directories, for the setup
    /// command.
    pub fn fetched(&self) -> PathBuf {
        self.0.join("fetched")
    }

    /// The upper layers of the same directories, for the other commands.
    pub fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    /// The upper layer of the git directory.
    pub fn git_dir(&self) -> PathBuf {
        self.0.join("git")
    }

    /// The directory that the world shows in place of the administrative entries of linked
    /// worktrees (gitrepository-layout(5), "worktrees"). So the entries of attempts and of the user
    /// are hidden.
    pub fn worktrees(&self) -> PathBuf {
        self.0.join("worktrees")
    }

    /// The layer with the files of the judged tree that differ from the base.
    pub fn difference(&self) -> PathBuf {
        self.0.join("difference")
    }

    /// The git directory of the checkout's worktree: the one of the repository, or the only
    /// administrative entry that the world shows.
    pub fn own_git_dir(&self, surroundings: &Surroundings) -> PathBuf {
        match surroundings.git_dir == surroundings.checkout.join(".git") {
            true => self.git_dir(),
            false => self.worktrees().join("frites"),
        }
    }

    /// The judged tree's index.
    pub fn index(&self, surroundings: &Surroundings) -> PathBuf {
        self.own_git_dir(surroundings).join("index")
    }

    /// See [`crate::process::world_spec::WorldSpec::wrapping_point`].
    pub fn wrapping_point(&self) -> PathBuf {
        work_of(&self.home())
    }

    /// The directory in the room that is mounted at one of the directories for temporary files.
    fn temporary(&self, number: usize) -> PathBuf {
        self.0.join(format!("tmp-{number}"))
    }

    /// The file that commands see in place of a file with credentials.
    pub fn cut(&self, number: usize) -> PathBuf {
        self.0.join(format!("cut-{number}"))
    }

    /// The directories that must exist before the world is entered, each with its mode. All users
    /// may write to the directories for temporary files.
    pub fn directories(&self, surroundings: &Surroundings) -> Vec<(PathBuf, u32)> {
        let [checkout, git_dir] = [self.checkout(), self.git_dir()];
        let work = [work_of(&checkout), work_of(&git_dir)];
        let own = [checkout, git_dir, self.worktrees()].into_iter().chain(work);
        let temporary = (0..surroundings.temporary.len()).map(|number| self.temporary(number));
        own.map(|dir| (dir, 0o755)).chain(temporary.map(|dir| (dir, 0o1777))).collect()
    }
}

/// The lower layers of a judged tree's overlays, the topmost first.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The layers of the checkout; empty if the checkout is a plain directory.
    pub checkout: Vec<PathBuf>,
    /// The directories that have layers of the home directory and of the user's other directories.
    /// These layers are above the user's files.
    pub home: Vec<PathBuf>,
}

/// The mounts of the world in this room, for the command of one stage.
///
/// The setup command writes to upper layers of its own. So git-frites can separate the files of the
/// setup, e.g. downloads, from those of the other commands.
pub fn mounts(
    surroundings: &Surroundings,
    layers: Layers,
    room: &WorldRoom,
    stage: Stage,
) -> Vec<Mount> {
    let overlay = |at: &Path, lower: Vec<PathBuf>, upper: PathBuf| {
        let work = work_of(&upper);
        Mount::Overlay { at: at.to_owned(), lower, upper, work, is_optional: false }
    };
    let Surroundings { checkout, git_dir, of_the_user, temporary, hidden, cut, writable } =
        surroundings;
    let mut mounts = vec![Mount::Devices];
    for (number, at) in temporary.iter().enumerate() {
        mounts.push(Mount::Directory { at: at.clone(), from: room.temporary(number) });
    }
    let downloads = [room.fetched()];
    mounts.extend(match stage {
        Stage::Setup => overlays(of_the_user, &room.fetched(), &layers.home),
        _ => overlays(of_the_user, &room.home(), &[&downloads, &layers.home[..]].concat()),
    });
    mounts.push(match layers.checkout {
        none if none.is_empty() => Mount::Directory { at: checkout.clone(), from: room.checkout() },
        lower => overlay(checkout, lower, room.checkout()),
    });
    mounts.push(overlay(git_dir, vec![git_dir.clone()], room.git_dir()));
    mounts.push(Mount::Directory { at: git_dir.join("worktrees"), from: room.worktrees() });
    mounts.extend(hidden.iter().map(|at| Mount::Hidden { at: at.clone() }));
    for (number, at) in cut.iter().enumerate() {
        mounts.push(Mount::ReadOnly { at: at.clone(), from: room.cut(number) });
    }
    mounts.extend(writable.iter().map(|at| Mount::Writable { at: at.clone() }));
    mounts
}
