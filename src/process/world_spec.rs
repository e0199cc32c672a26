//! The descriptions of worlds and other confinements, and the messages of a world's processes.
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};

use crate::error::describe;
use crate::process::paths;

/// The hidden first argument of the process that unshares namespaces and makes mounts.
pub const LAUNCHER_VERB: &str = "__world";

/// The hidden first argument of the first process of the new PID namespace.
pub const INIT_VERB: &str = "__init";

/// The hidden first argument of the process that restricts itself by Landlock and then becomes the
/// command.
pub const RESTRICT_VERB: &str = "__restrict";

/// The confinement of a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confinement {
    /// The command runs in its own world, made by namespaces.
    Sealed(WorldSpec),
    /// The command is restricted by Landlock.
    Landlock(Restriction),
}

/// The paths to which Landlock lets a command write. Also environment variables that make the
/// command use them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Restriction {
    /// The directories and files to which commands can write. Missing ones are left out.
    #[serde(with = "paths")]
    pub writable: Vec<PathBuf>,
    /// The directory for temporary files.
    #[serde(with = "paths")]
    pub temporary: PathBuf,
    /// Environment variables that make programs use directories to which they can write. They are
    /// not serialized, because the supervisor has them in its own environment.
    #[serde(skip)]
    pub variables: Vec<(String, OsString)>,
    /// The maximum address space of each process, in bytes.
    pub memory: Option<u64>,
}

impl Confinement {
    /// True if the confinement lets commands write to this path. No component of the path may be a
    /// link.
    pub fn lets_write(&self, path: &Path) -> bool {
        match self {
            Confinement::Sealed(world) => world.nearest(path).is_some_and(Mount::can_be_written),
            Confinement::Landlock(restriction) => {
                restriction.writable.iter().any(|open| path.starts_with(open))
            }
        }
    }

    /// True if commands cannot see the file that is at this path outside of the world: the path is
    /// hidden, or it lies inside a [`Mount::Directory`] that does not contain [`WorldSpec::dir`].
    /// No component of the path may be a link.
    pub fn hides(&self, path: &Path) -> bool {
        let Confinement::Sealed(world) = self else { return false };
        match world.nearest(path) {
            Some(Mount::Hidden { .. }) => true,
            Some(Mount::Directory { at, .. }) => !world.dir.starts_with(at) && at != path,
            _ => false,
        }
    }

    /// The hidden first argument with which a process starts in this confinement, and the
    /// description as JSON. Fails if the description cannot be serialized.
    pub fn words(&self) -> io::Result<[String; 2]> {
        Ok(match self {
            Confinement::Sealed(world) => [LAUNCHER_VERB.into(), serde_json::to_string(world)?],
            Confinement::Landlock(paths) => [RESTRICT_VERB.into(), serde_json::to_string(paths)?],
        })
    }

    /// The environment variables that are set for commands in this confinement.
    pub fn variables(&self) -> &[(String, OsString)] {
        match self {
            Confinement::Sealed(_) => &[],
            Confinement::Landlock(restriction) => &restriction.variables,
        }
    }
}

/// The description of a world.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorldSpec {
    /// The directory in which the command starts, as a path in the world.
    #[serde(with = "paths")]
    pub dir: PathBuf,
    /// The mounts that are made in the world. Everything else is read-only.
    pub mounts: Vec<Mount>,
    /// A directory that is a mount point only while the world is made. If the lowest layer of an
    /// overlay contains another of its layers, the lowest layer is wrapped in an overlay that is
    /// mounted here.
    #[serde(with = "paths")]
    pub wrapping_point: PathBuf,
    /// True if the command may use the network. If false, the command has only the loopback device.
    pub network: bool,
    /// True if the command must not reach the abstract sockets of other processes, as far as the
    /// system can prevent it.
    pub hides_sockets: bool,
    /// The maximum number of processes of the user. If `None`, it is an eighth less than the user's
    /// own limit. Neither limit applies to root.
    pub processes: Option<u64>,
    /// The maximum address space of each process, in bytes.
    pub memory: Option<u64>,
    /// The limit for files that commands write to layers which are thrown away.
    pub disk: Option<DiskLimit>,
    /// The number of the part in which the commands' process ids begin, if all ids are divided into
    /// 256 parts. Scripts name files by their process id (`/tmp/x.$$`). Without this, the ids would
    /// begin with 2 in each PID namespace.
    pub process_ids: Option<u8>,
}

