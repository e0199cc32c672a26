//! Copies the user's settings for an agent into the state directories of one attempt.
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::fs::regular;

/// At most this many bytes are copied for one attempt. Settings are small; larger files are other data.
const MOST_BYTES: u64 = 64 << 20;
const MOST_FILES: u32 = 10_000;

/// Directories are copied down to this depth. Without a limit, a cycle of links would be copied for ever.
const DEEPEST: usize = 16;

/// At most this many entries of one directory get links.
const MOST_LINKS: usize = 10_000;

/// Directories that are not copied, because tools fill them, and they hold no settings.
const LEFT_OUT: [&str; 2] = [".git", "node_modules"];

/// The extensions of files in which agents store conversations.
const OF_CONVERSATIONS: [&str; 5] = ["db", "db-shm", "db-wal", "json", "jsonl"];

/// Who wrote the files that are copied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// The user. Symbolic links are followed, because many people keep their settings elsewhere and link to
    /// them.
    User,
    /// A command of an attempt. Only regular files with the extensions of conversations are copied, no programs
    /// and no instructions (`MEMORY.md`). Symbolic links are not followed, because an attempt may have linked to
    /// any file of the user.
    Attempt,
}

/// Counts the bytes and files that may still be copied, and collects the paths that were left out.
pub(super) struct Copies {
    bytes: u64,
    files: u32,
    /// The paths that could not be copied, although they exist.
    pub left_out: Vec<PathBuf>,
}

impl Default for Copies {
    fn default() -> Copies {
        Copies { bytes: MOST_BYTES, files: MOST_FILES, left_out: Vec::new() }
    }
}

impl Copies {
    /// Copies a file, or the regular files below a directory.
    pub fn copy(&mut self, writer: Writer, from: &Path, to: &Path) {
        match self.copy_one(writer, from, to, DEEPEST) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(_) => self.left_out.push(from.to_owned()),
        }
    }

    fn copy_one(&mut self, writer: Writer, from: &Path, to: &Path, depth: usize) -> io::Result<()> {
        let meta = match writer {
            Writer::User => fs::metadata(from)?,
            Writer::Attempt => fs::symlink_metadata(from)?,
        };
        if meta.is_dir() {
            return self.copy_directory(writer, from, to, depth);
        }
        let extension = from.extension().and_then(|extension| extension.to_str());
        let is_conversation = extension.is_some_and(|end| OF_CONVERSATIONS.contains(&end));
        if !meta.is_file() || writer == Writer::Attempt && !is_conversation {
            return Ok(());
        }
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        self.bytes = self.bytes.checked_sub(meta.len()).ok_or_else(too_large)?;
        self.files = self.files.checked_sub(1).ok_or_else(too_large)?;
        let bytes = match writer {
            Writer::User => regular::read(from)?,
            Writer::Attempt => regular::read_at_most(regular::open_own(from)?, meta.len())?,
        };
        if let Some(above) = to.parent() {
            fs::create_dir_all(above)?;
        }
        let mut file = regular::create_own(to)?;
        let mode = match writer {
            Writer::User => meta.permissions().mode() & 0o700,
            Writer::Attempt => 0o600,
        };
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(&bytes)
    }

    fn copy_directory(
        &mut self,
        writer: Writer,
        from: &Path,
        to: &Path,
        depth: usize,
    ) -> io::Result<()> {
        if depth == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            if LEFT_OUT.iter().any(|left_out| name == *left_out) {
                continue;
            }
            match self.copy_one(writer, &from.join(&name), &to.join(&name), depth - 1) {
                // The entry is a dangling link.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                copied => copied?,
            }
        }
        Ok(())
    }
}

/// Makes a symbolic link in `directory` to each entry of the user's directory `of_user`, except the entry
/// named `except`.
pub(super) fn link_others(of_user: &Path, except: &str, directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(of_user).into_iter().flatten().flatten().take(MOST_LINKS) {
        let name = entry.file_name();
        if name != except {
            std::os::unix::fs::symlink(of_user.join(&name), directory.join(&name))?;
        }
    }
    Ok(())
}
