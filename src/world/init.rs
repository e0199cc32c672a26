//! The first process of a world. It mounts `/proc`, gives up capabilities, starts the command, and
//! waits for every process in its PID namespace.
//!
//! When this process ends, the kernel kills every other process in the namespace
//! (pid_namespaces(7)).
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::{DumpableBehavior, Pid, Resource, Signal, WaitOptions, geteuid};
use rustix::thread::CapabilitySet;

use crate::error::describe;
use crate::process::processor_share;
use crate::process::supervisor::not_started_line;
use crate::process::world_spec::{WorldMessage, WorldSpec};
use crate::world::confining::{
    Refusal, Step, capabilities_of_commands, described, give_up_capabilities, lower_limit,
    open_status,
};
use crate::world::landlock;

/// The paths in a new `/proc` through which root can change the whole machine, even without
/// capabilities. If the user is root, these paths are mounted read-only.
const OF_THE_MACHINE: [&str; 5] = ["bus", "fs", "irq", "sys", "sysrq-trigger"];

/// After its first round through all ids, the system gives out no id below this one
/// (`RESERVED_PIDS`).
const FIRST_IDS: u32 = 300;

/// The main function of the first process. `arguments` are the arguments after `INIT_VERB`.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let [status, spec, program, rest @ ..] = arguments else { return ExitCode::from(2) };
    let Ok(status) = open_status(status) else { return ExitCode::from(2) };
    match prepare(spec, program, rest) {
        Ok(command) => {
            start_and_reap(command, &status);
            ExitCode::SUCCESS
        }
        Err(refusal) => {
            refusal.message().send(&status);
            ExitCode::FAILURE
        }
    }
}

fn prepare(spec: &OsString, program: &OsString, rest: &[OsString]) -> Result<Command, Refusal> {
    let spec: WorldSpec = described(spec)?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .step("asking to end with the launcher")?;
    // The new session has no terminal. If it had one, a command could type into it (ioctl_tty(2),
    // TIOCSTI).
    rustix::process::setsid().step("leaving the terminal")?;
    mount_proc(spec.process_ids).step("mounting /proc")?;
    processor_share::pass_on_to_session();
    if !spec.network {
        bring_up_loopback().step("bringing up the loopback device")?;
    }
    let processes = spec.processes.or_else(most_processes);
    let limits = [
        (Resource::Nproc, processes),
        (Resource::As, spec.memory),
        (Resource::Sigpending, share_of(Resource::Sigpending)),
        (Resource::Msgqueue, share_of(Resource::Msgqueue)),
    ];
    for (resource, limit) in limits {
        if let Some(limit) = limit {
            lower_limit(resource, limit).step("setting limits")?;
        }
    }
    drop_capabilities().step("dropping capabilities")?;
    if spec.hides_sockets {
        // If the system cannot do this, commands can reach the abstract sockets of other processes.
        // The manual says so.
        let _ = landlock::leave_abstract_sockets();
    }
    let mut command = Command::new(program);
    command.args(rest).current_dir(&spec.dir).process_group(0);
    // The standard input was opened outside of the world, where its mount is writable. So a command
    // could change the file's mode. Here the file is opened again on the world's read-only mount.
    if let Ok(input) = fs::read_link("/proc/self/fd/0").and_then(File::open) {
        command.stdin(input);
    }
    Ok(command)
}

/// The limit for the command's processes. It is an eighth less than the user's limit, so that
/// git-frites and the user's shell can still start processes. `None` if the user has no limit.
fn most_processes() -> Option<u64> {
    let most = rustix::process::getrlimit(Resource::Nproc).current?;
    Some(most - most / 8)
}

/// An eighth of the user's limit for a resource that the system counts for all worlds of the user
/// together (user_namespaces(7)). So a command that takes its whole share leaves enough for the
/// other worlds. For example, programs cannot start a timer if no queued signal is left
/// (timer_create(2)). `None` if there is no limit.
fn share_of(resource: Resource) -> Option<u64> {
    Some(rustix::process::getrlimit(resource).current? / 8)
}

