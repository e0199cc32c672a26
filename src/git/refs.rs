//! The names of git-frites' refs. Also reads refs, and moves a ref only if it has the expected
//! value.
//!
//! Refs are moved in process because that is faster. With `git update-ref`, some rows of
//! `make bench` (1,000 files) take more processor time: "capture of 8" 1.8 times as much, "spawn of
//! 1" 1.2, and judging 1.1.
use std::time::Duration;

use gix::lock::acquire::Fail;
use gix::refs::Target;
use gix::refs::transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog};

use crate::error::{Error, Result};
use crate::fs::{disk, regular};
use crate::git::cli::{Call, Git, OURS};
use crate::git::objects;
use crate::git::ref_list::OF_RUNS;
use crate::git::repo::{Repo, from_oid};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::part::Part;
use crate::model::refname::RefName;
use crate::process::environment::caller;

/// `refs/heads/frites/run/RUN/CAND`: the candidate's branch.
pub fn branch(run: &Name, candidate: &Name) -> RefName {
    RefName::of_branch(format_args!("frites/run/{run}/{candidate}"))
}

/// The prefix of the candidates' branches.
pub const ATTEMPT_BRANCHES: &str = "refs/heads/frites/run/";

/// The beginnings of the names of all our refs. No command in a sealed world sees these refs.
pub const OUR_REFS: [&str; 4] = [OF_RUNS, FETCHED, JUDGING, "refs/heads/frites/"];

/// The run and the candidate of a ref that [`branch`] or [`capture`] names; `None` for any other
/// ref.
pub fn attempt_of(full: &str) -> Option<(Name, Name)> {
    let rest = full.strip_prefix(ATTEMPT_BRANCHES).or_else(|| full.strip_prefix("refs/frites/"))?;
    let (run, candidate) = rest.split_once('/')?;
    Some((run.parse().ok()?, candidate.parse().ok()?))
}

/// `refs/frites/RUN/CAND`: the candidate's captures.
pub fn capture(run: &Name, candidate: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/{candidate}"))
}

/// `refs/frites/RUN/@record`: the run's records.
pub fn record(run: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/@record"))
}

/// `refs/frites/RUN/@results/CAND`, or `…/@base` for the base: the outcomes of one judged part of a
/// run.
pub fn result_of(run: &Name, part: &Part) -> RefName {
    RefName::new(format!("{}{part}", results(run)))
}

/// The prefix of the refs that hold a run's outcomes.
pub fn results(run: &Name) -> String {
    format!("refs/frites/{run}/@results/")
}

/// `refs/frites/RUN/@terms`: the terms for judging a run in parts. They are the same for all parts.
pub fn terms(run: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/@terms"))
}

/// The prefix of refs that were fetched from other repositories.
pub const FETCHED: &str = "refs/frites-fetched/";

/// `refs/heads/frites/apply/RUN`: the branch that a run lands on, unless the user names another.
pub fn apply_branch(run: &Name) -> RefName {
    RefName::of_branch(format_args!("frites/apply/{run}"))
}

/// `refs/frites/RUN/@withdrawn`: versions of files that hooks wrote in landings that were rolled
/// back.
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

/// `refs/frites/RUN/@state/CAND`: the candidate's landing state, for states that no landed commit
/// shows. For example, the candidate is only staged on a branch, the branch was deleted, or the
/// candidate was discarded.
pub fn landing_state(run: &Name, candidate: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/@state/{candidate}"))
}

/// The run and the candidate of a ref that [`conflicts`] names; `None` for any other ref.
pub fn conflicts_of(full: &str) -> Option<(Name, Name)> {
    let (run, rest) = full.strip_prefix("refs/frites/")?.split_once('/')?;
    Some((run.parse().ok()?, rest.strip_prefix("@conflicts/")?.parse().ok()?))
}

