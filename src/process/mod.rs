//! The only place that starts programs: a user's commands through duct, with a scrubbed environment.
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::model::outcome::Outcome;

/// What `git rev-parse --local-env-vars` lists (git 2.47): they tie a process to one repository.
/// A candidate's command must find its own worktree's repository, not the one of the hook or alias
/// that git-frites was started from.
pub const LOCAL_ENV_VARS: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
    "GIT_INTERNAL_SUPER_PREFIX",
];

/// A command of the user's, ready to run in a worktree.
pub struct Job<'a> {
    /// Program and arguments; never empty.
    pub argv: &'a [OsString],
    /// The folder it runs in.
    pub dir: &'a Path,
    /// Set on top of the scrubbed environment.
    pub env: Vec<(String, OsString)>,
    /// Variables that it must not see, beyond [`LOCAL_ENV_VARS`].
    pub hide: &'a [&'a str],
    /// Where both its output streams go, through a file: a grandchild that keeps a pipe open
    /// cannot hang us (GIT-FACTS, "Processes").
    pub log: &'a Path,
}

/// How a command ended, and how long it took.
pub struct End {
    /// Passed, failed, signalled or could not start; the other arms are decided by callers.
    pub outcome: Outcome,
    /// Wall-clock time.
    pub elapsed: Duration,
}

/// Runs a job to its end, its standard input empty.
///
/// A command that cannot be started is an [`Outcome`], not an error; an error is ours (the log
/// cannot be written, for instance).
pub fn run(job: &Job<'_>) -> io::Result<End> {
    let mut log = File::create(job.log)?;
    let (program, args) = job.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    // duct applies the last redirection first: only this order sends standard error to the log, too.
    let mut expression =
        duct::cmd(program, args).dir(job.dir).stdin_null().stderr_to_stdout().stdout_file(log.try_clone()?).unchecked();
    for name in LOCAL_ENV_VARS.iter().chain(job.hide) {
        expression = expression.env_remove(name);
    }
    // git must not climb out of the worktree into the checkout that contains it.
    if let Some(parent) = job.dir.parent() {
        expression = expression.env("GIT_CEILING_DIRECTORIES", parent);
    }
    expression = expression.env("PWD", job.dir);
    for (name, value) in &job.env {
        expression = expression.env(name, value);
    }
    let start = Instant::now();
    let outcome = match expression.run() {
        Ok(output) => outcome_of(output.status),
        Err(e) => {
            let reason = crate::error::describe(&e);
            writeln!(log, "git-frites: could not start {}: {reason}", program.to_string_lossy())?;
            Outcome::CouldNotStart { reason }
        }
    };
    Ok(End { outcome, elapsed: start.elapsed() })
}

/// Whether `program` can be found: a path that exists, or a name on PATH.
pub fn on_path(program: &OsStr) -> bool {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return path.is_file();
    }
    std::env::var_os("PATH").is_some_and(|dirs| std::env::split_paths(&dirs).any(|dir| dir.join(program).is_file()))
}

/// Feeds `bytes` to a pager, a shell command line as git has them.
///
/// A pager that is quit early is no error.
pub fn page(pager: &str, bytes: &[u8]) -> io::Result<()> {
    let mut expression = duct::cmd!("sh", "-c", pager).stdin_bytes(bytes).unchecked();
    // git's own defaults for less and lv (pager.c).
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if std::env::var_os(name).is_none() {
            expression = expression.env(name, value);
        }
    }
    expression.run().map(drop)
}

fn outcome_of(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(0), _) => Outcome::Passed,
        (Some(code), _) => Outcome::Failed { code },
        (None, signal) => Outcome::Signalled { signal: signal.unwrap_or_default() },
    }
}

/// How many things this machine does at once.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does `work` on every item, at most `jobs` at once; gives the results in the items' order.
///
/// All items are worked on even when one fails; the error is that of the first item that failed.
pub fn in_parallel<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<R>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                while let Some((at, item)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
                {
                    let result = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
