//! Fetches objects from the object directory of an attempt's own git directory.
use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;

use crate::error::{Cause, Error, IoContext, Result};
use crate::fs::tree::path_bytes;
use crate::fs::{regular, walk};
use crate::git::cli::Git;
use crate::git::own_dir::files;
use crate::git::repo::{Repo, from_oid};
use crate::model::oid::Oid;

/// A temporary repository with the objects of an attempt. It has none of the attempt's settings,
/// refs and alternates, and no FIFO for which git would wait.
pub(super) struct ObjectView(TempDir);

/// The objects that could not be fetched.
pub(super) struct Lost {
    /// All objects that could not be fetched.
    pub lost: BTreeSet<Oid>,
    /// The objects that exist in the attempt's directory, but are damaged or need a damaged object.
    pub damaged: BTreeSet<Oid>,
}

/// Fetches the objects `wanted` from the directory `objects`, with everything that is reachable
/// from them. Objects that the repository has are not fetched. Each object is checked, as with
/// `fetch.fsckObjects`. Temporary files are made in `room`. Returns the objects in `wanted` that
/// could not be fetched.
pub(super) fn fetch(
    repo: &Repo,
    objects: &Path,
    room: &Path,
    mut wanted: BTreeSet<Oid>,
) -> Result<Lost> {
    let mut damaged = BTreeSet::new();
    let keep_missing = |wanted: &mut BTreeSet<Oid>| {
        // The index of an attempt lists all files, so all of them are looked up with one handle.
        let gix = repo.gix();
        // Any file can contain an id of another length. No object here has such an id.
        wanted.retain(|oid| from_oid(oid).is_ok_and(|id| gix.find_header(id).is_err()));
    };
    // There are two tries. During the first one, a running attempt may be moving its objects into a
    // pack.
    for _ in 0..2 {
        keep_missing(&mut wanted);
        if wanted.is_empty() {
            break;
        }
        let view = ObjectView::make(repo, objects, room, &[repo.common_dir()])?;
        damaged = fetch_once(repo, &view, &wanted)?;
    }
    keep_missing(&mut wanted);
    damaged.retain(|oid| wanted.contains(oid));
    Ok(Lost { lost: wanted, damaged })
}

/// The largest number of fetches in one try. Each fetch starts git, and an attempt decides how many
/// objects are damaged.
const MOST_FETCHES: usize = 100;

/// Fetches the objects that are present. If a fetch fails, fetches each half of its objects. So one
/// damaged object among many costs few fetches. Fails if this needs more than [`MOST_FETCHES`].
/// Returns the objects that are present.
fn fetch_once(repo: &Repo, view: &ObjectView, wanted: &BTreeSet<Oid>) -> Result<BTreeSet<Oid>> {
    let present = view.present(repo, wanted)?;
    let mut groups = VecDeque::from([Vec::from_iter(present.iter().copied())]);
    for _ in 0..MOST_FETCHES {
        let Some(mut group) = groups.pop_front() else { return Ok(present) };
        if group.is_empty() || is_done(view.fetch(repo, &group))? || group.len() == 1 {
            continue;
        }
        let second_half = group.split_off(group.len() / 2);
        groups.extend([group, second_half]);
    }
    Err(Error::fatal("the attempt's git directory has too many damaged objects")
        .hint("its worktree is as it was; `git frites clean --discard` removes it"))
}

/// True if a fetch succeeded, false if it failed because of its objects. Fails if the fetch was
/// interrupted or the disk is full. Then a later capture tries again.
fn is_done(fetched: Result<()>) -> Result<bool> {
    match fetched {
        Err(e) if matches!(e.cause, Cause::Interrupted | Cause::StorageFull) => Err(e),
        Err(error) => {
            tracing::debug!(error = error.message, "an object of an attempt is damaged");
            Ok(false)
        }
        Ok(()) => Ok(true),
    }
}

/// Links or copies the files with objects below `from` to `to`. Other files, such as
/// `info/alternates` or a commit graph, are not needed. git would wait if one of them were a FIFO.
fn show(from: &Path, to: &Path) -> io::Result<()> {
    if !files::is_directory(from) {
        return Ok(());
    }
    for (path, kind) in walk::list(from, |_| false) {
        if kind.is_file() && holds_objects(&path) {
            let target = to.join(&path);
            fs::create_dir_all(target.parent().unwrap_or(to))?;
            show_file(&from.join(&path), &target)?;
        }
    }
    Ok(())
}

