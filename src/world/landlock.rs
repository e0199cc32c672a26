//! Confines a command by Landlock (landlock(7)). A process restricts itself, so that it may write
//! only to a few directories. Then it becomes the command.
//!
//! The restricted process is a separate one because a restriction cannot be undone. It applies to
//! the thread and all its children for ever.
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread::{Builder, JoinHandle};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::process::Resource;

use crate::error::describe;
use crate::process::processor_share;
use crate::process::world_spec::{Restriction, WorldMessage};
use crate::world::confining::{
    Refusal, Step, described, give_up_capabilities, lower_limit, open_status,
};

/// The oldest version of Landlock that is used. With an earlier version, a restricted process can
/// truncate any file.
const LEAST: ABI = ABI::V3;

/// The newest version of Landlock that is used. On a system with an older version, the newer
/// restrictions are left out, e.g. those of signals and abstract sockets.
const FULL: ABI = ABI::V6;

/// Paths to which all commands may write, because writes there change no files: devices, terminals,
/// and a process's own settings.
const SHARED: &str = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx
    /dev/pts /proc/self";

/// The main function of the process that becomes the command. `arguments` are the arguments after
/// `RESTRICT_VERB`. The first is the number of a descriptor for messages. If the process becomes
/// the command, it closes the descriptor without a message.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let [status, spec, program, rest @ ..] = arguments else { return ExitCode::from(2) };
    // The new descriptor is close-on-exec.
    let Ok(status) = open_status(status) else { return ExitCode::from(2) };
    let message = match prepare(spec) {
        Ok(()) => WorldMessage::not_started(&Command::new(program).args(rest).exec()),
        Err(refusal) => refusal.message(),
    };
    message.send(&status);
    ExitCode::FAILURE
}

fn prepare(spec: &OsString) -> Result<(), Refusal> {
    let restriction: Restriction = described(spec)?;
    // The new session has no terminal. If it had one, a command could type into it (ioctl_tty(2),
    // TIOCSTI).
    rustix::process::setsid().step("leaving the terminal")?;
    processor_share::pass_on_to_session();
    if let Some(memory) = restriction.memory {
        lower_limit(Resource::As, memory).step("setting limits")?;
    }
    restrict(&restriction.writable).map_err(io::Error::other).step("restricting writes")?;
    // With more capabilities, a command of root could type into any terminal.
    give_up_capabilities().step("dropping capabilities")
}

/// Restricts this thread and its children: they can write only below these paths and [`SHARED`].
/// Returns the version of Landlock that the system has.
fn restrict(writable: &[PathBuf]) -> Result<LandlockStatus, RulesetError> {
    let all = AccessFs::from_write(FULL);
    let shared = SHARED.split_whitespace().map(Path::new);
    let paths = writable.iter().map(PathBuf::as_path).chain(shared);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(FULL))?
        .create()?
        .add_rules(path_beneath_rules(paths, all))?
        .restrict_self()?;
    Ok(status.landlock)
}

/// Forbids this process and its children to connect to abstract sockets of other processes, if the
/// system can do that. Such a socket has no path that a mount could hide.
pub(super) fn leave_abstract_sockets() -> Result<(), RulesetError> {
    let restriction = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::AbstractUnixSocket)?
        .create()?;
    restriction.restrict_self().map(|_| ())
}

/// The version of Landlock that the system has. Fails with the reason if Landlock cannot confine
/// commands here.
pub fn version() -> Result<u32, String> {
    // The restriction applies only to the new thread, and ends with it.
    let tried = Builder::new().spawn(|| restrict(&[])).map(JoinHandle::join);
    match tried.unwrap_or_else(|error| Err(Box::new(error))) {
        Ok(Ok(LandlockStatus::Available { effective_abi, kernel_abi })) => {
            let newer = kernel_abi.and_then(|abi| u32::try_from(abi).ok());
            Ok(newer.unwrap_or(effective_abi as u32))
        }
        Ok(Ok(LandlockStatus::NotEnabled)) => Err("the kernel was started without it".to_owned()),
        Ok(Ok(LandlockStatus::NotImplemented)) => Err("the kernel has none".to_owned()),
        Ok(Err(error)) => Err(describe(&io::Error::other(error))),
        Err(_) => Err("it cannot be tried".to_owned()),
    }
}
