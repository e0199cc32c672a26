//! The fan-out writer: fills several new worktrees with the files of one commit at once.
//!
//! The tree is listed once. Each blob is read and converted once, and then written to every
//! worktree (GIT-FACTS, "The checkout writer"). If this writer might write other bytes than git,
//! git writes all files ([`reason_for_git`]), or the single paths in question ([`conversion`]).
mod conversion;
mod sharing;
mod writer;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::index::State;
use gix::index::extension::Tree;
use rustix::fs::Timestamps;

use crate::error::{Error, IoContext, Result};
use crate::fs::{parallel, regular};
use crate::git::cli::Git;
use crate::git::fan_out::conversion::Conversion;
use crate::git::fan_out::sharing::Sharing;
use crate::git::fan_out::writer::{Fan, Place, Written};
use crate::git::file_times::{self, FileTimes};
use crate::git::index::{cached_trees, encoded_with_checksum};
use crate::git::program;
use crate::git::repo::{Repo, is_partial_clone};
use crate::git::worktree::Worktree;
use crate::model::oid::Oid;

/// The largest number of directories that are open at the same time. Many systems let a process
/// open 1,024 files.
const OPEN_DIRECTORIES: usize = 256;

/// Checks out the files of `commit` into the worktrees `new`. The worktrees are registered, have no
/// files yet, and have their HEAD at `commit`.
///
/// If this writer fails, git checks out the files instead. If git fails, too, git's error is
/// returned.
pub fn populate(repo: &Repo, new: &[&Worktree], commit: &Oid, times: FileTimes) -> Result<()> {
    let Some(first) = new.first() else { return Ok(()) };
    let places: Vec<Place<'_>> =
        new.iter().map(|one| Place { path: &one.path, index: one.index() }).collect();
    let stamp = times.stamp(&first.path)?;
    let written = match repo.overrides().is_redirected() {
        true => Err(Error::internal("its configuration is replaced while commands run")),
        false => repo
            .open_worktree(&first.path)
            .and_then(|gix| prepare(repo, gix, &first.git(), commit, stamp.clone()))
            .and_then(|fan| write(&fan, commit, &places)),
    };
    if is_written(written) {
        return Ok(());
    }
    parallel::map(new, |worktree| {
        worktree.populate("HEAD")?;
        if let Err(reason) = file_times::set(&worktree.path, &worktree.index(), stamp.as_ref()) {
            // With the current times, git must read some files again later.
            tracing::debug!(reason = reason.message, "files keep their times");
        }
        Ok(())
    })
    .map(drop)
}

/// Checks out all files of a commit into an empty directory, and writes their index. Ignores a
/// sparse checkout, and ignores changes that commands made to the configuration.
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
            .and_then(|fan| write(&fan, commit, &[Place { path: into, index: index.to_owned() }])),
    };
    if is_written(written) {
        return Ok(());
    }
    let call = git.call("-c").args(["core.sparseCheckout=false", "read-tree", "--reset", "-u"]);
    call.arg(commit.as_str()).run()?;
    file_times::set(into, index, stamp.as_ref())
}

/// Writes the entries `some` of the index `all` into the empty directory `into`, and no index. The
/// attributes are those of `commit`: `all` must have the same attributes files. Returns false if git
/// must write the files. Then some of them may be there already.
pub fn check_out_some(
    repo: &Repo,
    commit: &Oid,
    all: &State,
    some: gix::index::File,
    into: &Path,
) -> bool {
    is_written(write_some(repo, commit, all, some, into))
}

/// Does the work of [`check_out_some`]. If git must write a file, fails with the reason.
fn write_some(
    repo: &Repo,
    commit: &Oid,
    all: &State,
    some: gix::index::File,
    into: &Path,
) -> Result<()> {
    if repo.overrides().has_other_rules() {
        return Err(Error::internal("its attributes were changed while commands run"));
    }
    let gix = usable(repo, repo.gix())?;
    let conversions = Conversion::of_some(&repo.git(), &gix, all, &some, commit)?;
    let index = Arc::new(some);
    let gix = gix.into_sync();
    let fan = Fan { repo, gix, index, conversions, times: None, sharing: Sharing::default() };
    let written = fan.write(&[Place { path: into, index: PathBuf::new() }])?;
    written.left.map_or(Ok(()), |reason| Err(Error::internal(reason)))
}

