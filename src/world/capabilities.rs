//! The capabilities of confined commands.
use std::io;

use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// The capabilities that root keeps: suites that run as root change owners and users, and make user
/// namespaces, in which only a process with `SETFCAP` can map root. None of them reaches beyond the
/// files and processes that a command can reach anyway.
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
pub(super) fn of_commands() -> CapabilitySet {
    if geteuid().is_root() { OF_ROOT } else { CapabilitySet::empty() }
}

/// Gives up all that a confined command must not have. With no-new-privileges, no program that it
/// executes gets any of it back.
pub(super) fn give_up() -> io::Result<()> {
    let kept = of_commands() & rustix::thread::capabilities(None)?.permitted;
    rustix::thread::clear_ambient_capability_set()?;
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets)?;
    Ok(rustix::thread::set_no_new_privs(true)?)
}
