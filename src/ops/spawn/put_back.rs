//! Restores an attempt to its state before a round, if the round made the attempt worse or was
//! interrupted.
use std::path::Path;

use crate::error::{Error, Result};
use crate::git::index::ScratchIndex;
use crate::git::merge;
use crate::git::mode::EntryMode;
use crate::model::candidate::Candidate;
use crate::model::oid::Oid;
use crate::model::path::{TreePath, quoted};
use crate::ops::confined_git;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;

/// Replaces the files in the candidate's worktree by the files of the tree `wanted`, if there is a
/// worktree. Sets the candidate's state and maker to those in `record`. Captures the worktree
/// before and after. Fails if this would overwrite files that no capture has. The caller holds the
/// run's lock.
pub fn put_back(
    session: &Session,
    candidate: CandidateRef<'_>,
    wanted: &Oid,
    record: &Candidate,
) -> Result<()> {
    let omissions = session.capture(candidate)?.omissions;
    let base = session.repo.commit(&candidate.run.base)?.tree;
    let now = candidate.latest()?.map_or(base, |capture| capture.tree);
    let worktree = candidate.worktree();
    // git would overwrite ignored files, and would delete the directory of a nested repository that
    // has no files.
    let is_file = |path: &TreePath| {
        let entry = merge::entry(&session.repo, wanted, path);
        entry.map_or(true, |it| it.is_some_and(|(mode, _)| mode != EntryMode::Directory))
    };
    let in_the_way = |path: &&TreePath| is_file(path) || path.parents().any(|p| is_file(&p));
    let lost = omissions.unholdable.keys().find(|path| path.on_disk(&worktree).is_dir());
    if let Some(path) = lost.or_else(|| omissions.newly_ignored.iter().find(in_the_way)) {
        return Err(Error::no(format!("no capture holds {}", quoted(path.as_bytes()))));
    }
    if worktree.is_dir() {
        write_files(session, &worktree, &now, wanted)?;
    }
    candidate.update(|c| {
        c.state = record.state;
        c.end.clone_from(&record.end);
        c.reason.clone_from(&record.reason);
        c.maker.clone_from(&record.maker);
    })?;
    session.print_omissions(&session.capture(candidate)?);
    Ok(())
}

/// Replaces the files of tree `now` by the files of tree `wanted`. Uses a separate index, so that
/// the attempt's index and the settings for sparse checkouts have no effect. git fails rather than
/// overwrite other files.
///
/// git runs in a world in which it can write only to this worktree and to the index. Otherwise,
/// another attempt with an open descriptor of a directory in the worktree could replace directories
/// by links to other places.
fn write_files(session: &Session, worktree: &Path, now: &Oid, wanted: &Oid) -> Result<()> {
    let index = ScratchIndex::from_tree(&session.repo.git().work_tree(worktree), now)?;
    // Refresh the index, so that git does not write unchanged files again.
    let _ = index.git().refresh();
    let world = confined_git::world_of_git(&session.store, worktree, index.directory());
    let git = index.git().clone().confined_to(world);
    let call = git.call("-c").args(["core.sparseCheckout=false", "read-tree", "-m", "-u"]);
    call.args([now.as_str(), wanted.as_str()]).confined()?.run()
}
