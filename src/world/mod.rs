//! The world of a judged tree: the part of the machine that its commands see, and the part that they can
//! change.
//!
//! A *sealed* world has its own user, mount, PID and IPC namespaces. Everything that its commands
//! write goes to a layer that is thrown away; the rest of the file system is read-only
//! (GIT-FACTS, "Worlds"). No privileges and no helper programs are needed: git-frites starts
//! itself, once to unshare and mount ([`launcher`]) and once as the first process of the new PID
//! namespace ([`init`]). Where the system refuses namespaces, Landlock can refuse writes
//! ([`landlock`]).
#[cfg(target_os = "linux")]
mod confining;
#[cfg(target_os = "linux")]
mod devices;
#[cfg(target_os = "linux")]
mod identity;
#[cfg(target_os = "linux")]
pub mod init;
#[cfg(target_os = "linux")]
pub mod landlock;
#[cfg(target_os = "linux")]
pub mod launcher;
pub mod linked_home;
#[cfg(target_os = "linux")]
mod loopback;
#[cfg(target_os = "linux")]
mod mounts;
pub mod probe;
pub mod user_directories;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::process::world_spec::{INIT_VERB, LAUNCHER_VERB, MAP_VERB, RESTRICT_VERB};

/// Runs a process of a world if these arguments start one, and gives its exit code; else `None`.
#[cfg(target_os = "linux")]
pub fn main(arguments: &[OsString]) -> Option<ExitCode> {
    let (verb, rest) = arguments.split_first()?;
    match verb.to_str()? {
        LAUNCHER_VERB => Some(launcher::main(rest)),
        INIT_VERB => Some(init::main(rest)),
        RESTRICT_VERB => Some(landlock::main(rest)),
        MAP_VERB => Some(identity::main(rest)),
        _ => None,
    }
}

/// Other systems have no namespaces: there are no such processes.
#[cfg(not(target_os = "linux"))]
pub fn main(arguments: &[OsString]) -> Option<ExitCode> {
    let verb = arguments.first()?.to_str()?;
    [LAUNCHER_VERB, INIT_VERB, MAP_VERB, RESTRICT_VERB].contains(&verb).then_some(ExitCode::from(2))
}
