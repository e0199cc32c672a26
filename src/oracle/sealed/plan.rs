//! The mounts of a sealed world, which decide what its commands see and where their writes go.
use std::path::{Path, PathBuf};

use crate::model::outcome::Stage;
use crate::process::world_spec::Mount;
use crate::world::user_directories::{overlays, work_of};

/// The paths of the machine that a world replaces, all with links resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The user's checkout, or the directory that takes its place.
    pub checkout: PathBuf,
    /// The repository's git directory, with objects and refs.
    pub git_dir: PathBuf,
    /// The user's directories that commands write to, such as the home directory.
    pub of_the_user: Vec<PathBuf>,
    /// The directories for temporary files, which are private and empty.
    pub temporary: Vec<PathBuf>,
    /// Paths that cannot be seen.
    pub hidden: Vec<PathBuf>,
    /// Settings files that are shown without their credentials.
    pub cut: Vec<PathBuf>,
    /// Paths outside of the world that commands can write to.
    pub writable: Vec<PathBuf>,
}

impl Surroundings {
    /// True if commands can read the outside file at this path. The innermost mount around it
    /// decides.
    pub fn shows(&self, path: &Path) -> bool {
        let shown = self.of_the_user.iter().chain(&self.writable).map(|at| (at, true));
        let covered = [&self.checkout, &self.git_dir].into_iter();
        let covered = covered.chain(&self.temporary).chain(&self.hidden).map(|at| (at, false));
        // Of two mounts at the same path, the later one counts.
        let all = shown.chain(covered).filter(|(at, _)| path.starts_with(at));
        all.max_by_key(|(at, _)| at.components().count()).is_none_or(|(_, is_shown)| is_shown)
    }
}

/// The directories of one world, which get all its writes.
#[derive(Clone, Debug)]
pub struct WorldRoom(PathBuf);

impl WorldRoom {
    /// The room in this directory.
    pub fn at(dir: &Path) -> WorldRoom {
        WorldRoom(dir.to_owned())
    }

    /// The checkout's upper layer, or the whole checkout if it is a plain directory.
    pub fn checkout(&self) -> PathBuf {
        self.0.join("checkout")
    }

    /// The upper layers of the home directory and of the user's other directories while the setup
    /// runs.
    pub fn fetched(&self) -> PathBuf {
        self.0.join("fetched")
    }

    /// The same upper layers while the other commands run.
    pub fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    /// The git directory's upper layer.
    pub fn git_dir(&self) -> PathBuf {
        self.0.join("git")
    }

    /// The entries of linked worktrees in the git directory (gitrepository-layout(5), "worktrees"), without
    /// those of attempts and of the user.
    pub fn worktrees(&self) -> PathBuf {
        self.0.join("worktrees")
    }

    /// The files by which the judged tree differs from the base.
    pub fn difference(&self) -> PathBuf {
        self.0.join("difference")
    }

    /// The judged tree's index after the checkout.
    pub fn index(&self) -> PathBuf {
        self.0.join("index")
    }

    /// See [`crate::process::world_spec::WorldSpec::wrapping_point`].
    pub fn wrapping_point(&self) -> PathBuf {
        work_of(&self.home())
    }

    /// The directory in the room for one directory of temporary files.
    fn temporary(&self, number: usize) -> PathBuf {
        self.0.join(format!("tmp-{number}"))
    }

    /// The file that is shown in place of a file with credentials.
    pub fn cut(&self, number: usize) -> PathBuf {
        self.0.join(format!("cut-{number}"))
    }

    /// The directories that must exist before the world is entered, each with its mode. All users may
    /// write to directories for temporary files.
    pub fn directories(&self, surroundings: &Surroundings) -> Vec<(PathBuf, u32)> {
        let [checkout, git_dir] = [self.checkout(), self.git_dir()];
        let work = [work_of(&checkout), work_of(&git_dir)];
        let own = [checkout, git_dir, self.worktrees()].into_iter().chain(work);
        let temporary = (0..surroundings.temporary.len()).map(|number| self.temporary(number));
        own.map(|dir| (dir, 0o755)).chain(temporary.map(|dir| (dir, 0o1777))).collect()
    }
}

/// The layers below the writes to a judged tree, the topmost first.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The layers of the checkout; empty if it is a plain directory.
    pub checkout: Vec<PathBuf>,
    /// The rooms with the layers of the home directory and the user's other directories, above the
    /// user's files.
    pub home: Vec<PathBuf>,
}

/// The mounts of a world in this room, in which the command of a stage runs.
///
/// The setup has its own layers of the user's directories, so that its downloads can be told from
/// the files that the other commands leave.
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
