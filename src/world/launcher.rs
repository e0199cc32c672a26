//! The launcher, the process that makes a world. It unshares namespaces, maps ids, makes the
//! mounts, and starts the world's first process.
//!
//! The launcher is a separate process because only a process with one thread can unshare a user
//! namespace. It is not the world's first process, because a process that unshares a PID namespace
//! stays outside. Only its children are in the new namespace.
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use nix::sched::CloneFlags;
use rustix::io::FdFlags;
use rustix::process::{Signal, getegid, geteuid};
use rustix::thread::CapabilitySet;

use crate::error::IfExists;
use crate::process;
use crate::process::supervisor::outlive_signals;
use crate::process::world_spec::{INIT_VERB, WorldSpec};
use crate::world::confining::{Refusal, Step, described, open_status};
use crate::world::mounts;

/// The capabilities that the first process needs until it starts the command. They are put into the
/// ambient set. Otherwise the first process would lose them when it is executed, unless the user is
/// root.
const FOR_INIT: [CapabilitySet; 4] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::SYS_RESOURCE,
    CapabilitySet::SETPCAP,
];

/// A path that exists if the kernel supports cgroup namespaces.
const CGROUP_NAMESPACE: &str = "/proc/self/ns/cgroup";

/// The main function of the launcher. `arguments` are the arguments after `LAUNCHER_VERB`.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let [status, spec, command @ ..] = arguments else { return ExitCode::from(2) };
    let Ok(status) = open_status(status) else { return ExitCode::from(2) };
    match launch(&status, spec, command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            refusal.message().send(&status);
            ExitCode::FAILURE
        }
    }
}

fn launch(status: &File, spec: &OsString, command: &[OsString]) -> Result<(), Refusal> {
    let spec: WorldSpec = described(spec)?;
    // If a signal asks all processes to end, the supervisor ends the tree and gives the command a
    // grace period. So the launcher must survive the signal.
    let _signals = outlive_signals().step("handling signals")?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .step("asking to end with the supervisor")?;
    let limits = limits_of_user().step("reading the limits of the user")?;
    let map = IdentityMap::prepare().step("preparing the map of ids")?;
    let mut namespaces = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC;
    if !spec.network {
        namespaces |= CloneFlags::CLONE_NEWNET;
    }
    nix::sched::unshare(namespaces).step("making namespaces")?;
    map.write().step("mapping the user's ids")?;
    take_a_quarter(&limits).step("leaving resources to the user's other worlds")?;
    refuse_cgroup_namespaces().step("refusing namespaces of cgroups")?;
    mounts::mount_all(&spec)?;
    keep_capabilities_for_init().step("keeping capabilities")?;
    rustix::io::fcntl_setfd(status, FdFlags::empty()).step("handing over the descriptor")?;
    let number = status.as_raw_fd().to_string();
    let words = spec.words(INIT_VERB, &number).step("writing the description")?;
    let mut init = Command::new(process::myself());
    // The first process must not inherit our working directory. That was opened before the mounts,
    // and shows files that the mounts hide.
    init.args(words).args(command).current_dir(&spec.dir);
    let mut child = init.spawn().step("starting the first process")?;
    child.wait().step("waiting for the first process")?;
    Ok(())
}

/// Forbids cgroup namespaces in the world, and in all user namespaces that are made in it. In its
/// own cgroup namespace, a process could mount the cgroup file system again, writable. Then it
/// could write to `cgroup.kill`, and so kill processes outside of the world that are in the same
/// cgroup.
fn refuse_cgroup_namespaces() -> io::Result<()> {
    match fs::write("/proc/sys/user/max_cgroup_namespaces", "0") {
        Err(e) if e.kind() == io::ErrorKind::NotFound && !Path::new(CGROUP_NAMESPACE).exists() => {
            Ok(())
        }
        other => other,
    }
}

/// The resources that the system counts for each user, such as namespaces and inotify instances
/// (namespaces(7), inotify(7)). Returns the files with the limits in the current user namespace,
/// and the limits.
fn limits_of_user() -> io::Result<Vec<(PathBuf, u64)>> {
    let mut limits = Vec::new();
    // Not every system has such limits.
    for file in fs::read_dir("/proc/sys/user").if_exists()?.into_iter().flatten() {
        let path = file?.path();
        if let Ok(most) = fs::read_to_string(&path)?.trim().parse() {
            limits.push((path, most));
        }
    }
    Ok(limits)
}

/// Gives the new user namespace a quarter of each of these limits. The system also counts the use
/// in a world as use by the user. So a command that takes all would keep other worlds from being
/// made, or make their tests fail.
fn take_a_quarter(limits: &[(PathBuf, u64)]) -> io::Result<()> {
    limits.iter().try_for_each(|(path, most)| fs::write(path, (most / 4).to_string()))
}

fn keep_capabilities_for_init() -> io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    for capability in FOR_INIT {
        sets.inheritable |= capability;
    }
    rustix::thread::set_capabilities(None, sets)?;
    for capability in FOR_INIT {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// Waits for a line, and then writes the maps of users and groups of a process. Each world waits
/// for this. A shell starts in half the time of this program, so this is a script.
const WRITE_MAPS: &str =
    r#"read -r _ && printf %s "$2" >"/proc/$1/uid_map" && printf %s "$3" >"/proc/$1/gid_map""#;

/// The map of ids before it is written. `helper` is the process that maps all ids and waits for an
/// order to do so. It is `None` if this user may map only one id.
struct IdentityMap {
    helper: Option<Child>,
    /// The ids of the user and the group in the old namespace. In the new namespace, the system
    /// tells them only after they are mapped.
    user: u32,
    group: u32,
}

impl IdentityMap {
    /// Prepares the map. Must be called while this process is still in the old namespace.
    fn prepare() -> io::Result<IdentityMap> {
        let user = geteuid().as_raw();
        let group = getegid().as_raw();
        if user != 0 {
            return Ok(IdentityMap { helper: None, user, group });
        }
        let users = to_itself(&fs::read_to_string("/proc/self/uid_map")?);
        let groups = to_itself(&fs::read_to_string("/proc/self/gid_map")?);
        let helper = Command::new("/bin/sh")
            .args(["-c", WRITE_MAPS, "sh", &std::process::id().to_string(), &users, &groups])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(IdentityMap { helper: Some(helper), user, group })
    }

    /// Maps the ids. Must be called when this process is in the new namespace.
    fn write(self) -> io::Result<()> {
        let IdentityMap { helper, user, group } = self;
        if let Some(mut helper) = helper {
            if let Some(mut pipe) = helper.stdin.take() {
                pipe.write_all(b"\n")?;
            }
            if helper.wait()?.success() {
                return Ok(());
            }
        }
        // The system lets a process map its own group only after it has given up `setgroups`.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
    }
}

/// A map that maps each inner id of `map` to itself.
fn to_itself(map: &str) -> String {
    let mut text = String::new();
    for line in map.lines() {
        if let [inside, _, count] = line.split_whitespace().collect::<Vec<_>>()[..] {
            let _ = writeln!(text, "{inside} {inside} {count}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_of_the_old_namespace_stands_for_itself() {
        let map = "         0     100000      65536\n     70000       1000          1\n";
        assert_eq!(to_itself(map), "0 0 65536\n70000 70000 1\n");
    }
}
