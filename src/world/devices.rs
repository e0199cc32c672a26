//! Makes the `/dev` of a world. It has the device files that every program expects, and no disks or other
//! hardware.
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::MountFlags;

/// The device files that are mounted from the old `/dev`.
const SHARED: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// The links in `/dev`, with their targets.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Mounts a new `/dev`. To mount the old one read-only would not be enough: root could still write to a
/// disk's device file. The shared device files are mounted read-only, so that root cannot change their modes
/// and times.
pub(super) fn mount() -> io::Result<()> {
    let dev = Path::new("/dev");
    let mut shared = Vec::new();
    for name in SHARED {
        // In a container some device files may be missing.
        if let Ok(device) = open_path(&dev.join(name)) {
            shared.push((name, device));
        }
    }
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    rustix::mount::mount("tmpfs", dev, "tmpfs", flags, Some(c"mode=755,size=1M"))?;
    for (name, device) in shared {
        let file = dev.join(name);
        File::create(&file)?;
        rustix::mount::mount_bind(reopened(&device), &file)?;
        rustix::mount::mount_remount(&file, flags | MountFlags::BIND | MountFlags::RDONLY, "")?;
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name))?;
    }
    let [pts, shm] = ["pts", "shm"].map(|name| dev.join(name));
    fs::create_dir(&pts)?;
    let options = Some(c"newinstance,ptmxmode=0666,mode=620");
    rustix::mount::mount("devpts", &pts, "devpts", flags, options)?;
    fs::create_dir(&shm)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    // The size is limited because files in a tmpfs take memory, which nobody measures. By default that could
    // be half of the machine's memory.
    Ok(rustix::mount::mount("tmpfs", &shm, "tmpfs", flags, Some(c"mode=1777,size=25%"))?)
}

/// Opens a file or directory. With [`reopened`], the file can be used later even if something is mounted over
/// its path.
pub(super) fn open_path(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// A path that leads to the file of this descriptor.
pub(super) fn reopened(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
