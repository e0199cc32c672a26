//! Watches the disk space that a command takes in its world, and notices when that space exceeds the limit.
//!
//! The command's writes go to a directory on an ordinary file system. No limit can be set for a directory
//! without privileges, and a tmpfs would have a limit, but would take memory. So the size of the directory is
//! measured while the command runs.
use std::ffi::OsStr;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fs::tree;
use crate::process::protocol::TooMuch;
use crate::process::world_spec::DiskLimit;

/// The shortest pause between two measurements.
const PAUSE: Duration = Duration::from_millis(200);

/// The pause between two looks at how many files the disk can hold. One takes a microsecond.
const GLANCE: Duration = Duration::from_millis(20);

/// Each pause is this many times as long as the measurement before it, so measuring takes little of the time.
const SHARE: u32 = 20;

/// If fewer bytes than this are free on the disk, a command that has taken more bytes than this is ended,
/// whatever its limit is, because other programs need the disk, too.
const RESERVE: u64 = 256 << 20;

/// If the disk has room for fewer files than this (or than a fifth of all files that it can hold, if that is
/// less), a command that has made at least as many files is ended, too: empty files take no space.
const RESERVED_FILES: u64 = 50_000;

/// The disk limit in the JSON description of a confinement; `None` if the confinement has no disk limit.
pub(super) fn limit_in(description: &OsStr) -> io::Result<Option<DiskLimit>> {
    let mut fields: Value = serde_json::from_str(&description.to_string_lossy())?;
    Ok(serde_json::from_value(fields["disk"].take())?)
}

/// The limit that the command has exceeded or, if the disk is nearly full, the space or the files that it
/// takes. `None` if it has exceeded nothing.
pub(super) fn exceeded(limit: &DiskLimit) -> Option<TooMuch> {
    let [bytes, files] = tree::disk_usage_and_files(&limit.dir);
    let bytes = bytes.saturating_sub(limit.before[0]);
    let files = files.saturating_sub(limit.before[1]);
    if bytes > limit.bytes {
        return Some(TooMuch { bytes: limit.bytes, files: None });
    }
    if bytes > RESERVE && tree::free_space(&limit.dir).is_ok_and(|free| free < RESERVE) {
        return Some(TooMuch { bytes, files: None });
    }
    let is_full = files_are_short(limit).is_some_and(|reserve| files > reserve);
    is_full.then_some(TooMuch { bytes, files: Some(files) })
}

/// The number of files that are kept free on the disk, if fewer can be made there; `None` if there are more.
fn files_are_short(limit: &DiskLimit) -> Option<u64> {
    let disk = rustix::fs::statvfs(&limit.dir).ok()?;
    // File systems that have no limit, such as Btrfs, say 0.
    let reserve = RESERVED_FILES.min(disk.f_files / 5);
    (disk.f_favail < reserve).then_some(reserve)
}

/// Waits until [`exceeded`] returns a size, and returns it. This may take for ever. Begins with a pause, because
/// the space is measured anyway when the command has ended. If the disk gets short of files, measures at once,
/// because a command can make many files in a moment.
pub(super) fn wait(limit: &DiskLimit) -> TooMuch {
    let mut pause = PAUSE;
    loop {
        let begin = Instant::now();
        let was_short = files_are_short(limit).is_some();
        while begin.elapsed() < pause && (was_short || files_are_short(limit).is_none()) {
            thread::sleep(GLANCE);
        }
        let start = Instant::now();
        if let Some(too_much) = exceeded(limit) {
            return too_much;
        }
        pause = PAUSE.max(start.elapsed() * SHARE);
    }
}
