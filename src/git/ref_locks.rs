//! Removes the locks of refs that a killed process has left.
//!
//! git and gix lock a ref by a file beside the ref's file. In most cases they also lock
//! `packed-refs`. If a process is killed while it holds such locks, the lock files stay. Then
//! neither git-frites nor the user's git can change the locked ref, and they can pack or delete no
//! ref at all.
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::error::{Cause, IoContext, Result};
use crate::fs::regular;
use crate::fs::walk::visit_readable;
use crate::git::cli::{Call, Git};
use crate::git::repo::Repo;
use crate::model::refname::RefName;

/// The file in the common git directory that is called "the record" here. A process of ours that
/// changes refs locks this file, and writes the names of the refs into it.
///
/// The file is never removed. A process that waits for the lock of a removed file would get a lock
/// that no other process sees.
pub const CHANGING: &str = "frites-changing-refs";

const HEAD: &str = "HEAD";

/// The directory of the administrative entries of linked worktrees, in the common git directory.
const WORKTREES: &str = "worktrees/";

/// A change makes its locks at most this long after it has written the record.
const LONGEST: Duration = Duration::from_secs(5);

/// The largest number of bytes that are read from the record. An attempt can make the record very
/// long.
const LONGEST_RECORD: u64 = 16 << 20;

/// A lock of at least this age was left by a killed process. git holds a lock only for
/// milliseconds.
pub(super) const ABANDONED: Duration = Duration::from_secs(1);

/// A change of refs that is in the record. When this is dropped, the record is emptied: the locks
/// are released by then.
pub(super) struct RecordedChange {
    file: fs::File,
    /// True if a git was killed and has left its locks. Then the record stays, and the next change
    /// removes the locks.
    is_left: bool,
}

impl RecordedChange {
    /// Runs the git call that changes the refs.
    pub(super) fn run(&mut self, call: Call) -> Result<()> {
        let ended = call.run();
        self.is_left = ended.as_ref().is_err_and(|error| error.cause == Cause::Interrupted);
        ended
    }
}

impl Drop for RecordedChange {
    fn drop(&mut self) {
        if !self.is_left {
            let _ = self.file.set_len(0);
        }
    }
}

impl Repo {
    /// Does the same as [`Repo::record_change`], and also records the HEAD of the checkout of
    /// `git`. If HEAD is on the branch that moves, git locks HEAD, too.
    pub(super) fn record_change_in<'n>(
        &self,
        git: &Git,
        refs: impl IntoIterator<Item = &'n RefName>,
    ) -> Result<RecordedChange> {
        let head = git.git_dir().join(HEAD);
        let head = head.strip_prefix(self.common_dir()).ok().and_then(Path::to_str);
        self.record_names(refs.into_iter().map(|name| name.as_str()).chain(head))
    }

    /// Records that refs are about to be locked. The record is locked until the result is dropped.
    /// Waits until other changes by git-frites are done.
    pub(super) fn record_change<'n>(
        &self,
        refs: impl IntoIterator<Item = &'n RefName>,
    ) -> Result<RecordedChange> {
        self.record_names(refs.into_iter().map(RefName::as_str))
    }

    fn record_names<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<RecordedChange> {
        let path = self.common_dir().join(CHANGING);
        let names: String = names.map(|name| format!("{name}\n")).collect();
        let file = regular::open_own_to_write(&path, true).could_not("write", &path)?;
        file.lock().could_not("write", &path)?;
        let mut change = RecordedChange { file, is_left: false };
        // The process that held the lock until now may have been killed.
        self.remove_recorded_locks(&change.file).could_not("write", &path)?;
        change.file.write_all(names.as_bytes()).could_not("write", &path)?;
        Ok(change)
    }

    /// Removes the locks that a git-frites left when it was killed while it changed refs. Removes a
    /// lock only if all of this is true:
    ///
    /// - The ref is in the record.
    /// - No process holds the lock of the record.
    /// - The lock was made soon after the record was written.
    pub fn heal_recorded_change(&self) -> Result<()> {
        let path = self.common_dir().join(CHANGING);
        if fs::metadata(&path).map_or(0, |meta| meta.len()) == 0 {
            return Ok(());
        }
        let file = regular::open_own_to_write(&path, true).could_not("read", &path)?;
        match file.try_lock() {
            Ok(()) => self.remove_recorded_locks(&file).could_not("read", &path),
            Err(_) => Ok(()),
        }
    }

    fn remove_recorded_locks(&self, record: &fs::File) -> io::Result<()> {
        let meta = record.metadata()?;
        if meta.len() == 0 {
            return Ok(());
        }
        let mut text = Vec::new();
        record.take(LONGEST_RECORD).read_to_end(&mut text)?;
        // git writes the new packed refs into `packed-refs.new` under the lock. While that file
        // exists, no git can pack refs.
        let packed = ["packed-refs.new", "packed-refs.lock"].map(|file| (file.to_owned(), None));
        let refs = recorded_names(&text).map(|name| (format!("{name}.lock"), Some(name)));
        for (file, name) in packed.into_iter().chain(refs) {
            let file = self.common_dir().join(file);
            if is_made_soon_after(&file, meta.modified()?) {
                if let Some(name) = name {
                    // While the lock exists, no other process writes the reflog. An error does not
                    // stop the command.
                    let _ = drop_unfinished_line(&self.common_dir().join(log_of(name)));
                }
                remove_when_old(&file, ABANDONED);
            }
        }
        record.set_len(0)
    }

    /// Removes the lock files that a killed git has left on refs with this prefix. Waits until a
    /// lock is `age` old. A running git holds a lock for milliseconds, or longer while a hook of
    /// the user runs.
    pub fn heal_ref_locks(&self, prefix: &str, age: Duration) {
        let directory = self.common_dir().join(prefix);
        let mut locks = Vec::new();
        visit_readable(&directory, &mut |path, state| {
            if path.ends_with(b".lock") && !state.is_dir() {
                locks.push(directory.join(OsStr::from_bytes(path)));
            }
        });
        locks.iter().for_each(|lock| remove_when_old(lock, age));
    }
}

