//! Makes the mounts of a world in the new mount namespace of this process.
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use rustix::fs::{FileType, Mode, OFlags, StatVfsMountFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use crate::error::IfExists;
use crate::process::world_spec::{Mount, WorldSpec};
use crate::world::confining::{Refusal, Step};

/// Makes the mounts of `spec`, outer directories first. Then makes everything else read-only.
///
/// All sources of mounts are opened before the first mount is made. After that, their paths may
/// lead to something else.
pub(super) fn mount_all(spec: &WorldSpec) -> Result<(), Refusal> {
    // Without this, our mounts could also appear outside of the world.
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", flags).step("separating the mounts")?;
    let before = existing_mounts().step("reading the mounts")?;
    let mut sources = Sources::default();
    for mount in &spec.mounts {
        match sources.open_all(mount) {
            Err(_) if is_optional(mount) => {}
            other => other.step("opening the layers")?,
        }
    }
    sources.wrap_lowest_layers(spec).step("wrapping a layer")?;
    let mut mounts: Vec<&Mount> = spec.mounts.iter().collect();
    mounts.sort_by_key(|mount| mount.at().components().count());
    let mut done: Vec<&Path> = Vec::new();
    for mount in mounts {
        match make(mount, spec, &sources, &done) {
            Ok(()) => done.push(mount.at()),
            Err(_) if is_optional(mount) => {
                if show_lowest(mount, &sources, &done).is_ok() {
                    done.push(mount.at());
                }
            }
            Err(refusal) => return Err(refusal),
        }
    }
    for (path, flags) in before {
        let is_covered = done.iter().any(|at| path.starts_with(at) && path != Path::new("/"));
        if !is_covered && path != Path::new("/proc") {
            make_read_only(&path, flags).step("making the file system read-only")?;
        }
    }
    Ok(())
}

/// The opened directories and files that will be mounted.
#[derive(Default)]
struct Sources {
    opened: BTreeMap<PathBuf, OwnedFd>,
    /// Read-only overlays over directories, by the path of the directory. If such a directory is a
    /// lower layer of a mount, its overlay becomes the layer.
    wrapped: BTreeMap<PathBuf, OwnedFd>,
}

impl Sources {
    fn open_all(&mut self, mount: &Mount) -> io::Result<()> {
        match mount {
            Mount::Overlay { lower, upper, work, .. } => {
                lower.iter().chain([upper, work]).try_for_each(|path| self.open(path))
            }
            Mount::Directory { from, .. }
            | Mount::ReadOnly { from, .. }
            | Mount::Writable { at: from } => self.open(from),
            Mount::Hidden { .. } | Mount::Devices => Ok(()),
        }
    }

    fn open(&mut self, path: &Path) -> io::Result<()> {
        if !self.opened.contains_key(path) {
            let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
            self.opened.insert(path.to_owned(), open_path(path).map_err(named)?);
        }
        Ok(())
    }

    /// If the lowest layer of an overlay contains another of its lower layers, wraps the lowest
    /// layer in a read-only overlay. It is mounted at [`WorldSpec::wrapping_point`]. This happens
    /// before the mounts of `spec` are made, because they may cover the wrapping point.
    fn wrap_lowest_layers(&mut self, spec: &WorldSpec) -> io::Result<()> {
        for mount in &spec.mounts {
            let Mount::Overlay { lower, .. } = mount else { continue };
            let Some(base) = lowest_with_another_inside(lower) else { continue };
            // An overlay without an upper layer must have two lower layers. The second one is an
            // empty directory on a new tmpfs. On the same file system, the directory could lie
            // inside the first layer.
            let at = &spec.wrapping_point;
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            rustix::mount::mount("tmpfs", at, "tmpfs", flags, Some(c"mode=755,size=4k"))?;
            let empty = open_path(at)?;
            let options = overlay_options([self.name(base), reopened(&empty)].into_iter());
            mount_overlay(at, &options)?;
            self.wrapped.insert(base.clone(), open_path(at)?);
        }
        Ok(())
    }

    /// The name of an opened file or directory for mount options. It has no characters that must be
    /// escaped there.
    fn name(&self, path: &Path) -> String {
        self.opened.get(path).map(reopened).unwrap_or_default()
    }

    /// False if the opened path is not a directory.
    fn is_directory(&self, path: &Path) -> bool {
        let kind = self.opened.get(path).and_then(|file| rustix::fs::fstat(file).ok());
        kind.is_none_or(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    /// The name of a lower layer for mount options. If an overlay is used in its place, the name of
    /// the overlay.
    fn lower_name(&self, path: &Path) -> String {
        self.wrapped.get(path).map_or_else(|| self.name(path), reopened)
    }
}

fn make(mount: &Mount, spec: &WorldSpec, sources: &Sources, done: &[&Path]) -> Result<(), Refusal> {
    let at = mount.at();
    let exists = fs::symlink_metadata(at).is_ok();
    match mount {
        Mount::Hidden { .. } if exists => hide(at, &shown_in(at, spec)).step("hiding paths"),
        Mount::Hidden { .. } => Ok(()),
        Mount::Devices => mount_devices().step("making /dev"),
        Mount::Overlay { lower, upper, work, .. } => {
            make_mount_point(at, true, done).step("making mount points")?;
            let options = overlay_options(lower.iter().map(|path| sources.lower_name(path)));
            let upper = sources.name(upper);
            let work = sources.name(work);
            forget_volatile(Path::new(&work)).step("mounting an overlay")?;
            // `volatile` may be used because everything in the upper layer is thrown away or is a
            // copy. Otherwise the end of each world would wait until the whole file system is on
            // the disk.
            let options = format!("{options},upperdir={upper},workdir={work},volatile");
            mount_overlay(at, &options).step("mounting an overlay")?;
            let opened = forget_volatile(Path::new(&work)).and_then(|()| open_work(&work));
            opened.and_then(|()| require_writable(at)).step("mounting an overlay")
        }
        Mount::Directory { from, .. } | Mount::Writable { at: from } => {
            make_mount_point(at, sources.is_directory(from), done).step("making mount points")?;
            rustix::mount::mount_bind_recursive(sources.name(from), at).step("mounting directories")
        }
        Mount::ReadOnly { from, .. } => {
            show_read_only(from, at, sources, done).step("mounting directories read-only")
        }
    }
}

fn is_optional(mount: &Mount) -> bool {
    matches!(mount, Mount::Overlay { is_optional: true, .. })
}

/// Mounts the lowest layer of an overlay read-only at the overlay's mount point. Called if the
/// system refused the overlay.
fn show_lowest(mount: &Mount, sources: &Sources, done: &[&Path]) -> io::Result<()> {
    let Mount::Overlay { at, lower, .. } = mount else { return Ok(()) };
    let lowest = lower.last().ok_or(io::ErrorKind::NotFound)?;
    show_read_only(lowest, at, sources, done)
}

fn show_read_only(from: &Path, at: &Path, sources: &Sources, done: &[&Path]) -> io::Result<()> {
    make_mount_point(at, sources.is_directory(from), done)?;
    rustix::mount::mount_bind_recursive(sources.name(from), at)?;
    make_all_read_only(at)
}

/// Makes a mount point (a directory or a file) if it does not exist. Fails if it would not lie
/// below one of our mounts, because nothing may be made outside of the world.
fn make_mount_point(at: &Path, is_directory: bool, done: &[&Path]) -> io::Result<()> {
    if at.exists() {
        return Ok(());
    }
    if !done.iter().any(|mounted| at.starts_with(mounted)) {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("{}", at.display())));
    }
    if is_directory {
        return fs::create_dir_all(at);
    }
    at.parent().map_or(Ok(()), fs::create_dir_all)?;
    File::create_new(at).map(drop)
}

/// The lowest layer, if it contains one of the layers above it. The system refuses an overlay with
/// such layers (ELOOP).
fn lowest_with_another_inside(lower: &[PathBuf]) -> Option<&PathBuf> {
    let (base, others) = lower.split_last()?;
    others.iter().any(|other| other.starts_with(base)).then_some(base)
}

fn overlay_options(lower: impl Iterator<Item = String>) -> String {
    // Without `userxattr`, directories of a lower layer cannot be removed (EIO).
    format!("userxattr,lowerdir={}", lower.collect::<Vec<_>>().join(":"))
}

fn mount_overlay(at: &Path, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(rustix::mount::mount("overlay", at, "overlay", flags, Some(options.as_c_str()))?)
}

/// Removes the mark of a volatile mount, so that overlayfs accepts the layer again
/// (filesystems/overlayfs, "Volatile mount"). The mark warns that files of the layer may be
/// incomplete after a loss of power. That does not matter here, because these files are thrown away
/// or are copies.
fn forget_volatile(work: &Path) -> io::Result<()> {
    fs::remove_dir_all(work.join("work/incompat")).if_exists().map(drop)
}

/// Changes the mode of the directory `work` that the kernel makes in the overlay's work directory.
/// The kernel gives it the mode 0, so this user could not remove it later. The kernel itself
/// ignores the mode. If the upper layer belongs to another user, the directory does not exist.
fn open_work(work: &str) -> io::Result<()> {
    let mode = fs::Permissions::from_mode(0o700);
    fs::set_permissions(format!("{work}/work"), mode).if_exists().map(drop)
}

/// Unmounts an overlay that is read-only, and fails. If this user does not own the upper layer, the
/// system mounts the overlay read-only without an error.
fn require_writable(at: &Path) -> io::Result<()> {
    let stat = rustix::fs::statvfs(at)?;
    if stat.f_flag.contains(StatVfsMountFlags::RDONLY) {
        rustix::mount::unmount(at, UnmountFlags::DETACH)?;
        return Err(io::ErrorKind::ReadOnlyFilesystem.into());
    }
    Ok(())
}

/// The existing directories that other mounts show inside the directory `hidden`.
fn shown_in<'a>(hidden: &Path, spec: &'a WorldSpec) -> Vec<&'a Path> {
    let shown = spec.mounts.iter().filter(|mount| !matches!(mount, Mount::Hidden { .. }));
    let inside = shown.map(Mount::at).filter(|at| at.starts_with(hidden) && *at != hidden);
    inside.filter(|at| at.is_dir()).collect()
}

