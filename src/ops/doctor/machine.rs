//! The findings about the machine: git, the cache directory, sealed worlds, reflinks, Landlock,
//! completion, the manual, and agents.
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::error::{Result, describe};
use crate::fs::tree::delete_tree;
use crate::git::version;
use crate::model::checkup::Finding;
use crate::ops::doctor::{agents, completion};
use crate::oracle::pool;
use crate::world::probe;

/// Kernel settings that can deny namespaces to users. Each item has the file of the setting, the
/// value that denies namespaces, and the command that allows them.
const DENYING_SETTINGS: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "sudo sysctl kernel.unprivileged_userns_clone=1",
    ),
    ("/proc/sys/user/max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=10000"),
];

/// The first version of Landlock's ABI that also restricts signals.
const ABI_WITH_SIGNALS: u32 = 6;

/// The findings about the machine.
pub(super) fn findings() -> Result<Vec<Finding>> {
    let mut found = vec![git()];
    let cache = pool::cache_dir();
    match scratch_in(&cache) {
        Ok(room) => {
            found.push(Finding::good("cache", format!("'{}'", cache.display())));
            found.extend(worlds(probe::refusal(room.path())));
            found.push(reflinks("reflinks in the cache", room.path()));
            // `TempDir` cannot delete the unreadable directory that a trial overlay leaves behind.
            let _ = delete_tree(room.path());
        }
        Err(error) => found.push(
            Finding::broken(
                "cache",
                format!("'{}' cannot be used: {}", cache.display(), describe(&error)),
            )
            .advise("set XDG_CACHE_HOME to a directory that you can write to"),
        ),
    }
    found.push(landlock());
    found.push(completion::finding());
    found.push(manual());
    found.extend(agents::findings());
    Ok(found)
}

/// A new temporary directory in `dir`.
pub(super) fn scratch_in(dir: &Path) -> io::Result<TempDir> {
    fs::create_dir_all(dir)?;
    tempfile::Builder::new().prefix(".git-frites-doctor-").tempdir_in(dir)
}

fn git() -> Finding {
    match version::check() {
        Ok(found) => Finding::good("git", found),
        Err(error) => {
            let finding = Finding::broken("git", error.message.clone());
            error.hints.iter().fold(finding, |finding, hint| finding.advise(hint))
        }
    }
}

/// The findings about sealed worlds. `refusal` is the reason why no sealed world can be made;
/// `None` if one can.
fn worlds(refusal: Option<String>) -> Vec<Finding> {
    let Some(reason) = refusal else {
        return vec![
            Finding::good("namespaces", "commands can be judged in sealed worlds"),
            Finding::good("overlay", "a user can mount an overlay"),
        ];
    };
    if reason.contains("overlay") {
        let overlay = Finding::missing("overlay", reason).advise(
            "Linux 5.11 and newer let a user mount an overlay, unless the cache is on an overlay itself",
        );
        return vec![Finding::good("namespaces", "a user can make namespaces"), overlay];
    }
    let mut namespaces = Finding::missing("namespaces", reason);
    for (file, value, command) in DENYING_SETTINGS {
        if fs::read_to_string(file).is_ok_and(|text| text.trim() == value) {
            if file.contains("apparmor")
                && let Some(profile) = profile()
            {
                let profile = profile.display();
                namespaces = namespaces.advise(format!(
                    "an administrator can allow namespaces for git-frites alone: `sudo cp {profile} \
                     /etc/apparmor.d/git-frites && sudo apparmor_parser -r /etc/apparmor.d/git-frites`"
                ));
            }
            namespaces = namespaces
                .advise(format!("an administrator can allow all namespaces: `{command}`"));
        }
    }
    if namespaces.advice.is_empty() {
        namespaces = namespaces
            .advise("a container often forbids namespaces; Landlock is then used in their place");
    }
    vec![namespaces, Finding::missing("overlay", "an overlay cannot be tried without namespaces")]
}

/// The AppArmor profile that was installed together with the program, if any.
fn profile() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let profile = program.parent()?.parent()?.join("share/git-frites/apparmor");
    profile.is_file().then_some(profile)
}

fn landlock() -> Finding {
    match probe::landlock() {
        Ok(version) if version >= ABI_WITH_SIGNALS => {
            Finding::good("Landlock", format!("version {version}"))
        }
        Ok(version) => Finding::missing(
            "Landlock",
            format!("version {version}, with which commands can send signals to all your processes"),
        ),
        Err(reason) => Finding::missing("Landlock", reason).advise(
            "Linux 6.2 or newer is needed; if the kernel's command line has `lsm=`, it must name landlock",
        ),
    }
}

/// The finding that says whether a copy of a file in `dir` can share the file's blocks (a reflink).
pub(super) fn reflinks(what: &str, dir: &Path) -> Finding {
    match pool::share_blocks(dir) {
        Ok(()) => Finding::good(what, "files can share blocks"),
        Err(error) => Finding::missing(what, format!("none: {}", describe(&error)))
            .advise("without them, copies take time and space; btrfs, xfs and APFS have reflinks"),
    }
}

/// The finding that says whether `man` finds the manual of git-frites, which `git frites --help`
/// needs.
fn manual() -> Finding {
    let found = Command::new("man").args(["-w", "git-frites"]).output();
    match found.ok().filter(|found| found.status.success()) {
        Some(found) => {
            let file = String::from_utf8_lossy(&found.stdout).trim_end().to_owned();
            Finding::good("manual", format!("'{file}'"))
        }
        None => Finding::missing("manual", "`man` does not find it, so `git frites --help` fails")
            .advise("read it with `git frites man`; install it with `make install` in a clone of git-frites"),
    }
}
