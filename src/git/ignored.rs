//! Finds the paths that git ignores by the ignore files of a commit.
use std::collections::BTreeSet;

use gix::bstr::ByteSlice;
use gix::index::entry::Mode;
use gix::worktree::stack::state::ignore::Source;

use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The files in `files` that git ignores by the `.gitignore` files of `base` and the user's own rules. If a
/// directory is ignored, the result has the directory in place of its files.
pub fn ignored<'p>(
    repo: &Repo,
    base: &Oid,
    files: impl Iterator<Item = &'p TreePath>,
) -> Result<BTreeSet<TreePath>> {
    let mut files = files.peekable();
    let mut found = BTreeSet::new();
    if files.peek().is_none() {
        return Ok(found);
    }
    let index = repo.index_of(base)?;
    let gix = repo.gix();
    let Ok(mut rules) = gix.excludes(&index, None, Source::IdMapping) else { return Ok(found) };
    let mut is_ignored = |path: &TreePath, mode| {
        rules.at_entry(path.as_bstr(), Some(mode)).is_ok_and(|rule| rule.is_excluded())
    };
    for file in files {
        // `parents` returns the outermost directory first.
        let directory = file.parents().find(|path| is_ignored(path, Mode::DIR));
        found.extend(directory.or_else(|| is_ignored(file, Mode::FILE).then(|| file.clone())));
    }
    Ok(found)
}
