//! Finds the supervised commands inside of which this process runs: their supervisors are ancestors of this
//! process. A command can change its environment variables, but cannot lose its supervisor as an ancestor: a
//! process that loses its parent becomes a child of the supervisor.
use std::path::PathBuf;
use std::sync::OnceLock;

/// The logs of the commands whose supervisors are ancestors of this process, the innermost first;
/// empty on systems without `/proc`.
pub fn surrounding_logs() -> &'static [PathBuf] {
    static LOGS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    LOGS.get_or_init(read)
}

#[cfg(target_os = "linux")]
fn read() -> Vec<PathBuf> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use rustix::process::{Pid, getppid};

    use crate::process::descendants;
    use crate::process::protocol::VERB;

    let mut found = Vec::new();
    let mut next = getppid().map(Pid::as_raw_nonzero).map(i32::from);
    while let Some(id) = next.filter(|id| *id > 0) {
        let words = descendants::read_proc(&format!("{id}/cmdline")).unwrap_or_default();
        let mut words = words.split(|b| *b == 0).skip(1);
        if words.next() == Some(VERB.as_bytes()) {
            found.extend(words.next().map(|log| PathBuf::from(OsStr::from_bytes(log))));
        }
        next = descendants::parent_of(id);
    }
    found
}

#[cfg(not(target_os = "linux"))]
fn read() -> Vec<PathBuf> {
    Vec::new()
}
