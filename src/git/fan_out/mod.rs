//! The fan-out writer: fills several new worktrees with the files of one commit at once.
//!
//! The tree is listed once, and each blob is read and converted once and then written to every
//! worktree (GIT-FACTS, "The checkout writer"). git takes over where this writer could give other
//! files than git would: for a whole repository ([`fallback`]), or for single paths
//! ([`conversion`]).
mod conversion;
mod fallback;
mod template;
mod times;
mod writer;

pub use times::FileTimes;

use crate::error::Result;
use crate::fs::parallel;
use crate::git::fan_out::conversion::Conversion;
use crate::git::fan_out::template::IndexTemplate;
use crate::git::fan_out::writer::Fan;
use crate::git::repo::Repo;
use crate::git::worktree::Worktree;
use crate::model::oid::Oid;

/// The directories that are open at the same time. A process may often open 1,024 files.
const OPEN_DIRECTORIES: usize = 256;

/// Checks the files of `commit` out into registered worktrees without files, whose HEADs are at
/// that commit.
///
/// Whatever this writer fails at, git tries again: then the files, or the message of the failure,
/// are git's.
pub fn populate(
    repo: &Repo,
    worktrees: &[&Worktree],
    commit: &Oid,
    times: FileTimes,
) -> Result<()> {
    let Some(first) = worktrees.first() else { return Ok(()) };
    let left = match write(repo, worktrees, first, commit, times) {
        Ok(left) => left,
        Err(error) => Some(error.message),
    };
    let Some(reason) = left else { return Ok(()) };
    tracing::debug!(%reason, "git checks the files out");
    parallel::map(worktrees, |worktree| {
        worktree.populate()?;
        times.set(worktree);
        Ok(())
    })?;
    Ok(())
}

/// Writes the files and the indexes. Gives the reason if something is left to git.
fn write(
    repo: &Repo,
    worktrees: &[&Worktree],
    first: &Worktree,
    commit: &Oid,
    times: FileTimes,
) -> Result<Option<String>> {
    let gix = repo.open_worktree(&first.path)?;
    if let Some(reason) = fallback::reason(repo, &gix) {
        return Ok(Some(reason));
    }
    let index = repo.index_of(commit)?;
    let template = IndexTemplate::new(&gix, &index, &repo.commit(commit)?.tree)?;
    let conversions = Conversion::all(&first.git(), &gix, &index, commit)?;
    let fan = Fan::new(repo, gix, &index, conversions, times.stamp(&first.path)?);
    // Each worktree needs an open directory on every thread.
    let at_once = (OPEN_DIRECTORIES / parallel::threads()).max(1);
    let mut left = None;
    for group in worktrees.chunks(at_once) {
        let written = fan.write(group)?;
        template.write_indexes(group, &written)?;
        left = left.or(written.left);
    }
    Ok(left)
}