impl WorldSpec {
    /// The arguments of git-frites with which a process of this world starts. The words of the
    /// command follow them. `status` is the number of a descriptor that the new process inherits,
    /// and to which it writes [`WorldMessage`]s.
    ///
    /// Fails if the description cannot be serialized.
    pub fn words(&self, verb: &str, status: &str) -> io::Result<Vec<OsString>> {
        Ok(vec![verb.into(), status.into(), serde_json::to_string(self)?.into()])
    }

    /// The innermost mount that contains a path. No component of the path may be a link.
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
    /// The disk space that it took before the first command, in bytes, and the number of its files.
    pub before: [u64; 2],
    /// The maximum that commands may add, in bytes.
    pub bytes: u64,
}

/// One mount of a world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mount {
    /// An overlay: a directory that shows several layers as one. Writes go to the upper layer.
    Overlay {
        /// The mount point. It also exists outside of the world, or lies below another mount of the
        /// world.
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
        /// If true and the system refuses this overlay, the lowest layer is mounted read-only in
        /// its place. Some file systems cannot be layers of overlays.
        is_optional: bool,
    },
    /// A directory that is mounted over the mount point, with everything below it. Commands can
    /// write to it.
    Directory {
        #[serde(with = "paths")]
        at: PathBuf,
        /// The directory that is shown there.
        #[serde(with = "paths")]
        from: PathBuf,
    },
    /// A directory with everything below it, or a file, that commands can only read. The mount
    /// point may lie in a mount to which commands can write.
    ReadOnly {
        #[serde(with = "paths")]
        at: PathBuf,
        /// The directory or the file that is shown there.
        #[serde(with = "paths")]
        from: PathBuf,
    },
    /// A path to which commands can write. The written files are kept when the world has ended.
    Writable {
        #[serde(with = "paths")]
        at: PathBuf,
    },
    /// A path that commands cannot see. A directory is covered by an empty one, a file or socket by
    /// `/dev/null`. A path that does not exist is ignored.
    Hidden {
        #[serde(with = "paths")]
        at: PathBuf,
    },
    /// A new `/dev` with only the usual device files.
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

/// A message to the supervisor from a process that confines a command. It is one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorldMessage {
    /// The command was not run, and is not to blame. Its confinement failed, or the system is short
    /// of resources.
    Refused {
        /// The step that failed, if any, and the system's error message.
        reason: String,
    },
    /// The command could not be started.
    NotStarted {
        /// The system's error message.
        reason: String,
    },
    /// The command has ended.
    Exited {
        /// The command's exit code.
        code: Option<i32>,
        /// The signal that ended the command.
        signal: Option<i32>,
    },
}

impl WorldMessage {
    /// The message that the system refused to start the command. If the system is short of
    /// processes, memory or descriptors, the command is not to blame.
    pub fn not_started(error: &io::Error) -> WorldMessage {
        let reason = describe(error);
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => {
                WorldMessage::Refused { reason }
            }
            _ => WorldMessage::NotStarted { reason },
        }
    }

    /// The message that the command has ended with this status.
    pub fn exited(status: WaitStatus) -> WorldMessage {
        WorldMessage::Exited { code: status.exit_status(), signal: status.terminating_signal() }
    }

    /// Sends the message. Ignores errors, because the supervisor may be gone.
    pub fn send(&self, mut to: impl Write) {
        let text = serde_json::to_string(self).unwrap_or_default();
        let _ = to.write_all(format!("{text}\n").as_bytes());
    }
}