/// Covers a directory by one that has only these mount points. Covers anything else by `/dev/null`.
fn hide(at: &Path, mount_points: &[&Path]) -> io::Result<()> {
    if !fs::metadata(at).is_ok_and(|meta| meta.is_dir()) {
        return Ok(rustix::mount::mount_bind("/dev/null", at)?);
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", at, "tmpfs", flags, Some(c"mode=755,size=4k"))?;
    mount_points.iter().try_for_each(fs::create_dir_all)?;
    make_read_only(at, flags)
}

/// The mounts of this namespace, with the flags that a remount must repeat.
fn existing_mounts() -> io::Result<Vec<(PathBuf, MountFlags)>> {
    let text = fs::read("/proc/self/mountinfo")?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(parse_mount).collect())
}

/// Parses one line of mountinfo (proc_pid_mountinfo(5)). The fifth field is the mount point. The
/// sixth field has the options of this mount.
fn parse_mount(line: &[u8]) -> Option<(PathBuf, MountFlags)> {
    let mut fields = line.split(|byte| *byte == b' ');
    let path = unescape(fields.nth(4)?);
    let options = std::str::from_utf8(fields.next()?).ok()?;
    let mut flags = MountFlags::empty();
    for option in options.split(',') {
        flags |= match option {
            "nosuid" => MountFlags::NOSUID,
            "nodev" => MountFlags::NODEV,
            "noexec" => MountFlags::NOEXEC,
            "noatime" => MountFlags::NOATIME,
            "nodiratime" => MountFlags::NODIRATIME,
            "relatime" => MountFlags::RELATIME,
            _ => MountFlags::empty(),
        };
    }
    Some((PathBuf::from(OsStr::from_bytes(&path)), flags))
}

