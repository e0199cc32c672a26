//! The fan-out writer: fills several new worktrees with the files of one commit at once.
//!
//! The tree is listed once, and each blob is read and converted once and then written to every worktree
//! (GIT-FACTS, "The checkout writer"). If this writer could give other files than git would, git writes
//! them: for a whole repository ([`fallback`]), or for single paths ([`conversion`]).
mod conversion;
mod fallback;
mod sharing;
mod writer;

use std::fs;
use std::path::Path;

use gix::index::State;
use rustix::fs::Timestamps;

use crate::error::{Error, IoContext, Result};
use crate::fs::parallel;
use crate::git::cli::Git;
use crate::git::fan_out::conversion::Conversion;
use crate::git::fan_out::sharing::Sharing;
use crate::git::fan_out::writer::{Fan, Place, Written};
use crate::git::file_times::{self, FileTimes};
use crate::git::index::{cached_trees, encoded_with_checksum};
use crate::git::repo::Repo;
use crate::git::worktree::Worktree;
use crate::model::oid::Oid;

/// The most directories that are open at the same time. Many systems let a process open 1,024 files.
const OPEN_DIRECTORIES: usize = 256;

/// Checks out the files of `commit` into registered worktrees without files, whose HEADs are at that
/// commit.
///
/// If this writer fails, git tries again, and writes the files or prints the reason.
pub fn populate(
    repo: &Repo,
    worktrees: &[&Worktree],
    commit: &Oid,
    times: FileTimes,
) -> Result<()> {
    let Some(first) = worktrees.first() else { return Ok(()) };
    let places: Vec<Place<'_>> = worktrees
        .iter()
        .map(|worktree| Place { path: &worktree.path, index: worktree.index() })
        .collect();
    let stamp = times.stamp(&first.path)?;
    let written = match repo.overrides().is_redirected() {
        true => Err(Error::internal("its configuration is replaced while commands run")),
        false => repo
            .open_worktree(&first.path)
            .and_then(|gix| prepare(repo, gix, &first.git(), commit, stamp.clone()))
            .and_then(|fan| write(&fan, &places)),
    };
    if is_written(written) {
        return Ok(());
    }
    parallel::map(worktrees, |worktree| {
        worktree.populate("HEAD")?;
        if let Err(reason) = file_times::set(&worktree.path, &worktree.index(), stamp.as_ref()) {
            // Without these times git needs a little more time later.
            tracing::debug!(reason = reason.message, "files keep their times");
        }
        Ok(())
    })?;
    Ok(())
}

/// Checks out all files of a commit into an empty directory, and writes their index. Ignores a sparse
/// checkout, and changes of the configuration by commands.
pub fn check_out(
    repo: &Repo,
    commit: &Oid,
    into: &Path,
    index: &Path,
    times: FileTimes,
) -> Result<()> {
    let stamp = times.stamp(into)?;
    let git = repo.git().work_tree(into).index(index);
    let written = match repo.overrides().has_other_rules() {
        true => Err(Error::internal("its attributes were changed while commands run")),
        false => prepare(repo, repo.gix(), &git, commit, stamp.clone())
            .and_then(|fan| write(&fan, &[Place { path: into, index: index.to_owned() }])),
    };
    if is_written(written) {
        return Ok(());
    }
    let call = git.call("-c").args(["core.sparseCheckout=false", "read-tree", "--reset", "-u"]);
    call.arg(commit.as_str()).run()?;
    file_times::set(into, index, stamp.as_ref())
}

/// True if all files were written; false if git must write some, for a reason or after a failure.
fn is_written(written: Result<Option<String>>) -> bool {
    let reason = match written {
        Ok(None) => return true,
        Ok(Some(reason)) => reason,
        Err(error) => error.message,
    };
    tracing::debug!(%reason, "git checks the files out");
    false
}

/// True if git would certainly write these entries' blobs as they are, whatever their paths.
pub fn writes_blobs_as_they_are(repo: &Repo, index: &State) -> bool {
    let gix = repo.gix();
    repo.reads_files_as_they_are()
        && !repo.overrides().has_other_rules()
        && fallback::hidden_attributes(repo, &gix).is_none()
        && conversion::decisive_attributes(&gix, index).is_ok_and(|names| names.is_empty())
}

/// Prepares to write the files of a commit; fails with the reason if git must write them. `git` asks about
/// attributes, and `gix` is opened in a new worktree.
fn prepare<'a>(
    repo: &'a Repo,
    gix: gix::Repository,
    git: &Git,
    commit: &Oid,
    times: Option<Timestamps>,
) -> Result<Fan<'a>> {
    if let Some(reason) = fallback::reason(repo, &gix) {
        return Err(Error::internal(reason));
    }
    let index = repo.index_of(commit)?;
    let trees = cached_trees(&gix, &repo.commit(commit)?.tree)?;
    let conversions = Conversion::all(git, &gix, &index, commit)?;
    let gix = gix.into_sync();
    Ok(Fan { repo, gix, index, trees, conversions, times, sharing: Sharing::default() })
}

/// Writes the files and the indexes of these places. Gives the reason if something is left to git.
fn write(fan: &Fan<'_>, places: &[Place<'_>]) -> Result<Option<String>> {
    // Each place needs an open directory on every thread.
    let at_once = (OPEN_DIRECTORIES / parallel::threads()).max(1);
    let mut left = None;
    for group in places.chunks(at_once) {
        let written = fan.write(group)?;
        write_indexes(fan, group, &written)?;
        left = left.or(written.left);
    }
    Ok(left)
}

/// Writes the index of each place, with the stat data of the files that were written. Because of the cached
/// trees, git and a capture need not write the trees of unchanged directories.
fn write_indexes(fan: &Fan<'_>, places: &[Place<'_>], written: &Written) -> Result<()> {
    let all: Vec<usize> = (0..places.len()).collect();
    parallel::map_with(
        &all,
        || State::clone(&fan.index),
        |index, at| {
            let entries = index.entries_mut();
            let stats = written.stats.chunks_exact(places.len());
            for (entry, stats) in written.entries.iter().zip(stats) {
                entries[*entry].stat = stats[*at];
            }
            let file = &places[*at].index;
            fs::write(file, encoded_with_checksum(index, Some(&fan.trees))?)
                .context(|| format!("could not write '{}'", file.display()))
        },
    )?;
    Ok(())
}
