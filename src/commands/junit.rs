//! `--junit FILE`: writes a verdict as JUnit, for CI.
use std::fs;
use std::path::Path;

use crate::error::{IoContext, Result};
use crate::model::outcome::Stage;
use crate::model::verdict::{Entry, Verdict};
use crate::ops::log_excerpt;
use crate::ops::session::Session;
use crate::ui::junit;

/// The number of lines from the end of a log in a failure.
const LINES: usize = 40;

/// Writes a verdict to a file, if one is named.
pub fn write(session: &Session, verdict: &Verdict, file: Option<&Path>) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    let run = session.store.run(&verdict.run)?;
    let log_end = |entry: &Entry, stage: Stage, second: bool| {
        let logs = run.as_ref().map(|run| session.store.candidate(run, &entry.candidate).logs());
        let Some(Ok(place)) = logs else { return Vec::new() };
        log_excerpt::of(&place.of_judging(entry.iteration, stage, second), LINES)
    };
    let failed = || format!("could not write '{}'", file.display());
    let text = junit::document(verdict, &log_end).context(failed)?;
    fs::write(file, text).context(failed)
}