/// Removes the lock of `packed-refs` that a git left when it was killed in the worktree with this
/// administrative entry. `git commit` takes that lock after it has written the file `earlier` in
/// the entry, so an older lock is not removed. Must be called only when no process works in the
/// worktree any more.
pub(super) fn heal_packed_refs_lock(admin: &Path, earlier: &str) {
    let Some(common_dir) = admin.ancestors().nth(2) else { return };
    let packed = common_dir.join("packed-refs.lock");
    let first = fs::symlink_metadata(admin.join(earlier));
    let first = first.and_then(|meta| meta.modified());
    if first.is_ok_and(|made| is_made_soon_after(&packed, made)) {
        remove_when_old(&packed, ABANDONED);
    }
}

/// Removes the last line of a reflog if it does not end in a line feed. gix writes a line in
/// several pieces. If it is killed in between, the next line would be appended to the unfinished
/// one.
fn drop_unfinished_line(log: &Path) -> io::Result<()> {
    let read = regular::read_own(log)?;
    let whole = read.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole == read.len() {
        return Ok(());
    }
    regular::open_own_to_append(log)?.set_len(whole as u64)
}

/// The names of refs in the record. Other text is left out, because an attempt may have written to
/// the record. An incomplete last line is left out, too, because it could name another ref.
fn recorded_names(text: &[u8]) -> impl Iterator<Item = &str> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let whole = lines.filter_map(|line| std::str::from_utf8(line.strip_suffix(b"\n")?).ok());
    whole.filter(|name| is_below_refs(name) || is_head(name))
}

/// True if this is the full name of a ref, and cannot lead to a file outside of `refs/`.
fn is_below_refs(name: &str) -> bool {
    name.starts_with("refs/") && gix::refs::FullName::try_from(name).is_ok()
}

/// True if this is the path of a checkout's HEAD in the common git directory.
fn is_head(name: &str) -> bool {
    let entry = name.strip_prefix(WORKTREES).and_then(|rest| rest.strip_suffix("/HEAD"));
    name == HEAD || entry.is_some_and(|entry| !entry.contains('/') && entry != "..")
}

/// The path of the reflog of a ref or a HEAD, relative to the common git directory.
fn log_of(name: &str) -> PathBuf {
    match name.strip_suffix(HEAD) {
        Some(git_dir) if is_head(name) => Path::new(git_dir).join("logs").join(HEAD),
        _ => Path::new("logs").join(name),
    }
}

fn is_made_soon_after(lock: &Path, recorded: SystemTime) -> bool {
    let made = fs::symlink_metadata(lock).and_then(|meta| meta.modified());
    let since: io::Result<_> = made.map(|made| made.duration_since(recorded).ok());
    since.is_ok_and(|since| since.is_some_and(|since| since < LONGEST))
}

/// True if a process has this lock file open. Then the lock does not belong to a killed git; a git
/// that filters files may write its lock for a long time.
///
/// False if this cannot be told, or if the lock is complete. git closes a complete lock, and may
/// hold it e.g. while its editor is open.
pub(super) fn is_held(lock: &Path) -> bool {
    let Ok(lock) = lock.canonicalize() else { return false };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut open = processes.flat_map(|process| {
        let descriptors = process.path().join("fd");
        fs::read_dir(descriptors).into_iter().flatten().flatten()
    });
    open.any(|descriptor| fs::read_link(descriptor.path()).is_ok_and(|target| target == lock))
}

/// Waits until a lock file is `age` old, and removes it. Does not remove it if a process holds it,
/// or if another file has taken its place.
pub(super) fn remove_when_old(lock: &Path, age: Duration) {
    let Ok(first) = fs::symlink_metadata(lock) else { return };
    let end = Instant::now() + age;
    // The clock of the file system may differ from ours. So this never waits longer than `age`.
    let is_young = || {
        let elapsed = first.modified().ok().and_then(|modified| modified.elapsed().ok());
        elapsed.is_some_and(|elapsed| elapsed < age)
    };
    let is_there = || fs::symlink_metadata(lock).is_ok_and(|now| now.ino() == first.ino());
    while Instant::now() < end && is_young() && is_there() {
        std::thread::sleep(Duration::from_millis(10));
    }
    if is_there() && !is_held(lock) {
        let _ = fs::remove_file(lock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_of_a_record_that_name_refs_are_names() {
        let text = b"refs/heads/a\n\xff\xfe\nrefs/heads/\xff\n../refs/heads/b\nrefs/../config\n/refs/c\n\nHEAD\n\
            refs/heads/./d\nrefs/frites/1/c1\n\0\0\nworktrees/c1/HEAD\nworktrees/../HEAD\nworktrees/a/b/HEAD\n\
            worktrees/c1/index\nrefs/heads/cut";
        let names: Vec<_> = recorded_names(text).collect();
        let wanted = ["refs/heads/a", "HEAD", "refs/frites/1/c1", "worktrees/c1/HEAD"];
        assert_eq!(names, wanted);
        let logs =
            ["logs/refs/heads/a", "logs/HEAD", "logs/refs/frites/1/c1", "worktrees/c1/logs/HEAD"];
        assert_eq!(wanted.map(log_of), logs.map(PathBuf::from));
    }
}
