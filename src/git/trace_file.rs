//! Keeps the traces that git itself writes (`GIT_TRACE*`) apart from git's error messages.
use std::path::PathBuf;

use tempfile::TempDir;

use crate::error::Result;
use crate::fs::scratch;

/// The target of the trace events for lines that git itself traces. They exist if `GIT_TRACE*`
/// sends git's traces to standard error.
pub const TRACES: &str = "git_frites::git::trace";

/// The variables that say where git's traces go.
const TRACE_DESTINATIONS: &str = "
    GIT_TRACE GIT_TRACE2 GIT_TRACE2_EVENT GIT_TRACE2_PERF GIT_TRACE_CURL GIT_TRACE_FSMONITOR
    GIT_TRACE_PACKET GIT_TRACE_PACKFILE GIT_TRACE_PACK_ACCESS GIT_TRACE_PERFORMANCE GIT_TRACE_REFS
    GIT_TRACE_SETUP GIT_TRACE_SHALLOW";

/// True if a `GIT_TRACE*` variable sends git's traces to standard error.
pub fn traces_to_stderr() -> bool {
    stderr_traces().next().is_some()
}

/// The variables whose values make git send traces to standard error.
fn stderr_traces() -> impl Iterator<Item = &'static str> {
    TRACE_DESTINATIONS.split_whitespace().filter(|name| {
        let value = std::env::var(name).unwrap_or_default();
        ["1", "2", "true"].iter().any(|stderr| value.eq_ignore_ascii_case(stderr))
    })
}

/// A file for the traces of one call. git's standard error is captured as its error message, so git
/// must not write traces there.
pub(super) struct TraceFile(TempDir);

impl TraceFile {
    /// Makes the file; `None` if no variable sends traces to standard error.
    pub(super) fn create() -> Result<Option<TraceFile>> {
        if !traces_to_stderr() {
            return Ok(None);
        }
        Ok(Some(TraceFile(scratch::directory()?)))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("traces")
    }

    /// Sends the call's traces to the file.
    pub(super) fn redirect(&self, call: duct::Expression) -> duct::Expression {
        stderr_traces().fold(call, |call, name| call.env(name, self.path()))
    }

    /// Makes a trace event of each line that git has written to the file.
    pub(super) fn print(self) {
        let text = std::fs::read(self.path()).unwrap_or_default();
        for line in String::from_utf8_lossy(&text).lines() {
            tracing::info!(target: TRACES, "{line}");
        }
    }
}