/// True if the path is that of a loose object, a pack or the index of a pack.
fn holds_objects(path: &Path) -> bool {
    let Some((dir, name)) = path.to_str().and_then(|path| path.split_once('/')) else {
        return false;
    };
    let is_hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
    match dir {
        "pack" => {
            let end = path.extension().and_then(|end| end.to_str());
            !name.contains('/') && matches!(end, Some("pack" | "idx"))
        }
        _ => dir.len() == 2 && is_hex(dir) && is_hex(name),
    }
}

/// Hard-links a file, or copies it if linking fails. A running attempt may replace `source` by a
/// FIFO at any time. So the kind is checked at `target`, which the attempt cannot change.
fn show_file(source: &Path, target: &Path) -> io::Result<()> {
    match fs::hard_link(source, target) {
        Ok(()) if fs::symlink_metadata(target)?.is_file() => Ok(()),
        Ok(()) => fs::remove_file(target),
        Err(_) => match regular::open_own(source) {
            Ok(mut file) => io::copy(&mut file, &mut File::create(target)?).map(drop),
            // The file is gone, is no longer a file, or is not readable.
            Err(_) => Ok(()),
        },
    }
}

impl ObjectView {
    /// A view of the directory `objects`, made in `room`. The objects of the git directories
    /// `others` are seen, too.
    pub fn make(
        repo: &Repo,
        objects: &Path,
        room: &Path,
        others: &[impl AsRef<Path>],
    ) -> Result<ObjectView> {
        let failed = || "could not prepare to fetch an attempt's objects".to_owned();
        let dir = tempfile::tempdir_in(room).context(failed)?;
        let view = dir.path();
        let mut config = "[core]\n\tbare = true\n\trepositoryFormatVersion = 1\n\
                          [uploadpack]\n\tallowAnySHA1InWant = true\n"
            .to_owned();
        if let Some(format) = repo.gix().config_snapshot().string("extensions.objectFormat") {
            config.push_str(&format!("[extensions]\n\tobjectFormat = {format}\n"));
        }
        let alternates = others.iter().map(|dir| alternates(dir.as_ref()));
        let alternates = alternates.collect::<Result<Vec<_>>>()?.concat();
        fs::create_dir_all(view.join("objects/info"))
            .and_then(|()| fs::create_dir(view.join("refs")))
            .and_then(|()| fs::write(view.join("HEAD"), "ref: refs/heads/none\n"))
            .and_then(|()| fs::write(view.join("config"), config))
            .and_then(|()| fs::write(view.join("objects/info/alternates"), alternates))
            .and_then(|()| show(objects, &view.join("objects")))
            .context(failed)?;
        Ok(ObjectView(dir))
    }

    /// Makes the repository a shallow one. `shallow` is the content of its file `shallow`.
    pub fn set_shallow(&self, shallow: &[u8]) -> Result<()> {
        let file = self.0.path().join("shallow");
        fs::write(&file, shallow).could_not("write", &file)
    }

    pub fn git(&self, repo: &Repo) -> Git {
        repo.git_at(self.0.path())
    }

    /// The objects in `wanted` that can be seen.
    pub fn present(&self, repo: &Repo, wanted: &BTreeSet<Oid>) -> Result<BTreeSet<Oid>> {
        let call = self.git(repo).call("cat-file").arg("--batch-check=%(objectname)");
        let answer = call.stdin(lines(wanted)).bytes()?;
        let text = String::from_utf8_lossy(&answer);
        // The line for a missing object is `ID missing`, which `Oid::parse` refuses.
        Ok(text.lines().filter_map(Oid::parse).collect())
    }

    fn fetch(&self, repo: &Repo, wanted: &[Oid]) -> Result<()> {
        let call = repo.git().call("-c").arg("fetch.fsckObjects=true");
        let call = call.args(["-c", "protocol.file.allow=always", "fetch-pack", "--quiet"]);
        call.args(["--no-progress", "--stdin"]).arg(self.0.path()).stdin(lines(wanted)).run()
    }
}

/// The content for an `objects/info/alternates` that names the repository's objects. Fails if the
/// path has a line break, because that file cannot express it.
pub(super) fn alternates(common: &Path) -> Result<Vec<u8>> {
    let objects = common.join("objects");
    if path_bytes(&objects).contains(&b'\n') {
        return Err(Error::fatal("a path of the repository has a line break in it")
            .hint("move the repository, or set `spawn.guard` to off"));
    }
    Ok([path_bytes(&objects), b"\n"].concat())
}

pub(super) fn lines<'o>(ids: impl IntoIterator<Item = &'o Oid>) -> String {
    ids.into_iter().map(|oid| format!("{oid}\n")).collect()
}
