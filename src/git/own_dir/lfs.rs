//! Brings back the contents that git-lfs has stored for an attempt. The attempt's commits have only
//! the hashes of these contents. A capture runs the filter only for the files that the worktree has
//! now.
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::error::{IfExists, IoContext, Result};
use crate::fs::{regular, walk};
use crate::git::filters::STORE_OF_LFS;
use crate::git::own_dir::files;
use crate::git::repo::{self, Repo};
use crate::model::oid::Oid;

/// The directory in the store with the contents.
const STORED: &str = "objects";

/// The first line of a pointer, the file that is committed in place of a content.
const VERSION: &str = "version https://git-lfs.github.com/spec/v1";

/// The number of hex digits of a SHA-256.
const DIGITS: usize = 64;

/// Copies the contents in `from`, a store of git-lfs, that the repository's store does not have.
/// The objects of the attempt must have been fetched before. A file is copied only under two
/// conditions:
///
/// - Its name is the SHA-256 of its content. So no attempt can plant another content in the user's
///   store.
/// - The repository has its pointer. Judged code can read the store, so no other file may get
///   there.
pub(super) fn bring_back(repo: &Repo, from: &Path) -> Result<()> {
    let uses_lfs = |key| repo.gix().config_snapshot().string(key).is_some();
    if !files::is_directory(from)
        || !["filter.lfs.clean", "filter.lfs.process"].iter().any(uses_lfs)
    {
        return Ok(());
    }
    let store = repo.common_dir().join(STORE_OF_LFS);
    for (path, kind) in walk::list(from, |path| !path.starts_with(STORED)) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_digest = name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !kind.is_file() || !is_digest {
            continue;
        }
        let target: PathBuf = [STORED, &name[..2], &name[2..4], name].iter().collect();
        let target = store.join(target);
        let from = from.join(&path);
        if !target.exists() && has_pointer(repo, &from, name) {
            copy(&from, name, &store, &target).could_not("copy to", &target)?;
        }
    }
    Ok(())
}

/// True if the repository has the pointer that a filter of git-lfs writes for a file with this
/// digest.
fn has_pointer(repo: &Repo, file: &Path, digest: &str) -> bool {
    let Ok(meta) = fs::symlink_metadata(file) else { return false };
    let pointer = format!("{VERSION}\noid sha256:{digest}\nsize {}\n", meta.len());
    Oid::parse(&repo::digest(pointer.as_bytes())).is_some_and(|id| repo.has(&id))
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
    if HEXLOWER.encode(&hasher.finalize()) != digest {
        return Ok(());
    }
    copied.as_file().sync_all()?;
    fs::create_dir_all(target.parent().unwrap_or(store))?;
    copied.persist(target).map(drop).map_err(|e| e.error)
}
