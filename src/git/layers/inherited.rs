//! Makes the layers of a base from those of an ancestor. So the outputs of unchanged parts need not
//! be built again.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{IoContext, Result};
use crate::fs::walk::{EntryState, is_nameable, visit};
use crate::fs::{parallel, tree};
use crate::git::layers::base::{BaseEnd, BaseLayer, clean_outputs};
use crate::git::layers::{difference, is_opaque};
use crate::git::repo::Repo;
use crate::git::seed::find::Seeds;
use crate::model::oid::Oid;

/// The longest wait in [`make_younger`].
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// The pause between two looks at the clock.
const PAUSE: Duration = Duration::from_millis(20);

/// Makes the layers of the base `to` (`layer`) from those of its ancestor `from` (`ancestor`). The
/// new layers have the ancestor's outputs, and the files of `to`. If the difference cannot be a
/// layer over the ancestor's files, makes nothing and returns false.
///
/// A file that differs between the two commits is younger than all outputs. So build tools rebuild
/// everything that depends on it. Like the files of [`BaseLayer::check_out`], it is older than the
/// files of every tree that is judged later.
///
/// Files that the ancestor's commands left in the user's directories are not copied. An outcome
/// with inherited outputs is confirmed without them, but files in the user's directories would be
/// used even then.
pub fn start(
    layer: &BaseLayer,
    repo: &Repo,
    ancestor: &BaseLayer,
    [from, to]: [&Oid; 2],
    seeds: &Seeds,
) -> Result<bool> {
    let failed = || format!("could not make '{}'", layer.dir().display());
    let inherited = layer.ancestors_outputs();
    let sources = layer.sources();
    let changes = layer.dir().join("difference");
    fs::create_dir_all(&changes).context(failed)?;
    let mut usable =
        difference::write(repo, ancestor, [from, to], seeds, &changes, &layer.index())?;
    if usable {
        fs::create_dir(&inherited).and_then(|()| fs::create_dir(&sources)).context(failed)?;
        // The difference `changes` is copied, too, as the topmost layer. It hides outputs in
        // deleted directories.
        copy(&[vec![changes.clone()], ancestor.all_outputs()].concat(), &inherited)?;
        clean_outputs(&inherited, &layer.index())?;
        usable = make_younger(&changes, tree::last_written(&inherited)).context(failed)?;
    }
    if !usable {
        return tree::delete_tree(layer.dir()).context(failed).map(|()| false);
    }
    copy(&[changes.clone(), ancestor.sources()], &sources)?;
    tree::delete_tree(&changes).context(failed)?;
    layer.note_end(BaseEnd { passed: false, downloaded: true, cold: ancestor.end().cold })?;
    Ok(true)
}

/// Sets the time of all files below a directory to the whole second before the present one. First
/// waits until that second is later than `youngest`, the time of the youngest output. Returns false
/// if the wait would be longer than [`LONGEST_WAIT`].
fn make_younger(directory: &Path, youngest: Option<SystemTime>) -> io::Result<bool> {
    let second = |time: SystemTime| {
        time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
    };
    let first = youngest.map(second).unwrap_or_default() + 2;
    let start = SystemTime::now();
    let mut now = start;
    while second(now) < first {
        if now > start + LONGEST_WAIT || second(start) + LONGEST_WAIT.as_secs() < first {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
        now = SystemTime::now();
    }
    let last = SystemTime::UNIX_EPOCH + Duration::from_secs(second(now) - 1);
    let mut files = Vec::new();
    visit(directory, &mut |path, meta| {
        files.extend(meta.is_file().then(|| path.to_vec()));
    })?;
    for path in files {
        fs::File::open(directory.join(OsStr::from_bytes(&path)))?.set_modified(last)?;
    }
    Ok(true)
}

/// Copies the files that these layers show together into an existing directory. The topmost layer
/// is the first. Every copy has the mode and the mtime of its original, because build tools compare
/// the mtimes of sources and outputs.
///
/// Copies share the blocks of the originals if the file system can do that. Sockets and pipes are
/// left out.
fn copy(layers: &[PathBuf], into: &Path) -> Result<()> {
    let mut directories: BTreeMap<PathBuf, EntryState> = BTreeMap::new();
    for layer in layers.iter().rev() {
        let failed = || format!("could not copy '{}'", layer.display());
        let mut files = Vec::new();
        let mut found = Vec::new();
        visit(layer, &mut |path, meta| {
            let path = Path::new(OsStr::from_bytes(path));
            let from = layer.join(path);
            let to = into.join(path);
            // A longer path is too long for any command.
            if is_nameable(&from) && is_nameable(&to) {
                found.push((from, to, *meta));
            }
        })
        .context(failed)?;
        for (from, to, meta) in found {
            if clear(&from, &meta, &to).context(failed)? {
                directories.retain(|directory, _| !directory.starts_with(&to));
            }
            if meta.is_dir() {
                fs::create_dir_all(&to).context(failed)?;
                directories.insert(to, meta);
            } else if meta.is_symlink() {
                fs::read_link(&from).and_then(|target| symlink(target, &to)).context(failed)?;
                meta.set_times(&to).context(failed)?;
            } else if meta.is_file() {
                files.push((from, to, meta));
            }
        }
        parallel::map(&files, |(from, to, meta)| copy_file(from, to, meta).context(failed))?;
    }
    // The innermost directories come first. Modes and times are set last, because a write into a
    // directory changes its time.
    for (directory, meta) in directories.iter().rev() {
        fs::set_permissions(directory, meta.permissions())
            .and_then(|()| meta.set_times(directory))
            .could_not("make", directory)?;
    }
    Ok(())
}

/// If the entry `from` of a layer hides the entry `to`, which was copied from a lower layer,
/// removes `to`. Returns true if `to` was a directory.
fn clear(from: &Path, meta: &EntryState, to: &Path) -> io::Result<bool> {
    let Ok(old) = fs::symlink_metadata(to) else { return Ok(false) };
    match (old.is_dir(), meta.is_dir()) {
        (true, true) if !is_opaque(from) => Ok(false),
        (true, _) => tree::delete_tree(to).map(|()| true),
        (false, _) => fs::remove_file(to).map(|()| false),
    }
}

/// Copies a file. Does nothing if the file may not be read: commands could not read it either.
fn copy_file(from: &Path, to: &Path, meta: &EntryState) -> io::Result<()> {
    match reflink_copy::reflink_or_copy(from, to) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        other => other.map(drop)?,
    }
    fs::set_permissions(to, meta.permissions())?;
    meta.set_times(to)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn what_replaces_a_directory_has_its_own_mode_and_a_link_changes_nothing_elsewhere() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
        for name in ["outside/below", "bottom/link/below", "bottom/file", "top", "into"] {
            fs::create_dir_all(at(name)).expect("made");
        }
        for name in ["outside", "outside/below"] {
            fs::set_permissions(at(name), fs::Permissions::from_mode(0o700)).expect("changed");
        }
        for name in ["bottom/link", "bottom/link/below", "bottom/file"] {
            fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).expect("changed");
        }
        symlink(at("outside"), at("top/link")).expect("a link");
        fs::write(at("top/file"), "text").expect("written");
        fs::set_permissions(at("top/file"), fs::Permissions::from_mode(0o640)).expect("changed");
        copy(&[at("top"), at("bottom")], &at("into")).expect("copied");
        assert_eq!(fs::read(at("into/file")).expect("a file"), b"text");
        assert_eq!(mode(&at("into/file")), 0o640);
        assert_eq!([mode(&at("outside")), mode(&at("outside/below"))], [0o700; 2]);
    }
}
