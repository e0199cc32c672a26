//! Watches the disk space that a command takes in its world, and notices when that space exceeds the limit.
//!
//! The command's writes go to a directory on an ordinary file system. No limit can be set for a directory
//! without privileges, and a tmpfs would have a limit, but would take memory. So the size of the directory is
//! measured while the command runs.
use std::ffi::OsStr;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::fs::tree;
use crate::process::world_spec::DiskLimit;

/// The shortest pause between two measurements.
const PAUSE: Duration = Duration::from_millis(200);

/// Each pause is this many times as long as the measurement before it, so measuring takes little of the time.
const SHARE: u32 = 20;

/// If fewer bytes than this are free on the disk, a command that has taken more bytes than this is ended,
/// whatever its limit is, because other programs need the disk, too.
const RESERVE: u64 = 256 << 20;

/// The field of a confinement's description that has the limit.
#[derive(Deserialize)]
struct Limited {
    #[serde(default)]
    disk: Option<DiskLimit>,
}

/// The disk limit in the JSON description of a confinement; `None` if the confinement has no disk limit.
pub(super) fn limit_in(description: &OsStr) -> io::Result<Option<DiskLimit>> {
    let limited: Limited = serde_json::from_str(&description.to_string_lossy())?;
    Ok(limited.disk)
}

/// If the command has taken more than its limit, returns the limit. If the disk is nearly full because of the
/// command, returns the space that the command takes. Otherwise returns `None`.
pub(super) fn exceeded(limit: &DiskLimit) -> Option<u64> {
    let taken = tree::disk_usage(&limit.dir).saturating_sub(limit.before);
    if taken > limit.bytes {
        return Some(limit.bytes);
    }
    let is_full = taken > RESERVE && tree::free_space(&limit.dir).is_ok_and(|free| free < RESERVE);
    is_full.then_some(taken)
}

/// Waits until [`exceeded`] returns a number, and returns it. This may take for ever. Begins with a pause,
/// because the space is measured anyway when the command has ended.
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
