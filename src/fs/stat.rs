//! The times of files on disk.
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// The time at which a file, or its metadata, was last changed. No program can choose it.
pub fn change_time(meta: &Metadata) -> SystemTime {
    let seconds = u64::try_from(meta.ctime()).unwrap_or_default();
    let nanos = u32::try_from(meta.ctime_nsec()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos)
}

/// The size and the mtime of a file, which a copy that keeps times shares with its original.
pub fn size_and_mtime(meta: &Metadata) -> (u64, Option<SystemTime>) {
    (meta.len(), meta.modified().ok())
}
