//! Finds the paths that git ignores by the ignore files of a commit.
use std::collections::BTreeMap;

use gix::bstr::ByteSlice;
use gix::index::entry::Mode;
use gix::worktree::stack::state::ignore::Source;

use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The paths in `paths` that git ignores by the `.gitignore` files of `base` and the user's own
/// rules. Each has the path that the rules match: the path itself, or the outermost ignored
/// directory above it. The path of a directory ends in a slash.
pub fn ignored<'p>(
    repo: &Repo,
    base: &Oid,
    paths: impl IntoIterator<Item = &'p TreePath>,
) -> Result<BTreeMap<&'p TreePath, TreePath>> {
    let mut paths = paths.into_iter().peekable();
    let mut found = BTreeMap::new();
    if paths.peek().is_none() {
        return Ok(found);
    }
    let index = repo.index_of(base)?;
    let gix = repo.gix();
    let Ok(mut rules) = gix.excludes(&index, None, Source::IdMapping) else { return Ok(found) };
    let mut is_ignored = |path: &TreePath, mode| {
        rules.at_entry(path.as_bstr(), Some(mode)).is_ok_and(|rule| rule.is_excluded())
    };
    for path in paths {
        // `parents` returns the outermost directory first. For a directory, it also returns the
        // path without the slash.
        let directory = path.parents().find(|above| is_ignored(above, Mode::DIR));
        let matched = directory.or_else(|| {
            (!path.ends_with(b"/") && is_ignored(path, Mode::FILE)).then(|| path.clone())
        });
        found.extend(matched.map(|matched| (path, matched)));
    }
    Ok(found)
}