/// Mounts a new `/proc`, which shows only the processes of this PID namespace. The ids of new
/// processes begin in the part `process_ids` of all ids; see [`WorldSpec::process_ids`].
fn mount_proc(process_ids: Option<u8>) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("proc", "/proc", "proc", flags, None)?;
    if let Some(part) = process_ids {
        // Without CONFIG_CHECKPOINT_RESTORE, a kernel cannot do this, and begins with 2.
        let _ = begin_process_ids(part);
    }
    if !geteuid().is_root() {
        return Ok(());
    }
    for name in OF_THE_MACHINE {
        let path = Path::new("/proc").join(name);
        if path.exists() {
            rustix::mount::mount_bind(&path, &path)?;
            rustix::mount::mount_change(&path, MountPropagationFlags::PRIVATE)?;
            rustix::mount::mount_remount(&path, flags | MountFlags::BIND | MountFlags::RDONLY, "")?;
        }
    }
    Ok(())
}

/// Sets the id of the last process. The next process gets the following id (pid_namespaces(7)).
fn begin_process_ids(part: u8) -> io::Result<()> {
    let most = fs::read_to_string("/proc/sys/kernel/pid_max")?;
    let most: u32 = most.trim().parse().map_err(io::Error::other)?;
    let last = FIRST_IDS + most.saturating_sub(FIRST_IDS) / 256 * u32::from(part);
    fs::write("/proc/sys/kernel/ns_last_pid", last.to_string())
}

/// Gives up all capabilities that the command must not have. Also removes them from the bounding
/// set, so that no program can get them back.
fn drop_capabilities() -> io::Result<()> {
    let kept = capabilities_of_commands();
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if kept.contains(capability) {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // The system has no capabilities from this number on.
            Err(rustix::io::Errno::INVAL) => break,
            other => other?,
        }
    }
    give_up_capabilities()?;
    // The command has the same user id as this process. If this process were dumpable, the command
    // could trace it and forge the exit code.
    Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Starts the command, and reports how it ended. Returns when no process is left in the namespace.
fn start_and_reap(mut command: Command, status: &File) {
    let child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let line = not_started_line(&[command.get_program().to_owned()], &describe(&e));
            let _ = io::stderr().write_all(line.as_bytes());
            return WorldMessage::not_started(&e).send(status);
        }
    };
    let pid = Pid::from_child(&child);
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((ended, how))) if ended == pid => WorldMessage::exited(how).send(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// The index of the loopback device, which is the first device in every network namespace.
const LOOPBACK: i32 = 1;

/// `RTM_NEWLINK` (rtnetlink(7)).
const NEW_LINK: u16 = 16;

/// `NLM_F_REQUEST | NLM_F_ACK` (netlink(7)).
const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;

/// `IFF_UP` (netdevice(7)).
const UP: u32 = 1;

/// The length of the request in bytes: `struct nlmsghdr` and `struct ifinfomsg`.
const LENGTH: u32 = 16 + 16;

/// Brings the loopback device up. Needs `CAP_NET_ADMIN` in the user namespace that owns the network
/// namespace.
fn bring_up_loopback() -> io::Result<()> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // NETLINK_ROUTE is protocol 0.
        None,
    )?;
    rustix::net::connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    rustix::net::send(&socket, &request(), SendFlags::empty())?;
    let mut answer = [0; 256];
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    // `struct nlmsgerr` follows the header; its first field is 0 or a negative error number.
    let field = if length >= 20 { answer.get(16..20) } else { None };
    let error = field.and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match error {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The request that sets the flag `IFF_UP`: `struct nlmsghdr` and `struct ifinfomsg`.
fn request() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(NEW_LINK.to_ne_bytes());
    bytes.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    // Sequence number and port.
    bytes.extend([0; 8]);
    // Family, padding and device type.
    bytes.extend([0; 4]);
    bytes.extend(LOOPBACK.to_ne_bytes());
    // The flags, and the mask of the flags to change.
    bytes.extend(UP.to_ne_bytes());
    bytes.extend(UP.to_ne_bytes());
    bytes
}
