//! Protected paths: paths that a candidate must not change.
use crate::error::Result;
use crate::git::cli::nul_separated;
use crate::git::index::{IndexEdits, ScratchIndex};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// Restores in `tree` the paths that the pathspecs `protect` match to their state in `base`.
///
/// Gives the restored tree and the paths whose changes were dropped; `tree` itself if there were
/// none.
pub fn protected(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    protect: &[String],
) -> Result<(Oid, Vec<TreePath>)> {
    if protect.is_empty() {
        return Ok((*tree, Vec::new()));
    }
    let hint = "protected paths are pathspecs from the root: see `git help glossary`, pathspec";
    let diff = repo.git().call("diff-tree").args(["-r", "-z", "--no-renames"]);
    let changes = diff
        .args([base.as_str(), tree.as_str(), "--"])
        .args(protect)
        .bytes()
        .map_err(|e| e.hint(hint))?;
    let mut records = nul_separated(&changes);
    let mut edits = IndexEdits::default();
    while let (Some(head), Some(path)) = (records.next(), records.next()) {
        let mut fields = head.strip_prefix(b":").unwrap_or(head).split(|b| *b == b' ');
        let (Some(mode), Some(id)) = (fields.next(), fields.nth(1)) else { continue };
        if mode == b"000000" {
            edits.remove(path, base);
        } else {
            edits.set(String::from_utf8_lossy(mode), String::from_utf8_lossy(id), path);
        }
    }
    if edits.is_empty() {
        return Ok((*tree, Vec::new()));
    }
    let scratch = ScratchIndex::from_tree(&repo.git(), tree)?;
    scratch.edit(edits)?;
    let restored = scratch.write_tree()?;
    let call = repo.git().call("diff-tree").args(["-r", "-z", "--no-renames", "--name-only"]);
    let dropped = call.args([tree.as_str(), restored.as_str()]).bytes()?;
    Ok((restored, nul_separated(&dropped).map(TreePath::new).collect()))
}
