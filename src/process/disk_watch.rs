//! The limit of the disk space that a command may take in its world.
//!
//! The layer that gets its writes is a directory on an ordinary file system. Without privileges no limit
//! can be set for a directory; a tmpfs has a limit, but takes memory. So the directory is measured while
//! the command runs.
use std::ffi::OsStr;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::fs::tree;
use crate::process::world_spec::DiskLimit;

/// The shortest pause between two measurements.
const PAUSE: Duration = Duration::from_millis(200);

/// Measuring takes at most one part in `SHARE` of the time.
const SHARE: u32 = 20;

/// If less space than this is free, a command that took at least as much is ended, whatever its limit is,
/// because others need the disk, too.
const RESERVE: u64 = 256 << 20;

/// The part of a confinement's description that has the limit.
#[derive(Deserialize)]
struct Limited {
    #[serde(default)]
    disk: Option<DiskLimit>,
}

/// The limit in the description of a confinement.
pub(super) fn limit_in(description: &OsStr) -> io::Result<Option<DiskLimit>> {
    let limited: Limited = serde_json::from_str(&description.to_string_lossy())?;
    Ok(limited.disk)
}

/// The number of bytes that the command has exceeded: its limit or, if the disk is nearly full, the space
/// that it takes. `None` if it has exceeded nothing.
pub(super) fn exceeded(limit: &DiskLimit) -> Option<u64> {
    let taken = tree::disk_usage(&limit.dir).saturating_sub(limit.before);
    if taken > limit.bytes {
        return Some(limit.bytes);
    }
    let is_full = taken > RESERVE && tree::free_space(&limit.dir).is_ok_and(|free| free < RESERVE);
    is_full.then_some(taken)
}

/// Waits until the command exceeds its limit, which may be never. Begins with a pause, because the end of
/// a short command is measured anyway.
pub(super) fn wait(limit: &DiskLimit) -> u64 {
    let mut pause = PAUSE;
    loop {
        thread::sleep(pause);
        let start = Instant::now();
        if let Some(bytes) = exceeded(limit) {
            return bytes;
        }
        pause = PAUSE.max(start.elapsed() * SHARE);
    }
}
