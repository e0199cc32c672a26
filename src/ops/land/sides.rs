//! The two sides of a merge with conflicts, and the times at which each side wrote its files.
use std::collections::BTreeMap;

use crate::error::Result;
use crate::git::capture;
use crate::git::capture::mtimes;
use crate::git::commit::STAGED;
use crate::git::merge;
use crate::git::refs;
use crate::git::repo::Repo;
use crate::model::candidate::Capture;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::ops::land::target::ResolvedTarget;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;

/// One side of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The change that lands.
    Landing,
    /// The target before the landing.
    Target,
}

impl Side {
    /// The other side.
    pub fn other(self) -> Side {
        match self {
            Side::Landing => Side::Target,
            Side::Target => Side::Landing,
        }
    }
}

/// A value for each side of a merge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BySide<T> {
    /// The value for the change that lands.
    pub landing: T,
    /// The value for the target.
    pub target: T,
}

impl<T> BySide<T> {
    /// Calls `value` for each of the two sides.
    pub fn new(value: impl Fn(Side) -> Result<T>) -> Result<BySide<T>> {
        Ok(BySide { landing: value(Side::Landing)?, target: value(Side::Target)? })
    }

    /// The value for a side.
    pub fn on(&self, side: Side) -> &T {
        match side {
            Side::Landing => &self.landing,
            Side::Target => &self.target,
        }
    }
}

/// The sides of a merge with conflicts, and their merge base.
pub struct Sides<'a> {
    pub session: &'a Session,
    /// The candidate that lands.
    pub candidate: CandidateRef<'a>,
    /// The capture that lands.
    pub capture: &'a Capture,
    /// The commit that is merged: the capture, or a copy of the capture without the changes to
    /// protected paths.
    pub landing: &'a Oid,
    /// The target of the merge.
    pub target: &'a ResolvedTarget,
    /// The merge base of both sides.
    pub base: &'a Oid,
}

impl Sides<'_> {
    /// The commit or tree of a side.
    pub fn tree(&self, side: Side) -> &Oid {
        match side {
            Side::Landing => self.landing,
            Side::Target => self.target.state(),
        }
    }
}

/// The times at which both sides of a merge wrote their files. `None` for a target that is a
/// branch: the times of its commits are used.
pub struct SideTimes(BySide<Option<WriteTimes>>);

impl SideTimes {
    /// Reads the times from the captures of the candidate that lands and of the target, if it is a
    /// candidate.
    pub fn of(sides: &Sides<'_>) -> Result<SideTimes> {
        let session = sides.session;
        let landing = Some(WriteTimes::of(session, sides.candidate, sides.capture)?);
        let mut target = None;
        if let Some((run, name)) = &sides.target.candidate {
            let candidate = session.store.candidate(run, name);
            if let Some(newest) = candidate.latest()? {
                target = Some(WriteTimes::of(session, candidate, &newest)?);
            }
        }
        Ok(SideTimes(BySide { landing, target }))
    }

    /// The time at which a side wrote a path, in seconds since 1970; `None` if it is unknown.
    pub fn of_path(&self, sides: &Sides<'_>, side: Side, path: &TreePath) -> Result<Option<i64>> {
        let repo = &sides.session.repo;
        match self.0.on(side) {
            Some(times) => times.of_path(repo, path),
            None => mtimes::last_touched(repo, &sides.target.tip, path),
        }
    }
}

/// The times at which a candidate wrote its files.
struct WriteTimes {
    base: Oid,
    /// The commits that the attempt made itself.
    heads: Vec<Oid>,
    /// The captures, newest first: the commit of each, and its time in seconds since 1970.
    captures: Vec<(Oid, i64)>,
    /// The times at which the files of the newest capture were written, in seconds since 1970.
    written: BTreeMap<TreePath, i64>,
}

impl WriteTimes {
    fn of(session: &Session, candidate: CandidateRef<'_>, newest: &Capture) -> Result<WriteTimes> {
        let run = candidate.run;
        let chain = capture::chain(&session.repo, &newest.commit, &run.base)?;
        // Captures also commit staged files. Such a commit has the time of the capture, not of the
        // files, so it is left out.
        let heads = chain.iter().flat_map(|(_, commit)| commit.parents.iter().skip(1).cloned());
        let heads = heads
            .filter(|oid| {
                session.repo.commit(oid).is_ok_and(|commit| commit.message.trim_end() != STAGED)
            })
            .collect();
        let written = match chain.first() {
            Some((_, commit)) => {
                mtimes::of_capture(&session.repo, &refs::mtimes(&run.run, candidate.name), commit)?
            }
            None => BTreeMap::new(),
        };
        let captures = chain.into_iter().map(|(oid, commit)| (oid, commit.time)).collect();
        Ok(WriteTimes { base: run.base, heads, captures, written })
    }

    /// The time at which the attempt wrote the content that a path has in the newest capture. This
    /// is the time of the attempt's own commit with this content, or else the file's modification
    /// time. An attempt can set both to any time. So the time is at most that of the first capture
    /// with this content. A deleted file that no commit deleted has the time of that capture.
    fn of_path(&self, repo: &Repo, path: &TreePath) -> Result<Option<i64>> {
        let Some((newest, _)) = self.captures.first() else { return Ok(None) };
        let entry = merge::entry(repo, newest, path)?;
        let blob = entry.as_ref().map(|(_, blob)| blob);
        let mut first_seen = None;
        for (commit, time) in &self.captures {
            if merge::entry(repo, commit, path)? != entry {
                break;
            }
            first_seen = Some(*time);
        }
        let of_commit = mtimes::commit_time(repo, &self.heads, &self.base, path, blob)?;
        let claimed = of_commit.or_else(|| self.written.get(path).copied());
        Ok(claimed.into_iter().chain(first_seen).min())
    }
}
