//! Landings that are done, as files and refs remember them.
use std::path::PathBuf;

use jiff::Timestamp;

use crate::error::Result;
use crate::git::refs;
use crate::git::repo::Repo;
use crate::model::candidate::{Candidate, Landing};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::trailer::Trailer;
use crate::store::Store;
use crate::store::intents::LandingIntent;
use crate::store::records::{read_toml, write_toml};

impl Store {
    /// `runs/RUN/CAND/landed.toml`: the intent of a candidate's last landing on a fresh branch.
    fn landed_file(&self, run: &Name, candidate: &Name) -> PathBuf {
        self.candidate_dir(run, candidate).join("landed.toml")
    }

    /// Remembers a landing on a fresh branch.
    pub fn save_landed(&self, landing: &LandingIntent) -> Result<()> {
        write_toml(&self.landed_file(&landing.run, &landing.candidate), landing)
    }

    /// The intent of a candidate's landing on a fresh branch; none if no record of it is left.
    pub fn landed(&self, candidate: &Candidate) -> Option<LandingIntent> {
        read_toml(&self.landed_file(&candidate.run, &candidate.candidate))
    }
}

/// Completes a candidate's record from the commit that its landing made, by the commit's trailers:
/// the record may be lost, or a landing fetched from elsewhere has none here.
pub(super) fn restore_landing(repo: &Repo, candidate: &mut Candidate) -> Result<()> {
    let Some(commit) = repo.read_ref(&refs::landing(&candidate.run, &candidate.candidate))? else {
        return Ok(());
    };
    if candidate.landing_commit.as_ref() == Some(&commit) {
        return Ok(());
    }
    let read = repo.commit(&commit)?;
    let into = Trailer::Into.find(&read.message).map(RefName::of_branch);
    candidate.landing = match (Trailer::Undone.find(&read.message), &into) {
        (Some(_), _) => Landing::Undone,
        (None, Some(_)) => Landing::Merged,
        (None, None) => Landing::Landed,
    };
    candidate.landing_branch = match into {
        Some(into) => Some(into),
        None => branch_at(repo, &candidate.run, &commit)?,
    };
    candidate.landing_time = Timestamp::from_second(read.time).ok();
    candidate.landing_commit = Some(commit);
    Ok(())
}

/// The fresh branch at a commit: the one with the name that git-frites gives, else one that the
/// user named.
fn branch_at(repo: &Repo, run: &Name, commit: &Oid) -> Result<Option<RefName>> {
    let default = refs::apply_branch(run);
    let mut names: Vec<RefName> = Vec::new();
    for (name, tip) in repo.refs_under("refs/heads/")? {
        if tip == *commit && !name.starts_with("refs/heads/frites/run/") {
            names.push(name);
        }
    }
    Ok(names.into_iter().min_by_key(|name| *name != default))
}
