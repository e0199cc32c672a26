//! Waits until files are on the disk. Also finds out on what kind of file system a file is.
use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::error::{IfExists, IoContext, Result};
use crate::fs::parallel;

/// The largest number of files that are synced at the same time. A journaling file system writes
/// all of them with one commit.
const SYNCED_AT_ONCE: usize = 16;

/// Waits until these files and directories are on the disk. It is no error if one does not exist.
pub fn sync(paths: &[impl AsRef<Path> + Sync]) -> Result<()> {
    // On a file system in memory there is nothing to wait for, so threads would only cost time.
    if paths.len() < 2 || is_in_memory(paths[0].as_ref()) {
        return paths.iter().try_for_each(|path| sync_one(path.as_ref()));
    }
    let threads = paths.len().min(SYNCED_AT_ONCE);
    parallel::map_at_once(threads, paths, |path| sync_one(path.as_ref())).map(drop)
}

fn sync_one(path: &Path) -> Result<()> {
    // An attempt may have put a FIFO at the path. NONBLOCK keeps this process from waiting for a
    // writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let sync = || -> io::Result<()> {
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let kind = file.metadata()?.file_type();
        if kind.is_file() || kind.is_dir() { file.sync_all() } else { Ok(()) }
    };
    sync().if_exists().map(drop).could_not("write", path)
}

/// The number (`f_type`) of a file system in memory.
const TMPFS: u64 = 0x0102_1994;

/// True if a file is on a file system in memory (tmpfs). Then there is no disk to wait for.
pub fn is_in_memory(path: &Path) -> bool {
    // The integer type of `f_type` differs between platforms, but the number has only 32 bits.
    cfg!(target_os = "linux")
        && rustix::fs::statfs(path).is_ok_and(|found| u64::from(found.f_type as u32) == TMPFS)
}
