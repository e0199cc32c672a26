//! Proposes seeds for a new configuration: ignored files in the user's checkout that attempts
//! usually need.
use std::collections::BTreeSet;

use crate::config::starter::SeedProposal;
use crate::ecosystems;
use crate::error::Result;
use crate::git::seed::search;
use crate::ops::session::Session;

/// Files with names that begin with this hold the settings of one machine.
const ENV_FILES: &str = ".env";

/// Finds seeds to propose in the user's checkout: ignored `.env*` files, and ignored directories of
/// installed dependencies next to a manifest of their ecosystem (e.g. `node_modules` next to
/// `package.json`).
pub fn find(session: &Session) -> Result<SeedProposal> {
    let mut proposal = SeedProposal::default();
    let Some(home) = &session.home else { return Ok(proposal) };
    let mut patterns = BTreeSet::new();
    for entry in search::ignored_entries(&session.repo, home)? {
        let (entry, is_directory) = match entry.strip_suffix(b"/") {
            Some(directory) => (directory, true),
            None => (entry.as_slice(), false),
        };
        let Ok(entry) = std::str::from_utf8(entry) else { continue };
        let (parent, name) = entry.rsplit_once('/').unwrap_or(("", entry));
        if !is_directory {
            if name.starts_with(ENV_FILES) {
                patterns.insert(format!("{ENV_FILES}*"));
                proposal.found.push(entry.to_owned());
            }
            continue;
        }
        let installed = ecosystems::installed().find(|known| {
            known.directory == name
                && known.manifests.iter().any(|file| home.join(parent).join(file).is_file())
        });
        match installed {
            Some(known) if known.is_tied_to_its_place => proposal.tied.push(entry.to_owned()),
            Some(_) => {
                patterns.insert(format!("/{}/", globset::escape(entry)));
                proposal.found.push(entry.to_owned());
            }
            None => {}
        }
    }
    proposal.patterns = patterns.into_iter().collect();
    Ok(proposal)
}
