//! Waiting until files are on the disk.
use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::error::{Error, IoContext, Result};
use crate::fs::file_system;

/// The most files that are synced at the same time: a journal takes them all with one commit.
const SYNCED_AT_ONCE: usize = 16;

/// Waits until these files and directories are on the disk. One that is gone needs no waiting.
pub fn sync(paths: &[&Path]) -> Result<()> {
    // In memory, threads would only cost time.
    if paths.len() < 2 || file_system::is_in_memory(paths[0]) {
        return paths.iter().try_for_each(|path| sync_one(path));
    }
    let share = paths.len().div_ceil(SYNCED_AT_ONCE).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = paths
            .chunks(share)
            .map(|chunk| scope.spawn(move || chunk.iter().try_for_each(|path| sync_one(path))))
            .collect();
        // A thread that panics is a fault of ours, and no object of it may get a name.
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
