//! Layers as one plain directory: copies, for tools that stumble over an overlay.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::error::{IoContext, Result};
use crate::fs::walk::{EntryState, is_nameable, visit};
use crate::fs::{parallel, tree};
use crate::git::layers::is_opaque;

/// Copies what layers show together, the topmost first, into a directory that exists. Everything
/// keeps its mode and its time of change, by which build tools compare sources and outputs.
///
/// Files share their blocks with the originals where the file system can do that. Sockets and pipes
/// are left out.
pub fn copy(layers: &[PathBuf], into: &Path) -> Result<()> {
    let mut directories: BTreeMap<PathBuf, EntryState> = BTreeMap::new();
    for layer in layers.iter().rev() {
        let failed = || format!("could not copy '{}'", layer.display());
        let mut files = Vec::new();
        let mut found = Vec::new();
        visit(layer, &mut |path, meta| {
            let path = Path::new(OsStr::from_bytes(path));
            let from = layer.join(path);
            let to = into.join(path);
            // No command can name another one.
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
    // The innermost first, and after everything in them.
    for (directory, meta) in directories.iter().rev() {
        fs::set_permissions(directory, meta.permissions())
            .and_then(|()| meta.set_times(directory))
            .context(|| format!("could not make '{}'", directory.display()))?;
    }
    Ok(())
}

/// Removes what an entry of a layer hides in those below it. True if that was a directory.
fn clear(from: &Path, meta: &EntryState, to: &Path) -> io::Result<bool> {
    let Ok(old) = fs::symlink_metadata(to) else { return Ok(false) };
    match (old.is_dir(), meta.is_dir()) {
        (true, true) if !is_opaque(from) => Ok(false),
        (true, _) => tree::delete_tree(to).map(|()| true),
        (false, _) => fs::remove_file(to).map(|()| false),
    }
}

/// Copies a file. One that may not be read is left out, as its contents are of no use to commands
/// either.
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
