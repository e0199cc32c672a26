//! The limits of the configuration (`[limits]`) that new runs must observe.
use crate::config::keys;
use crate::error::{Error, Result};
use crate::model::env;
use crate::model::layout::{AGENT, log_name};
use crate::ops::session::Session;
use crate::process;

/// The nesting depth: the number of candidates' commands inside which this process runs. A command
/// can change `FRITES_DEPTH`, but it cannot hide its ancestor processes. So the depth is the larger
/// of `FRITES_DEPTH` and the number of ancestors' logs that belong to candidates' commands.
pub fn depth(session: &Session) -> Result<u32> {
    let runs = session.store.dir().runs();
    let agent = log_name(AGENT);
    let seen = process::surrounding_logs()
        .iter()
        .filter(|log| log.starts_with(&runs) && log.ends_with(&agent))
        .count();
    let seen = u32::try_from(seen).unwrap_or(u32::MAX);
    let Some(text) = std::env::var_os(env::DEPTH) else { return Ok(seen) };
    let from_variable: Option<u32> = text.to_str().and_then(|t| t.parse().ok());
    from_variable.map(|from_variable| from_variable.max(seen)).ok_or_else(|| {
        Error::fatal(format!("{} is not a number: '{}'", env::DEPTH, text.to_string_lossy()))
            .hint(format!("`unset {}`", env::DEPTH))
    })
}

/// Fails if a candidate's command that this process starts would be nested more deeply than
/// `limits.nesting` allows.
pub fn require_depth(session: &Session) -> Result<()> {
    let depth = depth(session)?;
    let nesting = session.config.get(keys::LIMITS_NESTING);
    if depth as usize >= nesting {
        return Err(Error::fatal(format!(
            "this runs inside a candidate's command (depth {depth}), and limits.nesting = {nesting}"
        ))
        .hint("an attempt that spawns attempts seldom ends; if it is intended: `git config frites.limits.nesting N`"));
    }
    Ok(())
}

/// Fails if `wanted` new candidates, together with the `present` ones of the run, exceed
/// `limits.candidates`.
pub fn require_candidates(session: &Session, present: usize, wanted: usize) -> Result<()> {
    let candidates = session.config.get(keys::LIMITS_CANDIDATES);
    let all = present.saturating_add(wanted);
    if all > candidates {
        return Err(Error::fatal(format!(
            "{all} candidates are more than limits.candidates = {candidates}"
        ))
        .hint("ask for fewer, or raise it: `git config frites.limits.candidates N`"));
    }
    Ok(())
}

/// Fails as [`require_candidates`] does. Also fails if the worktrees of all runs would exceed
/// `limits.worktrees`.
pub fn require_room(session: &Session, present: usize, wanted: usize) -> Result<()> {
    require_candidates(session, present, wanted)?;
    let limit = session.config.get(keys::LIMITS_WORKTREES);
    let mut present = 0;
    for run in session.store.runs()? {
        present += session.store.candidates(&run).filter(|c| c.worktree().exists()).count();
    }
    if present + wanted > limit {
        return Err(Error::fatal(format!(
            "{present} worktrees and {wanted} new ones are more than limits.worktrees = {limit}"
        ))
        .hint("remove old runs with `git frites clean RUN`, or raise it: `git config frites.limits.worktrees N`"));
    }
    Ok(())
}
