//! Confinement by Landlock (landlock(7)): a process that may write only to a few directories, and that
//! becomes the command.
//!
//! It is a separate process because a restriction holds for ever, for a thread and its children.
use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit};

use crate::error::describe;
use crate::process::processor_share;
use crate::process::supervisor::is_short_of_resources;
use crate::process::world_spec::{Restriction, WorldMessage};
use crate::world::confining::{
    Refusal, Step, close_inherited, described, give_up_capabilities, open_status,
};

/// The oldest version that is used: with earlier ones a restricted process can truncate any file.
const LEAST: ABI = ABI::V3;

/// The version whose restrictions are used as far as the system has them. It also restricts signals and
/// abstract sockets.
const FULL: ABI = ABI::V6;

/// The paths elsewhere to which programs may write because nothing stays there: devices, terminals, and a
/// process's own settings.
const SHARED: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/proc/self",
];

/// The main function of the process until it becomes the command. `arguments` are those after
/// `RESTRICT_VERB`. The first names a descriptor, which is closed without a message if all went well.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let [status, spec, program, rest @ ..] = arguments else { return ExitCode::from(2) };
    // The new descriptor is close-on-exec.
    let Ok(status) = open_status(status) else { return ExitCode::from(2) };
    if close_inherited(status.as_raw_fd()).is_err() {
        return ExitCode::from(2);
    }
    let message = match prepare(spec) {
        Ok(()) => {
            let error = Command::new(program).args(rest).exec();
            let short_of_resources = is_short_of_resources(&error);
            WorldMessage::NotStarted { reason: describe(&error), short_of_resources }
        }
        Err(refusal) => refusal.message(),
    };
    message.send(&status);
    ExitCode::FAILURE
}

fn prepare(spec: &OsString) -> Result<(), Refusal> {
    let restriction: Restriction = described(spec)?;
    // Begins a session without a terminal: a process with a terminal can type into it (ioctl_tty(2),
    // TIOCSTI).
    rustix::process::setsid().step("leaving the terminal")?;
    processor_share::pass_on_to_session();
    if restriction.memory.is_some() {
        let limit = Rlimit { current: restriction.memory, maximum: restriction.memory };
        rustix::process::setrlimit(Resource::As, limit).step("setting limits")?;
    }
    restrict(&restriction.writable).map_err(io::Error::other).step("restricting writes")?;
    // With other capabilities, root could type into any terminal.
    give_up_capabilities().step("dropping capabilities")
}

/// Restricts this thread and its children to writing below these paths. Gives the version of
/// Landlock.
fn restrict(writable: &[PathBuf]) -> Result<LandlockStatus, RulesetError> {
    let all = AccessFs::from_write(FULL);
    let shared = SHARED.iter().map(Path::new);
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

/// Keeps this process and its children from the abstract sockets of other processes, if the system can do
/// that. These sockets have no path that a mount could hide.
pub(super) fn leave_abstract_sockets() -> Result<(), RulesetError> {
    let restriction = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::AbstractUnixSocket)?
        .create()?;
    restriction.restrict_self().map(|_| ())
}

/// The version of Landlock's interface here, if it can confine commands; else the reason why it
/// cannot.
pub fn version() -> Result<u32, String> {
    // The restriction ends with its thread.
    let tried = thread::spawn(|| restrict(&[])).join();
    match tried {
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
