//! The cache of outcomes that a judging may use.
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::ops::attempt_times::when_attempts_ran;
use crate::ops::session::Session;
use crate::oracle::cache::{Cache, Conditions};
use crate::oracle::run::OracleOptions;

/// The cached outcomes of these commands with these options and seeds.
pub fn open_cache(
    session: &Session,
    oracle: &[OracleCommand],
    options: &OracleOptions,
    seeds: String,
) -> Result<Cache> {
    let conditions = Conditions::new(oracle, options, seeds, &session.policy);
    let distrusted = when_attempts_ran(session)?;
    Cache::open(&session.repo, session.home.as_deref(), conditions, distrusted)
}
