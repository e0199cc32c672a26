//! The ids of a world: each id stands for itself, so that files belong to the same users as
//! outside.
//!
//! A user can map only their own id. Test suites that run as root change owners, so for root a process
//! outside of the new namespace maps every id of the old namespace.
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};

use rustix::process::{getegid, geteuid};

use crate::process;
use crate::process::world_spec::MAP_VERB;

/// The process that maps all ids, which is started and waits; `None` if this user may map only one id.
pub(super) struct IdentityMap {
    helper: Option<Child>,
    /// The ids of the user and the group. In the new namespace, the system does not tell them before they
    /// are mapped.
    user: u32,
    group: u32,
}

impl IdentityMap {
    /// Prepares the map while this process is still in the old namespace.
    pub(super) fn prepare() -> io::Result<IdentityMap> {
        let user = geteuid().as_raw();
        let group = getegid().as_raw();
        if user != 0 {
            return Ok(IdentityMap { helper: None, user, group });
        }
        let id = std::process::id().to_string();
        let helper = Command::new(process::myself())
            .args([MAP_VERB, &id])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(IdentityMap { helper: Some(helper), user, group })
    }

    /// Maps the ids of this process, which is in the new namespace by now.
    pub(super) fn write(self) -> io::Result<()> {
        let IdentityMap { helper, user, group } = self;
        if let Some(mut helper) = helper {
            if let Some(mut pipe) = helper.stdin.take() {
                pipe.write_all(b"\n")?;
            }
            if helper.wait()?.success() {
                return Ok(());
            }
        }
        // A process that maps its own group must give up changing groups.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
    }
}

/// The main function of the process that maps all ids: waits for a byte, and then writes both maps of the
/// process that `arguments` names.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let mut byte = [0];
    let [process] = arguments else { return ExitCode::from(2) };
    if io::stdin().read_exact(&mut byte).is_err() {
        return ExitCode::FAILURE;
    }
    let process = process.to_string_lossy();
    let written = ["uid_map", "gid_map"].into_iter().try_for_each(|name| {
        let own = fs::read_to_string(format!("/proc/self/{name}"))?;
        fs::write(format!("/proc/{process}/{name}"), to_itself(&own))
    });
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A map of the ids that this map has, in which each stands for itself.
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
