//! The cache for later judgings, of one repository or of all the user's repositories. It has outcomes and the
//! bases' build outputs.
use std::fs;
use std::path::PathBuf;

use crate::error::Result;
use crate::git::repo::Repo;
use crate::oracle::sealed::kept;
use crate::oracle::{known_outcomes, pool};

/// The cache of one repository, or of all the user's repositories.
pub struct UserCache {
    /// The directory of each repository in the cache.
    homes: Vec<PathBuf>,
}

impl UserCache {
    /// The cache of this repository.
    pub fn of(repo: &Repo) -> Result<UserCache> {
        Ok(UserCache { homes: vec![pool::home(repo)?] })
    }

    /// The cache of all the user's repositories, including `repo`.
    pub fn of_all(repo: &Repo) -> Result<UserCache> {
        let homes = fs::read_dir(pool::home_of_all(repo)?).into_iter().flatten().flatten();
        Ok(UserCache { homes: homes.map(|entry| entry.path()).collect() })
    }

    /// The disk space of build outputs in bytes, which `limits.layers` limits.
    pub fn layers(&self) -> u64 {
        self.homes.iter().flat_map(|home| kept::list(home)).map(|(_, size, _)| size).sum()
    }

    /// The disk space of outcomes in bytes.
    pub fn outcomes(&self) -> u64 {
        self.homes.iter().map(|home| known_outcomes::disk_usage(home)).sum()
    }

    /// Removes all outcomes, and all build outputs that are not in use.
    pub fn clear(&self) -> Result<()> {
        for home in &self.homes {
            known_outcomes::forget_all(home);
            kept::remove_oldest(kept::list(home), 0)?;
        }
        Ok(())
    }
}
