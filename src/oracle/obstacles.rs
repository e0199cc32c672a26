//! Finds out from a failed command's log whether the confinement kept the command from reading,
//! writing or renaming something.
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::fs::regular;
use crate::fs::tree::{free_space, nearest_real};
use crate::model::outcome::{Obstacle, Outcome};
use crate::model::plain;
use crate::oracle::test_reports::LONGEST_LINE;
use crate::process::protocol::RESERVED_SPACE;
use crate::process::world_spec::Confinement;

/// The words for EXDEV: the C library's text without its first letter, and the name of the error.
/// An overlay answers with this error if it refuses to rename a directory.
const RENAME: [&str; 2] = ["ross-device link", "EXDEV"];

/// The words for EROFS, in lower case. Writing to a path that is read-only in a sealed world fails
/// with this error.
const READ_ONLY: [&str; 2] = ["read-only file system", "erofs"];

/// The words for ENOSPC and EDQUOT, in lower case.
const FULL: [&str; 4] = ["no space left on device", "enospc", "disk quota exceeded", "edquot"];

/// The words for EACCES, in lower case. A write that Landlock refuses fails with this error.
const DENIED: [&str; 3] = ["permission denied", "eacces", "accessdenied"];

/// The words with which the C library, shells and Node.js report a missing file, in lower case.
const NOT_THERE: [&str; 4] = ["no such file", "enoent", "not found", "cannot find"];

/// The path may be in one of this many lines before the words.
const LINES_BEFORE: usize = 5;

/// At most this many paths of a log are looked up.
const MOST_PATHS: usize = 100;

/// Directories of the kernel. The configuration cannot make them writable.
const OF_THE_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The directory below the kernel's directories that has files of users. The configuration can make
/// it writable.
const SHARED_MEMORY: &str = "/dev/shm";

/// The calls that make files in shared memory, and Python's name for one of them. Error messages
/// contain these names instead of the file's path.
const CALLS_ON_SHARED_MEMORY: [&str; 3] = ["shm_open", "sem_open", "SemLock"];

/// True if the log of a failed command says that a disk is full, and the disk of `written`, to
/// which the command writes, is nearly full.
pub(super) fn disk_is_full(log: &Path, written: &Path) -> bool {
    if free_space(written).is_ok_and(|free| free >= RESERVED_SPACE) {
        return false;
    }
    let text = regular::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).to_lowercase();
    FULL.iter().any(|words| text.contains(words))
}

/// The obstacle that the log of a failed command mentions. This is only a guess, because code under
/// test can print the same words.
pub(super) fn in_log(log: &Path, outcome: &Outcome, confinement: &Confinement) -> Option<Obstacle> {
    let text = regular::read(log).unwrap_or_default();
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if let Outcome::CouldNotStart { reason } = outcome {
        text.push_str(reason);
    }
    if let Some(path) = refused_write(&text, confinement) {
        let directory = if path.is_dir() { &path } else { path.parent()? };
        return Some(Obstacle::Write { directory: directory.to_string_lossy().into_owned() });
    }
    if tells_of_a_rename(&text) {
        return Some(Obstacle::Rename);
    }
    let file = hidden_file(&text, confinement)?;
    Some(Obstacle::Hidden { file: file.to_string_lossy().into_owned() })
}

/// The first path that a log calls missing although it exists outside of the confinement.
fn hidden_file(log: &str, confinement: &Confinement) -> Option<PathBuf> {
    let mut paths = lines_of(log)
        .filter(|line| NOT_THERE.iter().any(|words| line.to_lowercase().contains(words)))
        .flat_map(|line| absolute_paths(&plain::line(line)))
        .take(MOST_PATHS);
    paths.find(|path| path.exists() && confinement.hides(&nearest_real(path)))
}

/// The lines of a log, except very long ones. In a very long line, each of many paths could start a
/// search for a quotation mark, which would take too long.
fn lines_of(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter(|line| line.len() <= LONGEST_LINE)
}

/// True if a log mentions a refused rename. An overlay refuses to rename a directory of its lower
/// layers.
pub fn speaks_of_a_rename(log: &Path) -> bool {
    let text = regular::read(log).unwrap_or_default();
    tells_of_a_rename(&String::from_utf8_lossy(&text))
}

fn tells_of_a_rename(text: &str) -> bool {
    RENAME.iter().any(|words| text.contains(words))
}

/// Looks at the paths in messages about refused writes. Returns the first path to which only the
/// confinement keeps the command from writing.
fn refused_write(log: &str, confinement: &Confinement) -> Option<PathBuf> {
    let words: &[&str] = match confinement {
        Confinement::Sealed(_) => &READ_ONLY,
        Confinement::Landlock(_) => &DENIED,
    };
    let mut before: VecDeque<&str> = VecDeque::new();
    let mut left = MOST_PATHS;
    for line in lines_of(log).filter(|line| !line.trim().is_empty()) {
        let small = line.to_lowercase();
        if words.iter().any(|words| small.contains(words)) {
            let lines = [line].into_iter().chain(before.iter().rev().copied());
            let calls = CALLS_ON_SHARED_MEMORY;
            if lines.clone().any(|line| calls.iter().any(|call| line.contains(call)))
                && let Some(path) = withheld(Path::new(SHARED_MEMORY), confinement)
            {
                return Some(path);
            }
            let paths = lines.flat_map(|line| absolute_paths(&plain::line(line)));
            let mut paths = paths.take(left).inspect(|_| left -= 1);
            if let Some(path) = paths.find_map(|path| withheld(&path, confinement)) {
                return Some(path);
            }
        }
        before.push_back(line);
        if before.len() > LINES_BEFORE {
            before.pop_front();
        }
    }
    None
}

