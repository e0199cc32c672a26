//! Counts the lines that an attempt has changed so far, while the attempt still works. Reads
//! little, and writes nothing.
use std::collections::BTreeSet;

use gix::bstr::ByteSlice;

use crate::git::capture::private_index::trustworthy_index;
use crate::git::capture::source::CaptureSource;
use crate::git::capture::{staging, walk};
use crate::git::repo::Repo;
use crate::git::text::TextChange;
use crate::git::trees;
use crate::model::path::TreePath;

/// If more files than this have changed, their lines are not counted.
const MOST: usize = 500;

/// The largest file whose lines are counted, in bytes.
const LARGEST: u64 = 1 << 20;

/// The numbers of lines that were added and deleted in a worktree since the base. Only files whose
/// stat data have changed are read. `None` if a capture would need git, or if there is too much to
/// read.
pub fn lines_changed(repo: &Repo, source: &CaptureSource<'_>) -> Option<(u64, u64)> {
    let index = trustworthy_index(source.index)?;
    let listing = walk::list(repo, source.worktree, &index).ok()??;
    let gix = repo.gix();
    let mut paths: BTreeSet<TreePath> =
        listing.changed.into_iter().chain(listing.deleted).collect();
    paths.extend(listing.untracked.into_iter().filter(|path| {
        !source.hidden.hides(path) && !source.seeds.still_hold(source.worktree, path)
    }));
    // The walk compared the files with the private index, which has the last capture. Here the
    // differences between the base and the last capture are added.
    if let Some(previous) = source.previous {
        let captured = trees::differences(repo, source.base, &previous.tree)?;
        paths.extend(captured.into_iter().map(|difference| difference.path));
    }
    if paths.len() > MOST {
        return None;
    }
    let mut sum = (0, 0);
    for path in &paths {
        let before = match repo.id_at(source.base, path.as_bstr()) {
            Some(id) => gix.find_object(id).ok()?.detach().data,
            None => Vec::new(),
        };
        let after = staging::read(source.worktree, path, LARGEST)?;
        let after = after.map(|content| content.bytes).unwrap_or_default();
        // A binary file has no lines.
        let (added, deleted) = TextChange::new(&before, &after).map_or((0, 0), |text| text.lines());
        sum = (sum.0 + added, sum.1 + deleted);
    }
    Some(sum)
}