/// The characters that are written in octal in a path of mountinfo. The backslash is decoded last,
/// because the other codes begin with a backslash.
const ESCAPED: [(&str, &str); 4] =
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];

/// Decodes a path in mountinfo.
fn unescape(text: &[u8]) -> Vec<u8> {
    ESCAPED.iter().fold(text.to_owned(), |text, (octal, plain)| text.replace(octal, plain))
}

/// Makes a mount and all mounts below it read-only.
fn make_all_read_only(at: &Path) -> io::Result<()> {
    let below = existing_mounts()?.into_iter().filter(|(path, _)| path.starts_with(at));
    below.into_iter().try_for_each(|(path, flags)| make_read_only(&path, flags))
}

/// Makes one mount read-only. It is no error if the mount is gone, or if another mount covers it.
fn make_read_only(path: &Path, flags: MountFlags) -> io::Result<()> {
    // NODEV is needed because a read-only mount does not prevent writes to device files.
    let flags = flags | MountFlags::BIND | MountFlags::RDONLY | MountFlags::NODEV;
    match rustix::mount::mount_remount(path, flags, "") {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS) => {
            Ok(())
        }
        other => Ok(other?),
    }
}

/// The device files that are mounted from the old `/dev`.
const SHARED: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// The links in `/dev`, with their targets.
const LINKS: &str = "fd=/proc/self/fd stdin=/proc/self/fd/0 stdout=/proc/self/fd/1
    stderr=/proc/self/fd/2 ptmx=pts/ptmx";

