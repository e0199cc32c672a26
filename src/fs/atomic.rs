//! Atomic writes: a reader sees the old bytes or the new ones, also after a crash.
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::error::{Error, IoContext, Result};

/// Writes `bytes` to `path`: a temporary file in the same directory, synced, renamed over the
/// target, and the directory synced. On an error the old file is unchanged.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = || format!("could not write '{}'", path.display());
    let directory = path.parent().ok_or_else(|| Error::internal(failed()))?;
    fs::create_dir_all(directory).context(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(directory).context(failed)?;
    file.write_all(bytes).context(failed)?;
    file.as_file().sync_all().context(failed)?;
    file.persist(path).map_err(|e| e.error).context(failed)?;
    File::open(directory).and_then(|f| f.sync_all()).context(failed)
}
