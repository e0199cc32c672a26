//! The description of a world, and the messages between its processes.
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::process::paths;

/// The hidden first argument of the process that unshares and mounts.
pub const LAUNCHER_VERB: &str = "__world";

/// The hidden first argument of the first process of the new PID namespace.
pub const INIT_VERB: &str = "__init";

/// The hidden first argument of the process that maps all ids, for root.
pub const MAP_VERB: &str = "__map";

/// The hidden first argument of the process that Landlock restricts, and that becomes the command.
pub const RESTRICT_VERB: &str = "__restrict";

/// The confinement of a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confinement {
    /// By namespaces: a world of its own.
    Sealed(WorldSpec),
    /// By Landlock.
    Landlock(Restriction),
}

/// The paths that Landlock lets a command write to, and the variables that lead it there.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Restriction {
    /// The directories and files to which commands can write. Missing ones are left out.
    #[serde(with = "paths")]
    pub writable: Vec<PathBuf>,
    /// The directory for temporary files.
    #[serde(with = "paths")]
    pub temporary: PathBuf,
    /// The variables that lead programs to directories to which they can write. They are not serialized,
    /// because the supervisor already has them in its environment.
    #[serde(skip)]
    pub variables: Vec<(String, OsString)>,
    /// The maximum address space of each process, in bytes.
    pub memory: Option<u64>,
}

impl Confinement {
    /// True if the confinement lets commands write to this path, which is without links.
    pub fn lets_write(&self, path: &Path) -> bool {
        match self {
            Confinement::Sealed(world) => world.nearest(path).is_some_and(Mount::can_be_written),
            Confinement::Landlock(restriction) => {
                restriction.writable.iter().any(|open| path.starts_with(open))
            }
        }
    }

    /// True if commands cannot see the file that is at this path outside of the world: it is hidden, or
    /// another directory, which is not the checkout, is shown there. The path is without links.
    pub fn hides(&self, path: &Path) -> bool {
        let Confinement::Sealed(world) = self else { return false };
        match world.nearest(path) {
            Some(Mount::Hidden { .. }) => true,
            Some(Mount::Directory { at, .. }) => !world.dir.starts_with(at) && at != path,
            _ => false,
        }
    }

    /// The hidden first argument and the description that start a process in this confinement. Fails if
    /// the description cannot be written.
    pub fn words(&self) -> io::Result<[String; 2]> {
        let (verb, text) = match self {
            Confinement::Sealed(world) => (LAUNCHER_VERB, serde_json::to_string(world)),
            Confinement::Landlock(restriction) => {
                (RESTRICT_VERB, serde_json::to_string(restriction))
            }
        };
        Ok([verb.to_owned(), text.map_err(io::Error::other)?])
    }

    /// The variables that differ for commands in this confinement.
    pub fn variables(&self) -> &[(String, OsString)] {
        match self {
            Confinement::Sealed(_) => &[],
            Confinement::Landlock(restriction) => &restriction.variables,
        }
    }
}

/// The parts of a world.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorldSpec {
    /// The directory in which the command starts, by its path in the world.
    #[serde(with = "paths")]
    pub dir: PathBuf,
    /// The mounts that differ from those outside. Everything else is read-only.
    pub mounts: Vec<Mount>,
    /// A directory at which overlays over lower layers are mounted while the world is made.
    #[serde(with = "paths")]
    pub wrapping_point: PathBuf,
    /// True if the command may use the network; else it has only the loopback device.
    pub network: bool,
    /// True if the command must not reach the abstract sockets of other processes, as far as the system can
    /// prevent it.
    pub hides_sockets: bool,
    /// The maximum number of processes; it does not bind root.
    pub processes: Option<u64>,
    /// The maximum address space of each process, in bytes.
    pub memory: Option<u64>,
    /// The limit for the files that commands write to layers that are thrown away.
    pub disk: Option<DiskLimit>,
}

impl WorldSpec {
    /// The innermost mount that contains a path, which is without links.
    fn nearest(&self, path: &Path) -> Option<&Mount> {
        let above = self.mounts.iter().filter(|mount| path.starts_with(mount.at()));
        // If two mounts have the same mount point, the last one is seen.
        above.max_by_key(|mount| mount.at().components().count())
    }
}

