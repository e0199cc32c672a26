//! `clean.auto`: expired worktrees are cleaned in the background when a command ends.
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::config::keys;
use crate::error::{IoContext, Result};
use crate::fs::regular;
use crate::ops::session::Session;
use crate::process;
use crate::process::environment::caller;

/// Starts `clean --expired` in the background, unless it was last started less than `clean.auto` ago. Does
/// nothing if a command of an attempt called git-frites: when that command ends, git-frites would end the
/// background process, too.
pub fn start_if_due(session: &Session) {
    if let Err(error) = try_start(session) {
        session.ui.warn(format!("clean.auto: {}", error.message));
    }
}

fn try_start(session: &Session) -> Result<()> {
    let Some(interval) = session.config.get(keys::CLEAN_AUTO).0 else { return Ok(()) };
    let store = &session.store;
    let log = store.dir().auto_clean_log();
    if !is_due(&log, interval) || caller(&store.dir().runs()).is_some() {
        return Ok(());
    }
    let Some(_lock) = store.try_lock_auto_clean()? else { return Ok(()) };
    if !is_due(&log, interval) {
        return Ok(());
    }
    let failed = || format!("could not write '{}'", log.display());
    let mut file = regular::create_own(&log).context(failed)?;
    writeln!(file, "{}: git frites clean --expired", jiff::Timestamp::now()).context(failed)?;
    process::start_in_background(&["clean", "--expired"], file)
}

/// True if the last `clean --expired` started at least `interval` ago, according to the modification time of
/// its log. Also true if the log does not exist, or if its time is in the future.
fn is_due(log: &Path, interval: Duration) -> bool {
    let written = fs::symlink_metadata(log).and_then(|meta| meta.modified()).ok();
    written.and_then(|time| time.elapsed().ok()).is_none_or(|age| age >= interval)
}
