//! A candidate's newest capture, all its iterations, and the disk space of a run.
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::fs::tree;
use crate::git::diff::{self, Change, ChangeStatus};
use crate::git::refs;
use crate::git::repo::Repo;
use crate::model::FORMAT;
use crate::model::blast::Blast;
use crate::model::candidate::{Candidate, Capture};
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer;
use crate::store::Store;
use crate::store::candidate::CandidateRef;
use crate::store::records::{read_toml, write_toml};

/// One capture of a candidate.
pub struct Iteration {
    pub capture: Capture,
    /// The time of the capture, in seconds since 1970.
    pub time: i64,
    /// The user's message for this capture, if any.
    pub message: Option<String>,
    /// The capture's changes since the base.
    pub changes: Vec<Change>,
    /// The capture's changes since the iteration before it.
    pub step: Vec<Change>,
}

impl Iteration {
    /// The numbers of lines added and deleted since the base. Binary files are not counted.
    pub fn lines(&self) -> (u64, u64) {
        self.changes
            .iter()
            .filter_map(|c| c.lines)
            .fold((0, 0), |sum, lines| (sum.0 + lines.0, sum.1 + lines.1))
    }

    /// The paths in `step` whose change has one of these statuses.
    pub fn stepped(&self, statuses: &[ChangeStatus]) -> impl Iterator<Item = &[u8]> {
        self.step.iter().filter(move |c| statuses.contains(&c.status)).map(|c| c.path.as_bytes())
    }
}

/// A candidate's newest capture and its blast radius; `None` if nothing was ever captured. The
/// blast radius is read from the commit message.
pub fn newest(repo: &Repo, candidate: CandidateRef<'_>) -> Result<Option<(Capture, Blast)>> {
    let Some(commit) = repo.read_ref(&candidate.capture_ref())? else { return Ok(None) };
    let read = repo.commit(&commit)?;
    let blast = trailer::blast(&read.message).unwrap_or_default();
    let iteration = trailer::iteration(&read.message).unwrap_or(1);
    Ok(Some((Capture { commit, tree: read.tree, iteration }, blast)))
}

/// All iterations of a candidate, oldest first.
pub fn iterations(repo: &Repo, candidate: CandidateRef<'_>) -> Result<Vec<Iteration>> {
    let mut found: Vec<Iteration> = Vec::new();
    let mut before = repo.commit(&candidate.run.base)?.tree;
    for (at, (commit, read)) in candidate.captures()?.into_iter().rev().enumerate() {
        let iteration =
            trailer::iteration(&read.message).unwrap_or(u32::try_from(at + 1).unwrap_or(u32::MAX));
        if let Some(last) = found.last_mut().filter(|last| last.capture.iteration == iteration) {
            // This commit has the same iteration as the one before, and the same files. It only
            // stores how the attempt ended.
            last.capture.commit = commit;
            continue;
        }
        let changes = diff::since(repo, &candidate.run.base, &read.tree).changes()?;
        let step = diff::between(repo, &candidate.run.base, &before, &read.tree).changes()?;
        before = read.tree;
        found.push(Iteration {
            capture: Capture { commit, tree: read.tree, iteration },
            time: read.time,
            message: trailer::body(&read.message).map(str::to_owned),
            changes,
            step,
        });
    }
    Ok(found)
}

/// The disk space of a run when it was last measured.
pub struct DiskUse {
    /// The bytes of the run's worktrees.
    pub worktrees: u64,
    /// The disk space of the rest of the run.
    pub rest: MeasuredRun,
}

/// `runs/RUN/disk.toml`: the disk space of a run without its worktrees.
#[derive(Default, Serialize, Deserialize)]
pub struct MeasuredRun {
    /// The record's format.
    pub version: u32,
    /// The bytes of the run's records and logs.
    pub records: u64,
    /// The bytes of the objects that only this run's refs reach.
    pub objects: u64,
    /// The time of the measurement; `None` if the run was never measured.
    pub measured: Option<jiff::Timestamp>,
}

impl DiskUse {
    /// The disk space of a run whose candidates have these records. Measures nothing.
    pub fn stored<'a>(
        store: &Store,
        run: &Run,
        candidates: impl Iterator<Item = &'a Candidate>,
    ) -> DiskUse {
        let rest = read_toml(&store.run_dir(&run.run).disk()).unwrap_or_default();
        DiskUse { worktrees: candidates.map(Candidate::bytes_now).sum(), rest }
    }

    /// The sum of all parts, in bytes.
    pub fn total(&self) -> u64 {
        self.worktrees + self.rest.records + self.rest.objects
    }
}

/// Measures the disk space of a run and of its candidates, and records it.
pub fn measure(store: &Store, run: &Run) -> Result<()> {
    let repo = store.repo();
    for candidate in store.candidates(run) {
        let bytes = tree::disk_usage(&candidate.worktree());
        if candidate.record()?.bytes != bytes {
            candidate.update(|record| record.bytes = bytes)?;
        }
    }
    let (ours, others): (Vec<(RefName, Oid)>, _) =
        repo.refs_under("refs/")?.into_iter().partition(|(name, _)| {
            let belongs = |prefix: &str| {
                name.strip_prefix(prefix).is_some_and(|r| r.starts_with(&format!("{run}/")))
            };
            belongs("refs/frites/") || belongs(refs::ATTEMPT_BRANCHES)
        });
    let others = others.into_iter().map(|(_, oid)| oid).chain(repo.head());
    let measured = MeasuredRun {
        version: FORMAT,
        records: tree::disk_usage(store.run_dir(&run.run).path()),
        objects: repo.bytes_of(ours.into_iter().map(|(_, oid)| oid), others)?,
        measured: Some(jiff::Timestamp::now()),
    };
    write_toml(&store.run_dir(&run.run).disk(), &measured)
}
