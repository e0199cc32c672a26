//! What judging has kept of a base, for its attempts: build outputs for new worktrees (`spawn.warm`), and
//! downloads for a HOME of their own.
use std::path::{Path, PathBuf};

use crate::config::keys;
use crate::config::value::SpawnWarm;
use crate::error::Result;
use crate::fs::lock::Lock;
use crate::fs::tree::nearest_real;
use crate::git::layers::base::BaseLayer;
use crate::git::layers::given::GivenOutputs;
use crate::git::seed::find::Seeds;
use crate::git::worktree::Worktree;
use crate::model::oid::Oid;
use crate::ops::attempt_times::when_attempts_ran;
use crate::ops::session::Session;
use crate::oracle::pool::{self, LAYERS};
use crate::oracle::sealed::kept;
use crate::store::candidate::CandidateRef;

/// What the setup of a base has downloaded into the user's directories while the base was judged.
#[derive(Debug)]
pub struct KeptDownloads {
    layers: PathBuf,
    /// Keeps others from removing the layers.
    _lock: Lock,
}

impl KeptDownloads {
    /// The downloads of a base, or else of its nearest ancestor of which layers are kept; none if nothing
    /// was downloaded.
    pub fn find(session: &Session, base: &Oid) -> Result<Option<KeptDownloads>> {
        let root = pool::home(&session.repo)?.join(LAYERS);
        let distrusted = when_attempts_ran(session)?;
        let found = kept::of_nearest(&root, &session.repo, base, &distrusted)?;
        let kept = |(layer, lock): (BaseLayer, Lock)| {
            Some(KeptDownloads { layers: layer.fetched()?, _lock: lock })
        };
        Ok(found.and_then(kept))
    }

    /// The layers of the user's directories that hold them.
    pub fn layers(&self) -> &Path {
        &self.layers
    }
}

/// The kept layers of a run's base.
pub struct KeptOutputs {
    layer: BaseLayer,
    /// Keeps others from removing the layers.
    _lock: Lock,
}

impl KeptOutputs {
    /// The layers of a base, if there are any that its worktrees may have.
    pub fn find(session: &Session, base: &Oid) -> Result<Option<KeptOutputs>> {
        let warm = session.config.get(keys::SPAWN_WARM);
        let root = pool::home(&session.repo)?.join(LAYERS);
        if warm == SpawnWarm::Off || session.home.is_none() || !root.is_dir() {
            return Ok(None);
        }
        let tree = session.repo.commit(base)?.tree;
        let found = kept::of_tree(&root, &tree, &when_attempts_ran(session)?)?;
        Ok(found.map(|(layer, lock)| KeptOutputs { layer, _lock: lock }))
    }

    /// Copies the outputs into new worktrees of the base, each that of a candidate.
    pub fn give(
        &self,
        session: &Session,
        worktrees: &[(CandidateRef<'_>, &Worktree)],
        seeds: &Seeds,
    ) -> Result<()> {
        let (Some((_, first)), Some(checkout)) = (worktrees.first(), &session.home) else {
            return Ok(());
        };
        let is_auto = session.config.get(keys::SPAWN_WARM) == SpawnWarm::Auto;
        if is_auto && !self.layer.shares_blocks_with(&first.path) {
            return Ok(());
        }
        let made_at = self.layer.place().unwrap_or_else(|| nearest_real(checkout));
        let outputs = GivenOutputs::read(&self.layer, first, seeds, &made_at)?;
        if outputs.is_empty() {
            return Ok(());
        }
        session.ui.note("the worktrees start with what judging has built on their base");
        worktrees
            .iter()
            .try_for_each(|(candidate, worktree)| outputs.place(worktree, &candidate.outputs()))
    }
}