/// Mounts a new `/dev`. It would not be enough to mount the old one read-only, because root could
/// still write to a disk's device file. The shared device files are mounted read-only, so that root
/// cannot change their modes and times.
fn mount_devices() -> io::Result<()> {
    let dev = Path::new("/dev");
    // In a container some device files may be missing.
    let shared = SHARED.map(|name| open_path(&dev.join(name)).map(|device| (name, device)));
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    rustix::mount::mount("tmpfs", dev, "tmpfs", flags, Some(c"mode=755,size=1M"))?;
    for (name, device) in shared.into_iter().flatten() {
        let file = dev.join(name);
        File::create(&file)?;
        rustix::mount::mount_bind(reopened(&device), &file)?;
        rustix::mount::mount_remount(&file, flags | MountFlags::BIND | MountFlags::RDONLY, "")?;
    }
    for (name, target) in LINKS.split_whitespace().filter_map(|link| link.split_once('=')) {
        symlink(target, dev.join(name))?;
    }
    let [pts, shm] = ["pts", "shm"].map(|name| dev.join(name));
    fs::create_dir(&pts)?;
    let options = Some(c"newinstance,ptmxmode=0666,mode=620");
    rustix::mount::mount("devpts", &pts, "devpts", flags, options)?;
    fs::create_dir(&shm)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    // Files in a tmpfs take memory that nobody measures, so the size is limited. By default it
    // could be half of the machine's memory.
    Ok(rustix::mount::mount("tmpfs", &shm, "tmpfs", flags, Some(c"mode=1777,size=25%"))?)
}

/// Opens a file or directory. With [`reopened`], it can be used later even if something is mounted
/// over its path.
fn open_path(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// A path that leads to the file of this descriptor.
fn reopened(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_gives_the_path_and_the_flags_to_repeat() {
        let line = b"36 35 98:0 / /mnt/two\\040words\\134x rw,nosuid,nodev,relatime shared:1 - ext4 /dev/x rw,errors=remount-ro";
        let (path, flags) = parse_mount(line).expect("a mount");
        assert_eq!(path, Path::new("/mnt/two words\\x"));
        assert_eq!(flags, MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RELATIME);
        assert!(parse_mount(b"").is_none());
    }

    #[test]
    fn a_lowest_layer_that_contains_another_is_found() {
        let layers = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert!(lowest_with_another_inside(&layers(&["/home/u/.cache/x", "/home/u"])).is_some());
        assert!(lowest_with_another_inside(&layers(&["/cache/x", "/home/u"])).is_none());
        assert!(lowest_with_another_inside(&layers(&["/home/u"])).is_none());
    }
}
