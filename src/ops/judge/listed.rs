//! The captures that the records of a run list: without one of them a candidate would seem to have
//! changed nothing, and another one would win.
use crate::error::{Error, Result};
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;

/// Refuses to go on with a run if a capture is missing here that its verdict, its terms or an
/// outcome list. A worktree is captured anew.
pub fn require_captures(session: &Session, run: &Run) -> Result<()> {
    let store = &session.store;
    let mut missing: Vec<CandidateRef<'_>> = Vec::new();
    for candidate in store.candidates(run) {
        if candidate.latest()?.is_none() && !candidate.worktree().is_dir() {
            missing.push(candidate);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let verdict = store.verdict(&run.run)?;
    let terms = store.terms(&run.run)?;
    let parts = store.parts(run)?;
    missing.retain(|candidate| {
        let name = candidate.name;
        let judged = verdict.as_ref().and_then(|verdict| verdict.entry(name));
        let mut alone = parts.iter().filter_map(|(_, part)| part.candidate.as_ref());
        let found = alone.find(|entry| entry.candidate == *name);
        let mut trees = terms.iter().flat_map(|terms| &terms.trees);
        judged.into_iter().chain(found).any(|entry| entry.iteration.is_some())
            || trees.any(|tree| tree.is_judged_for(name))
    });
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let what = match names.as_slice() {
        [] => return Ok(()),
        [one] => format!("the capture of {one} is not here"),
        all => format!("the captures of {} are not here", all.join(", ")),
    };
    Err(Error::fatal(what).hint(format!(
        "fetch the whole run: `git fetch REMOTE 'refs/frites/{0}/*:refs/frites/{0}/*'`, or decide with `git frites shard collect --remote REMOTE {0}`",
        run.run
    )))
}
