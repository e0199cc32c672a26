//! Keeps our objects while another git does housekeeping. `git gc --prune=now` deletes objects that
//! no ref reaches. `git repack -ad` deletes the packs that have such objects. Both can delete our
//! new objects, because a ref is written a moment after the objects that it reaches (`git help gc`,
//! NOTES).
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Pid;

use crate::error::{Cause, Error, Result};
use crate::fs::regular;
use crate::git::refs::Move;
use crate::git::repo::{PackChanges, Repo};
use crate::git::trees;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// [`Repo::retry_during_gc`] repeats its work at most this many times.
const TRIES: u32 = 30;

/// After this time without a change of the packs, no other git is at work on the packs.
const SETTLED: Duration = Duration::from_secs(10);

/// The file in the git directory in which each process of git-frites notes the time of its last
/// pack. Without this file, the next process would think that another git made the pack, and would
/// pack, too.
pub(super) const PACKED: &str = "frites-packed";

impl PackChanges {
    /// Writes the times to a file for other processes.
    fn keep(&self, file: &Path) -> io::Result<()> {
        regular::create_own(file)?.write_all(&serde_json::to_vec(self)?)
    }

    /// The times that a process has written; `None` if the file is missing or incomplete.
    fn kept(file: &Path) -> Option<PackChanges> {
        serde_json::from_slice(&regular::read_own(file).ok()?).ok()
    }
}

/// A ref that will point to a new commit whose objects must all exist.
pub struct WholeMove<'a> {
    pub name: &'a RefName,
    pub new: &'a Oid,
    /// The value that the ref must have before the move; `None` if it must not exist.
    pub old: Option<&'a Oid>,
    /// Objects that other refs reach before and after the move. They are not checked, nor is
    /// anything that they reach.
    pub known: &'a [&'a Oid],
}

impl Repo {
    /// Points a ref to a new commit. If an object of the commit is missing, fails, and leaves the
    /// ref as it was. Objects that are reachable from `known` are not checked, because other refs
    /// reach them before and after the move.
    ///
    /// A `git gc` or `git repack` may have listed the refs before our ref existed. Then it may
    /// delete our objects even after we have verified them. So while another git may be at work on
    /// objects, the objects that `known` does not reach go into a pack. A running collection does
    /// not delete packs that were made after its start, and a later collection sees the ref.
    pub fn set_ref_whole(
        &self,
        name: &RefName,
        new: &Oid,
        old: Option<&Oid>,
        known: &[&Oid],
        why: &str,
    ) -> Result<()> {
        self.set_refs_whole(&[WholeMove { name, new, old, known }], why)
    }

