//! The guard of attempts where no world can be made: Landlock confines their commands.
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::fs::tree::nearest_real;
use crate::git::own_dir::OwnGitDir;
use crate::ops::agent_state;
use crate::ops::session::Session;
use crate::oracle::restricted::{PrivateDirectories, Restrictions};
use crate::process::world_spec::Confinement;
use crate::store::candidate::CandidateRef;

/// The confinement of a candidate's command. `admin` is the administrative entry of its worktree; `open` are
/// the paths that it can write to beside the worktree, its git directory and directories that go with it.
///
/// The worktree's git finds the repository again when the candidate is captured.
pub(super) fn confinement(
    session: &Session,
    candidate: CandidateRef<'_>,
    admin: &Path,
    open: Vec<PathBuf>,
) -> Result<(Confinement, PrivateDirectories)> {
    let restrictions = Restrictions::of_attempt(open);
    let dir = candidate.worktree();
    let own = restrictions.directories(&dir)?;
    let mut restriction = restrictions.of(&nearest_real(&dir), &own);
    restriction.writable.extend(agent_state::directory(candidate));
    let of_agent = agent_state::variables(session, candidate);
    restriction.variables.retain(|(name, _)| !of_agent.contains(name));
    let git = OwnGitDir::make(&session.repo, admin, &candidate.directory().own_git())?;
    git.enter(session.repo.common_dir(), &dir)?;
    restriction.writable.push(git.dir().to_owned());
    Ok((Confinement::Landlock(restriction), own))
}
