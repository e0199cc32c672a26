//! Refs: git-frites' names, reading them, and moving them only from the value that was read.
//!
//! Refs are moved in process, which is faster. With `git update-ref`, rows of `make bench` take
//! more processor time (1,000 files): "capture of 8" 1.8 times, "spawn of 1" 1.2, judging 1.1.
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use gix::lock::acquire::Fail;
use gix::refs::Target;
use gix::refs::transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog};

use crate::error::{Cause, Error, Result};
use crate::fs::{disk, regular};
use crate::git::cli::{Call, Git, OURS, PAUSES};
use crate::git::objects;
use crate::git::repo::{PackedRefsStamp, Repo, from_oid, to_oid};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::part::Part;
use crate::model::refname::RefName;
use crate::process::environment::caller;

/// `refs/heads/frites/run/RUN/CAND`: the candidate's branch.
pub fn branch(run: &Name, candidate: &Name) -> RefName {
    RefName::of_branch(format_args!("frites/run/{run}/{candidate}"))
}

/// The beginning of the names of candidates' branches.
pub const ATTEMPT_BRANCHES: &str = "refs/heads/frites/run/";

/// The run and the candidate of a ref that [`branch`] or [`capture`] names; `None` for any other ref.
pub fn attempt_of(full: &str) -> Option<(Name, Name)> {
    let rest = full.strip_prefix(ATTEMPT_BRANCHES).or_else(|| full.strip_prefix("refs/frites/"))?;
    let (run, candidate) = rest.split_once('/')?;
    Some((run.parse().ok()?, candidate.parse().ok()?))
}

/// `refs/frites/RUN/CAND`: its captures.
pub fn capture(run: &Name, candidate: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/{candidate}"))
}

/// `refs/frites/RUN/@record`: the run's records.
pub fn record(run: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/@record"))
}

/// `refs/frites/RUN/@results/CAND` or `…/@base`: the outcome of a part.
pub fn result_of(run: &Name, part: &Part) -> RefName {
    RefName::new(format!("{}{part}", results(run)))
}

/// The beginning of the names of a run's outcomes.
pub fn results(run: &Name) -> String {
    format!("refs/frites/{run}/@results/")
}

/// `refs/frites/RUN/@terms`: the terms on which a run is judged in parts.
pub fn terms(run: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/@terms"))
}

/// The refs of other repositories, as they were when they were last fetched.
pub const FETCHED: &str = "refs/frites-fetched/";

/// `refs/heads/frites/apply/RUN`: the branch that a run lands on, unless the user names another.
pub fn apply_branch(run: &Name) -> RefName {
    RefName::of_branch(format_args!("frites/apply/{run}"))
}

/// `refs/frites/RUN/@withdrawn`: files as hooks rewrote them in landings that were rolled back.
pub fn withdrawn(run: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/@withdrawn"))
}

/// `refs/frites/RUN/@landing/CAND`: the commit that landed a candidate, or that undid the landing.
pub fn landing(run: &Name, candidate: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/@landing/{candidate}"))
}

/// `refs/frites/RUN/@conflicts/CAND`: the conflicts that a candidate's landing left for a person.
pub fn conflicts(run: &Name, candidate: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/@conflicts/{candidate}"))
}

/// `refs/frites/RUN/@state/CAND`: a landing state that no landed commit shows: the candidate is
/// staged on a branch, or that branch was deleted, or the candidate was discarded.
pub fn landing_state(run: &Name, candidate: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/@state/{candidate}"))
}

/// The run and the candidate of a ref that [`conflicts`] names; `None` for any other ref.
pub fn conflicts_of(full: &str) -> Option<(Name, Name)> {
    let (run, rest) = full.strip_prefix("refs/frites/")?.split_once('/')?;
    Some((run.parse().ok()?, rest.strip_prefix("@conflicts/")?.parse().ok()?))
}

/// `refs/frites/RUN/@mtimes/CAND`: the times at which the files of its newest capture were written.
pub fn mtimes(run: &Name, candidate: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/@mtimes/{candidate}"))
}

