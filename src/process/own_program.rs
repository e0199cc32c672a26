//! This program's own file.
use std::path::PathBuf;

/// This program's file, to be started again as another process of ours.
pub fn myself() -> PathBuf {
    let path = std::env::current_exe().unwrap_or_default();
    // If an upgrade replaced the file while it runs, Linux still has the old one under this name.
    if path.is_file() { path } else { PathBuf::from("/proc/self/exe") }
}
