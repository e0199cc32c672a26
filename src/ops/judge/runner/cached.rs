//! The cache of outcomes that a judging may use.
use crate::error::Result;
use crate::model::terms::Terms;
use crate::ops::attempt_times::when_attempts_ran;
use crate::ops::session::Session;
use crate::oracle::cache::{Cache, Conditions};
use crate::oracle::run::OracleOptions;

/// The cached outcomes on these terms with these options.
pub fn open_cache(session: &Session, terms: Terms, options: &OracleOptions) -> Result<Cache> {
    let conditions = Conditions::new(&terms.oracle, options, &session.policy);
    let distrusted = when_attempts_ran(session)?;
    Cache::open(&session.repo, session.home.as_deref(), terms, conditions, distrusted)
}
