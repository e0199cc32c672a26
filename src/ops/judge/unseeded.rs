//! Finds installed dependencies that exist only in the user's checkout. Without them, the commands would fail
//! on every judged tree.
use crate::ecosystems::{self, InstalledDirectory};
use crate::error::Result;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::ops::session::Session;

/// If the user's checkout has installed dependencies that no setup command installs and no seed contains,
/// hints which directories to seed.
pub fn hint(session: &Session, base: &Oid, oracle: &[OracleCommand]) -> Result<()> {
    let Some(home) = &session.home else { return Ok(()) };
    if oracle.is_empty() || oracle.iter().any(|c| c.stage == Stage::Setup) {
        return Ok(());
    }
    let tree = session.repo.commit(base)?.tree;
    let entries = session.repo.root_entries(&tree)?;
    for InstalledDirectory { directory, manifests, is_tied_to_its_place } in ecosystems::installed()
    {
        let is_needed = entries.iter().any(|(name, _)| manifests.contains(&name.as_str()));
        let is_tracked = entries.iter().any(|(name, _)| name == directory);
        let below = format!("{directory}/");
        if !is_needed || is_tracked || !home.join(directory).is_dir() {
            continue;
        }
        if session.seeds(base)?.paths().any(|path| path.starts_with(below.as_bytes())) {
            continue;
        }
        session.ui.hint(if *is_tied_to_its_place {
            format!(
                "'{directory}' is in your checkout alone: let `spawn.setup` make one for the attempts and the checks, or activate yours"
            )
        } else {
            format!(
                "'{directory}' is in your checkout alone: if the attempts and the checks need it, `git config --add frites.seed.copy /{directory}/`"
            )
        });
    }
    Ok(())
}
