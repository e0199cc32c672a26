//! git's housekeeper beside us: `git gc --prune=now` takes objects that nothing refers to, and what we store is
//! referred to a moment later only (`git help gc`, NOTES).
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::error::{Cause, Error, Result};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

impl Repo {
    /// Points a ref at a new commit, and fails if that is not whole: then the ref is as it was.
    ///
    /// A `git gc` that looked for what is referred to before our ref was there may delete our loose objects also
    /// after we have seen them. So what is beyond `known` goes into a pack: one that the housekeeper has not known
    /// from its start it leaves alone, and one that begins later sees the ref.
    pub fn set_ref_whole(
        &self,
        full: &RefName,
        new: &Oid,
        old: Option<&Oid>,
        known: &Oid,
        why: &str,
    ) -> Result<()> {
        self.update_ref(full, Some(new), old, why)?;
        let whole = self.pack_for_housekeeper(new, known).and_then(|()| {
            self.git()
                .call("rev-list")
                .args(["--objects", "--quiet", new.as_str(), "--not", known.as_str()])
                .run()
        });
        whole.or_else(|lost| {
            self.update_ref(full, old, Some(new), &format!("{why} undone: objects were pruned"))?;
            // Its log still names what is pruned, which git takes for damage.
            let _ = fs::remove_file(self.common_dir().join("logs").join(full.as_str()));
            Err(lost.context("objects vanished while they were stored"))
        })
    }

    fn pack_for_housekeeper(&self, new: &Oid, known: &Oid) -> Result<()> {
        if !self.is_collecting_garbage() {
            return Ok(());
        }
        let pack = self.common_dir().join("objects/pack/pack");
        let call = self.git().call("pack-objects").args(["--quiet", "--revs"]).arg(pack);
        call.stdin(format!("{new}\n^{known}\n")).bytes().map(drop)
    }

    /// Does `work` again, after the collection, if it failed for a cause that git's garbage
    /// collection may have: it deletes objects, and moves refs and objects into packs.
    pub fn beside_housekeeper<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
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

    /// Whether a `git gc` is at work: its process id and host stand in a file while it is.
    fn is_collecting_garbage(&self) -> bool {
        let Ok(text) = fs::read_to_string(self.common_dir().join("gc.pid")) else { return false };
        let pid =
            text.split_whitespace().next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        // Somebody else's process is one, too.
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
    fn tries(cause: Cause) -> u32 {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let made = duct::cmd!("git", "init", "-q", directory.path()).run();
        made.expect("git is installed");
        let repo = Repo::discover(directory.path()).expect("a repository");
        let running = repo.common_dir().join("gc.pid");
        fs::write(&running, format!("{} here\n", std::process::id())).expect("a file");
        let mut tries = 0;
        let ended = repo.beside_housekeeper(|| {
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
        assert_eq!(tries(Cause::Damaged), 2);
    }

    #[test]
    fn full_disk_or_interrupt_causes_no_other_try() {
        assert_eq!((tries(Cause::StorageFull), tries(Cause::Interrupted)), (1, 1));
    }
}