/// The refs that keep judged commits from being collected while they are judged.
pub const JUDGING: &str = "refs/frites-judging/";

/// `refs/frites-judging/RUN/PROCESS`: the commits that a process judges. Not under `refs/frites/`, because
/// no other repository needs it.
pub fn judging(run: &Name, process: u32) -> RefName {
    RefName::new(format!("{JUDGING}{run}/{process}"))
}

/// The run of a ref that holds captures, records, terms or outcomes; `None` for any other ref.
pub fn run_of(full: &str) -> Option<Name> {
    let (run, rest) = full.strip_prefix("refs/frites/")?.split_once('/')?;
    let is_kept = !rest.starts_with('@')
        || rest.starts_with("@results/")
        || ["@record", "@terms"].contains(&rest);
    if is_kept { run.parse().ok() } else { None }
}

/// True if git accepts a branch of that name.
pub fn is_branch_name(name: &str) -> bool {
    let full = gix::refs::FullName::try_from(format!("refs/heads/{name}"));
    full.is_ok() && !name.starts_with('-') && name != "HEAD" && !name.starts_with("@{")
}

impl Repo {
    /// The object that a ref points to, links followed; `None` if there is no such ref.
    pub fn read_ref(&self, full: &RefName) -> Result<Option<Oid>> {
        if let Some(known) = self.remembered_ref(full) {
            return Ok(known);
        }
        let unreadable = |e: &dyn std::fmt::Display| {
            Error::damaged(format!("the ref {full} cannot be read: {e}"))
        };
        let file = self.common_dir().join(full.as_str());
        let read = self.read_refs_at_rest(|gix| {
            // Without this file, gix would try longer names, as if this one were abbreviated.
            if !file.is_file() {
                let packed = gix.refs.cached_packed_buffer().map_err(|e| unreadable(&e))?;
                let Some(packed) = packed else { return Ok(None) };
                let found = packed.try_find(full.as_str()).map_err(|e| unreadable(&e))?;
                return Ok(found.map(|found| to_oid(found.target())));
            }
            let mut found = gix.find_reference(full.as_str()).map_err(|e| unreadable(&e))?;
            Ok(Some(to_oid(found.follow_to_object().map_err(|e| unreadable(&e))?.detach())))
        })?;
        let Some(found) = read else {
            let (directory, _) = full.rsplit_once('/').unwrap_or_default();
            let all = self.refs_under(&format!("{directory}/"))?;
            return Ok(all.into_iter().find(|(name, _)| name == full).map(|(_, oid)| oid));
        };
        Ok(found)
    }

    /// Calls `read` until `packed-refs` is not replaced during the call; `None` if it is replaced during
    /// each try.
    ///
    /// gix reads `packed-refs` before the loose files. A ref that `git pack-refs` moves between the two is
    /// in neither, or has an old value. git writes the packed version first, so that an answer is right if
    /// `packed-refs` is the same before and after. A failure counts only after several tries: it can come
    /// from a file that was deleted between its listing and its reading.
    pub(super) fn read_refs_at_rest<T>(
        &self,
        read: impl Fn(&gix::Repository) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut failure = None;
        for pause in PAUSES {
            let gix = self.gix();
            let before = self.packed_refs_stamp();
            // gix does not read `packed-refs` again as long as its time is the same.
            let last = std::mem::replace(&mut *self.packed_refs.lock(), before);
            if before.is_some() && before != last {
                let _ = gix.refs.force_refresh_packed_buffer();
            }
            match read(&gix) {
                Ok(found) if before == self.packed_refs_stamp() => return Ok(Some(found)),
                read => failure = read.err(),
            }
            std::thread::sleep(pause);
        }
        failure.map_or(Ok(None), Err)
    }

    /// Inode, time and size of `packed-refs`, which git replaces and never edits.
    fn packed_refs_stamp(&self) -> Option<PackedRefsStamp> {
        let meta = fs::metadata(self.common_dir().join("packed-refs")).ok()?;
        Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
    }