/// True if all files were written. False if git must write files, because this writer left a file
/// to git or failed.
fn is_written(written: Result<()>) -> bool {
    written
        .inspect_err(|error| tracing::debug!(reason = error.message, "git checks the files out"))
        .is_ok()
}

/// Prepares to write the files of a commit. If git must write the files, fails with the reason.
/// `git` is used to ask for attributes. `gix` has the configuration for the new files.
fn prepare<'a>(
    repo: &'a Repo,
    gix: gix::Repository,
    git: &Git,
    commit: &Oid,
    times: Option<Timestamps>,
) -> Result<Fan<'a>> {
    let gix = usable(repo, gix)?;
    let index = repo.index_of(commit)?;
    let conversions = Conversion::of_some(git, &gix, &index, &index, commit)?;
    let gix = gix.into_sync();
    Ok(Fan { repo, gix, index, conversions, times, sharing: Sharing::default() })
}

/// Returns `gix`. If git must write the files, fails with the reason.
fn usable(repo: &Repo, gix: gix::Repository) -> Result<gix::Repository> {
    match reason_for_git(repo, &gix) {
        Some(reason) => Err(Error::internal(reason)),
        None => Ok(gix),
    }
}

/// Writes the files and the indexes of these places. If a file is left to git, fails with the
/// reason.
fn write(fan: &Fan<'_>, commit: &Oid, places: &[Place<'_>]) -> Result<()> {
    let trees = cached_trees(&fan.gix.to_thread_local(), &fan.repo.commit(commit)?.tree)?;
    // Every thread opens one directory in each place of the group.
    let at_once = (OPEN_DIRECTORIES / parallel::threads()).max(1);
    let mut left = None;
    for group in places.chunks(at_once) {
        let written = fan.write(group)?;
        write_indexes(fan, &trees, group, &written)?;
        left = left.or(written.left);
    }
    left.map_or(Ok(()), |reason| Err(Error::internal(reason)))
}

/// Writes the index of each place, with the stat data of the written files. Also writes cached
/// trees into the index. So neither git nor a capture has to write the trees of unchanged
/// directories.
fn write_indexes(
    fan: &Fan<'_>,
    trees: &Tree,
    places: &[Place<'_>],
    written: &Written,
) -> Result<()> {
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
            fs::write(file, encoded_with_checksum(index, Some(trees))?).could_not("write", file)
        },
    )?;
    Ok(())
}

/// The reason why git must check out the files of a repository. `None` if the fan-out writer writes
/// the same files. `gix` was opened in one of two ways:
///
/// - in a new worktree, because its configuration may differ from that of the user's checkout;
/// - in the user's repository, when this process started and no command had run yet.
fn reason_for_git(repo: &Repo, gix: &gix::Repository) -> Option<String> {
    let config = gix.config_snapshot();
    let is = |key: &str, value: bool| config.boolean(key) == Some(value);
    let info = repo.common_dir().join("info/attributes");
    let reasons = [
        ("it is a partial clone", is_partial_clone(gix)),
        ("its checkouts are sparse", is("core.sparseCheckout", true)),
        ("core.fileMode is false", is("core.fileMode", false)),
        ("core.symlinks is false", is("core.symlinks", false)),
        ("core.precomposeUnicode is true", is("core.precomposeUnicode", true)),
        // git tests the file system in the same way when it makes a repository.
        ("file names do not differ by case", repo.common_dir().join("hEAD").exists()),
        // gix would not see the attributes in these places.
        ("attr.tree is set", config.string("attr.tree").is_some()),
        ("'info/attributes' is not a regular file", info.exists() && regular::open(&info).is_err()),
        ("git has attributes of its own", installed_attributes()),
    ];
    reasons.into_iter().find(|(_, applies)| *applies).map(|(reason, _)| reason.to_owned())
}

/// True if the git program has an `etc/gitattributes` in the directory where it is installed. gix
/// does not read that file.
fn installed_attributes() -> bool {
    std::env::var_os("GIT_ATTR_NOSYSTEM").is_none()
        && program::file_of_prefix("etc/gitattributes").is_some()
}
