//! Brings back the contents that git-lfs has stored for an attempt. The commits of the attempt have only the
//! hashes of these contents, and a capture runs the filter for the files that the worktree has now.
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{IfExists, IoContext, Result};
use crate::fs::regular;
use crate::git::own_dir::files;
use crate::model::hex::hex;

/// The number of hex digits of a SHA-256.
const DIGITS: usize = 64;

/// Copies the contents in `from`, a store of git-lfs, that `store` does not have. A file counts only if its
/// name is the SHA-256 of its content, so no attempt can plant another content in the user's store.
pub(super) fn bring_back(from: &Path, store: &Path) -> Result<()> {
    if !files::is_directory(from) {
        return Ok(());
    }
    for (path, kind) in files::list(from, |path| !path.starts_with("objects")) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let target = store.join(&path);
        if kind.is_file() && name.len() == DIGITS && !target.exists() {
            copy(&from.join(&path), name, store, &target)
                .context(|| format!("could not copy to '{}'", target.display()))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, digest: &str, store: &Path, target: &Path) -> io::Result<()> {
    let Some(mut file) = regular::open_own(from).if_exists()? else { return Ok(()) };
    fs::create_dir_all(store)?;
    let readable = Permissions::from_mode(0o644);
    let mut copied = tempfile::Builder::new().permissions(readable).tempfile_in(store)?;
    // The attempt may change its file at any time, so the bytes of the copy are hashed.
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => {
                hasher.update(&buffer[..n]);
                copied.write_all(&buffer[..n])?;
            }
        }
    }
    if hex(&hasher.finalize()) != digest {
        return Ok(());
    }
    copied.as_file().sync_all()?;
    fs::create_dir_all(target.parent().unwrap_or(store))?;
    copied.persist(target).map(drop).map_err(|e| e.error)
}
