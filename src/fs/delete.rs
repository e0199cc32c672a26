//! Deletes directory trees. An attempt may have left very deep, unreadable or read-only directories
//! in them.
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use crate::error::IfExists;
use crate::fs::directory::{DIRECTORY, entries};

/// Once a path for a message has this many bytes, no more names are added to it.
const LONGEST_SHOWN: usize = 4096;

/// The largest number of nested directories that are open at once.
const MOST_OPEN: usize = 16;

/// Deletes a file, or a directory with its content. Does not follow links. Directories may be
/// read-only, as in Go's module cache. Succeeds if nothing is at the path.
///
/// If a path cannot be deleted, goes on with the other paths, and returns the first error at the
/// end. A deep directory is moved up before it is emptied. So trees of any depth need few file
/// descriptors.
pub fn delete_tree(path: &Path) -> io::Result<()> {
    let Some(meta) = fs::symlink_metadata(path).if_exists()? else { return Ok(()) };
    if !meta.is_dir() {
        return fs::remove_file(path);
    }
    let name = CString::new(path.as_os_str().as_bytes())?;
    let top = open_directory(rustix::fs::CWD, &name).map_err(|e| failed(path, e))?;
    let mut deletion = Deletion { top, waiting: Vec::new(), moved: 0, first_error: None };
    deletion.run(path);
    match deletion.first_error {
        Some(error) => Err(error),
        None => fs::remove_dir(path).if_exists().map(drop),
    }
}

/// A tree that is being deleted.
struct Deletion {
    top: OwnedFd,
    /// Directories that were moved to `top` and are not deleted yet. Each has its name in `top`,
    /// and the path at which it was found.
    waiting: Vec<(CString, PathBuf)>,
    /// The number of names that were used for moved directories.
    moved: u64,
    first_error: Option<io::Error>,
}

impl Deletion {
    fn run(&mut self, path: &Path) {
        let top = match self.top.try_clone() {
            Ok(top) => top,
            Err(e) => return self.fail(e),
        };
        self.empty(&top, path, 1);
        while let Some((name, path)) = self.waiting.pop() {
            if let Err(e) = self.remove(&top, &name, &path, 1) {
                self.fail(failed(&path, e));
            }
        }
    }

    /// Deletes a directory in `parent` with its content. `depth` is the number of nested
    /// directories that are open.
    fn remove(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        path: &Path,
        depth: usize,
    ) -> Result<(), Errno> {
        match open_directory(parent, name) {
            Ok(directory) => self.empty(&directory, path, depth + 1),
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => return Err(e),
        }
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            // The directory is not empty. Either the error about an entry is noted already, or
            // another process has just made an entry.
            Err(e) if e != Errno::NOENT => Err(e),
            _ => Ok(()),
        }
    }

    /// Deletes the content of a directory. If no more directories may be opened, moves its
    /// subdirectories to `top`.
    fn empty(&mut self, directory: &OwnedFd, path: &Path, depth: usize) {
        // All entries are listed before the first is deleted. Some systems skip entries if the
        // directory changes.
        let listed = match entries(directory) {
            Ok(listed) => listed,
            Err(e) => return self.fail(failed(path, e)),
        };
        for (name, kind) in &listed {
            let found_at = if path.as_os_str().len() < LONGEST_SHOWN {
                path.join(std::ffi::OsStr::from_bytes(name.to_bytes()))
            } else {
                path.to_owned()
            };
            let removed = match kind {
                FileType::Directory => Err(Errno::ISDIR),
                _ => rustix::fs::unlinkat(directory, name.as_c_str(), AtFlags::empty()),
            };
            let done = match removed {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                // POSIX lets unlink fail with EPERM for a directory.
                Err(Errno::ISDIR | Errno::PERM) if is_directory(directory, name) => {
                    match depth < MOST_OPEN {
                        true => self.remove(directory, name, &found_at, depth),
                        false => self.move_up(directory, name, &found_at),
                    }
                }
                Err(e) => Err(e),
            };
            if let Err(e) = done {
                self.fail(failed(&found_at, e));
            }
        }
    }

    /// Moves a directory to `top`, where it will be deleted.
    fn move_up(&mut self, from: &OwnedFd, name: &CStr, found_at: &Path) -> Result<(), Errno> {
        let mut is_writable = false;
        loop {
            self.moved += 1;
            let fresh = CString::new(format!(".deleting-{}-{}", std::process::id(), self.moved))
                .unwrap_or_default();
            match rustix::fs::renameat(from, name, &self.top, &fresh) {
                Ok(()) => {
                    self.waiting.push((fresh, found_at.to_owned()));
                    return Ok(());
                }
                // The directory is gone, because another process deletes the same tree.
                Err(Errno::NOENT) => return Ok(()),
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                // A move changes the entry `..` in the directory. So the directory itself must be
                // writable.
                Err(Errno::ACCESS | Errno::PERM) if !is_writable => {
                    rustix::fs::chmodat(from, name, Mode::RWXU, AtFlags::empty())?;
                    is_writable = true;
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.first_error.get_or_insert(error);
    }
}

fn is_directory(directory: &OwnedFd, name: &CStr) -> bool {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// Opens a directory. Changes its mode if that is needed to list it and to remove its content.
fn open_directory(at: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let opened = match rustix::fs::openat(&at, name, DIRECTORY, Mode::empty()) {
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(&at, name, Mode::RWXU, AtFlags::empty())?;
            rustix::fs::openat(&at, name, DIRECTORY, Mode::empty())?
        }
        other => other?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        // This fails for a directory of another user. Then the removal of its content reports the
        // error.
        let _ = rustix::fs::fchmod(&opened, mode | Mode::RWXU);
    }
    Ok(opened)
}

fn failed(path: &Path, errno: Errno) -> io::Error {
    let error = io::Error::from(errno);
    let text = format!("'{}': {}", path.display(), crate::error::describe(&error));
    io::Error::new(error.kind(), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::walk::tests::nested;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn directories_of_any_depth_go_whatever_their_mode_and_links_are_not_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (tree, other) = (dir.path().join("tree"), dir.path().join("other"));
        for path in [
            &tree,
            &other,
            &tree.join("a/b"),
            &tree.join(format!(".deleting-{}-2", std::process::id())),
        ] {
            fs::create_dir_all(path).expect("made");
        }
        fs::write(other.join("kept"), "").expect("written");
        std::os::unix::fs::symlink(&other, tree.join("a/b/link")).expect("a link");
        fs::write(tree.join("a/b/file"), "").expect("written");
        fs::set_permissions(tree.join("a/b"), fs::Permissions::from_mode(0o000)).expect("a mode");
        nested(&tree, 20_000);
        delete_tree(&tree).expect("deleted");
        assert!(!tree.exists() && other.join("kept").exists());
        delete_tree(&tree).expect("there is nothing");
    }
}
