//! A candidate's iterations, and the disk space of a run.
use crate::error::Result;
use crate::fs::tree;
use crate::git::capture;
use crate::git::diff::{self, Change, ChangeStatus};
use crate::model::candidate::Capture;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;

/// One capture of a candidate.
pub struct Iteration {
    /// The capture.
    pub capture: Capture,
    /// The time of the capture, in seconds since 1970.
    pub time: i64,
    /// The capture's changes against the base.
    pub changes: Vec<Change>,
    /// The capture's changes against the iteration before.
    pub step: Vec<Change>,
}

impl Iteration {
    /// Lines added and deleted against the base; a binary file counts none.
    pub fn lines(&self) -> (u64, u64) {
        self.changes
            .iter()
            .filter_map(|c| c.lines)
            .fold((0, 0), |sum, lines| (sum.0 + lines.0, sum.1 + lines.1))
    }

    /// The paths of the step that have one of these statuses.
    pub fn stepped(&self, statuses: &[ChangeStatus]) -> impl Iterator<Item = &[u8]> {
        self.step.iter().filter(move |c| statuses.contains(&c.status)).map(|c| c.path.as_bytes())
    }
}

/// All iterations of a candidate, oldest first.
pub fn iterations(session: &Session, candidate: CandidateRef<'_>) -> Result<Vec<Iteration>> {
    let repo = &session.repo;
    let Some(tip) = repo.read_ref(&candidate.capture_ref())? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut before = repo.commit(&candidate.run.base)?.tree;
    for (at, (commit, read)) in
        capture::chain(repo, &tip, &candidate.run.base)?.into_iter().rev().enumerate()
    {
        let iteration =
            trailer::iteration(&read.message).unwrap_or(u32::try_from(at + 1).unwrap_or(u32::MAX));
        let changes = diff::changes(repo, &candidate.run.base, &candidate.run.base, &read.tree)?;
        let step = diff::changes(repo, &candidate.run.base, &before, &read.tree)?;
        before = read.tree;
        found.push(Iteration {
            capture: Capture { commit, tree: read.tree, iteration },
            time: read.time,
            changes,
            step,
        });
    }
    Ok(found)
}

/// The bytes that a run takes on disk.
pub struct Disk {
    /// The run's worktrees.
    pub worktrees: u64,
    /// The run's records and logs.
    pub records: u64,
    /// The objects that nothing else in the repository reaches.
    pub objects: u64,
}

impl Disk {
    /// Measures a run.
    pub fn of(session: &Session, run: &Run) -> Result<Disk> {
        let Session { repo, store, .. } = session;
        let (ours, others): (Vec<(RefName, Oid)>, _) =
            repo.refs_under("refs/")?.into_iter().partition(|(name, _)| {
                let belongs = |prefix: &str| {
                    name.strip_prefix(prefix)
                        .is_some_and(|r| r.starts_with(&format!("{}/", run.run)))
                };
                belongs("refs/frites/") || belongs("refs/heads/frites/run/")
            });
        let others = others.into_iter().map(|(_, oid)| oid).chain(repo.head());
        Ok(Disk {
            worktrees: store.candidates(run).map(|c| tree::disk_usage(&c.worktree())).sum(),
            records: tree::disk_usage(&store.run_dir(&run.run)),
            objects: repo.bytes_of(ours.into_iter().map(|(_, oid)| oid), others)?,
        })
    }

    /// The sum.
    pub fn total(&self) -> u64 {
        self.worktrees + self.records + self.objects
    }
}
