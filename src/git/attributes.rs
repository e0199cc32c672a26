//! git's attributes, as far as git-frites must know them: whether they leave a file alone.
//! Without that, no comparison could be made in process ([`crate::git::text`] says what this is for).
use gix::bstr::ByteSlice;
use gix::index::entry::Mode;
use gix::worktree::stack::state::attributes::Source;

use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The file in which attributes are stored.
pub(super) const FILE: &[u8] = b".gitattributes";

/// True if no attribute of the commit `base` says how one of these paths is compared; `None` if
/// they cannot be read.
pub(super) fn leave_comparison<'a>(
    repo: &Repo,
    base: &Oid,
    paths: impl Iterator<Item = &'a TreePath>,
) -> Option<bool> {
    if repo.common_dir().join("info/attributes").exists() {
        return Some(false);
    }
    let index = repo.index_of(base).ok()?;
    let has_rules = index.entries().iter().any(|e| e.path(&index).ends_with(FILE));
    if !has_rules {
        return Some(true);
    }
    let gix = repo.gix();
    let mut stack = gix.attributes_only(&index, Source::IdMapping).ok()?;
    let mut found = stack.selected_attribute_matches(["diff"]);
    for path in paths {
        let place = stack.at_entry(path.as_bstr(), Some(Mode::FILE)).ok()?;
        place.matching_attributes(&mut found);
        if !found.iter_selected().all(|attribute| attribute.assignment.state.is_unspecified()) {
            return Some(false);
        }
    }
    Some(true)
}
