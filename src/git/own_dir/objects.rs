//! Fetches objects from an object directory that an attempt wrote to.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::error::{Error, IoContext, Result};
use crate::fs::tree::path_bytes;
use crate::git::repo::{Repo, from_oid};
use crate::model::oid::Oid;

/// A repository of ours that shows the objects of an attempt: no setting or ref of the attempt's is
/// used.
struct ObjectView(TempDir);

/// Fetches these objects, and all that they need, unless the repository has them. `room` is a
/// directory for temporary files. Each object is checked, as with `fetch.fsckObjects`. Objects that
/// are damaged, or lack others, are left out: nothing can bring those back.
pub(super) fn fetch(
    repo: &Repo,
    objects: &Path,
    room: &Path,
    mut wanted: BTreeSet<Oid>,
) -> Result<()> {
    let gix = repo.gix();
    wanted.retain(|oid| from_oid(oid).is_ok_and(|id| gix.find_header(id).is_err()));
    if wanted.is_empty() {
        return Ok(());
    }
    let view = ObjectView::make(repo, objects, room)?;
    let present = view.present(repo, &wanted)?;
    if present.is_empty() {
        return Ok(());
    }
    let Err(error) = view.fetch(repo, &present) else { return Ok(()) };
    if present.len() == 1 {
        tracing::debug!(error = error.message, "an object of an attempt is damaged");
        return Ok(());
    }
    for one in present {
        if let Err(error) = view.fetch(repo, &BTreeSet::from([one])) {
            tracing::debug!(%one, error = error.message, "an object of an attempt is damaged");
        }
    }
    Ok(())
}

impl ObjectView {
    fn make(repo: &Repo, objects: &Path, room: &Path) -> Result<ObjectView> {
        let failed = || "could not prepare to fetch an attempt's objects".to_owned();
        let dir = tempfile::tempdir_in(room).context(failed)?;
        let view = dir.path();
        let mut config = "[core]\n\tbare = true\n\trepositoryFormatVersion = 1\n\
                          [uploadpack]\n\tallowAnySHA1InWant = true\n"
            .to_owned();
        if let Some(format) = repo.gix().config_snapshot().string("extensions.objectFormat") {
            config.push_str(&format!("[extensions]\n\tobjectFormat = {format}\n"));
        }
        let mut alternates = Vec::new();
        for place in [objects, &repo.common_dir().join("objects")] {
            if path_bytes(place).contains(&b'\n') {
                return Err(Error::fatal("a path of the repository has a line break in it")
                    .hint("move the repository, or set `spawn.guard` to off"));
            }
            alternates.extend_from_slice(path_bytes(place));
            alternates.push(b'\n');
        }
        fs::create_dir_all(view.join("objects/info"))
            .and_then(|()| fs::create_dir(view.join("refs")))
            .and_then(|()| fs::write(view.join("HEAD"), "ref: refs/heads/none\n"))
            .and_then(|()| fs::write(view.join("config"), config))
            .and_then(|()| fs::write(view.join("objects/info/alternates"), alternates))
            .context(failed)?;
        Ok(ObjectView(dir))
    }

    /// Those of the objects that are there.
    fn present(&self, repo: &Repo, wanted: &BTreeSet<Oid>) -> Result<BTreeSet<Oid>> {
        let call = repo.git_at(self.0.path()).call("cat-file").arg("--batch-check=%(objectname)");
        let answer = call.stdin(lines(wanted)).bytes()?;
        let text = String::from_utf8_lossy(&answer);
        // Of others the line says `missing`, too.
        Ok(text.lines().filter_map(Oid::parse).collect())
    }

    fn fetch(&self, repo: &Repo, wanted: &BTreeSet<Oid>) -> Result<()> {
        let call = repo.git().call("-c").arg("fetch.fsckObjects=true");
        let call = call.args(["-c", "protocol.file.allow=always", "fetch-pack", "--quiet"]);
        call.args(["--no-progress", "--stdin"]).arg(self.0.path()).stdin(lines(wanted)).run()
    }
}

fn lines(ids: &BTreeSet<Oid>) -> String {
    ids.iter().map(|oid| format!("{oid}\n")).collect()
}
