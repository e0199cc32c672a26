//! The downloads that judging has kept of a base, for attempts with a HOME of their own.
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::fs::lock::Lock;
use crate::model::oid::Oid;
use crate::ops::attempt_times::when_attempts_ran;
use crate::ops::session::Session;
use crate::oracle::pool::{self, LAYERS};
use crate::oracle::sealed::kept;

/// The files that the setup of a base has downloaded into the user's directories while the base was judged.
#[derive(Debug)]
pub struct KeptDownloads {
    layers: PathBuf,
    /// Keeps others from removing the layers.
    _lock: Lock,
}

impl KeptDownloads {
    /// The downloads of a base, or else of its nearest ancestor of which layers are kept; `None` if
    /// nothing was downloaded.
    pub fn find(session: &Session, base: &Oid) -> Result<Option<KeptDownloads>> {
        let root = pool::home(&session.repo)?.join(LAYERS);
        let distrusted = when_attempts_ran(session)?;
        let found = kept::of_nearest(&root, &session.repo, base, &distrusted)?;
        Ok(found.and_then(|(layer, lock)| {
            Some(KeptDownloads { layers: layer.fetched()?, _lock: lock })
        }))
    }

    /// The layers of the user's directories that hold them.
    pub fn layers(&self) -> &Path {
        &self.layers
    }
}