/// `refs/frites/RUN/@mtimes/CAND`: the times at which the files of the candidate's newest capture
/// were written.
pub fn mtimes(run: &Name, candidate: &Name) -> RefName {
    RefName::new(format!("refs/frites/{run}/@mtimes/{candidate}"))
}

/// The prefix of refs that protect commits from garbage collection while they are judged.
pub const JUDGING: &str = "refs/frites-judging/";

/// `refs/frites-judging/RUN/PROCESS`: the commits that a process judges. The ref is not under
/// `refs/frites/`, because no other repository needs it.
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
    /// The object that a ref points to; `None` if the ref does not exist. Symbolic refs are
    /// followed.
    pub fn read_ref(&self, full: &RefName) -> Result<Option<Oid>> {
        if let Some(known) = self.remembered_ref(full) {
            return Ok(known);
        }
        let Some(value) = self.ref_value(full)? else { return Ok(None) };
        self.object_of(&value).map(Some).ok_or_else(|| {
            Error::damaged(format!("the ref {full} cannot be read: it is a link to no object"))
        })
    }

    /// Moves a ref from `old` to `new`. If `old` is `None`, the ref must not exist. If `new` is
    /// `None`, the ref is deleted.
    ///
    /// Fails without effect if another process moved the ref first. So if several processes move a
    /// ref from the same value, exactly one succeeds.
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

    /// True if this process has moved a ref.
    pub fn has_moved_refs(&self) -> bool {
        !self.own_moves.lock().is_empty()
    }

    /// Does what [`Repo::update_ref`] does for several refs in one transaction: moves all of them,
    /// or none.
    pub(super) fn update_refs(&self, moves: &[Move<'_>], why: &str) -> Result<()> {
        if self.move_in_process(moves, why).is_ok() {
            return Ok(());
        }
        let mut change = self.record_change(moves.iter().map(|of| of.name))?;
        change.run(self.update_ref_call(why).args(["-z", "--stdin"]).stdin(orders(moves)))?;
        self.own_moves.lock().extend(moves.iter().map(|of| (of.name.clone(), Some(*of.new))));
        Ok(())
    }

    /// Moves refs in one transaction, each from its old value, without a git process. If this
    /// fails, no ref has moved, and the caller uses git. git may succeed, because it reads loose
    /// refs before packed ones. If git fails, its error says why.
    fn move_in_process(&self, moves: &[Move<'_>], why: &str) -> Result<()> {
        let refused = |e: &dyn std::fmt::Display| Error::fatal(format!("no ref was moved: {e}"));
        let gix = self.gix();
        // `reflog_claims_us` looks for this message.
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
            let message = message.as_str().into();
            let mode = RefLog::AndReference;
            let log = LogChange { mode, force_create_reflog: true, message };
            let change = Change::Update { log, expected, new: Target::Object(id) };
            let full = name.as_str().try_into().map_err(|e| refused(&e))?;
            edits.push(RefEdit { change, name: full, deref: false });
            locks.push(self.common_dir().join(format!("{name}.lock")));
            done.push(((*name).clone(), Some(**new)));
        }
        let _change = self.record_change(done.iter().map(|(name, _)| name))?;
        let patience = || Fail::AfterDurationWithBackoff(LOCK_PATIENCE);
        let prepared = gix.refs.transaction().prepare(edits, patience(), patience());
        let prepared = prepared.map_err(|e| refused(&e))?;
        // The lock files have the new values. The commit below renames them to the refs' files.
        disk::sync(&locks)?;
        let now = objects::now().to_string();
        let who =
            gix::actor::SignatureRef { name: OURS.0.into(), email: OURS.1.into(), time: &now };
        prepared.commit(who).map_err(|e| refused(&e))?;
        self.own_moves.lock().extend(done);
        Ok(())
    }

    /// A call of `git update-ref` without refs. Its reflog message says that git-frites moved the
    /// refs, for [`Repo::reflog_claims_us`].
    pub(super) fn update_ref_call(&self, why: &str) -> Call {
        let call = self.git().call("update-ref").args(["--no-deref", "--create-reflog", "-m"]);
        call.arg(format!("{}: {why}", self.signature()))
    }

    /// The beginning of our reflog messages: our name, and the attempt that called this process, if
    /// any.
    pub(super) fn signature(&self) -> String {
        let attempt = caller(&self.state_dir().runs());
        attempt.map_or(OURS.0.to_owned(), |attempt| format!("{} for {attempt}", OURS.0))
    }

    /// Points a ref to an object, whatever the ref's current value is.
    pub(super) fn overwrite_ref(&self, full: &RefName, new: &Oid, why: &str) -> Result<()> {
        let mut change = self.record_change([full])?;
        change.run(self.update_ref_call(why).args([full.as_str(), new.as_str()]))
    }

    /// True if a ref's reflog claims that git-frites gave the ref its current value. If an attempt
    /// called git-frites, this is true only with `for_anyone`.
    ///
    /// This is no proof. A process that can write the ref can write its reflog, too.
    pub fn reflog_claims_us(&self, full: &RefName, for_anyone: bool) -> Result<bool> {
        let mut now = self.read_ref(full)?;
        while let Some(value) = now {
            let log = regular::read(&self.common_dir().join("logs").join(full.as_str()));
            let log = String::from_utf8_lossy(log.as_deref().unwrap_or_default()).into_owned();
            if let Some(claims) = claims_us(&log, &value, for_anyone) {
                return Ok(claims);
            }
            // Another process may have moved the ref between the two reads.
            now = self.read_ref(full)?.filter(|moved| *moved != value);
        }
        Ok(false)
    }

    /// Moves several refs in one transaction, each from its old value. If one cannot move, none
    /// moves. If HEAD of the checkout in which `git` runs is on one of the refs, HEAD's reflog
    /// records the move, too. After a power cut, each ref has its old or its new value.
    pub fn move_refs(&self, git: &Git, moves: &[Move<'_>], why: &str) -> Result<()> {
        self.sync_young_objects()?;
        let call = git.call("update-ref").args(["--no-deref", "-m", why, "-z", "--stdin"]);
        let call = call.stdin(orders(moves));
        let mut change = self.record_change_in(git, moves.iter().map(|of| of.name))?;
        change.run(call)
    }
}

/// The longest wait for the lock of a ref: git's default (`core.filesRefLockTimeout`).
const LOCK_PATIENCE: Duration = Duration::from_millis(100);

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

/// The input of `git update-ref -z --stdin` for these moves.
fn orders(moves: &[Move<'_>]) -> String {
    // As an old value, the null id means that the ref must not exist.
    let orders = moves.iter().map(|Move { name, old, new }| {
        let old = old.copied().unwrap_or_else(|| new.null());
        format!("update {name}\0{new}\0{old}\0")
    });
    orders.collect()
}

/// True if a reflog claims that git-frites gave a ref this value (see [`Repo::reflog_claims_us`]).
/// `None` if the reflog does not end with a move to this value.
fn claims_us(log: &str, value: &Oid, for_anyone: bool) -> Option<bool> {
    let whose = if for_anyone { OURS.0.to_owned() } else { format!("{}: ", OURS.0) };
    // The last line may be incomplete, because a process may be writing it now.
    let whole = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let lines: Vec<&str> = whole.collect();
    for (head, why) in lines.into_iter().rev().map_while(|line| line.split_once('\t')) {
        let mut values = head.split(' ');
        let [from, to] = [values.next(), values.next()];
        if to == Some(value.as_str()) {
            let ours = head.contains(&format!(" {} <{}> ", OURS.0, OURS.1));
            return Some(ours && why.starts_with(&whose));
        }
        // The reflog is written before the ref. If a process was killed in between, the last line
        // is about a move that was not made. Then the line before it counts.
        if from != Some(value.as_str()) {
            return None;
        }
    }
    None
}