/// The path with links resolved, if the user can write to it but the commands cannot. If the path
/// does not exist, its directory is checked. `None` if the user cannot write there either, because
/// then the confinement is not the cause.
fn withheld(path: &Path, confinement: &Confinement) -> Option<PathBuf> {
    let real = nearest_real(path);
    let there = if path.exists() { &real } else { real.parent()? };
    let is_of_the_kernel = OF_THE_KERNEL.iter().any(|place| real.starts_with(place));
    let can_be_opened = !is_of_the_kernel || real.starts_with(SHARED_MEMORY);
    let is_withheld = can_be_opened
        && there.exists()
        && !confinement.lets_write(&real)
        && rustix::fs::access(there, Access::WRITE_OK).is_ok();
    is_withheld.then_some(real)
}

/// The absolute paths in a line. If a quotation mark stands before a path, the path ends at the
/// matching mark. Otherwise, it ends at a character that usually ends a path.
fn absolute_paths(line: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut rest = line;
    let mut before = ' ';
    while let Some(at) = rest.find('/') {
        before = rest[..at].chars().next_back().unwrap_or(before);
        let text = &rest[at..];
        let begins = before.is_whitespace() || "'\"`‘“([=:".contains(before);
        if !begins || text.starts_with("//") {
            let skipped = text.find(|c| c != '/').unwrap_or(text.len());
            (rest, before) = (&text[skipped..], '/');
            continue;
        }
        let quote = match before {
            '\'' | '"' | '`' => Some(before),
            '‘' => Some('’'),
            '“' => Some('”'),
            _ => None,
        };
        let quoted = quote.and_then(|quote| text.find(quote));
        let end =
            quoted.or_else(|| text.find(|c: char| c.is_whitespace() || "'\"`’”:,;)]".contains(c)));
        let (path, after) = text.split_at(end.unwrap_or(text.len()));
        found.push(PathBuf::from(path));
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::world_spec::{Mount, Restriction, WorldSpec};

    #[test]
    fn paths_are_found_in_the_messages_of_many_tools() {
        for (line, expected) in [
            ("touch: cannot touch '/opt/a b/x': Read-only file system", vec!["/opt/a b/x"]),
            ("touch: cannot touch ‘/opt/x’: Read-only file system", vec!["/opt/x"]),
            ("sh: 1: cannot create /opt/x: Read-only file system", vec!["/opt/x"]),
            ("OSError: [Errno 30] Read-only file system: '/opt/x'", vec!["/opt/x"]),
            ("open /opt/x: read-only file system", vec!["/opt/x"]),
            ("java.io.FileNotFoundException: /opt/x (Permission denied)", vec!["/opt/x"]),
            ("npm error EROFS: read-only file system, mkdir '/opt/x'", vec!["/opt/x"]),
            ("could not open --out=/opt/x, in src/lib/x", vec!["/opt/x"]),
            ("get https://example.com/x: /a and (/b)", vec!["/a", "/b"]),
            ("no path / at all", vec!["/"]),
        ] {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(absolute_paths(line), expected, "{line}");
        }
    }

    #[test]
    fn only_a_write_that_the_user_could_do_outside_was_refused_by_the_confinement() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = nearest_real(dir.path());
        for name in ["open", "closed"] {
            std::fs::create_dir(root.join(name)).expect("made");
        }
        let open = root.join("open");
        let spec = WorldSpec {
            mounts: vec![Mount::Writable { at: open.clone() }],
            ..WorldSpec::default()
        };
        let sealed = Confinement::Sealed(spec);
        let restriction = Restriction { writable: vec![open], ..Restriction::default() };
        let landlock = Confinement::Landlock(restriction);
        let closed = root.join("closed");
        let read_only = |path: &Path| format!("touch: '{}': Read-only file system", path.display());
        let denied = |path: &Path| format!("touch: '{}': Permission denied", path.display());
        let cargo = format!(
            "error: failed to open: `{}/x`\n\nCaused by:\n  Read-only file system (os error 30)\n",
            closed.display()
        );
        let new = closed.join("new");
        let python =
            "File \"/usr/lib/python3/multiprocessing/synchronize.py\", line 57, in __init__
            sl = self._semlock = _multiprocessing.SemLock(
            PermissionError: [Errno 13] Permission denied";
        let shared = Path::new(SHARED_MEMORY).is_dir().then(|| PathBuf::from(SHARED_MEMORY));
        for (log, confinement, expected) in [
            (read_only(&new), &sealed, Some(&new)),
            (read_only(&closed), &sealed, Some(&closed)),
            (cargo, &sealed, Some(&closed.join("x"))),
            (denied(&new), &landlock, Some(&new)),
            (python.to_owned(), &landlock, shared.as_ref()),
            // In a sealed world, EACCES comes from file permissions, which would refuse the write
            // outside as well.
            (denied(&new), &sealed, None),
            (read_only(&new), &landlock, None),
            (read_only(&root.join("open/new")), &sealed, None),
            (denied(&root.join("open/new")), &landlock, None),
            (read_only(&root.join("missing/new")), &sealed, None),
            (read_only(Path::new("/proc/sys/kernel/x")), &sealed, None),
            ("Read-only file system".to_owned(), &sealed, None),
            (format!("{}\nRead-only file system", "‘/x".repeat(50_000)), &sealed, None),
            (
                read_only(&root.join("open/new")).repeat(MOST_PATHS) + &read_only(&new),
                &sealed,
                None,
            ),
        ] {
            assert_eq!(refused_write(&log, confinement).as_ref(), expected, "{log}");
        }
    }
}
