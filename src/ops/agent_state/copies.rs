//! Copies the user's settings for an agent into the state directories of one attempt, and the
//! attempt's conversations into those of a person.
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::IfExists;
use crate::fs::regular;
use crate::model::pattern::matches;

/// At most this many bytes are copied for one attempt. Settings are small; larger files are other
/// data.
const MOST_BYTES: u64 = 64 << 20;
const MOST_FILES: u32 = 10_000;

/// Directories are copied down to this depth. Without a limit, a cycle of links would be copied for
/// ever.
const DEEPEST: usize = 16;

/// At most this many entries of one directory get links.
const MOST_LINKS: usize = 10_000;

/// Directories that are not copied, because tools fill them, and they hold no settings.
const LEFT_OUT: [&str; 2] = [".git", "node_modules"];

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
    /// Copies a file of the user, or the regular files below a directory of theirs. Symbolic links
    /// are followed, because many people keep their settings elsewhere and link to them.
    pub fn copy_settings(&mut self, from: &Path, to: &Path) {
        let copied = self.copy_setting(from, to, DEEPEST);
        self.note_if_left_out(from.to_owned(), copied);
    }

    /// Copies the conversations that match a pattern, from a directory to which an attempt could
    /// write. Copies regular files only, without their modes, and follows no symbolic links: an
    /// attempt may have linked to any file of the user.
    pub fn copy_conversations(&mut self, from: &Path, to: &Path, pattern: &str) {
        let copied = self.copy_matching(from, to, pattern);
        self.note_if_left_out(from.join(pattern), copied);
    }

    fn note_if_left_out(&mut self, from: PathBuf, copied: io::Result<()>) {
        if copied.is_err_and(|e| e.kind() != io::ErrorKind::NotFound) {
            self.left_out.push(from);
        }
    }

    fn copy_setting(&mut self, from: &Path, to: &Path, depth: usize) -> io::Result<()> {
        let meta = fs::metadata(from)?;
        if meta.is_dir() {
            return self.copy_directory(from, to, depth);
        }
        if !meta.is_file() {
            return Ok(());
        }
        self.count(&meta)?;
        write_copy(to, &regular::read(from)?, meta.permissions().mode() & 0o700)
    }

    fn copy_directory(&mut self, from: &Path, to: &Path, depth: usize) -> io::Result<()> {
        if depth == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            if LEFT_OUT.iter().any(|left_out| name == *left_out) {
                continue;
            }
            // A dangling link is skipped, because its target does not exist.
            self.copy_setting(&from.join(&name), &to.join(&name), depth - 1).if_exists()?;
        }
        Ok(())
    }

    fn copy_matching(&mut self, from: &Path, to: &Path, pattern: &str) -> io::Result<()> {
        if !fs::symlink_metadata(from)?.is_dir() {
            return Ok(());
        }
        let (part, below) = match pattern.split_once('/') {
            Some((part, below)) => (part, Some(below)),
            None => (pattern, None),
        };
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            if !name.to_str().is_some_and(|name| matches(part, name)) {
                continue;
            }
            let from = from.join(&name);
            let to = to.join(&name);
            if let Some(below) = below {
                self.copy_matching(&from, &to, below)?;
                continue;
            }
            let meta = fs::symlink_metadata(&from)?;
            if meta.is_file() {
                self.count(&meta)?;
                write_copy(&to, &regular::read_own_at_most(&from, meta.len())?, 0o600)?;
            }
        }
        Ok(())
    }

    /// Fails if there would be too many files, or too many bytes.
    fn count(&mut self, meta: &Metadata) -> io::Result<()> {
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        self.bytes = self.bytes.checked_sub(meta.len()).ok_or_else(too_large)?;
        self.files = self.files.checked_sub(1).ok_or_else(too_large)?;
        Ok(())
    }
}

fn write_copy(to: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if let Some(above) = to.parent() {
        fs::create_dir_all(above)?;
    }
    let mut file = regular::create_own(to)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(bytes)
}

/// Makes a symbolic link in `directory` to each entry of the user's directory `of_user`, except the
/// entry named `except`.
pub(super) fn link_others(of_user: &Path, except: &str, directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(of_user).into_iter().flatten().flatten().take(MOST_LINKS) {
        let name = entry.file_name();
        if name != except {
            std::os::unix::fs::symlink(of_user.join(&name), directory.join(&name))?;
        }
    }
    Ok(())
}
