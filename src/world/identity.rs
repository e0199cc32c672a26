//! Maps the user and group ids of a world. Each id is mapped to itself, so that files belong to the same
//! users as outside.
//!
//! A user can map only their own id. But test suites that run as root change the owners of files to other
//! ids. So if the user is root, a process outside of the new namespace maps every id of the old namespace.
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use rustix::process::{getegid, geteuid};

/// Waits for a line, and then writes the maps of users and groups of a process. This is a script because a
/// shell starts in half the time of this program, and each world waits for it.
const WRITE_MAPS: &str =
    r#"read -r _ && printf %s "$2" >"/proc/$1/uid_map" && printf %s "$3" >"/proc/$1/gid_map""#;

/// The map of ids before it is written. `helper` is the process that maps all ids and waits for an order to
/// do so; it is `None` if this user may map only one id.
pub(super) struct IdentityMap {
    helper: Option<Child>,
    /// The ids of the user and the group in the old namespace. In the new namespace the system tells them
    /// only after they are mapped.
    user: u32,
    group: u32,
}

impl IdentityMap {
    /// Prepares the map. Must be called while this process is still in the old namespace.
    pub(super) fn prepare() -> io::Result<IdentityMap> {
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