    /// Moves a ref from `old` to `new`. Without `old` the ref must not exist; without `new` it is
    /// deleted.
    ///
    /// Fails without effect if another process moved the ref first: of many racers exactly one
    /// wins.
    pub fn update_ref(
        &self,
        full: &RefName,
        new: Option<&Oid>,
        old: Option<&Oid>,
        why: &str,
    ) -> Result<()> {
        match (new, old) {
            (Some(new), _) => self.update_refs(&[Move { name: full, old, new }], why),
            (None, Some(old)) => self.delete_refs(&[(full.clone(), *old)], why),
            (None, None) => Ok(()),
        }
    }

    /// True if this process has moved refs of ours.
    pub fn has_moved_refs(&self) -> bool {
        !self.own_moves.lock().is_empty()
    }

    /// Moves refs as [`Repo::update_ref`] does, in one transaction: all of them, or none.
    pub(super) fn update_refs(&self, moves: &[Move<'_>], why: &str) -> Result<()> {
        if self.move_in_process(moves, why).is_ok() {
            return Ok(());
        }
        let mut change = self.record_change(moves.iter().map(|of| of.name))?;
        change.run(self.update_ref_call(why).args(["-z", "--stdin"]).stdin(orders(moves)))?;
        self.own_moves.lock().extend(moves.iter().map(|of| (of.name.clone(), Some(*of.new))));
        Ok(())
    }

    /// Moves refs of ours in one transaction, each from its old value, without a git process. If it fails,
    /// it has no effect and the caller asks git, which may succeed: git reads loose and packed refs in the
    /// safer order. git also explains a refusal.
    fn move_in_process(&self, moves: &[Move<'_>], why: &str) -> Result<()> {
        let refused = |e: &dyn std::fmt::Display| Error::fatal(format!("no ref was moved: {e}"));
        let gix = self.gix();
        // `reflog_claims_us` reads the log.
        let message = format!("{}: {why}", self.signature());
        let mut edits = Vec::new();
        let mut locks = Vec::new();
        let mut done = Vec::new();
        for Move { name, old, new } in moves {
            let id = from_oid(new)?;
            let expected = match old {
                None => PreviousValue::MustNotExist,
                Some(old) => PreviousValue::MustExistAndMatch(Target::Object(from_oid(old)?)),
            };
            gix.find_header(id).map_err(|e| refused(&e))?;
            let log = LogChange {
                mode: RefLog::AndReference,
                force_create_reflog: true,
                message: message.as_str().into(),
            };
            edits.push(RefEdit {
                change: Change::Update { log, expected, new: Target::Object(id) },
                name: name.as_str().try_into().map_err(|e| refused(&e))?,
                deref: false,
            });
            locks.push(self.common_dir().join(format!("{name}.lock")));
            done.push(((*name).clone(), Some(**new)));
        }
        let _change = self.record_change(done.iter().map(|(name, _)| name))?;
        let patience = || Fail::AfterDurationWithBackoff(LOCK_PATIENCE);
        let prepared = gix.refs.transaction().prepare(edits, patience(), patience());
        let prepared = prepared.map_err(|e| refused(&e))?;
        // The new values are in the lock files, which are renamed to the refs.
        disk::sync(&locks)?;
        let now = objects::now().to_string();
        let who =
            gix::actor::SignatureRef { name: OURS.0.into(), email: OURS.1.into(), time: &now };
        prepared.commit(who).map_err(|e| refused(&e))?;
        self.own_moves.lock().extend(done);
        Ok(())
    }

    /// The beginning of a call that moves refs and notes in their logs that we did it, for
    /// `reflog_claims_us`.
    pub(super) fn update_ref_call(&self, why: &str) -> Call {
        let call = self.git().call("update-ref").args(["--no-deref", "--create-reflog", "-m"]);
        call.arg(format!("{}: {why}", self.signature()))
    }

    /// The beginning of our reflog messages.
    pub(super) fn signature(&self) -> String {
        let attempt = caller(&self.state_dir().runs());
        attempt.map_or(OURS.0.to_owned(), |attempt| format!("{} for {attempt}", OURS.0))
    }

    /// Points a ref at an object, whatever its value is now.
    pub(super) fn overwrite_ref(&self, full: &RefName, new: &Oid, why: &str) -> Result<()> {
        let mut change = self.record_change([full])?;
        change.run(self.update_ref_call(why).args([full.as_str(), new.as_str()]))
    }

    /// True if a ref's reflog claims that git-frites gave the ref its value, and not on behalf of an
    /// attempt; with `for_anyone`, also on behalf of one.
    ///
    /// This is no proof: a process that can write the ref can write its reflog, too.
    pub fn reflog_claims_us(&self, full: &RefName, for_anyone: bool) -> Result<bool> {
        let mut now = self.read_ref(full)?;
        while let Some(value) = now {
            let log = regular::read(&self.common_dir().join("logs").join(full.as_str()));
            let log = String::from_utf8_lossy(log.as_deref().unwrap_or_default()).into_owned();
            if let Some(claims) = claims_us(&log, &value, for_anyone) {
                return Ok(claims);
            }
            // Others may have moved the ref between the two looks.
            now = self.read_ref(full)?.filter(|moved| *moved != value);
        }
        Ok(false)
    }

    /// Moves several refs in one transaction: all of them, each from its old value, or none. `git` is the
    /// checkout whose HEAD may be on one of them, so that HEAD's reflog records the move, too. After a
    /// power cut, each of them has its old or its new value.
    pub fn move_refs(&self, git: &Git, moves: &[Move<'_>], why: &str) -> Result<()> {
        self.sync_young_objects()?;
        let call = git.call("update-ref").args(["--no-deref", "-m", why, "-z", "--stdin"]);
        let call = call.stdin(orders(moves));
        let mut change = self.record_change_in(git, moves.iter().map(|of| of.name))?;
        change.run(call).map_err(|e| match &e.cause {
            Cause::Locked | Cause::RefMoved => e.hint(MOVED),
            _ => e,
        })
    }
}

/// How long we wait for the lock of a ref: git's default (`core.filesRefLockTimeout`).
const LOCK_PATIENCE: Duration = Duration::from_millis(100);

const MOVED: &str = "another process moved the ref, or is at work: try again; if that process was \
                     killed, remove its `.lock` file";

/// A ref to move.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    /// The ref's name.
    pub name: &'a RefName,
    /// The old value; `None` if the ref must not exist.
    pub old: Option<&'a Oid>,
    /// The new value.
    pub new: &'a Oid,
}

/// The orders to `git update-ref -z --stdin` for these moves.
fn orders(moves: &[Move<'_>]) -> String {
    // As an old value, the null id means that the ref must not exist.
    let orders = moves.iter().map(|Move { name, old, new }| {
        let old = old.copied().unwrap_or_else(|| new.null());
        format!("update {name}\0{new}\0{old}\0")
    });
    orders.collect()
}

/// True if a reflog claims that git-frites gave a ref this value, and not on behalf of an attempt;
/// with `for_anyone`, also on behalf of one. `None` if the log does not end with that move.
fn claims_us(log: &str, value: &Oid, for_anyone: bool) -> Option<bool> {
    let whose = if for_anyone { OURS.0.to_owned() } else { format!("{}: ", OURS.0) };
    // The last line may be incomplete, because a process is just writing it.
    let whole = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let lines: Vec<&str> = whole.collect();
    for (head, why) in lines.into_iter().rev().map_while(|line| line.split_once('\t')) {
        let mut values = head.split(' ');
        let [from, to] = [values.next(), values.next()];
        if to == Some(value.as_str()) {
            let ours = head.contains(&format!(" {} <{}> ", OURS.0, OURS.1));
            return Some(ours && why.starts_with(&whose));
        }
        // The log is written before the ref: a process that was killed in between has left the line of a
        // move that was not made.
        if from != Some(value.as_str()) {
            return None;
        }
    }
    None
}
