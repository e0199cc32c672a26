//! Protected paths: a tree without the changes to them.
use crate::error::{IoContext, Result};
use crate::git::cli::nul_separated;
use crate::git::repo::Repo;
use crate::model::oid::Oid;

/// A commit's tree where what `protect` (pathspecs) matches is as in `base`; and the paths of which a
/// change was dropped. The tree itself if there was none.
pub fn protected(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    protect: &[String],
) -> Result<(Oid, Vec<Vec<u8>>)> {
    if protect.is_empty() {
        return Ok((*tree, Vec::new()));
    }
    let compare = |to: &str, paths: &[String]| {
        let call = repo.git().call("diff-tree").args([
            "-r",
            "-z",
            "--no-renames",
            base.as_str(),
            to,
            "--",
        ]);
        call.args(paths).bytes().map_err(|e| {
            e.hint("`--protect` and oracle.protect take pathspecs from the root: see `git help glossary`, pathspec")
        })
    };
    let changes = compare(tree.as_str(), protect)?;
    let mut records = nul_separated(&changes);
    let mut lines = Vec::new();
    while let (Some(head), Some(path)) = (records.next(), records.next()) {
        let mut fields = head.strip_prefix(b":").unwrap_or(head).split(|b| *b == b' ');
        let (Some(mode), _, Some(id)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        // Mode 0 removes the path.
        let mode = if mode == b"000000" { b"0" } else { mode };
        lines.extend([mode, b" ", id, b"\t", path, b"\0"].concat());
    }
    if lines.is_empty() {
        return Ok((*tree, Vec::new()));
    }
    let dir = tempfile::tempdir().context(|| "could not make a temporary index".into())?;
    let git = repo.git().index(&dir.path().join("index"));
    git.call("read-tree").arg(tree.as_str()).run()?;
    git.call("update-index")
        .args(["-z", "--add", "--remove", "--replace", "--index-info"])
        .stdin(lines)
        .run()?;
    let restored = git.call("write-tree").oid()?;
    let call = repo.git().call("diff-tree").args(["-r", "-z", "--no-renames", "--name-only"]);
    let dropped = call.args([tree.as_str(), restored.as_str()]).bytes()?;
    Ok((restored, nul_separated(&dropped).map(<[u8]>::to_vec).collect()))
}