    /// Does what [`Repo::set_ref_whole`] does for several refs: moves all of them or none.
    pub fn set_refs_whole(&self, moves: &[WholeMove<'_>], why: &str) -> Result<()> {
        let at_once = moves.iter().map(|of| Move { name: of.name, old: of.old, new: of.new });
        self.update_refs(&at_once.collect::<Vec<_>>(), why)?;
        let whole =
            moves.iter().try_for_each(|WholeMove { new, known, .. }| self.keep_whole(new, known));
        let Err(lost) = whole else { return Ok(()) };
        let lost = lost.context("objects vanished while they were stored");
        match self.move_back(moves, &format!("{why} undone: objects were pruned")) {
            Ok(()) => Err(lost),
            Err(error) => Err(lost.with_source(error)),
        }
    }

    /// Moves the refs back, the last ref first. If a ref cannot be moved, goes on, and returns the
    /// first error at the end. Nothing can be stored on top of a damaged commit, so as few refs as
    /// possible may stay on a damaged commit.
    fn move_back(&self, moves: &[WholeMove<'_>], why: &str) -> Result<()> {
        let mut all = Ok(());
        for WholeMove { name, new, old, .. } in moves.iter().rev() {
            let moved = self.update_ref(name, *old, Some(new), why);
            if moved.is_ok() {
                // The reflog still names the lost commit, and `git fsck` would report that as
                // damage.
                let _ = fs::remove_file(self.common_dir().join("logs").join(name.as_str()));
            }
            all = all.and(moved);
        }
        all
    }

    /// Keeps the objects of `new`, a commit to which a ref now points, even if running housekeeping
    /// did not see that ref. Fails if one of the objects is already gone.
    pub fn keep_whole(&self, new: &Oid, known: &[&Oid]) -> Result<()> {
        self.pack_beside_housekeeping(new, known)?;
        self.require_whole(new, known)
    }

    /// Fails if an object that is reachable from `new`, and not from `known`, is missing.
    pub fn require_whole(&self, new: &Oid, known: &[&Oid]) -> Result<()> {
        if trees::is_whole(self, new, known) {
            return Ok(());
        }
        // From the commit graph, git would read a commit without noticing that its object is gone.
        let call = self.git().call("-c").args(["core.commitGraph=false", "rev-list", "--objects"]);
        call.args(["--quiet", new.as_str(), "--not"])
            .args(known.iter().map(|oid| oid.as_str()))
            .run()
    }

    /// If another git may be at work on objects, packs the objects that are reachable from `new`
    /// and not from `known`.
    fn pack_beside_housekeeping(&self, new: &Oid, known: &[&Oid]) -> Result<()> {
        // The lock is held until the pack is noted as ours. Otherwise another thread could take it
        // for a pack of another git.
        let mut changes = self.pack_changes.lock();
        if !self.is_at_work(&mut changes) {
            return Ok(());
        }
        let pack = self.common_dir().join("objects/pack/pack");
        let call = self.git().call("-c").args(["core.commitGraph=false", "pack-objects"]);
        let call = call.args(["--quiet", "--revs"]).arg(pack);
        let known: String = known.iter().map(|oid| format!("^{oid}\n")).collect();
        call.stdin(format!("{new}\n{known}")).bytes()?;
        changes.own = self.packs_changed();
        if let Err(reason) = changes.keep(&self.common_dir().join(PACKED)) {
            // Without this time, the next process packs, too, which only takes longer.
            tracing::debug!(%reason, "the time of a pack is not kept");
        }
        Ok(())
    }

    /// True if another git may be at work on objects. Then gix may find an object in a pack that is
    /// deleted, but still open in this process.
    pub fn is_beside_housekeeping(&self) -> bool {
        self.is_at_work(&mut self.pack_changes.lock())
    }

    fn is_at_work(&self, changes: &mut PackChanges) -> bool {
        // This is called even during a collection. It must note a change by another git before a
        // pack of ours hides that change.
        let changed = self.packs_changed_lately(changes);
        self.is_collecting_garbage() || changed
    }

    /// The time of the last change in the directory `objects/pack`.
    fn packs_changed(&self) -> Option<SystemTime> {
        fs::metadata(self.common_dir().join("objects/pack")).and_then(|m| m.modified()).ok()
    }

    /// True if another git changed the packs less than [`SETTLED`] ago.
    fn packs_changed_lately(&self, changes: &mut PackChanges) -> bool {
        let last = self.packs_changed();
        // A time in the future may come from another clock; it counts as now.
        let is_young = |time: Option<SystemTime>| {
            time.is_some_and(|time| time.elapsed().unwrap_or_default() < SETTLED)
        };
        if last != changes.own {
            let kept = is_young(last).then(|| PackChanges::kept(&self.common_dir().join(PACKED)));
            *changes = match kept.flatten().filter(|kept| kept.own == last) {
                // The last change of the packs was made by another process of git-frites.
                Some(kept) => PackChanges { foreign: kept.foreign.max(changes.foreign), ..kept },
                None => PackChanges { foreign: last, ..*changes },
            };
        }
        is_young(changes.foreign) && self.has_packs()
    }

    /// True if there is a pack. Without a pack, nothing can be deleted. The directory is then young
    /// only because the repository is new.
    fn has_packs(&self) -> bool {
        let packs = fs::read_dir(self.common_dir().join("objects/pack"));
        let mut files = packs.into_iter().flatten().flatten();
        files.any(|file| file.path().extension().is_some_and(|extension| extension == "pack"))
    }

    /// Does `work`. If it fails during housekeeping with an error that housekeeping can cause, does
    /// it again. Housekeeping deletes objects, moves objects into packs, and moves refs into
    /// `packed-refs`.
    pub fn retry_during_gc<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        let mut first: Option<Error> = None;
        let mut tries = 0;
        loop {
            let before = self.housekeeping();
            match work() {
                Err(error)
                    if tries < TRIES
                        && may_be_caused_by_gc(&error.cause)
                        && (self.is_collecting_garbage() || self.housekeeping() != before) =>
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

    /// A value that changes when a collection begins or ends, and when the packs or the packed refs
    /// change.
    fn housekeeping(&self) -> [Option<SystemTime>; 3] {
        ["gc.pid", "objects/pack", "packed-refs"]
            .map(|name| fs::metadata(self.common_dir().join(name)).and_then(|m| m.modified()).ok())
    }

    /// True if a `git gc` is running. `gc.pid` has the process id and the host of that git until it
    /// ends.
    fn is_collecting_garbage(&self) -> bool {
        let Ok(text) = regular::read_text(&self.common_dir().join("gc.pid")) else { return false };
        let pid =
            text.split_whitespace().next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        // If the process belongs to another user, the error is EPERM, and the process counts as
        // running.
        pid.is_none_or(|pid| {
            rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
        })
    }
}

/// True if a garbage collection can cause such an error. git has many messages for the loss of an
/// object, so every failed git (`GitExit`) counts. A full disk or an interrupt does not count.
fn may_be_caused_by_gc(cause: &Cause) -> bool {
    use Cause::*;
    matches!(cause, GitExit | Locked | RefMoved | Damaged | NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many times [`Repo::retry_during_gc`] tries work that fails with this error during a
    /// collection.
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
    fn pack_of_another_process_of_ours_is_no_change_by_another_git() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let git = |line: &str| {
            let call = duct::cmd("git", line.split(' ')).dir(directory.path());
            let call = call.env("GIT_AUTHOR_NAME", "T").env("GIT_AUTHOR_EMAIL", "t@example.com");
            let call = call.env("GIT_COMMITTER_NAME", "T");
            call.env("GIT_COMMITTER_EMAIL", "t@example.com").read().expect("git works")
        };
        git("init -q");
        git("commit -q --allow-empty -m base");
        git("repack -adq");
        let process = || Repo::discover(directory.path()).expect("a repository");
        let first = process();
        assert!(first.is_beside_housekeeping(), "git has packed");
        git("commit -q --allow-empty -m more");
        let new = Oid::parse(&git("rev-parse HEAD")).expect("a commit");
        first.pack_beside_housekeeping(&new, &[]).expect("packed");
        let file = first.common_dir().join(PACKED);
        let kept = PackChanges::kept(&file).expect("kept");
        assert_eq!(kept.own, first.packs_changed());
        assert!(process().is_beside_housekeeping(), "git has packed a moment ago");
        let long_ago = SystemTime::now() - 2 * SETTLED;
        PackChanges { foreign: Some(long_ago), ..kept }.keep(&file).expect("written");
        assert!(!process().is_beside_housekeeping(), "only we have packed");
        assert!(first.is_beside_housekeeping(), "it has seen the other git itself");
        // The file is ignored if it is damaged, or if its times are older than the last change of
        // the packs.
        let overflow = r#"{"own":{"secs_since_epoch":18446744073709551615,"nanos_since_epoch":0}}"#;
        for text in ["", "1 1\n", r#"{"own":null}"#, overflow] {
            fs::write(&file, text).expect("written");
            assert!(process().is_beside_housekeeping(), "{text}");
        }
        PackChanges { foreign: Some(long_ago), ..kept }.keep(&file).expect("written");
        git("commit -q --allow-empty -m again");
        git("repack -adq");
        assert!(process().is_beside_housekeeping(), "git has packed since");
    }

    #[test]
    fn commit_that_only_the_commit_graph_holds_counts_as_missing() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let git = |args: &[&str]| {
            let call = duct::cmd("git", args).dir(directory.path());
            let call = call.env("GIT_CONFIG_GLOBAL", "/dev/null").env("LC_ALL", "C");
            let names = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"];
            let call = names.iter().fold(call, |call, name| call.env(name, "Test"));
            let mails = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
            let call = mails.iter().fold(call, |call, name| call.env(name, "test@example.com"));
            Oid::parse(&call.read().expect("git works"))
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "base"]);
        let base = git(&["rev-parse", "HEAD"]).expect("a commit");
        let lost = git(&["commit-tree", "-p", base.as_str(), "-m", "lost", "HEAD^{tree}"]);
        let lost = lost.expect("a commit");
        git(&["update-ref", "refs/heads/lost", lost.as_str()]);
        git(&["commit-graph", "write", "--reachable"]);
        git(&["update-ref", "-d", "refs/heads/lost"]);
        let child = git(&["commit-tree", "-p", lost.as_str(), "-m", "child", "HEAD^{tree}"]);
        let child = child.expect("a commit");
        let (fan_out, rest) = lost.as_str().split_at(2);
        let object = directory.path().join(".git/objects").join(fan_out).join(rest);
        fs::remove_file(object).expect("a loose object");

        let repo = Repo::discover(directory.path()).expect("a repository");
        let name = RefName::new("refs/frites/1/c1");
        let stored = repo.set_ref_whole(&name, &child, None, &[&base], "capture");
        assert_eq!(stored.expect_err("the parent is gone").cause, Cause::Damaged);
        assert_eq!(repo.read_ref(&name).expect("readable"), None);
    }

    /// `packed-refs.lock` prevents deleting a ref, but not moving one.
    #[test]
    fn each_ref_moves_back_from_a_lost_commit_even_if_another_one_cannot() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let git = |args: &[&str]| {
            let call = duct::cmd("git", args).dir(directory.path());
            let call = call.env("GIT_CONFIG_GLOBAL", "/dev/null").env("LC_ALL", "C");
            call.read().expect("git works")
        };
        git(&["init", "-q"]);
        let repo = Repo::discover(directory.path()).expect("a repository");
        let base = repo.store(|objects| objects.add_files(&[], [], "base")).expect("written");
        let lost = Oid::parse(&"1".repeat(40)).expect("full");
        let child =
            repo.store(|objects| objects.add_files(&[], [&lost], "child")).expect("written");
        let (capture, times) =
            (RefName::new("refs/frites/1/c1"), RefName::new("refs/frites/1/@mtimes/c1"));
        repo.update_ref(&capture, Some(&base), None, "capture").expect("new");
        fs::write(repo.common_dir().join("packed-refs.lock"), "").expect("a file");
        let moves = [
            WholeMove { name: &times, new: &base, old: None, known: &[] },
            WholeMove { name: &capture, new: &child, old: Some(&base), known: &[&base] },
        ];
        repo.set_refs_whole(&moves, "capture").expect_err("a parent is gone");
        assert_eq!(repo.read_ref(&capture).expect("readable"), Some(base));
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
