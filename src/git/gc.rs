//! git's housekeeper beside us: `git gc --prune=now` takes objects that nothing refers to, and what we store is
//! referred to a moment later only (`git help gc`, NOTES).
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::oid::Oid;

impl Repo {
    /// Points a ref at a new commit, and fails if that is not whole: then the ref is as it was.
    ///
    /// A `git gc` that looked for what is referred to before our ref was there may delete our loose objects also
    /// after we have seen them. So what is beyond `known` goes into a pack: one that the housekeeper has not known
    /// from its start it leaves alone, and one that begins later sees the ref.
    pub fn set_ref_whole(
        &self,
        full: &str,
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
            let _ = fs::remove_file(self.common_dir().join("logs").join(full));
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

    /// Does `work` again if it failed while git collected garbage, when that is over.
    pub fn beside_housekeeper<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        let mut tries = 0;
        loop {
            let before = self.is_collecting_garbage();
            match work() {
                Err(_) if tries < 30 && (before || self.is_collecting_garbage()) => tries += 1,
                other => return other,
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