/// A limit of disk space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskLimit {
    /// The directory that gets all writes.
    #[serde(with = "paths")]
    pub dir: PathBuf,
    /// The disk space that it took before the first command, in bytes.
    pub before: u64,
    /// The maximum that commands may add, in bytes.
    pub bytes: u64,
}

/// One mount of a world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mount {
    /// A directory that shows several layers as one. Writes go to the upper one.
    Overlay {
        /// The mount point, which exists outside as well.
        #[serde(with = "paths")]
        at: PathBuf,
        /// The read-only layers, the topmost first.
        #[serde(with = "paths")]
        lower: Vec<PathBuf>,
        /// The layer that gets every write.
        #[serde(with = "paths")]
        upper: PathBuf,
        /// An empty directory on the upper layer's file system.
        #[serde(with = "paths")]
        work: PathBuf,
        /// True if the lowest layer is shown, read-only, where the system refuses this overlay. Not every
        /// file system can be the layer of an overlay.
        is_optional: bool,
    },
    /// Another directory, with everything below it, in place of the one at the mount point.
    Directory {
        /// The mount point.
        #[serde(with = "paths")]
        at: PathBuf,
        /// The directory that is shown there.
        #[serde(with = "paths")]
        from: PathBuf,
    },
    /// A directory with everything below it, or a file, that commands can only read, even in a mount to
    /// which they can write.
    ReadOnly {
        /// The mount point.
        #[serde(with = "paths")]
        at: PathBuf,
        /// The directory or the file that is shown there.
        #[serde(with = "paths")]
        from: PathBuf,
    },
    /// A path to which commands can write, with effect outside of the world.
    Writable {
        /// The path.
        #[serde(with = "paths")]
        at: PathBuf,
    },
    /// A path that commands cannot see: a directory is covered by an empty one, a file or socket by
    /// `/dev/null`. A missing path is ignored.
    Hidden {
        /// The path.
        #[serde(with = "paths")]
        at: PathBuf,
    },
    /// A new `/dev` with its own device files.
    Devices,
}

impl Mount {
    /// True if commands can write below the mount point.
    fn can_be_written(&self) -> bool {
        match self {
            Mount::Overlay { .. }
            | Mount::Directory { .. }
            | Mount::Writable { .. }
            | Mount::Devices => true,
            Mount::ReadOnly { .. } | Mount::Hidden { .. } => false,
        }
    }

    /// The mount point.
    pub fn at(&self) -> &Path {
        match self {
            Mount::Overlay { at, .. }
            | Mount::Directory { at, .. }
            | Mount::ReadOnly { at, .. }
            | Mount::Writable { at }
            | Mount::Hidden { at } => at,
            Mount::Devices => Path::new("/dev"),
        }
    }
}

impl WorldSpec {
    /// The arguments that start a command in this world. `status` is the number of the descriptor
    /// on which [`WorldMessage`]s arrive, which the new process inherits.
    ///
    /// Fails if the description cannot be written.
    pub fn words(&self, verb: &str, status: &str) -> io::Result<Vec<OsString>> {
        let text = serde_json::to_string(self).map_err(io::Error::other)?;
        Ok(vec![verb.into(), status.into(), text.into()])
    }
}

/// A message of a world's processes to the supervisor: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorldMessage {
    /// The world could not be entered.
    Refused {
        /// The step that failed, and the system's reason.
        reason: String,
    },
    /// The command could not be started.
    NotStarted {
        /// The system's reason.
        reason: String,
        /// True if the system was short of processes, memory or descriptors.
        short_of_resources: bool,
    },
    /// The command has ended.
    Exited {
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
}

impl WorldMessage {
    /// Sends the message. It is no error if the supervisor is gone and nobody reads it.
    pub fn send(&self, mut to: impl Write) {
        let text = serde_json::to_string(self).unwrap_or_default();
        let _ = to.write_all(format!("{text}\n").as_bytes());
    }
}
