//! The times at which attempts may have changed files in the cache directory.
use std::time::SystemTime;

use crate::error::Result;
use crate::fs::tree::{TimeSpan, nearest_real};
use crate::ops::session::Session;
use crate::oracle::pool;

/// The spans of time in which commands of attempts may have changed the cache directory, one for
/// each run. Attempts that could not write to it are left out.
///
/// A span goes from the creation of a run to the end of its last command. The recorded start of a
/// single command is not used, because the command could have changed its record. If a recorded
/// start or end is missing, the span goes up to now: e.g. git-frites was killed before it wrote the
/// end. A candidate without a command is left out, unless `retry` ran a command in its worktree.
pub fn when_attempts_ran(session: &Session) -> Result<Vec<TimeSpan>> {
    let store = &session.store;
    let cache = nearest_real(&pool::home_of_all(&session.repo)?);
    let mut spans = Vec::new();
    for run in store.runs()? {
        let mut attempts =
            store.candidates(&run).map(|c| c.record()).collect::<Result<Vec<_>>>()?;
        attempts.retain(|c| {
            let has_command = run.has_command(&c.candidate) || c.again;
            let is_kept_out = c.access.as_ref().is_some_and(|access| access.keeps_out_of(&cache));
            !is_kept_out && (has_command || c.started.is_some() || c.ended.is_some())
        });
        let ends = attempts.iter().map(|c| match (c.started, c.ended) {
            (Some(_), Some(end)) => SystemTime::from(end),
            _ => SystemTime::now(),
        });
        spans.extend(ends.max().map(|last| SystemTime::from(run.created)..=last));
    }
    Ok(spans)
}
