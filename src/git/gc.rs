//! Garbage collection by another git: `git gc --prune=now` deletes objects that no ref reaches, and
//! our refs are written a moment after the objects that they reach (`git help gc`, NOTES).
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::error::{Cause, Error, Result};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

impl Repo {
    /// Points a ref at a new commit. If objects of the commit are missing, fails and leaves the ref
    /// as it was.
    ///
    /// A `git gc` that listed all refs before ours was there may delete our loose objects even
    /// after we have verified them. So the objects beyond `base` go into a pack: a running
    /// collection leaves packs alone that it did not see at its start, and a later one sees the
    /// ref.
    pub fn set_ref_whole(
        &self,
        full: &RefName,
        new: &Oid,
        old: Option<&Oid>,
        base: &Oid,
        why: &str,
    ) -> Result<()> {
        self.update_ref(full, Some(new), old, why)?;
        let whole = self.pack_if_collecting(new, base).and_then(|()| {
            self.git()
                .call("rev-list")
                .args(["--objects", "--quiet", new.as_str(), "--not", base.as_str()])
                .run()
        });
        whole.or_else(|lost| {
            self.update_ref(full, old, Some(new), &format!("{why} undone: objects were pruned"))?;
            // The ref's log still names the pruned commit, which `git fsck` reports as damage.
            let _ = fs::remove_file(self.common_dir().join("logs").join(full.as_str()));
            Err(lost.context("objects vanished while they were stored"))
        })
    }

    /// Packs the objects that `new` has beyond `base`, if git collects garbage now.
    fn pack_if_collecting(&self, new: &Oid, base: &Oid) -> Result<()> {
        if !self.is_collecting_garbage() {
            return Ok(());
        }
        let pack = self.common_dir().join("objects/pack/pack");
        let call = self.git().call("pack-objects").args(["--quiet", "--revs"]).arg(pack);
        call.stdin(format!("{new}\n^{base}\n")).bytes().map(drop)
    }

    /// Repeats `work` after a garbage collection if it failed during one, for a cause that the
    /// collection may have: it deletes objects, and moves refs and objects into packs.
    pub fn retry_during_gc<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        let mut first: Option<Error> = None;
        let mut tries = 0;
        loop {
            let before = self.is_collecting_garbage();
            match work() {
                Err(error)
                    if tries < 30
                        && may_be_caused_by_gc(&error.cause)
                        && (before || self.is_collecting_garbage()) =>
                {
                    tries += 1;
                    first.get_or_insert(error);
                }
                Err(last) => {
                    return Err(match first {
                        Some(first) => last.with_source(first),
                        None => last,
                    });
                }
                done => return done,
            }
            let patience = Instant::now() + Duration::from_secs(2);
            while self.is_collecting_garbage() && Instant::now() < patience {
                thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// True if a `git gc` is running: a file holds its process id and host meanwhile.
    fn is_collecting_garbage(&self) -> bool {
        let Ok(text) = fs::read_to_string(self.common_dir().join("gc.pid")) else { return false };
        let pid =
            text.split_whitespace().next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        // A process of another user counts, too.
        pid.is_none_or(|pid| {
            rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
        })
    }
}

/// True for the causes that git's garbage collection can have. git words the loss of an object in
/// many ways, so a failed git counts, too; a full disk or an interrupt does not.
fn may_be_caused_by_gc(cause: &Cause) -> bool {
    use Cause::*;
    matches!(cause, GitExit | Locked | RefMoved | Damaged | NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of times that work with this error is tried while git collects garbage.
    fn tries(cause: &Cause) -> u32 {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let made = duct::cmd!("git", "init", "-q", directory.path()).run();
        made.expect("git is installed");
        let repo = Repo::discover(directory.path()).expect("a repository");
        let running = repo.common_dir().join("gc.pid");
        fs::write(&running, format!("{} here\n", std::process::id())).expect("a file");
        let mut tries = 0;
        let ended = repo.retry_during_gc(|| {
            tries += 1;
            if tries < 2 {
                return Err(Error::fatal("first").because(cause.clone()));
            }
            let _ = fs::remove_file(&running);
            Err::<(), _>(Error::fatal("last").because(Cause::Other))
        });
        let source =
            std::error::Error::source(&ended.expect_err("it fails")).map(|e| e.to_string());
        assert_eq!(source.as_deref(), (tries == 2).then_some("first"));
        tries
    }

    #[test]
    fn garbage_collection_causes_another_try() {
        assert_eq!(tries(&Cause::Damaged), 2);
    }

    #[test]
    fn full_disk_or_interrupt_causes_no_other_try() {
        assert_eq!((tries(&Cause::StorageFull), tries(&Cause::Interrupted)), (1, 1));
    }
}
