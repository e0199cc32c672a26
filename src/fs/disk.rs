//! The disk: waiting until files are on it, and finding out whether files are on a disk at all.
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::error::{Error, IoContext, Result};

/// The most files that are synced at the same time: a journal takes them all with one commit.
const SYNCED_AT_ONCE: usize = 16;

/// Waits until these files and directories are on the disk. A missing file is not waited for.
pub fn sync(paths: &[impl AsRef<Path> + Sync]) -> Result<()> {
    // On a file system in memory, threads would only cost time.
    if paths.len() < 2 || is_in_memory(paths[0].as_ref()) {
        return paths.iter().try_for_each(|path| sync_one(path.as_ref()));
    }
    let share = paths.len().div_ceil(SYNCED_AT_ONCE).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = paths
            .chunks(share)
            .map(|chunk| {
                scope.spawn(move || chunk.iter().try_for_each(|path| sync_one(path.as_ref())))
            })
            .collect();
        // A panic is a bug of git-frites, and the file may not be on the disk: the caller must not use it.
        let ended = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Error::internal("a thread that syncs panicked")))
        });
        ended.collect()
    })
}

fn sync_one(path: &Path) -> Result<()> {
    // An attempt may have put a FIFO there.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let sync = || {
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let kind = file.metadata()?.file_type();
        if kind.is_file() || kind.is_dir() { file.sync_all() } else { Ok(()) }
    };
    match sync() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        synced => synced.context(|| format!("could not write '{}'", path.display())),
    }
}

/// The numbers of file systems on disks of this machine whose change times are those of the kernel's
/// own clock: ext2 to ext4, XFS, Btrfs, F2FS.
const LOCAL: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

/// The number of a file system in memory.
const TMPFS: u64 = 0x0102_1994;

/// True if a file is on a file system in memory, for which there is no disk to wait.
pub fn is_in_memory(path: &Path) -> bool {
    cfg!(target_os = "linux") && rustix::fs::statfs(path).is_ok_and(|found| number(&found) == TMPFS)
}

/// True if only this machine's kernel sets change times on the file system of this file: neither another
/// machine nor a program does.
pub fn has_times_of_kernel(file: impl AsFd) -> bool {
    let number = rustix::fs::fstatfs(file).map(|found| number(&found));
    cfg!(target_os = "linux")
        && number.is_ok_and(|number| number == TMPFS || LOCAL.contains(&number))
}

/// The number of a file system, of 32 bits on every machine.
fn number(found: &rustix::fs::StatFs) -> u64 {
    u64::from(found.f_type as u32)
}
