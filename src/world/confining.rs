//! Functions for all processes that confine a command. They report a step that failed, read the
//! description, close descriptors, and give up capabilities.
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::process::{Resource, Rlimit, geteuid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::de::DeserializeOwned;

use crate::error::describe;
use crate::process::world_spec::WorldMessage;

/// A step of confining a command that failed, and the error.
#[derive(Debug)]
pub(super) struct Refusal {
    step: &'static str,
    error: io::Error,
}

/// Adds the name of the step to an error.
pub(super) trait Step<T> {
    /// Converts an error to a [`Refusal`] of this step.
    fn step(self, step: &'static str) -> Result<T, Refusal>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: &'static str) -> Result<T, Refusal> {
        self.map_err(|error| Refusal { step, error: error.into() })
    }
}

impl Refusal {
    /// The message for the supervisor.
    pub(super) fn message(&self) -> WorldMessage {
        WorldMessage::Refused { reason: format!("{}: {}", self.step, describe(&self.error)) }
    }
}

/// Lowers a limit of this process and its children to `most`, unless it is lower already. Only root
/// may raise a limit.
pub(super) fn lower_limit(resource: Resource, most: u64) -> io::Result<()> {
    let own = rustix::process::getrlimit(resource).maximum;
    let limit = Some(own.map_or(most, |own| own.min(most)));
    Ok(rustix::process::setrlimit(resource, Rlimit { current: limit, maximum: limit })?)
}

/// Parses the description that the process got as an argument.
pub(super) fn described<T: DeserializeOwned>(text: &OsString) -> Result<T, Refusal> {
    let read = serde_json::from_str(&text.to_string_lossy());
    read.map_err(io::Error::from).step("reading the description")
}

/// Opens the file of the descriptor with this number again, because safe code cannot take ownership
/// of a descriptor by its number. Closes all other descriptors except the standard ones.
pub(super) fn open_status(number: &OsString) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", number.to_string_lossy());
    let status = File::options().write(true).open(path)?;
    close_inherited(status.as_raw_fd())?;
    Ok(status)
}

/// Closes every descriptor above the standard ones except `kept`. A command could leave its world
/// through an inherited directory, because paths below it lead to the old, writable mounts. Also, a
/// command could forge its exit code with the descriptor for messages.
fn close_inherited(kept: i32) -> io::Result<()> {
    let mut open: Vec<i32> = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    for number in open.into_iter().filter(|number| *number > 2 && *number != kept) {
        // The directory was listed through a descriptor that is now closed. Closing its number
        // fails.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

/// The capabilities that confined commands of root keep. Test suites that run as root change owners
/// and users, and make user namespaces. Only a process with `SETFCAP` can map root in a user
/// namespace. With these capabilities, a command reaches no more files or processes than without
/// them.
const OF_ROOT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SETFCAP);

/// The capabilities that confined commands of this user may have.
pub(super) fn capabilities_of_commands() -> CapabilitySet {
    if geteuid().is_root() { OF_ROOT } else { CapabilitySet::empty() }
}

/// Gives up all capabilities that a confined command must not have. No-new-privileges prevents
/// programs that the command executes from getting them back.
pub(super) fn give_up_capabilities() -> io::Result<()> {
    let kept = capabilities_of_commands() & rustix::thread::capabilities(None)?.permitted;
    rustix::thread::clear_ambient_capability_set()?;
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets)?;
    Ok(rustix::thread::set_no_new_privs(true)?)
}
