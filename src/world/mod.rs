//! Confines commands, such as the oracle's commands that run on a judged tree. A *world* is the
//! part of the machine that the commands can see, and the part that they can change.
//!
//! A *sealed* world has its own user, mount, PID and IPC namespaces. Its paths are of three kinds
//! (GIT-FACTS, "Worlds"):
//!
//! - Some paths are overlays or private directories. The files that commands write there are thrown
//!   away, or kept in layers for later worlds.
//! - The paths in `sandbox.write` are open as they are.
//! - All other paths are read-only.
//!
//! No privileges are needed. git-frites starts itself once to unshare namespaces and make mounts
//! ([`launcher`]), and once as the first process of the new PID namespace ([`init`]). If the system
//! does not allow namespaces, Landlock can forbid writes ([`landlock`]).
#[cfg(target_os = "linux")]
mod confining;
#[cfg(target_os = "linux")]
pub mod init;
#[cfg(target_os = "linux")]
pub mod landlock;
#[cfg(target_os = "linux")]
pub mod launcher;
pub mod linked_home;
#[cfg(target_os = "linux")]
mod mounts;
pub mod probe;
pub mod user_directories;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::process::world_spec::{INIT_VERB, LAUNCHER_VERB, RESTRICT_VERB};

/// If git-frites was started with these arguments as a process of a world, runs that process and
/// returns its exit code. Otherwise returns `None`.
#[cfg(target_os = "linux")]
pub fn main(arguments: &[OsString]) -> Option<ExitCode> {
    let (verb, rest) = arguments.split_first()?;
    match verb.to_str()? {
        LAUNCHER_VERB => Some(launcher::main(rest)),
        INIT_VERB => Some(init::main(rest)),
        RESTRICT_VERB => Some(landlock::main(rest)),
        _ => None,
    }
}

/// git-frites makes worlds only on Linux. On other systems, a process of a world fails at once.
#[cfg(not(target_os = "linux"))]
pub fn main(arguments: &[OsString]) -> Option<ExitCode> {
    let verb = arguments.first()?.to_str()?;
    [LAUNCHER_VERB, INIT_VERB, RESTRICT_VERB].contains(&verb).then_some(ExitCode::from(2))
}
